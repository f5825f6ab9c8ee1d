// The messages between the page and the Worker that runs published models.
import type { Steps, Why } from "../engine/protocol.ts";

export interface ModelConfig {
    family: string;
    architecture: string;
    layers: number;
    heads: number;
    kvHeads: number;
    width: number;
    headWidth: number;
    vocabulary: number;
    context: number | null;
    causal: boolean;
    softcap: number;
    types: { name: string; bytes: number }[];
    bytes: number;
    layerBytes: number; // bytes of the largest layer as float32
    held: boolean; // the files are in memory
    whyNoText: string | null; // token IDs are typed instead
    text: string; // to begin with
}
export interface ModelToken {
    id: number;
    text: string;
    begin: number;
    end: number;
}
export interface HeadFigures {
    previous: number | null;
    induction: number | null;
    first: number | null;
    same: number | null;
    entropy: number;
    job: string;
}
export interface ModelRun {
    tokens: ModelToken[];
    side: number; // side of a thumbnail
    pictures: Float32Array; // [layers, heads, side, side]
    heads: HeadFigures[][];
    firstLayer: number; // the first layer that was computed again
    ms: number;
}
export interface Likely {
    text: string;
    probability: number;
    unchanged?: number;
}
export interface ModelNext {
    next: Likely[] | null; // null: the files hold no unembedding
    said: Likely[] | null; // by the model without changes; null where there are none
    lens: Likely[][] | null;
}
export interface ModelHead {
    weights: Float32Array;
    masked: Float32Array;
    valued: Float32Array;
    entropy: number[];
}
export interface ModelRow {
    stage: string;
    stages: { id: string; formula: string; heads: number; rows: number; columns: number }[];
    row: Float32Array;
}
type Figure = number | string; // infinities and NaN are texts
export interface ModelSum {
    how: string;
    a: string;
    b: string; // empty: one number a term
    terms: { name: string; a: Figure; b: Figure; product: Figure }[]; // the largest
    left: number;
    leftSum: Figure;
    addedName: string;
    added: Figure;
    sum: Figure;
    ending: string;
    result: Figure;
    factors: ModelSum[];
}
// The inputs for a map of one head.
export interface ModelMap {
    q: Float32Array; // [tokens, dim]
    k: Float32Array;
    dim: number;
    tokens: string[];
    scale: string;
    softcap: number;
    causal: boolean;
    windowed: boolean;
    left: number;
    right: number;
}
export interface ModelSteps extends Steps {
    origins: string[]; // origins of query, key and value
    scale: number;
}

export interface ModelRequests {
    start: { ask: { variant: string; threads: number }; answer: null };
    open: { ask: { files: File[]; held: number }; answer: ModelConfig }; // held: how many bytes may be in memory
    run: {
        ask: {
            text: string;
            scales: [layer: number, head: number, by: number][];
            patches: [layer: number, head: number, text: string][];
            hidden: number[];
        };
        answer: ModelRun;
    };
    next: { ask: { token: number }; answer: ModelNext };
    head: { ask: { layer: number; head: number }; answer: ModelHead };
    row: { ask: { layer: number; stage: string; head: number; row: number }; answer: ModelRow };
    sum: {
        ask: { layer: number; stage: string; head: number; row: number; column: number };
        answer: { value: Figure; sum: ModelSum | null };
    };
    map: { ask: ModelRequests["run"]["ask"] & { layer: number; head: number }; answer: ModelMap };
    derive: { ask: { layer: number; head: number; query: number; key: number }; answer: ModelSteps };
    why: { ask: ModelRequests["derive"]["ask"]; answer: Why };
}
export type ModelKind = keyof ModelRequests;
export interface ModelRequest<K extends ModelKind = ModelKind> {
    id: number;
    kind: K;
    ask: ModelRequests[K]["ask"];
}
