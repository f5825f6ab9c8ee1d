// One weight as a Python script that begins with the words' vectors and the weight matrices, and asserts the page's number.
import type { Source } from "../app/arithmetic.ts";
import type { State } from "../page/state.ts";

// Longer scripts would be data, not arithmetic.
const mostNumbers = 4000;

export interface Copied extends Source {
    state: State;
    visible: Uint8Array; // 1 for each query and key that the mask lets see each other; empty where that is not known
    own: unknown; // the reader's tensors, or null
}

// Null where the script would be too long, or where a step is not in it: the engine's derivation is copied then.
export function pythonOf(source: Copied, i: number, j: number): string | null {
    const { state, stages, tokens, keyTokens, heads, headIndex: head } = source;
    const find = (id: string) => stages.find((s) => s.id === id);
    const [x, wq, wk, q, k] = ["inputs", "w_query", "w_key", "queries", "keys"].map(find);
    const given = source.own ? [q, k] : [x, wq, wk];
    const numbers = given.reduce((sum, stage) => sum + (stage?.data.length ?? 0), 0);
    if (numbers > mostNumbers || state.rope || state.precision !== "f32" || !source.visible.length)
        return null;

    const list = (values: ArrayLike<number>) =>
        `[${Array.from(values, (v) => String(Number(v.toPrecision(9)))).join(", ")}]`;
    const matrix = (data: Float32Array, columns: number) =>
        `[${Array.from({ length: data.length / columns }, (_, r) => list(data.subarray(r * columns, (r + 1) * columns))).join(",\n     ")}]`;
    const rows = tokens.length,
        keys = keyTokens.length;
    const lines = [
        `# ${JSON.stringify(tokens[i])} looks at ${JSON.stringify(keyTokens[j])}, head ${head}`,
        "from math import exp, sqrt, tanh",
        "",
        "def dot(a, b): return sum(x * y for x, y in zip(a, b))",
    ];
    let dim: number;
    if (source.own && q && k) {
        dim = q.shape.at(-1)!;
        const part = (stage: typeof q, count: number) => {
            const own = stage.shape.length > 2 ? Math.floor(head / (heads / stage.shape[0])) : 0;
            return matrix(stage.data.subarray(own * count * dim, (own + 1) * count * dim), dim);
        };
        lines.push(`Q = ${part(q, rows)}`, `K = ${part(k, keys)}`, `q = Q[${i}]`);
    } else {
        if (!x) return null;
        const width = x.shape.at(-1)!;
        lines.push(`X = ${matrix(x.data, width)}`);
        dim = width;
        if (wq && wk && q && k) {
            dim = q.shape.at(-1)!;
            const turned = q.formula.includes("ᵀ");
            const kvHeads = k.shape.length > 2 ? k.shape[0] : 1,
                kv = Math.floor(head / (heads / kvHeads));
            lines.push(
                `W_q = ${matrix(wq.data, wq.shape[1])}`,
                `W_k = ${matrix(wk.data, wk.shape[1])}`,
                `def times(x, W): return [dot(x, w) for w in ${turned ? "W" : "zip(*W)"}]  # ${turned ? "x·Wᵀ" : "x·W"}`,
                `q = times(X[${i}], W_q)${heads > 1 ? `[${head * dim}:${(head + 1) * dim}]` : ""}`,
                `K = [times(x, W_k)${kvHeads > 1 ? `[${kv * dim}:${(kv + 1) * dim}]` : ""} for x in X]`,
            );
        } else lines.push(`q, K = X[${i}], X`);
    }
    const root = state.scale === "auto" ? `sqrt(${dim})` : state.scale === "none" ? "1" : state.scale;
    lines.push(`scores = [dot(q, k) / (${root}${state.temp === 1 ? "" : ` * ${state.temp}`}) for k in K]`);
    if (state.cap > 0) lines.push(`scores = [${state.cap} * tanh(s / ${state.cap}) for s in scores]`);
    if (state.alibi)
        lines.push(
            `scores = [s + ${2 ** ((-8 * (head + 1)) / heads)} * (key - ${i}) for key, s in enumerate(scores)]`,
        );
    const seen = source.visible.subarray(i * keys, (i + 1) * keys);
    lines.push(
        `visible = ${list(seen)}`,
        "highest = max([s for s, v in zip(scores, visible) if v], default=0)",
        "exps = [exp(s - highest) if v else 0 for s, v in zip(scores, visible)]",
        "weights = [e / (sum(exps) or 1) for e in exps]",
    );
    const keep = find("keep");
    if (keep)
        lines.push(
            `kept = ${list(keep.data.subarray(i * keys, (i + 1) * keys))}`,
            `weights = [w * k / (1 - ${state.p}) for w, k in zip(weights, kept)]`,
        );
    const shown = (keep ? find("dropped") : find("weights"))!.data[i * keys + j];
    lines.push(
        `print(weights[${j}])`,
        `assert abs(weights[${j}] - ${Number(shown.toPrecision(9))}) < 1e-5  # the page computes in float32`,
    );
    return `${lines.join("\n")}\n`;
}
