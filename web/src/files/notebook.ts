// The whole layer as a Jupyter notebook: NumPy from the words' vectors, or from the queries and keys where no such product
// made them, to weights, contexts and output, which it asserts to be the page's.
import type { Copied } from "../layer/python_copy.ts";
import type { Stage } from "../engine/protocol.ts";

// A notebook with more values would be too large to read: arrays are exported for that.
const mostNumbers = 400_000;

const list = (values: ArrayLike<number>) =>
    `[${Array.from(values, (v) =>
        Number.isFinite(v) ? String(Number(v.toPrecision(9))) : `np.float32("${v}")`,
    ).join(", ")}]`;

function arrayOf({ data, shape }: Stage): string {
    const columns = shape.at(-1)!,
        rows = Array.from({ length: data.length / columns }, (_, r) =>
            list(data.subarray(r * columns, (r + 1) * columns)),
        );
    return `np.array([${rows.join(",\n    ")}], np.float32)${shape.length > 2 ? `.reshape(${shape.join(", ")})` : ""}`;
}

export interface Layer extends Copied {
    outputBias: number[];
}

// The cells' Python, in their order.
export function cellsOf(layer: Layer): string[] {
    const { state, stages, tokens, keyTokens, heads, headIndex: head } = layer;
    const find = (id: string) => stages.find((s) => s.id === id),
        [x, wq, wk, wv, q, k, v, wo, keep] = [
            "inputs",
            "w_query",
            "w_key",
            "w_value",
            "queries",
            "keys",
            "values",
            "w_output",
            "keep",
        ].map(find);
    // Turned queries, rounded ones and a learned layer's biases begin at the products.
    const plain = !layer.own && !layer.learned && !state.rope && state.precision === "f32",
        level1 = plain && !q,
        projects = plain && x && wq && wk && wv && q && x.data.length + 3 * wq.data.length <= mostNumbers / 2,
        given = level1 ? [x] : projects ? [x, wq, wk, wv] : [q, k, v],
        end = find("dropped") ?? find("weights")!,
        context = find("context")!,
        output = projects && wo ? find("output") : undefined,
        shown = [...given, end, context, ...(output ? [wo, output] : [])];
    if (given.some((s) => !s) || !layer.visible.length)
        throw new Error("this layer is too large for a notebook; export arrays (npy)");
    const numbers = shown.reduce((sum, s) => sum + s!.data.length, 0);
    if (numbers > mostNumbers)
        throw new Error(
            `this layer has ${numbers.toLocaleString("en")} elements; the limit of a notebook is ${mostNumbers.toLocaleString("en")}: export arrays (npy)`,
        );
    const cells = [
        `import numpy as np\n\ntokens = ${JSON.stringify(tokens)}\nheads = ${heads}`,
        level1
            ? `# Words' vectors stand for queries, keys and values.\nX = ${arrayOf(x!)}\nQ = K = V = X[None]`
            : projects
              ? [
                    `X = ${arrayOf(x)}`,
                    `W_q = ${arrayOf(wq)}`,
                    `W_k = ${arrayOf(wk)}`,
                    `W_v = ${arrayOf(wv)}`,
                    `def heads_of(x, W):  # [heads, tokens, width]`,
                    `    made = x @ W${q.formula.includes("ᵀ") ? ".T" : ""}`,
                    `    return made.reshape(len(x), -1, ${q.shape.at(-1)}).transpose(1, 0, 2)`,
                    `Q, K, V = heads_of(X, W_q), heads_of(X, W_k), heads_of(X, W_v)`,
                ].join("\n")
              : [q!, k!, v!]
                    .map((s, n) => `${"QKV"[n]} = ${arrayOf(s)}${s.shape.length > 2 ? "" : "[None]"}`)
                    .join("\n"),
        "# Several query heads may share one of keys and values.\nK, V = (np.repeat(part, heads // len(part), axis=0) for part in (K, V))",
    ];
    const root = state.scale === "auto" ? "np.sqrt(Q.shape[-1])" : state.scale === "none" ? "1" : state.scale;
    const steps = [
        `scores = Q @ K.transpose(0, 2, 1) / (${root}${state.temp === 1 ? "" : ` * ${state.temp}`})`,
    ];
    if (state.cap > 0) steps.push(`scores = ${state.cap} * np.tanh(scores / ${state.cap})`);
    if (state.alibi)
        steps.push(
            "slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)",
            "query, key = np.indices(scores.shape[1:])",
            "scores = scores + slopes[:, None, None] * (key - query)",
        );
    steps.push(
        `visible = np.array(${list(layer.visible)}, bool).reshape(${tokens.length}, ${keyTokens.length})`,
        "scores = np.where(visible, scores, -np.inf)",
        "highest = scores.max(axis=-1, keepdims=True)",
        "exps = np.exp(scores - np.where(np.isfinite(highest), highest, 0))",
        "sums = exps.sum(axis=-1, keepdims=True)",
        "weights = exps / np.where(sums == 0, 1, sums)",
    );
    // The page knows the shown head's dropped weights: with dropout that head is the layer.
    const only = keep && heads > 1;
    if (keep)
        steps.push(
            ...(only ? [`weights, V = weights[${head}:${head + 1}], V[${head}:${head + 1}]`] : []),
            `kept = np.array(${list(keep.data)}).reshape(weights.shape[1:])`,
            `weights = weights * kept / (1 - ${state.p})`,
        );
    cells.push(
        steps.join("\n"),
        "contexts = weights @ V\njoined = np.concatenate(list(contexts), axis=-1)\nprint(joined)",
    );
    const close = (name: string, stage: Stage) =>
        `assert np.allclose(${name}, ${arrayOf(stage)}, rtol=0, atol=1e-5 * max(1, np.abs(${name}).max()))  # the page computes in float32`;
    const dim = context.shape.at(-1)! / heads;
    cells.push(
        `${close(`weights[${only ? 0 : head}]`, end)}\n${close("joined", only ? part(context, head * dim, dim) : context)}`,
    );
    if (output && !only)
        cells.push(
            `W_o = ${arrayOf(wo!)}\noutput = joined @ W_o${output.formula.includes("ᵀ") ? ".T" : ""}${layer.outputBias.length ? ` + np.array(${list(layer.outputBias)})` : ""}\nprint(output)\n${close("output", output)}`,
        );
    return cells;
}

