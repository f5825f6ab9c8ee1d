// Draws the playground: curves over the steps, and a head's weights.
import type { Probe, Report } from "./train_protocol.ts";
import type { Rgb } from "../page/colors.ts";

// In the order of the letters that the style sheet gives them.
const colorNames: Record<string, string> = {
    a: "--accent",
    b: "--good",
    c: "--warm",
    d: "--ink",
    e: "--strong-line",
};

function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const ratio = Math.min(2, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
}

export interface Curve {
    of: (report: Report) => number;
    top: number; // the value at the upper edge; 0 is at the lower one
    color: string;
}

// `dashed`: a level of the first curve's values.
export function drawCurves(
    canvas: HTMLCanvasElement,
    reports: Report[],
    step: number,
    curves: Curve[],
    dashed?: number,
): void {
    const width = canvas.clientWidth,
        height = canvas.clientHeight;
    if (!width) return;
    const context = prepare(canvas, width, height),
        style = getComputedStyle(canvas),
        color = (name: string) => style.getPropertyValue(name);
    const last = Math.max(50, reports.length - 1),
        x = (n: number) => 34 + ((width - 40) * n) / last,
        y = (value: number, top: number) => height - 20 - ((height - 28) * Math.min(value, top)) / top;
    context.font = `450 11px ${style.fontFamily}`;
    context.fillStyle = context.strokeStyle = color("--soft");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const { top } = curves[0];
    for (const value of top > 1 ? [0, Math.floor(top)] : [0, 0.5, 1]) {
        context.fillText(String(value), 28, y(value, top));
        context.globalAlpha = 0.25;
        context.fillRect(34, Math.round(y(value, top)), width - 40, 1);
        context.globalAlpha = 1;
    }
    context.textAlign = "center";
    for (const n of [0, Math.round(last / 2), last])
        context.fillText(String(n), Math.min(x(n), width - 14), height - 7);
    if (dashed !== undefined) {
        context.setLineDash([5, 4]);
        context.beginPath();
        context.moveTo(34, y(dashed, top));
        context.lineTo(width - 6, y(dashed, top));
        context.stroke();
        context.setLineDash([]);
    }
    context.strokeStyle = color("--ink");
    context.globalAlpha = 0.4;
    context.beginPath();
    context.moveTo(x(step), 4);
    context.lineTo(x(step), height - 20);
    context.stroke();
    context.globalAlpha = 1;
    context.lineWidth = 2;
    for (const curve of curves) {
        context.strokeStyle = color(colorNames[curve.color]);
        context.beginPath();
        let drawn = false;
        reports.forEach((report, n) => {
            const value = curve.of(report);
            if (drawn) context.lineTo(x(n), y(value, curve.top));
            else context.moveTo(x(n), y(value, curve.top));
            drawn = true;
        });
        context.stroke();
    }
}

const edge = 22; // for the tokens along two sides
const side = (canvas: HTMLCanvasElement) => canvas.clientWidth;

// Returns row and column under a point of a head's picture; null outside of it and above the diagonal.
export function headCell(
    canvas: HTMLCanvasElement,
    count: number,
    x: number,
    y: number,
): [number, number] | null {
    const cell = (side(canvas) - edge) / count,
        [row, column] = [Math.floor((y - edge) / cell), Math.floor((x - edge) / cell)];
    return row >= 0 && row < count && column >= 0 && column <= row ? [row, column] : null;
}

export function drawHead(
    canvas: HTMLCanvasElement,
    probe: Probe,
    head: number,
    colorOf: (weight: number) => Rgb,
): void {
    const size = side(canvas),
        count = probe.tokens.length;
    if (!size || !count) return;
    const context = prepare(canvas, size, size),
        style = getComputedStyle(canvas),
        cell = (size - edge) / count,
        gap = cell >= 9 ? 1 : 0;
    for (let row = 0; row < count; ++row)
        for (let column = 0; column <= row; ++column) {
            const [r, g, b] = colorOf(probe.weights[(head * count + row) * count + column]);
            context.fillStyle = `rgb(${r} ${g} ${b})`;
            context.fillRect(
                edge + column * cell,
                edge + row * cell,
                Math.max(0.5, cell - gap),
                Math.max(0.5, cell - gap),
            );
        }
    // The head's label: the cells whose weights its score averages.
    const label = probe.labels[head];
    if (label?.named && cell >= 5) {
        context.strokeStyle = style.getPropertyValue("--warm");
        context.lineWidth = 1.5;
        for (const [score, row, column] of probe.cells)
            if (score === label.score)
                context.strokeRect(edge + column * cell, edge + row * cell, cell - gap, cell - gap);
    }
    context.font = `450 ${Math.max(8, Math.min(12, cell))}px ${style.fontFamily}`;
    context.fillStyle = style.getPropertyValue("--soft");
    context.textBaseline = "middle";
    const stride = Math.ceil(9 / cell);
    for (let n = 0; n < count; n += stride) {
        const text = [...probe.tokens[n]].slice(0, 2).join("");
        context.textAlign = "right";
        context.fillText(text, edge - 4, edge + (n + 0.5) * cell);
        context.textAlign = "center";
        context.fillText(text, edge + (n + 0.5) * cell, edge - 9);
    }
}
