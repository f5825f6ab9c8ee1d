// The messages between the page and its Worker. Every request has an id; a reply carries it.
import type { Tables } from "../page/colors.ts";
import type { State, TensorShape } from "../page/state.ts";

// Explains why a key of a session was not used.
export interface Note {
    key: string;
    text: string;
}
export interface Stage {
    id: string;
    formula: string;
    shape: number[];
    data: Float32Array;
}

// From a query and a key to their weight.
export interface ScoreSteps {
    hiddenBy: string; // "" where the query sees the key
    q: number[];
    k: number[];
    products: number[];
    running: number[];
    dot: number;
    score: number;
    capped: number;
    alibi: number;
    masked: number | string;
    visibleKeys: number;
    rowMax: number | string;
    exponential: number;
    denominator: number;
    lse: number | string;
    weight: number;
    hasDropout: boolean;
    kept: boolean;
    finalWeight: number;
}
// And from the weight to its share of the context; its row.
// A part of the model that writes to the stream.
export interface Writer {
    kind: "token" | "position" | "embedding_bias" | "head" | "feed_forward" | "bias" | "reader_bias";
    layer?: number;
    head?: number;
}
// A score as the sum of what each pair of writers gives to it, and of what is added to that.
export interface Why {
    split: {
        score: number | string; // infinities are texts
        weight: number | string;
        sum: number | string;
        remainders: { name: string; value: number | string }[];
        writers: Writer[];
        entries: { query_writer: number; key_writer: number; value: number | string }[]; // the largest
    };
    matrix: Float32Array; // [writers at the query, writers at the key]
}
export interface Steps extends ScoreSteps {
    v: number[];
    contributions: number[];
    context: number[];
    rank: number;
    rowWeights: number[];
}

export interface HeadStats {
    entropy: number;
    distance: number;
    first: number;
    previous: number;
}
export interface NamedBytes {
    name: string;
    bytes: Uint8Array<ArrayBuffer>;
}
export interface FileTensor {
    name: string;
    type: string;
    shape: number[];
}
export interface LessonName {
    name: string;
    title: string;
    tutorial: string;
    level: number;
    tables: number;
}
export interface LessonTable {
    label: string;
    tensor: string;
    note: string;
    times: number;
    exact: boolean;
    formula: string;
    shape: number[];
    theirs: string[];
    ours: string[];
}
export interface LessonResult {
    name: string;
    title: string;
    tutorial: string;
    about: string;
    seed: number;
    notes: string[];
    list: LessonTable[];
    tables: number;
    exact: number;
}

// The additional data of a session with a task; biases are of the layer in view.
export interface Learned {
    layers: number;
    labels: string[]; // label of each head, layer by layer
    role: string; // a sentence about the job of the head in view; "" without a clear role
    stripe: number[]; // the run of cells that shows it: row, column, length, columns for each row; or empty
    stripeText: string; // the label of that run; "" where the role has none
    starts: number[]; // tokens that begin a word of the text; empty where all do
    vocabulary: string[];
    said: string[][]; // the model's most likely predictions after each token
    sure: number[][]; // and how likely
    queryBias: number[];
    keyBias: number[];
    valueBias: number[];
    rotates: boolean; // queries and keys are turned by their places
}
export interface Computed {
    notes: Note[];
    tokens: string[]; // empty if tensors without names replace the text
    rows: number;
    keys: number;
    heads: number;
    outputBias: number[];
    visible: string; // the whole mask as the key `bits`, "" where it is too large to be edited
    arithmetic: string;
    learned: Learned | null;
    shared: Stage[];
    head: Stage[];
    headIndex: number;
    steps: Steps;
    thumbnails: Float32Array | null;
    thumbnailSize: number;
    stats: HeadStats[];
    ms: number;
}
// `name`: of the GPU that computes; else `reason`, why none does, "" as long as nobody asked.
export interface GpuState {
    name: string;
    reason: string;
}
export interface EngineInfo {
    variant: string;
    threads: number;
    target: string;
    reason: string;
    abi: number;
    tables: Tables;
    gpu: GpuState; // as it was when the engine started
}
export interface TileId {
    level: number;
    y: number;
    x: number;
    sampled: boolean;
}
// `at`: first row, first key, rows, keys of the map; x, y, width, height within the tile's pixels.
export interface MapPiece extends TileId {
    exact: boolean;
    at: number[];
}
export interface MapShown {
    level: number;
    needed: number;
    exact: number;
    bytes: number;
    pieces?: MapPiece[];
}
export interface TilePixels {
    mass: Float32Array;
    max: Float32Array;
}
export interface OwnTensors {
    shape: TensorShape;
    q: Float32Array;
    k: Float32Array;
    v: Float32Array | null;
    tokens?: string[]; // labels of queries and keys; missing: they are numbered
}

// One head's tensors, of a file whose heads are counted: what a map of them is computed from.
export interface OwnHead {
    head: number;
    heads: number;
    rows: number;
    keys: number;
    dim: number;
    q: Float32Array;
    k: Float32Array;
}
// The source of a map. `tokens`: of a session's text.
export interface MapOf {
    rows: number;
    keys: number;
    notes: Note[];
    tokens: string[];
}

export interface ReadSession {
    session: { state: Partial<State>; desktop: Partial<State> };
    notes: Note[];
    own: OwnTensors | null;
}

export interface Requests {
    start: { ask: { engine: string; lock: string; task: string }; answer: EngineInfo };
    compute: {
        ask: {
            address: string;
            head: number;
            row: number; // the cell whose steps are wanted too
            column: number;
            thumbnails: number;
            own: OwnTensors | null;
        };
        answer: Computed;
    };
    readSession: { ask: { text: string; isFile: boolean }; answer: ReadSession };
    writeSession: { ask: { address: string }; answer: string };
    headStages: { ask: { head: number }; answer: Stage[] };
    derive: { ask: { head: number; row: number; column: number }; answer: Steps };
    why: { ask: { head: number; row: number; column: number }; answer: Why };
    deriveText: { ask: { head: number; row: number; column: number; format: number }; answer: string };
    openFiles: { ask: { files: NamedBytes[] }; answer: FileTensor[] };
    fileTensor: { ask: { index: number }; answer: Float32Array };
    lessons: { ask: null; answer: LessonName[] };
    lesson: { ask: { name: string; seed?: number }; answer: LessonResult };
    mapBegin: { ask: { tokens: number }; answer: null };
    mapSession: { ask: { address: string; own: OwnHead | null }; answer: MapOf };
    mapPrepare: { ask: { maxFlops: number }; answer: number };
    mapView: {
        ask: { row: number; key: number; rows: number; keys: number; width: number; height: number };
        answer: MapShown;
    };
    mapStep: { ask: { maxFlops: number }; answer: MapShown & { ms: number } };
    mapPixels: { ask: TileId; answer: TilePixels };
    mapCell: { ask: { query: number; key: number }; answer: number };
    mapDerive: { ask: { query: number; key: number }; answer: ScoreSteps };
    bench: {
        ask: {
            heads: number;
            tokens: number;
            dim: number;
            causal: boolean;
            threads: number; // 0: on the GPU
            repeats: number;
        };
        answer: number | null; // null: no GPU can do it
    };
    gpu: { ask: null; answer: GpuState };
    facts: { ask: null; answer: { bytes: number } };
}
export type Kind = keyof Requests;
export interface Request<K extends Kind = Kind> {
    id: number;
    kind: K;
    ask: Requests[K]["ask"];
}
// `fatal`: the engine cannot go on; a new one must be started.
export interface Reply {
    id: number;
    answer?: unknown;
    error?: string;
    fatal?: boolean;
}
