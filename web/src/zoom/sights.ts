// Finds notable parts of an attention map: keys that many rows attend to, and stripes at one distance below the
// diagonal. Uses only the map's own values, for any text.
export interface Sight {
    kind: "key" | "distance";
    at: number; // the key, or how far back: in pixels of the map
    row: number; // where it is strongest
    share: number; // share of a row's weight there, averaged over the rows that could have it
}

export const mostZoomed = 1 / 80; // cells in a pixel: room for a weight's digits
const mostOfAKind = 2;
const outstanding = 3; // times the median

export interface Sides {
    rows: number;
    keys: number;
    causal: boolean; // a query sees no later key
}

// Pixels `mass(row, key)` of a map. Distances are looked at where queries are the keys' own words.
export function sightsOf(sides: Sides, mass: (row: number, key: number) => number): Sight[] {
    const { keys, causal } = sides,
        square = sides.rows === keys,
        sums = { key: new Float64Array(keys), distance: new Float64Array(keys) },
        best = { key: new Float64Array(keys).fill(-1), distance: new Float64Array(keys).fill(-1) },
        rows = { key: new Uint32Array(keys), distance: new Uint32Array(keys) };
    for (let row = 0; row < sides.rows; ++row)
        for (let key = 0; key < (causal ? Math.min(keys, row + 1) : keys); ++key) {
            const value = mass(row, key);
            for (const [kind, at] of [
                ["key", key],
                ["distance", row - key],
            ] as const) {
                // The first keys are looked at from everywhere.
                if (kind === "distance" && (!square || !key || key > row)) continue;
                sums[kind][at] += value;
                // Not the diagonal, nor rows that have hardly another key to look at.
                if (causal && kind === "key" && row < Math.max(2 * at, keys / 8)) continue;
                if (value > best[kind][at]) {
                    best[kind][at] = value;
                    rows[kind][at] = row;
                }
            }
        }
    return (["key", "distance"] as const).flatMap((kind) => {
        // The last ones have too few rows to be a pattern; the diagonal itself has its band.
        const means = sums[kind]
                .map(
                    (sum, at) =>
                        sum /
                        (causal || kind === "distance"
                            ? Math.max(1, keys - at - (kind === "key" ? 0 : 1))
                            : sides.rows),
                )
                .subarray(0, causal || kind === "distance" ? Math.floor(keys / 2) : keys),
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

// `cells`: in a pixel of the map.
export function sightButton(
    { kind, at, row, share }: Sight,
    cells: number,
    words: string[],
): HTMLButtonElement {
    const button = document.createElement("button"),
        middle = (n: number) => (n + 0.5) * cells,
        key = kind === "key" ? at : row - at,
        about = cells > 1 && at ? "about " : "",
        word = cells === 1 && words[key] ? ` (${words[key]})` : "",
        name =
            kind === "distance"
                ? `${about}${(at * cells).toLocaleString("en")} tokens back`
                : at
                  ? `key ${about}${Math.floor(middle(at)).toLocaleString("en")}${word}`
                  : cells > 1
                    ? "the first keys"
                    : `the first key${word}`;
    button.type = "button";
    button.className = "quiet";
    button.dataset.at = `${middle(row)},${middle(key)},${Math.max(mostZoomed, cells / 64)}`;
    button.textContent = `${name}: ${(100 * share).toPrecision(2)}% of a row`;
    return button;
}
