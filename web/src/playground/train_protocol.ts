// The messages between the playground and its Worker.

// For each head a number for each score; null where the task has no such score.
export type HeadScores = (number | null)[];
export interface Report {
    step: number; // step of the evaluated state
    loss: number;
    accuracy: number;
    heads: HeadScores[];
}
export interface TrainTask {
    vocabulary: string[];
    context: number;
    layers: number;
    heads: number; // heads of a layer
    weights: number;
    accuracy: number; // accuracy that counts as learned, by the step `within`
    within: number;
    scores: { index: number; name: string; label: string }[];
    example: string;
}
export interface Probe {
    step: number;
    tokens: string[];
    said: string[]; // the model's predictions
    sure: number[]; // and how likely
    weights: Float32Array; // [heads of all layers, length, length]
    heads: number;
    labels: { text: string; named: boolean; value: number; score: number }[];
    cells: [score: number, query: number, key: number][]; // cells whose weights a score averages
    loss: number | null;
    accuracy: number | null;
}

export interface TrainRequests {
    open: { ask: { place: string }; answer: TrainTask };
    step: { ask: { count: number }; answer: Report[] };
    seek: { ask: { step: number }; answer: Report[] };
    evaluate: { ask: { off: number }; answer: Report };
    probe: { ask: { tokens: string; off: number }; answer: Probe };
}
export type TrainKind = keyof TrainRequests;
export interface TrainRequest<K extends TrainKind = TrainKind> {
    id: number;
    kind: K;
    ask: TrainRequests[K]["ask"];
}
