// One cell of a matrix on a canvas.
import { colorAt, css, inkOn, type Scale } from "../page/colors.ts";

export function hatch(
    context: CanvasRenderingContext2D,
    x: number,
    y: number,
    size: number,
    radius: number,
    color: string,
): void {
    context.save();
    context.beginPath();
    context.roundRect(x, y, size, size, radius);
    context.clip();
    context.strokeStyle = color;
    context.lineWidth = 1;
    context.beginPath();
    for (let d = 0; d < 2 * size; d += Math.max(5, size / 8)) {
        context.moveTo(x + d, y);
        context.lineTo(x + d - size, y + size);
    }
    context.stroke();
    context.restore();
}

// Returns the color in which the digits can be read.
export function paintCell(
    context: CanvasRenderingContext2D,
    scale: Scale,
    x: number,
    y: number,
    size: number,
    radius: number,
    value: number,
    colors: Record<string, string>,
): string {
    context.beginPath();
    context.roundRect(x, y, size, size, radius);
    if (Number.isFinite(value)) {
        const rgb = colorAt(scale, value);
        context.fillStyle = css(rgb);
        context.fill();
        return inkOn(rgb);
    }
    if (value === -Infinity) {
        // hidden
        if (size >= 14) hatch(context, x, y, size, radius, colors.line); // smaller ones stay bare
        return colors.soft;
    }
    context.fillStyle = Number.isNaN(value) ? "#d6009a" : "#00a0c8";
    context.fill();
    return "#ffffff";
}
