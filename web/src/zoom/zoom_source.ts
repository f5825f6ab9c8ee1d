// The inputs of a map, and the time that it takes.
import type { OwnHead, OwnTensors } from "../engine/protocol.ts";
import type { State } from "../page/state.ts";

const samplesKept = 600;
const looks = "stage i j map log lo hi table cmp how view zoom step train bits side under".split(" ");

// A state without the keys that change no weight, as text.
export function weighed(session: State): string {
    const state: Record<string, unknown> = { ...session };
    for (const key of looks) if (state.mask !== "painted" || !/bits|side|under/.test(key)) delete state[key];
    return JSON.stringify(state);
}

// The last head where there are not as many.
export function headOf(own: OwnTensors, wanted: number): OwnHead {
    const { heads, kv, rows, keys, dim } = own.shape,
        head = Math.min(wanted, heads - 1),
        from = Math.floor(head / (heads / kv));
    return {
        ...{ head, heads, rows, keys, dim },
        q: own.q.slice(head * rows * dim, (head + 1) * rows * dim),
        k: own.k.slice(from * keys * dim, (from + 1) * keys * dim),
    };
}

export function timeLeft(ms: number): string {
    const [n, unit] = [
        [ms / 1000, "second"] as const,
        [ms / 60_000, "minute"] as const,
        [ms / 3_600_000, "hour"] as const,
    ].findLast(([n]) => n >= 1.5) ?? [1, "second"];
    return `${Math.round(n)} ${unit}${Math.round(n) > 1 ? "s" : ""}`;
}

// The newest of many measured times.
export function keep(list: number[], value: number): void {
    list.push(value);
    if (list.length > samplesKept) list.shift();
}
