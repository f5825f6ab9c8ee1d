// What is worth a look in a map of attention: keys that many rows look at, and stripes at one distance behind the
// diagonal. Found in the map's own numbers, whatever text it is of.
export interface Sight {
    kind: "key" | "distance";
    at: number; // the key, or how far back: in pixels of the map
    row: number; // where it is strongest
    share: number; // of a row's weight that lies there, as a mean over the rows that could
}

const mostOfAKind = 2;
const outstanding = 3; // times the median

// Pixels `mass(row, key)` of a causal map of `side` by `side`.
export function sightsOf(side: number, mass: (row: number, key: number) => number): Sight[] {
    const sums = { key: new Float64Array(side), distance: new Float64Array(side) },
        best = { key: new Float64Array(side).fill(-1), distance: new Float64Array(side).fill(-1) },
        rows = { key: new Uint32Array(side), distance: new Uint32Array(side) };
    for (let row = 0; row < side; ++row)
        for (let key = 0; key <= row; ++key) {
            const value = mass(row, key);
            for (const [kind, at] of [
                ["key", key],
                ["distance", row - key],
            ] as const) {
                if (kind === "distance" && !key) continue; // the first keys are looked at from everywhere
                sums[kind][at] += value;
                // Not the diagonal, nor rows that have hardly another key to look at.
                if (kind === "key" && row < Math.max(2 * at, side / 8)) continue;
                if (value > best[kind][at]) {
                    best[kind][at] = value;
                    rows[kind][at] = row;
                }
            }
        }
    return (["key", "distance"] as const).flatMap((kind) => {
        // The last ones have too few rows to be a pattern; beside the diagonal lies its band.
        const means = sums[kind]
                .map((sum, at) => sum / Math.max(1, side - at - (kind === "key" ? 0 : 1)))
                .subarray(0, Math.floor(side / 2)),
            usual = [...means].sort((a, b) => a - b)[means.length >> 1] ?? 0,
            first = kind === "key" ? 0 : 3;
        return [...means.keys()]
            .filter(
                (at) =>
                    at >= first &&
                    means[at] > outstanding * usual &&
                    means[at] >= (means[at - 1] ?? 0) &&
                    means[at] >= (means[at + 1] ?? 0),
            )
            .sort((a, b) => means[b] - means[a])
            .slice(0, mostOfAKind + (kind === "key" ? 1 : 0))
            .map((at) => ({ kind, at, row: rows[kind][at], share: means[at] }));
    });
}
