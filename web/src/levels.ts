// The seven levels of the tutorials: what each adds, in words and as a preset of the page's state.

export interface Preset {
    init: "none" | "rand" | "linear";
    seed: number;
    din: number;
    dout: number;
    heads: number;
    kv: number;
    stacked: boolean;
    projects: boolean;
    joint: boolean;
    scale: string; // "none", "auto" or a divisor
    mask: string;
    p: number;
    stage: string;
}

export interface Level {
    name: string;
    title: string;
    lead: string; // HTML
    preset: Preset;
    lessons: string[]; // names of the worked examples with these numbers
}

const base: Preset = {
    init: "linear",
    seed: 123,
    din: 3,
    dout: 2,
    heads: 1,
    kv: 1,
    stacked: false,
    projects: false,
    joint: false,
    scale: "auto",
    mask: "none",
    p: 0,
    stage: "weights",
};

export const levels: Level[] = [
    {
        name: "Why weights",
        title: "Every word looks at every word",
        lead: `Each word is a short vector. The dot product of two vectors says how alike they are; a softmax turns a row of
            such scores into weights that sum to 1. A word’s <em>context</em> is the weighted sum of all the vectors.`,
        preset: { ...base, init: "none", scale: "none" },
        lessons: ["t3-04-all-tokens", "t1-04-all-tokens", "t2-01-simple-attention"],
    },
    {
        name: "Trainable",
        title: "Queries, keys and values",
        lead: `Three small matrices turn each vector into a <em>query</em> (what it looks for), a <em>key</em> (what it offers)
            and a <em>value</em> (what it passes on). Scores are divided by √d so that long vectors do not make the
            softmax all-or-nothing.`,
        preset: { ...base, init: "rand" },
        lessons: ["t3-06-self-attention-v1", "t3-07-self-attention-v2", "t1-07-self-attention-v2"],
    },
    {
        name: "Causal mask",
        title: "No looking ahead",
        lead: `A model that predicts the next word must not see it. Scores to the right of the diagonal become −∞ before the
            softmax. The other route, zeroing the weights afterwards and dividing by the row’s sum, gives the same numbers:
            switch between them below.`,
        preset: { ...base, seed: 789, mask: "causal" },
        lessons: ["t3-08-causal-weights", "t1-08-causal-weights"],
    },
    {
        name: "Dropout",
        title: "Forgetting on purpose",
        lead: `While training, some weights are dropped at random and the rest are scaled up to make good for them on
            average. Rows no longer sum to 1, which is intended: watch their sums. Hatched cells are hidden by the mask, plain
            zeros were dropped.`,
        preset: { ...base, seed: 789, mask: "causal", p: 0.5, stage: "dropped" },
        lessons: ["t3-10-dropout-weights", "t1-10-dropout-weights"],
    },
    {
        name: "Stacked heads",
        title: "Several opinions, side by side",
        lead: `One head gives one set of weights. Here two whole heads with matrices of their own are built one after the
            other and their contexts are put side by side.`,
        preset: { ...base, mask: "causal", dout: 4, heads: 2, kv: 2, stacked: true },
        lessons: ["t3-12-two-heads-stacked", "t1-12-two-heads-stacked"],
    },
    {
        name: "Weight split",
        title: "One projection, many heads",
        lead: `The same idea in one multiplication: project once, then cut the width into heads. Afterwards the heads are
            merged and mixed by an output projection. Fewer key/value heads than query heads makes it grouped-query attention.`,
        preset: { ...base, mask: "causal", dout: 2, heads: 2, kv: 2, projects: true },
        lessons: ["t3-13-multi-head", "t1-15-multi-head"],
    },
    {
        name: "GPT block",
        title: "The real shape",
        lead: `Twelve heads, 768 wide, up to 1,024 tokens: the attention of GPT-2 small. Your words are repeated until there
            are enough of them (“Tokens” below says how many). The weights are random, not trained, so the patterns mean
            nothing, but the arithmetic and its cost are the real thing.`,
        preset: {
            ...base,
            mask: "causal",
            din: 768,
            dout: 768,
            heads: 12,
            kv: 12,
            joint: true,
            projects: true,
        },
        lessons: ["t4-01-gpt-attention"],
    },
];

export interface StageText {
    label: string;
    formula: string;
    about: string;
    signed: boolean; // values on both sides of 0: a diverging colour map
}

// Order is the order of the rail.
export const stageTexts: Record<string, StageText> = {
    inputs: { label: "Inputs", formula: "X", about: "one vector for each token", signed: false },
    w_query: { label: "Query weights", formula: "W_q", about: "trainable", signed: true },
    w_key: { label: "Key weights", formula: "W_k", about: "trainable", signed: true },
    w_value: { label: "Value weights", formula: "W_v", about: "trainable", signed: true },
    queries: { label: "Queries", formula: "Q = X·W_q", about: "what each token looks for", signed: true },
    keys: { label: "Keys", formula: "K = X·W_k", about: "what each token offers", signed: true },
    values: { label: "Values", formula: "V = X·W_v", about: "what each token passes on", signed: true },
    scores: { label: "Scores", formula: "Q·Kᵀ", about: "one dot product for each pair", signed: true },
    scaled: {
        label: "Scaled",
        formula: "Q·Kᵀ / √d",
        about: "scores divided by √d and the temperature",
        signed: true,
    },
    capped: { label: "Softcap", formula: "c·tanh(s / c)", about: "scores kept within ±c", signed: true },
    masked: {
        label: "Masked",
        formula: "s + bias, −∞ if hidden",
        about: "hidden keys out of the race",
        signed: true,
    },
    weights_all: {
        label: "All weights",
        formula: "softmax(s)",
        about: "before the mask, on this route",
        signed: false,
    },
    masked_weights: { label: "Zeroed", formula: "A ⊙ tril", about: "hidden weights set to 0", signed: false },
    row_sums: { label: "Row sums", formula: "Σⱼ", about: "what each row is divided by", signed: false },
    weights: { label: "Weights", formula: "softmax(s)", about: "each row sums to 1", signed: false },
    keep: { label: "Keep mask", formula: "u < 1 − p", about: "1 kept, 0 dropped", signed: false },
    dropped: {
        label: "After dropout",
        formula: "A ⊙ keep / (1 − p)",
        about: "rows need not sum to 1",
        signed: false,
    },
    context: { label: "Context", formula: "A·V", about: "weighted sums of the values", signed: true },
    lse: {
        label: "Log-sum-exp",
        formula: "log Σ exp(s)",
        about: "all the softmax needs to remember",
        signed: true,
    },
    w_output: { label: "Output weights", formula: "W_o", about: "trainable", signed: true },
    output: { label: "Output", formula: "context·W_oᵀ + b", about: "the heads, mixed", signed: true },
};

// Weights, whose rows have sums that mean something.
export const weightStages = new Set(["weights", "dropped", "weights_all", "masked_weights"]);
// Stages whose rows are queries and columns keys: their cells have a derivation.
export const pairStages = new Set([
    "scores",
    "scaled",
    "capped",
    "masked",
    "weights_all",
    "masked_weights",
    "weights",
    "keep",
    "dropped",
]);
