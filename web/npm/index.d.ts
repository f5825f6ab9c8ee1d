/** Sizes of a call; tensors are packed float32, `[batch, heads, tokens, dim]`. */
export interface Shape {
    batch?: number;
    /** Query heads; a multiple of `kvHeads`, which share keys and values in groups. */
    heads: number;
    kvHeads?: number;
    queries: number;
    keys: number;
    dim: number;
    /** Width of the values; default: `dim`. */
    dimV?: number;
}

/** Where a call runs. Default: a hardware GPU whose results passed a check, for calls of at least 2 GFLOP; else the CPU. */
export type Device = "cpu" | "gpu";

export interface Weights {
    shape: Shape;
    /** Query i sees keys up to i. */
    causal?: boolean;
    /** Query i sees keys from i - left to i + right; -1: no bound. */
    window?: [left: number, right: number];
    /** `[queries, keys]`, the same for all heads: 0 masks. */
    mask?: Uint8Array;
    /** `[queries, keys]`, the same for all heads: added to the scores; -Infinity masks. */
    bias?: Float32Array;
    /** Slopes of ALiBi, one for each query head. */
    alibi?: Float32Array;
    /** Scores are capped to softcap * tanh(score / softcap); 0: off. */
    softcap?: number;
    /** Multiplies q·k; 1/sqrt(dim) by default. */
    scale?: number;
    device?: Device;
}

export interface AttentionOptions extends Weights {
    /** Attention sinks: a logit for each query head that takes weight and adds no value. */
    sinks?: Float32Array;
}

export interface AttentionResult {
    /** `[batch, heads, queries, dimV]`. */
    o: Float32Array;
    /** `[batch, heads, queries]`: the logarithm of the sum of exp(score); -Infinity for a fully masked query. */
    lse: Float32Array;
    device: Device;
}

/** softmax(scale * q kᵀ + bias, masked) v. Rejects with an error that names what is wrong. */
export function attention(
    q: Float32Array,
    k: Float32Array,
    v: Float32Array,
    options: AttentionOptions,
): Promise<AttentionResult>;

export interface MapOptions extends Weights {
    /** Pixels; at most the number of keys and queries of the part. */
    width: number;
    height: number;
    /** The part of the matrix: first and count; default: all. */
    rows?: [first: number, count: number];
    keys?: [first: number, count: number];
    /** Query head; default: all. */
    head?: number;
}

export interface MapResult {
    /** `[heads, height, width]`: the sum of the weights of each pixel's cells. NaN if a weight is not finite. */
    mass: Float64Array;
    /** `[heads, height, width]`: the largest weight of each pixel. NaN if a weight is not finite. */
    max: Float32Array;
    device: Device;
}

/** A picture of the attention weights, from q, k and the `lse` of `attention`. */
export function map(
    q: Float32Array,
    k: Float32Array,
    lse: Float32Array,
    options: MapOptions,
): Promise<MapResult>;

export interface MergeShape {
    batch?: number;
    heads: number;
    queries: number;
    dimV: number;
}

/** Merges results of the same queries over parts of the keys into the result over all keys. */
export function merge(
    parts: { o: Float32Array; lse: Float32Array }[],
    shape: MergeShape,
): Promise<{ o: Float32Array; lse: Float32Array }>;

/** The GPU that calls may use, or why there is none. */
export function device(): Promise<{ gpu: string; reason: string }>;
