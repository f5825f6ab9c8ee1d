// The page's state: a session without its tensors. lens/model/tables defines sessions; the engine reads and checks
// them (webReadSession). Here a state becomes an address, as <fovea/model/session.hpp> writes it.
import { defaults, levels, stageTable, tasks, version, type StageText, type State } from "./model_tables.ts";

export { levels, limits, tasks, type State } from "./model_tables.ts";
export const defaultText = defaults.text;
export const stageTexts: Record<string, StageText> = Object.fromEntries(
    stageTable.map((text) => [text.id, text]),
);

const stageOrder = stageTable.map(({ id }) => id);
export const inOrder = <T extends { id: string }>(stages: T[]): T[] =>
    [...stages].sort((a, b) => stageOrder.indexOf(a.id) - stageOrder.indexOf(b.id));

// The keys that follow from a mask.
export const ofMask = (mask: string) => ({
    mask,
    causal: mask === "causal" || mask === "window",
    windowed: mask === "window",
});

// Returns a level's own session, or that of a task, whose model has its own rules; the level is the one to return to.
export function presetState(level: number, task = ""): State {
    const { session } = tasks.find((one) => one.task === task) ?? levels[level - 1],
        state = { ...defaults, ...session, level, task };
    return { ...state, ...ofMask(state.mask), under: state.mask };
}

// The first view of a reader without a link: trained heads.
export const firstState = () => presetState(2, tasks[0].task);

const encode = (value: State[keyof State]) =>
    encodeURIComponent(typeof value === "boolean" ? String(Number(value)) : String(value))
        .replaceAll("%20", "+")
        .replaceAll("%2C", ",");

export function toHash(state: State): string {
    const own = { ...presetState(state.level, state.task), task: "" },
        parts = [`v=${version}`, `level=${state.level}`];
    for (const key of Object.keys(defaults) as (keyof State)[]) {
        if (key === "level" || String(state[key]) === String(own[key])) continue;
        if (key === "mask") Object.assign(own, ofMask(state.mask)); // it implies these keys
        parts.push(`${key}=${encode(state[key])}`);
    }
    return `#${parts.join("&")}`;
}

// The key `edits`: stage, row, column and number of each cell that holds the reader's own number.
export const editsOf = (edits: string): string[][] =>
    edits ? edits.split(",").map((edit) => edit.split(" ")) : [];
export const mostEdits = 256;
// Another matrix is computed, or learned.
const editable = new Set(["inputs", "w_query", "w_key", "w_value", "w_output"]);
export const isEditable = (stage: string, task: string, own: unknown): boolean =>
    editable.has(stage) && !task && !own;

// Addresses longer than this are cut or rejected on their way.
export const longestAddress = 2000;
export const isWhole = (state: State) => toHash(state).length <= longestAddress;

// Returns the state as an address, as far as one can hold it: without the painted mask, then without the sentence.
export function addressOf(state: State): string {
    if (isWhole(state)) return toHash(state);
    const { mask, causal, windowed, bits, side, under, text } = presetState(state.level, state.task);
    const unpainted = { ...state, mask, causal, windowed, bits, side, under };
    return toHash(isWhole(unpainted) ? unpainted : { ...unpainted, text });
}

export interface TensorShape {
    heads: number;
    kv: number;
    rows: number;
    keys: number;
    dim: number;
    dimV: number;
}

// The key `bits`: a bit for each cell, lowest first, in base64url. Cells that it lacks are visible.
export function decodeBits(text: string, count: number): Uint8Array {
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from({ length: count }, (_, i) =>
        i >> 3 < bytes.length ? (bytes.charCodeAt(i >> 3) >> (i & 7)) & 1 : 1,
    );
}

// A result with its mask as cells; empty where that is not known.
export const withVisible = <T extends { visible: string; rows: number; keys: number }>(result: T) => ({
    ...result,
    visible: result.visible ? decodeBits(result.visible, result.rows * result.keys) : new Uint8Array(),
});

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
