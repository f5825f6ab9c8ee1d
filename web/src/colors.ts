// Colour maps as tables of 256 colours, for the theme in force.

export type Rgb = [number, number, number];

const hex = (text: string): Rgb => [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16)) as Rgb;
const stops: Record<string, string> = {
    viridis: "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    magma: "000004 180f3d 440f76 721f81 9e2f7f cd4071 f1605d fd9668 feca8d fcfdbf",
    cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
};
const themed: Record<string, [light: string, dark: string]> = {
    ink: ["f4f3ee dfe3f7 bccaf6 91a6f0 5f7ae6 2447d6", "1f2127 26305a 33458f 4660cc 6c87f5 a9baff"],
    grey: ["f4f3ee bdbbb5 85837e 4d4b47 1b1a17", "1d1f25 4b4d55 868890 c3c4c9 f5f5f2"],
    diverging: ["1d4f9e 5f8fd0 b5cdea f4f3ee f3c9a0 dd8a3c a5500c", "9cc4ff 4f86cf 2b4770 1d1f25 6b4420 c67a34 ffc48a"],
};

export function colorTable(name: string, dark: boolean): Uint8ClampedArray {
    const text = stops[name] ?? themed[name]?.[dark ? 1 : 0] ?? themed.ink[dark ? 1 : 0];
    const points = text.split(" ").map(hex);
    const table = new Uint8ClampedArray(256 * 3);
    for (let i = 0; i < 256; ++i) {
        const at = (i / 255) * (points.length - 1);
        const left = Math.min(points.length - 2, Math.floor(at));
        for (let c = 0; c < 3; ++c) table[3 * i + c] = points[left][c] + (points[left + 1][c] - points[left][c]) * (at - left);
    }
    return table;
}

export interface Scale { table: Uint8ClampedArray; low: number; high: number; log: boolean }

// Where a value lies on the scale, 0..255.
export function indexOf(scale: Scale, value: number): number {
    const { low, high, log } = scale;
    let t: number;
    if (log) {
        const floor = Math.max(high * 1e-5, 1e-30);
        t = Math.log(Math.max(value, floor) / floor) / Math.log(Math.max(high, floor * 1.0001) / floor);
    } else t = high > low ? (value - low) / (high - low) : 0.5;
    return Math.max(0, Math.min(255, Math.round(t * 255)));
}

export const colorAt = (scale: Scale, value: number): Rgb => {
    const i = 3 * indexOf(scale, value);
    return [scale.table[i], scale.table[i + 1], scale.table[i + 2]];
};

export const css = ([r, g, b]: Rgb) => `rgb(${r} ${g} ${b})`;

function luminance(rgb: Rgb): number {
    const [r, g, b] = rgb.map((c) => { const s = c / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
// Black or white, whichever stands out more.
export const inkOn = (rgb: Rgb) => (luminance(rgb) > 0.179 ? "#15161a" : "#ffffff");

// Finite extremes; where a matrix is signed, the same distance on both sides of 0.
export function autoRange(data: Float32Array, signed: boolean): [number, number] {
    let low = Infinity, high = -Infinity;
    for (const x of data) if (Number.isFinite(x)) { if (x < low) low = x; if (x > high) high = x; }
    if (low > high) return [0, 1];
    if (!signed) return [Math.min(0, low), high > 0 ? high : 1];
    const extent = Math.max(Math.abs(low), Math.abs(high)) || 1;
    return [-extent, extent];
}