// Some columns of a stage.
function part(stage: Stage, first: number, count: number): Stage {
    const columns = stage.shape.at(-1)!,
        rows = stage.data.length / columns,
        data = new Float32Array(rows * count);
    for (let r = 0; r < rows; ++r)
        data.set(stage.data.subarray(r * columns + first, r * columns + first + count), r * count);
    return { ...stage, shape: [rows, count], data };
}

// nbformat 4.5
export function notebookOf(layer: Layer): string {
    const source = (text: string) => text.split(/(?<=\n)/);
    const about = layer.own
        ? "Attention of tensors of one's own"
        : `Attention of “${layer.tokens.join(" ")}”`;
    return `${JSON.stringify(
        {
            cells: [
                {
                    cell_type: "markdown",
                    id: "about",
                    metadata: {},
                    source: source(
                        `# ${about}\n\nEvery number of a layer, computed anew with NumPy and compared with what Fovea showed.`,
                    ),
                },
                ...cellsOf(layer).map((text, n) => ({
                    cell_type: "code",
                    execution_count: null,
                    id: `cell${n}`,
                    metadata: {},
                    outputs: [],
                    source: source(text),
                })),
            ],
            metadata: {
                kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
                language_info: { name: "python" },
            },
            nbformat: 4,
            nbformat_minor: 5,
        },
        null,
        1,
    )}\n`;
}
