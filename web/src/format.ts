// Numbers, names and markup as the page writes them.

export const escape = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const minus = "−";

export const valueOf = (value: number | string): number =>
    typeof value === "number" ? value : value === "-inf" ? -Infinity : value === "inf" ? Infinity : NaN;

// Four decimals as the tutorials print; scientific only where those would say nothing.
export function number(value: number | string, decimals = 4): string {
    const x = valueOf(value);
    if (Number.isNaN(x)) return "NaN";
    if (!Number.isFinite(x)) return x < 0 ? `${minus}∞` : "∞";
    if (x !== 0 && (Math.abs(x) < 0.5 * 10 ** -decimals || Math.abs(x) >= 1e6)) return x.toExponential(2).replace("-", minus).replace("e+", "e");
    return (Object.is(x, -0) ? 0 : x).toFixed(decimals).replace("-", minus);
}

export const short = (value: number) => number(value, 2).replace(/^(−?)0\./, "$1.");

export const shapeText = (shape: number[]) => shape.map((n) => n.toLocaleString("en")).join(" × ");

export function duration(ms: number): string {
    if (ms < 0.1) return `${Math.round(ms * 1000)} µs`;
    if (ms < 10) return `${ms.toFixed(2)} ms`;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    return `${(ms / 1000).toFixed(2)} s`;
}

// W_q, d_k, Kᵀ: letters after an underscore are set as an index.
export const formula = (text: string) => escape(text).replace(/([A-Za-z])_([a-z]+)/g, "$1<sub>$2</sub>");

export const ordinal = (n: number) => ["highest", "second highest", "third highest"][n] ?? `${n + 1}th highest`;
