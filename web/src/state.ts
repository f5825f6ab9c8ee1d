// The page's whole state, its form in the URL and its form for the engine.
import { mapNames } from "./colors.ts";
import { levels } from "./levels.ts";

export const defaultText = "Your journey starts with one step";

export interface State {
    level: number; // 1..7
    text: string;
    length: number; // level 7: tokens, the text repeated; 0: as typed
    stage: string;
    head: number;
    row: number;
    column: number;
    init: string;
    seed: number;
    scale: string;
    temperature: number;
    mask: string; // none causal window padding prefix strided block painted
    painted: string; // base64url bits
    route: string; // before, after (the softmax)
    window: number;
    alibi: boolean;
    softcap: number;
    p: number;
    dropSeed: number;
    variant: string;
    heads: number;
    kv: number;
    map: string;
    log: boolean;
    low: string; // "" is automatic
    high: string;
    table: boolean;
    compare: number; // head B, or -1
    split: string; // how to compare: side, triangle, difference
    view: string; // of the matrix: first row, first column, zoom; "" is all of it
    zoom: string; // of the deep zoom: tokens, row and key in the middle, cells in a pixel, reducer; "" is closed
}

export function presetState(level: number): State {
    const preset = levels[level - 1].preset;
    return {
        level,
        text: defaultText,
        length: level === 7 ? 64 : 0,
        stage: preset.stage,
        head: 0,
        row: 1,
        column: level >= 3 ? 0 : 2,
        init: preset.init,
        seed: preset.seed,
        scale: preset.scale,
        temperature: 1,
        mask: preset.mask,
        painted: "",
        route: "before",
        window: 2,
        alibi: false,
        softcap: 0,
        p: preset.p,
        dropSeed: 123,
        variant: "native",
        heads: preset.heads,
        kv: preset.kv,
        map: "auto",
        log: false,
        low: "",
        high: "",
        table: false,
        compare: -1,
        split: "side",
        view: "",
        zoom: "",
    };
}

// The name of each field in the address and in session files; kept short and readable.
export const urlKeys: [keyof State, string][] = [
    ["text", "text"],
    ["length", "len"],
    ["stage", "stage"],
    ["head", "head"],
    ["row", "i"],
    ["column", "j"],
    ["init", "init"],
    ["seed", "seed"],
    ["scale", "scale"],
    ["temperature", "temp"],
    ["mask", "mask"],
    ["painted", "bits"],
    ["route", "route"],
    ["window", "win"],
    ["alibi", "alibi"],
    ["softcap", "cap"],
    ["p", "p"],
    ["dropSeed", "dseed"],
    ["variant", "rng"],
    ["heads", "heads"],
    ["kv", "kv"],
    ["map", "map"],
    ["log", "log"],
    ["low", "lo"],
    ["high", "hi"],
    ["table", "table"],
    ["compare", "cmp"],
    ["split", "how"],
    ["view", "view"],
    ["zoom", "zoom"],
];

export function toHash(state: State): string {
    const preset = presetState(state.level);
    const parts = [`v=1`, `level=${state.level}`];
    for (const [field, key] of urlKeys) {
        const value = state[field];
        if (value === preset[field]) continue;
        const text = typeof value === "boolean" ? (value ? "1" : "0") : String(value);
        parts.push(`${key}=${encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%2C", ",")}`);
    }
    return `#${parts.join("&")}`;
}

// Addresses longer than this are cut or refused on their way.
export const longestAddress = 2000;
export const isWhole = (state: State) => toHash(state).length <= longestAddress;

// What of a state an address can hold: without the mask that was painted, then without the sentence.
export function addressOf(state: State): string {
    if (isWhole(state)) return toHash(state);
    const unpainted = { ...state, mask: presetState(state.level).mask, painted: "" };
    return toHash(isWhole(unpainted) ? unpainted : { ...unpainted, text: defaultText });
}

const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));

const limits: Partial<Record<keyof State, [number, number]>> = {
    length: [0, 1024],
    head: [0, 63],
    row: [0, 4095],
    column: [0, 4095],
    seed: [0, 4294967295],
    temperature: [0.05, 10],
    window: [0, 4096],
    softcap: [0, 100],
    p: [0, 0.95],
    dropSeed: [0, 4294967295],
    heads: [1, 12],
    kv: [1, 12],
    compare: [-1, 63],
};
const choices: Partial<Record<keyof State, string[]>> = {
    init: ["none", "rand", "linear"],
    route: ["before", "after"],
    variant: ["native", "mkl", "counter"],
    mask: ["none", "causal", "window", "padding", "prefix", "strided", "block", "painted"],
    map: [...mapNames],
    split: ["side", "triangle", "difference"],
};

