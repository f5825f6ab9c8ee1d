// Colors for values. The tables are the engine's; the position of a value follows the same rule as
// fovea/inspect/colormap.hpp (a test checks that both agree).

export type Rgb = [number, number, number];

// The reader's choices. "auto" is the page's own map: ink, or balance if values are signed.
export const mapNames = ["auto", "ink", "viridis", "magma", "cividis", "grey", "blue-orange"] as const;
const tableNames = ["ink", "balance", ...mapNames.slice(2)];
const tableKey = (name: string, dark: boolean) => `${name} ${dark ? "dark" : "light"}`;
export const allTables = tableNames.flatMap((name) =>
    [false, true].map((dark) => ({ name, dark, key: tableKey(name, dark) })),
);

export type Tables = Record<string, Uint8Array>;
let tables: Tables = {};
export const setTables = (all: Tables) => {
    tables = all;
};

const blank = new Uint8Array(256 * 3).fill(128);
export const isDark = () => document.documentElement.dataset.theme === "dark";
export const colorTable = (name: string) => tables[tableKey(name, isDark())] ?? blank;

export interface Scale {
    table: Uint8Array;
    low: number;
    high: number;
    log: boolean;
}

// 0 to 1; a range without width puts everything in the middle.
export function placeOf(low: number, high: number, log: boolean, value: number): number {
    if (!(high > low)) return 0.5;
    if (log) return value > low ? Math.min(1, Math.log(value / low) / Math.log(high / low)) : 0;
    return Math.max(0, Math.min(1, (value - low) / (high - low)));
}

// A logarithm needs a lowest value above 0: five decades below the highest, where none was chosen.
export const logFloor = (low: number, high: number) => (low > 0 ? low : Math.max(high * 1e-5, 1e-30));

export function colorAt(scale: Scale, value: number): Rgb {
    const i = 3 * Math.round(placeOf(scale.low, scale.high, scale.log, value) * 255);
    return [scale.table[i], scale.table[i + 1], scale.table[i + 2]];
}

// One pixel for each number of a matrix, the first row at the top: infinite and undefined ones are grey, and of minus infinity,
// which is what a mask makes, hardly to be seen.
export function picture(
    rows: number,
    columns: number,
    { table, low, high, log }: Scale,
    data: Float32Array,
    canvas = document.createElement("canvas"), // one that is used again costs less than a new one
    stride = columns,
): HTMLCanvasElement {
    const image = new ImageData(columns, rows),
        pixels = new Uint32Array(image.data.buffer),
        colors = Uint32Array.from(
            { length: 256 },
            (_, i) => 0xff000000 | (table[3 * i + 2] << 16) | (table[3 * i + 1] << 8) | table[3 * i],
        );
    if (canvas.width !== columns) canvas.width = columns;
    if (canvas.height !== rows) canvas.height = rows;
    for (let row = 0, at = 0; row < rows; ++row)
        for (let column = 0; column < columns; ++column, ++at) {
            const x = data[row * stride + column];
            pixels[at] = Number.isFinite(x)
                ? colors[Math.round(placeOf(low, high, log, x) * 255)]
                : x === -Infinity
                  ? 0x18808080
                  : 0xff808080;
        }
    canvas.getContext("2d", { willReadFrequently: true })!.putImageData(image, 0, 0); // no GPU is asked for a few pixels
    return canvas;
}

// The theme's colors, asked of the style sheet once: asking makes the browser compute styles at once.
const contrast = globalThis.matchMedia?.("(prefers-contrast: more)"); // the build has none
let colorsOf = "",
    colors: Record<string, string> = {};
export function themeColors(): Record<string, string> {
    const wanted = `${document.documentElement.dataset.theme} ${contrast?.matches}`;
    if (colorsOf !== wanted) {
        const style = getComputedStyle(document.documentElement);
        colorsOf = wanted;
        colors = Object.fromEntries(
            ["ink", "soft", "accent", "surface", "line", "faint", "strong-line", "warm"].map((name) => [
                name,
                style.getPropertyValue(`--${name}`),
            ]),
        );
    }
    return colors;
}

export const css = ([r, g, b]: Rgb) => `rgb(${r} ${g} ${b})`;

function luminance(rgb: Rgb): number {
    const [r, g, b] = rgb.map((c) => {
        const s = c / 255;
        return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
// Near black or white, whichever has more contrast.
export const inkOn = (rgb: Rgb) => (luminance(rgb) > 0.179 ? "#15161a" : "#ffffff");

// Finite extremes; where a matrix is signed, the same distance on both sides of 0.
export function autoRange(data: Float32Array, signed: boolean): [number, number] {
    let low = Infinity,
        high = -Infinity;
    for (const x of data) {
        if (x < low && x !== -Infinity) low = x;
        if (x > high && x !== Infinity) high = x;
    }
    if (low > high) return [0, 1];
    if (!signed) return [Math.min(0, low), high > 0 ? high : 1];
    const extent = Math.max(Math.abs(low), Math.abs(high)) || 1;
    return [-extent, extent];
}

// Counts the finite values in each of `count` equal parts of the scale; values outside count at its ends.
export function histogram(data: Float32Array, scale: Scale, count: number): Uint32Array {
    const bins = new Uint32Array(count);
    for (const x of data)
        if (Number.isFinite(x))
            ++bins[Math.min(count - 1, Math.floor(placeOf(scale.low, scale.high, scale.log, x) * count))];
    return bins;
}
