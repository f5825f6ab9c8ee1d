// The arithmetic of one value of any stage other than a matrix of queries and keys, from the stages that the engine
// computed. Sums are in float32 and in the plain order, as in the engine's strict arithmetic.
import { fill } from "../page/format.ts";
import type { Learned, Stage } from "../engine/protocol.ts";

export interface Term {
    label: string | number;
    a: number;
    b: number;
    product: number;
    running: number;
}
export interface Arithmetic {
    what: string; // "row of step times column 1 of W_q"
    names: [string, string, string]; // the names of `a`, `b` and their product
    terms: Term[];
    steps: [string, number][]; // after the sum
    value: number; // the result
    uses: [string, "row" | "column", number][]; // the values it takes, by stage
}

// The input of the arithmetic: a result of the page, or of a test.
export interface Source {
    stages: Stage[];
    tokens: string[];
    keyTokens: string[];
    names: string[]; // `tokens` as the page shows them
    keyNames: string[];
    heads: number;
    headIndex: number;
    outputBias: number[];
    learned?: Learned | null;
}

const { fround } = Math;

function sumOf(labels: (string | number)[], a: ArrayLike<number>, b: ArrayLike<number>): Term[] {
    let running = 0;
    return labels.map((label, n) => {
        const product = fround(a[n] * b[n]);
        running = fround(running + product);
        return { label, a: a[n], b: b[n], product, running };
    });
}

// One head's part of a stage that may have a matrix for each.
function matrix(source: Source, id: string, head = source.headIndex) {
    const stage = source.stages.find((s) => s.id === id);
    if (!stage) return null;
    const [rows, columns] = stage.shape.slice(-2),
        heads = stage.shape.length > 2 ? stage.shape[0] : 1,
        all = source.heads / (source.learned?.layers ?? 1),
        own = heads === 1 ? 0 : Math.floor((head % all) / (all / heads)),
        data = stage.data.subarray(own * rows * columns, (own + 1) * rows * columns);
    return {
        rows,
        columns,
        heads,
        own,
        row: (i: number) => data.subarray(i * columns, (i + 1) * columns),
        column: (j: number) => Float32Array.from({ length: rows }, (_, i) => data[i * columns + j]),
        at: (i: number, j: number) => data[i * columns + j],
    };
}

const range = (count: number) => Array.from({ length: count }, (_, n) => n);

// A row of x times a column of W, or a row of W where its formula is X·Wᵀ.
function projected(
    source: Source,
    [from, weights, name]: [string, string, string],
    i: number,
    column: number,
    token: string,
    transposed: boolean,
): Arithmetic | null {
    const x = matrix(source, from),
        w = matrix(source, weights);
    if (!x || !w) return null;
    const terms = sumOf(range(x.columns), x.row(i), transposed ? w.row(column) : w.column(column));
    return {
        what: fill(
            texts.steps.projected,
            token,
            transposed ? texts.steps.row : texts.steps.column,
            column,
            name,
        ),
        names: [from === "context" ? texts.steps.context : "x", "w", texts.steps.product],
        terms,
        steps: [],
        value: terms.at(-1)?.running ?? 0,
        uses: [
            [from, "row", i],
            [weights, transposed ? "row" : "column", column],
        ],
    };
}

const projections: Record<string, [string, string, string]> = {
    queries: ["inputs", "w_query", "W_q"],
    keys: ["inputs", "w_key", "W_k"],
    values: ["inputs", "w_value", "W_v"],
    output: ["context", "w_output", "W_o"],
};

const biasOf = { queries: "queryBias", keys: "keyBias", values: "valueBias" } as const;

// Null where the number was given or drawn, or where its arithmetic is that of a pair.
export function arithmeticOf(source: Source, id: string, i: number, column: number): Arithmetic | null {
    const stage = source.stages.find((s) => s.id === id);
    if (!stage) return null;
    const token = source.names[i] ?? String(i);
    if (id in projections) {
        const here = matrix(source, id)!,
            wide = here.heads > 1 ? here.own * here.columns + column : column;
        const name = id === "keys" || id === "values" ? (source.keyNames[i] ?? String(i)) : token;
        const [from, ...rest] = projections[id],
            normed = from === "inputs" && matrix(source, "normed") !== null;
        const found = projected(
            source,
            [normed ? "normed" : from, ...rest],
            i,
            wide,
            name,
            stage.formula.includes("ᵀ"),
        );
        const biases =
                id === "output" ? source.outputBias : source.learned?.[biasOf[id as keyof typeof biasOf]],
            bias = biases?.[wide];
        if (found && bias !== undefined) {
            found.value = fround(found.value + bias);
            found.steps.push([`+ b, ${column}`, found.value]);
        }
        if (found && source.learned?.rotates && (id === "queries" || id === "keys")) {
            found.value = here.at(i, column);
            found.steps.push([fill(texts.steps.turned, i), found.value]);
        }
        return found;
    }
    if (id === "context") {
        const all = source.heads / (source.learned?.layers ?? 1),
            wide = stage.shape.at(-1)! / all,
            head = Math.floor(column / wide);
        // The matrices in sight are of one head.
        if (head !== source.headIndex % all) return null;
        const weights = matrix(source, "dropped") ?? matrix(source, "weights")!,
            values = matrix(source, "values") ?? matrix(source, "inputs");
        if (!values) return null;
        const terms = sumOf(source.keyNames, weights.row(i), values.column(column % wide));
        return {
            what: fill(texts.steps.mixed, token, column % wide),
            names: texts.steps.mixedNames.split(",") as [string, string, string],
            terms,
            steps: [],
            value: terms.at(-1)?.running ?? 0,
            uses: [
                ["weights", "row", i],
                ["values", "column", column % wide],
            ],
        };
    }
    if (id === "lse") {
        const scores = ["masked", "capped", "scaled", "scores"]
            .map((name) => matrix(source, name))
            .find((found) => found !== null);
        if (!scores) return null;
        const row = scores.row(i),
            highest = row.reduce((a, b) => Math.max(a, b), -Infinity);
        if (highest === -Infinity) return null;
        const parts = Float32Array.from(row, (s) => Math.exp(s - highest)),
            terms = sumOf(source.keyNames, row, parts).map((term, n) => ({
                ...term,
                product: parts[n],
                running: 0,
            }));
        let running = 0;
        for (const term of terms) term.running = running = fround(running + term.product);
        return {
            what: fill(texts.steps.lessLargest, token, highest.toFixed(4)),
            names: [texts.steps.scoreName, "exp", "exp"],
            terms,
            steps: [
                [texts.steps.logOfSum, Math.log(running)],
                [texts.steps.plusLargest, Math.log(running) + highest],
            ],
            value: Math.log(running) + highest,
            uses: [["masked", "row", i]],
        };
    }
    if (id === "row_sums") {
        const row = matrix(source, "masked_weights")!.row(i),
            terms = sumOf(source.keyNames, row, new Float32Array(row.length).fill(1));
        return {
            what: fill(texts.steps.left, token),
            names: [texts.steps.weightName, "", texts.steps.weightName],
            terms,
            steps: [],
            value: terms.at(-1)?.running ?? 0,
            uses: [["masked_weights", "row", i]],
        };
    }
    return null;
}