// Anything a link may hold becomes a state that can be shown: unknown keys and bad values count as absent.
export function fromHash(hash: string): State {
    const query = new URLSearchParams(hash.replace(/^#/, ""));
    const level = clamp(Math.trunc(Number(query.get("level") ?? 2)) || 2, 1, 7);
    const state = presetState(level);
    const loose = state as unknown as Record<string, unknown>;
    for (const [field, key] of urlKeys) {
        const text = query.get(key);
        if (text === null) continue;
        const kind = typeof state[field];
        if (kind === "boolean") loose[field] = text === "1";
        if (kind === "string" && (!choices[field] || choices[field].includes(text))) loose[field] = text;
        const range = limits[field];
        const value = Number(text);
        if (kind === "number" && text !== "" && Number.isFinite(value) && range)
            loose[field] = clamp(value, ...range);
    }
    if (!/^\d+(\.\d+)?,\d+(\.\d+)?,\d+(\.\d+)?$/.test(state.view)) state.view = "";
    if (!/^(4096|16384|65536),\d+,\d+,\d+(\.\d+)?,(mass|max)$/.test(state.zoom)) state.zoom = "";
    if (state.heads % state.kv) state.kv = state.heads;
    if (state.scale !== "auto" && state.scale !== "none" && !(Number(state.scale) > 0))
        state.scale = presetState(level).scale;
    return state;
}

// Words, by the browser's own rules where it has them: Chinese and Japanese have no spaces.
export function tokenize(text: string): string[] {
    if (typeof Intl !== "undefined" && "Segmenter" in Intl) {
        const segments = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text);
        return [...segments].map((s) => s.segment.trim()).filter((s) => s !== "");
    }
    return text.split(/\s+/u).filter((s) => s !== "");
}

// A painted mask is a bit for each cell, in sessions and links.
export const maxPaintedSide = 128;
export const maxTokens = (level: number) => (level === 7 ? 1024 : 128);

export interface Tokens {
    tokens: string[];
    typed: number;
}

export function tokensOf(state: State): Tokens {
    const typed = tokenize(state.text);
    const limit = maxTokens(state.level);
    let tokens = typed;
    if (state.level === 7 && state.length > 0 && typed.length > 0)
        tokens = Array.from({ length: state.length }, (_, i) => typed[i % typed.length]);
    return { tokens: tokens.slice(0, limit), typed: Math.max(typed.length, tokens.length) };
}

export function decodeBits(text: string, count: number): Uint8Array {
    const bits = new Uint8Array(count).fill(1);
    let bytes = "";
    try {
        bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    } catch {
        return bits;
    }
    for (let i = 0; i < count && i >> 3 < bytes.length; ++i)
        bits[i] = (bytes.charCodeAt(i >> 3) >> (i & 7)) & 1;
    return bits;
}

export function encodeBits(bits: Uint8Array): string {
    const bytes = new Uint8Array(Math.ceil(bits.length / 8));
    bits.forEach((bit, i) => {
        bytes[i >> 3] |= bit << (i & 7);
    });
    return btoa(String.fromCharCode(...bytes))
        .replaceAll("+", "-")
        .replaceAll("/", "_")
        .replace(/=+$/, "");
}

// Cells of the masks that are not parameters of the engine; null where it needs no matrix.
export function maskCells(state: State, rows: number, keys: number): Uint8Array | null {
    const cell: Record<string, (i: number, j: number) => boolean> = {
        padding: (_, j) => j < keys - Math.max(1, Math.floor(keys / 3)),
        prefix: (i, j) => j <= i || j < Math.ceil(keys / 3),
        strided: (i, j) => j <= i && (i - j) % 2 === 0,
        block: (i, j) => Math.floor(i / 2) === Math.floor(j / 2),
    };
    if (state.mask === "painted") return decodeBits(state.painted, rows * keys);
    const visible = cell[state.mask];
    if (!visible) return null;
    return Uint8Array.from({ length: rows * keys }, (_, n) =>
        visible(Math.floor(n / keys), n % keys) ? 1 : 0,
    );
}

function meaning(state: State, rows: number, keys: number): Record<string, string | number> {
    const mask = maskCells(state, rows, keys);
    return {
        div: state.scale === "auto" ? 0 : state.scale === "none" ? 1 : state.scale,
        temp: state.temperature,
        causal: state.mask === "causal" || state.mask === "window" ? 1 : 0,
        window: state.mask === "window" ? state.window : -1,
        renorm: state.route === "after" ? 1 : 0,
        alibi: state.alibi ? 1 : 0,
        softcap: state.softcap,
        p: state.p,
        dseed: state.dropSeed,
        variant: state.variant,
        mask: mask ? mask.join("") : "",
    };
}

const lines = (fields: Record<string, string | number>) =>
    Object.entries(fields)
        .map(([k, v]) => `${k}=${v}`)
        .join("\n");

// The engine's form: lines "key=value", see engine/page_state.hpp.
export function engineText(state: State, tokens: string[]): string {
    const preset = levels[state.level - 1].preset;
    const heads = state.level >= 5 ? state.heads : 1;
    const width = preset.stacked ? (preset.dout / preset.heads) * heads : preset.dout;
    return lines({
        tokens: tokens.map((t) => t.replace(/[\u0000-\u001f]/g, " ")).join("\u001f"),
        init: state.init,
        seed: state.seed,
        din: preset.din,
        dout: width % heads ? heads : width,
        heads,
        kv: Math.min(state.kv, heads),
        stacked: preset.stacked ? 1 : 0,
        projects: preset.projects ? 1 : 0,
        joint: preset.joint ? 1 : 0,
        ...meaning(state, tokens.length, tokens.length),
    });
}

export interface TensorShape {
    heads: number;
    kv: number;
    rows: number;
    keys: number;
    dim: number;
    dimV: number;
}

export function engineTextOfTensors(state: State, shape: TensorShape): string {
    const { heads, kv, rows, keys, dim, dimV } = shape;
    return lines({ heads, kv, rows, keys, dim, dimv: dimV, ...meaning(state, rows, keys) });
}
