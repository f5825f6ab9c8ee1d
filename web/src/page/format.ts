// Numbers, names and markup as the page writes them.

// Replaces {0}, {1} and so on in a text with the values.
export const fill = (text: string, ...values: (string | number)[]) =>
    text.replace(/\{(\d)\}/g, (_, n) => values[n] as string);
export const escape = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const minus = "−";

export const valueOf = (value: number | string): number =>
    typeof value === "number" ? value : value === "-inf" ? -Infinity : value === "inf" ? Infinity : NaN;

const notFinite = (x: number) => (Number.isNaN(x) ? "NaN" : x < 0 ? `${minus}∞` : "∞");
const typeset = (text: string) => text.replaceAll("-", minus);

// JavaScript rounds an exact half up, the engine to the even digit. Of a number this size, a half has one digit more
// and then only zeros.
function toEven(magnitude: number, rounded: string, more: string, digits: number): string {
    const [mantissa] = more.split("e");
    if (!/^50*$/.test(mantissa.slice(mantissa.indexOf(".") + 1 + digits))) return rounded;
    const last = rounded.search(/\d(?=e|$)/);
    return Number(rounded[last]) % 2 && Number(rounded) > magnitude
        ? `${rounded.slice(0, last)}${Number(rounded[last]) - 1}${rounded.slice(last + 1)}`
        : rounded;
}

// The engine's format_fixed, with a true minus sign: a fixed number of decimals, never "-0.00".
export function fixed(value: number | string, decimals = 4): string {
    const x = valueOf(value);
    if (!Number.isFinite(x)) return notFinite(x);
    const magnitude = Math.abs(x);
    if (magnitude >= 1e21) return typeset(x.toExponential(decimals));
    const text = toEven(magnitude, magnitude.toFixed(decimals), magnitude.toFixed(decimals + 40), decimals);
    return (x < 0 && /[1-9]/.test(text) ? minus : "") + text;
}

// The engine's format_value: fixed where that shows at least three digits of it, else scientific.
export function number(value: number | string, decimals = 4): string {
    const x = valueOf(value),
        magnitude = Math.abs(x);
    if (x === 0) return "0";
    if (!Number.isFinite(x) || (magnitude >= 10 ** (2 - decimals) && magnitude < 1e5))
        return fixed(x, decimals);
    return scientific(x, Math.max(decimals - 1, 1));
}
function scientific(x: number, digits: number): string {
    const magnitude = Math.abs(x);
    const text = toEven(
        magnitude,
        magnitude.toExponential(digits),
        magnitude.toExponential(digits + 40),
        digits,
    );
    return typeset((x < 0 ? "-" : "") + text.replace(/e([+-])(\d)$/, "e$10$2"));
}

// Returns one format for the values of a column: the decimals that show three digits of the smallest, at most six.
export function column(values: number[]): (value: number) => string {
    const sizes = values.filter((x) => x && Number.isFinite(x)).map(Math.abs),
        decimals = Math.max(4, 2 - Math.floor(Math.log10(Math.min(...sizes))));
    return Math.max(...sizes) >= 1e5 || decimals > 6
        ? (x) => (x && Number.isFinite(x) ? scientific(x, 3) : number(x))
        : (x) => fixed(x, decimals);
}

export const short = (value: number) => fixed(value, 2).replace(/^(−?)0\./, "$1.");

// With commas between thousands. A first toLocaleString costs a phone 50 ms, before the page has shown a number.
export const withCommas = (n: number) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
export const shapeText = (shape: number[]) => shape.map(withCommas).join(" × ");

export function duration(ms: number): string {
    if (ms < 0.001) return `${Number((ms * 1e6).toPrecision(3))} ns`;
    if (ms < 0.1) return `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs`;
    if (ms < 10) return `${ms.toFixed(2)} ms`;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    return `${(ms / 1000).toFixed(2)} s`;
}

// GFLOP/s with three digits, however slow the call was: a positive rate never reads as 0.
export const rate = (gflops: number) =>
    gflops >= 1000 ? withCommas(Math.round(gflops)) : String(Number(gflops.toPrecision(3)));

// Names for tokens: one that occurs more than once has its index, as in f₁₀.
export function indexed(tokens: string[]): string[] {
    const often = new Map<string, number>();
    for (const token of tokens) often.set(token, (often.get(token) ?? 0) + 1);
    return tokens.map((token, n) =>
        often.get(token)! > 1
            ? token + String(n).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)])
            : token,
    );
}

export const indexOf = (name: string) => /[₀-₉]*$/.exec(name)![0];

// W_q, d_k, Kᵀ: letters after an underscore are set as an index.
export const formula = (text: string) => escape(text).replace(/([A-Za-z])_([a-z]+)/g, "$1<sub>$2</sub>");

// 21st, 22nd and 33rd, but 11th, 12th and 13th.
function ordinal(n: number): string {
    const teen = Math.floor((n % 100) / 10) === 1;
    return `${withCommas(n)}${(teen ? "" : ["", texts.steps.st, texts.steps.nd, texts.steps.rd][n % 10]) || texts.steps.th}`;
}
const rankName = (n: number) =>
    [texts.steps.first, texts.steps.second, texts.steps.third][n] ?? fill(texts.steps.nth, ordinal(n + 1));
// Describes the rank n of a row's visible weights.
export const place = (n: number, of: number) =>
    of === 1
        ? texts.steps.onlyKey
        : n > 0 && n === of - 1
          ? fill(texts.steps.lowestOf, of)
          : fill(texts.steps.placeOf, rankName(n), of);
