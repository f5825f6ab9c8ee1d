// One weight as LaTeX and as CSV, from the words' vectors and the weight matrices to the number: the same values that the
// Python copy computes with. Loaded when a reader first copies.
import type { Copied } from "./python_copy.ts";
import type { Stage } from "../engine/protocol.ts";
export { pythonOf } from "./python_copy.ts";

// Wider or longer matrices are data, not arithmetic: the engine's derivation is copied then.
const mostWide = 8,
    mostTokens = 16;

interface Part {
    id: string;
    name: string; // in LaTeX
    rows: number;
    columns: number;
    at: (row: number, column: number) => number;
}

// One head's part of each stage on the way to a weight, in their order; null where that is too much to read.
function partsOf(source: Copied): Part[] | null {
    const names: Record<string, string> = {
        inputs: "X",
        w_query: "W_q",
        w_key: "W_k",
        queries: "Q",
        keys: "K",
        scores: "S",
        scaled: "S / (\\sqrt{d}\\,T)",
        capped: "\\mathrm{softcap}(S)",
        masked: "M",
        weights_all: "\\mathrm{softmax}(S)",
        masked_weights: "A \\odot V",
        weights: "A",
        keep: "\\mathrm{keep}",
        dropped: "A'",
    };
    const part = (stage: Stage): Part => {
        const [rows, columns] = stage.shape.slice(-2),
            heads = stage.shape.length > 2 ? stage.shape[0] : 1,
            own = heads === 1 ? 0 : Math.floor(source.headIndex / (source.heads / heads)),
            first = own * rows * columns;
        return {
            id: stage.id,
            name: names[stage.id],
            rows,
            columns,
            at: (row, column) => stage.data[first + row * columns + column],
        };
    };
    const parts = source.stages.filter(({ id }) => id in names).map(part);
    const small = ({ rows, columns }: Part) =>
        Math.max(rows, columns) <= mostTokens &&
        Math.min(rows, columns) <= Math.max(mostWide, source.tokens.length);
    return parts.length && parts.every(small) ? parts : null;
}

const text = (x: number) => (x === -Infinity ? "-\\infty" : String(Number(x.toPrecision(5))));

// Stages of one number for each query and key, in the order of the computation.
const pairStages = [
    "scores",
    "scaled",
    "capped",
    "masked",
    "weights_all",
    "masked_weights",
    "weights",
    "keep",
    "dropped",
];

export function latexOf(source: Copied, i: number, j: number): string | null {
    const parts = partsOf(source);
    if (!parts) return null;
    const find = (id: string) => parts.find((p) => p.id === id),
        turned = source.stages.some(({ id, formula }) => id === "queries" && formula.includes("ᵀ"));
    const matrix = (p: Part, row?: number) => {
        const rows = row === undefined ? Array.from({ length: p.rows }, (_, r) => r) : [row];
        return `\\begin{pmatrix} ${rows.map((r) => Array.from({ length: p.columns }, (_, c) => text(p.at(r, c))).join(" & ")).join(" \\\\ ")} \\end{pmatrix}`;
    };
    const lines: string[] = [];
    const x = find("inputs"),
        given = ["w_query", "w_key"].map(find);
    for (const [n, [id, letter]] of [
        ["queries", "q"],
        ["keys", "k"],
    ].entries()) {
        const made = find(id),
            weights = given[n];
        if (!made) continue;
        const name = n ? "K" : `${letter}_{${i}}`,
            of = n ? undefined : i;
        // A weight matrix of all heads is larger than the part that one head multiplies by.
        lines.push(
            x && weights
                ? `${name} &= ${n ? "X" : `x_{${i}}`}\\,${weights.name}${turned ? "^\\top" : ""} = ${matrix(x, of)} ${matrix(weights)}${turned ? "^\\top" : ""}${source.heads > 1 ? "\\;\\text{(this head's part)}" : ""} = ${matrix(made, of)}`
                : `${name} &= ${matrix(made, of)}`,
        );
    }
    if (!find("queries") && x) lines.push(`X &= ${matrix(x)}`);
    for (const id of pairStages) {
        const p = find(id);
        if (!p) continue;
        const name =
            id === "scores"
                ? find("queries")
                    ? `q_{${i}} K^\\top`
                    : `x_{${i}} X^\\top`
                : `${p.name}_{${i}}`;
        lines.push(`${name} &= ${matrix(p, i)}`);
    }
    const end = find("dropped") ?? find("weights")!;
    lines.push(`${end.name}_{${i},${j}} &= ${text(end.at(i, j))}`);
    return `\\begin{aligned}\n${lines.join(" \\\\\n")}\n\\end{aligned}\n`;
}

export function csvOf(source: Copied, i: number, j: number): string | null {
    const parts = partsOf(source);
    if (!parts) return null;
    const lines = ["stage,row,column,value"];
    for (const p of parts)
        for (let r = 0; r < p.rows; ++r) {
            if ((pairStages.includes(p.id) || p.id === "queries") && r !== i) continue; // one query's way
            for (let c = 0; c < p.columns; ++c) {
                const value = p.at(r, c);
                lines.push(
                    `${p.id},${r},${c},${value === -Infinity ? "-inf" : Number(value.toPrecision(9))}`,
                );
            }
        }
    const end = parts.find(({ id }) => id === "dropped") ?? parts.find(({ id }) => id === "weights")!;
    lines.push(`result,${i},${j},${Number(end.at(i, j).toPrecision(9))}`);
    return `${lines.join("\n")}\n`;
}
