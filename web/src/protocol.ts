// What the page and its Worker say to each other. Every request has an id; a reply carries it.
import type { TensorShape } from "./state.ts";

export interface Stage { id: string; shape: number[]; data: Float32Array }

export interface Steps {
    visible: boolean;
    q: number[]; k: number[]; v: number[]; products: number[]; running: number[];
    score: number; scaled: number; capped: number; bias: number; masked: number | string; rowMax: number | string;
    exponential: number; denominator: number; weight: number; hasKeep: boolean; kept: boolean; finalWeight: number;
    rank: number;
    rowMasked: (number | string)[]; rowWeights: number[];
}

export interface Computed { shared: Stage[]; head: Stage[]; headIndex: number; thumbnails: Float32Array | null; thumbnailSize: number; ms: number; kernel: string }
export interface EngineInfo { variant: string; threads: number; target: string; reason: string; abi: number }
export interface Tile { mass: Float32Array; max: Float32Array; ms: number }
export interface OwnTensors { shape: TensorShape; q: Float32Array; k: Float32Array; v: Float32Array | null }

export interface Requests {
    start: { ask: { engine: string; lock: string }; answer: EngineInfo };
    compute: { ask: { text: string; head: number; heads: number; thumbnails: number; own: OwnTensors | null }; answer: Computed };
    headStages: { ask: { head: number }; answer: Stage[] };
    derive: { ask: { head: number; row: number; column: number }; answer: Steps };
    mapBegin: { ask: { tokens: number; dim: number; seed: number }; answer: null };
    mapPrepare: { ask: { maxFlops: number }; answer: number };
    mapTile: { ask: { level: number; row: number; column: number; rows: number; columns: number; sampled: boolean }; answer: Tile };
    mapCell: { ask: { row: number; column: number }; answer: number };
    bench: { ask: { heads: number; tokens: number; dim: number; threads: number; repeats: number }; answer: number };
}
export type Kind = keyof Requests;
export interface Request<K extends Kind = Kind> { id: number; kind: K; ask: Requests[K]["ask"] }
export interface Reply { id: number; answer?: unknown; error?: string }
