// Draws what a matrix's view shows: cells, outlines, labels, sums and the small map of all.
import { fixed, indexOf, short } from "../page/format.ts";
import { hatch, paintCell } from "./cells.ts";
import { isHidden, type MatrixContent } from "./matrix_content.ts";
import type { Scale } from "../page/colors.ts";

const minDigits = 30;
export const fonts =
    '"Inter", system-ui, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';

export interface Layout {
    left: number;
    top: number;
    right: number;
    bottom: number;
    cell: number;
    width: number;
    height: number;
    slanted: boolean;
    stacked: boolean; // an index below its word
    labels: boolean;
}

export const noLayout: Layout = {
    ...{ left: 0, top: 0, right: 0, bottom: 0, cell: 1, width: 1, height: 1 },
    ...{ slanted: false, stacked: false, labels: true },
};

// The drawn matrix.
export interface Drawn {
    readonly grid: HTMLElement;
    readonly content: MatrixContent | null;
    readonly layout: Layout;
    readonly picked: [number, number];
    readonly hovered: [number, number] | null;
    readonly zoom: number;
    readonly origin: [number, number]; // first visible cell: row, column (fractions)
    readonly type: number; // how large letters are
    readonly ofSums: string; // the font of the sums
    columnSums: Float32Array | null;
    readonly scale: Scale;
    readonly visible: Uint8Array | null; // the mask while it is edited: what is hidden is hatched
    readonly rectangle: [[number, number], [number, number]] | null; // two corners, not yet filled
    readonly marked: [number, number, number, number] | null; // first row and column, last row and column
    value(row: number, column: number): number;
    digitsFrom(content: MatrixContent): number; // pixels of a cell with all digits
    cellPicture(): HTMLCanvasElement | null;
}

function inView(view: Drawn): [number, number, number, number] {
    const { left, top, right, cell, width, height } = view.layout,
        content = view.content!;
    const bottomRow = Math.min(
        content.rows,
        Math.ceil(view.origin[0] + (height - top - view.layout.bottom) / cell),
    );
    const lastColumn = Math.min(
        content.columns,
        Math.ceil(view.origin[1] + (width - left - (view.zoom > 1 ? right : 0)) / cell),
    );
    return [Math.floor(view.origin[0]), bottomRow, Math.floor(view.origin[1]), lastColumn];
}

export function paintCells(
    view: Drawn,
    context: CanvasRenderingContext2D,
    colors: Record<string, string>,
): void {
    const { left, top, cell, width, height } = view.layout,
        content = view.content!;
    const [r0, r1, c0, c1] = inView(view);
    context.save();
    context.beginPath();
    context.rect(left - 3, top - 3, width - left + 3, height - top + 3 - view.layout.bottom);
    context.clip();
    if (cell < 9) paintImage(view, context, colors);
    else {
        const gap = cell >= 20 ? 2 : cell >= 9 ? 1 : 0,
            radius = cell >= 30 ? 4 : cell >= 14 ? 2 : 0;
        context.textAlign = "center";
        context.textBaseline = "middle";
        const room = cell / view.type;
        context.font = `500 ${(room >= 76 ? 14 : room >= 58 ? 13 : 12) * view.type}px ${fonts}`;
        context.fontKerning = "none";
        for (let i = r0; i < r1; ++i)
            for (let j = c0; j < c1; ++j) {
                const value = view.value(i, j);
                const x = left + (j - view.origin[1]) * cell,
                    y = top + (i - view.origin[0]) * cell;
                const hidden = isHidden(content, i * content.columns + j);
                const fill = paintCell(
                    context,
                    view.scale,
                    x,
                    y,
                    cell - gap,
                    radius,
                    hidden ? -Infinity : value,
                    colors,
                );
                if (view.visible && !view.visible[i * content.columns + j])
                    hatch(context, x, y, cell - gap, radius, colors.ink);
                if (cell < minDigits || (view.visible && !view.visible[i * content.columns + j])) continue;
                if (content.edited?.has(i * content.columns + j)) {
                    context.fillStyle = fill;
                    context.beginPath();
                    context.moveTo(x + cell - gap - 12, y);
                    context.lineTo(x + cell - gap, y);
                    context.lineTo(x + cell - gap, y + 12);
                    context.fill();
                }
                if (hidden) continue; // the hatching shows it: a 0 would look like a small weight
                // An exact 0 is a cell that plays no part: its digits step back.
                context.fillStyle = value === 0 && !content.signed ? colors.faint : fill;
                context.fillText(
                    cell >= view.digitsFrom(content) ? fixed(value) : short(value),
                    x + (cell - gap) / 2,
                    y + (cell - gap) / 2 + 0.5,
                );
            }
        outline(
            view,
            context,
            view.picked,
            gap,
            radius,
            colors.accent,
            colors.surface,
            view.grid.contains(document.activeElement),
        );
        if (view.hovered)
            outline(view, context, view.hovered, gap, radius, colors.ink, colors.surface, false);
    }
    if (content.stripe) paintStripe(view, context, colors, content.stripe);
    if (view.marked) {
        const [r0, c0, r1, c1] = view.marked,
            within = (at: number, count: number) => Math.min(at, count - 1);
        const corners: [[number, number], [number, number]] = [
            [within(r0, content.rows), within(c0, content.columns)],
            [within(r1, content.rows), within(c1, content.columns)],
        ];
        outlineRectangle(view, context, colors.surface, corners, []);
        outlineRectangle(view, context, colors.ink, corners);
    }
    // The cells that the next press fills.
    if (view.rectangle) outlineRectangle(view, context, colors.accent, view.rectangle);
    context.restore();
}

// A frame around the run, and what it says on the masked cells above its upper end.
function paintStripe(
    view: Drawn,
    context: CanvasRenderingContext2D,
    colors: Record<string, string>,
    { run: [row, column, length, step], text }: NonNullable<MatrixContent["stripe"]>,
): void {
    const { left, top, cell } = view.layout,
        x = left + (column - view.origin[1] + 0.5) * cell - 1,
        y = top + (row - view.origin[0] + 0.5) * cell - 1,
        down = (length - 1) * cell,
        angle = Math.atan2(1, step),
        radius = 0.75 * cell,
        quarter = Math.PI / 2;
    context.strokeStyle = context.fillStyle = colors.warm;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(x, y, radius, angle + quarter, angle + 3 * quarter);
    context.arc(x + step * down, y + down, radius, angle - quarter, angle + quarter);
    context.closePath();
    context.stroke();
    if (view.zoom > 1) return;
    context.font = `600 ${13 * view.type}px ${fonts}`;
    // On two lines where one has no room.
    const right = left + view.content!.columns * cell - 6,
        middleOf = text.indexOf(" ", text.length / 3),
        widthOf = (line: string) => context.measureText(line).width,
        lines =
            right - widthOf(text) - left < 4 * cell && middleOf > 0
                ? [text.slice(0, middleOf), text.slice(middleOf + 1)]
                : [text],
        width = Math.max(...lines.map(widthOf)),
        tall = 18 * lines.length,
        lowest = top + right - width - left - 2 * cell, // where a cell next to the text is masked too
        upper = Math.max(top + 4, Math.min(y - 3 * cell, lowest) - tall / 2);
    context.fillStyle = colors.surface;
    context.beginPath();
    context.roundRect(right - width - 6, upper - 2, width + 10, tall + 4, 5);
    context.fill();
    context.fillStyle = colors.warm;
    context.textAlign = "right";
    lines.forEach((line, n) => context.fillText(line, right, upper + 18 * n + 10));
}

function outlineRectangle(
    view: Drawn,
    context: CanvasRenderingContext2D,
    color: string,
    [[r0, c0], [r1, c1]]: [[number, number], [number, number]],
    dashes = [6, 4],
): void {
    const { left, top, cell } = view.layout;
    context.strokeStyle = color;
    context.lineWidth = 2.5;
    context.setLineDash(dashes);
    context.strokeRect(
        left + (Math.min(c0, c1) - view.origin[1]) * cell - 1,
        top + (Math.min(r0, r1) - view.origin[0]) * cell - 1,
        (Math.abs(c1 - c0) + 1) * cell,
        (Math.abs(r1 - r0) + 1) * cell,
    );
    context.setLineDash([]);
}

function outline(
    view: Drawn,
    context: CanvasRenderingContext2D,
    [row, column]: [number, number],
    gap: number,
    radius: number,
    color: string,
    halo: string,
    focused: boolean,
): void {
    const { left, top, cell } = view.layout;
    const x = left + (column - view.origin[1]) * cell,
        y = top + (row - view.origin[0]) * cell;
    const size = cell - gap;
    context.lineWidth = focused ? 5 : 4;
    context.strokeStyle = halo;
    context.beginPath();
    context.roundRect(x, y, size, size, radius);
    context.stroke();
    context.lineWidth = focused ? 3 : 2;
    context.strokeStyle = color;
    context.stroke();
}

function paintImage(view: Drawn, context: CanvasRenderingContext2D, colors: Record<string, string>): void {
    const content = view.content!,
        { left, top, cell } = view.layout;
    const image = view.cellPicture()!;
    context.imageSmoothingEnabled = cell < 1;
    context.drawImage(
        image,
        left - view.origin[1] * cell,
        top - view.origin[0] * cell,
        content.columns * cell,
        content.rows * cell,
    );
    const [row, column] = view.picked;
    context.strokeStyle = colors.accent;
    context.lineWidth = 1;
    const x = left + (column + 0.5 - view.origin[1]) * cell,
        y = top + (row + 0.5 - view.origin[0]) * cell;
    context.strokeRect(x - 4.5, y - 4.5, 9, 9);
}

// Paints the sums of each key's weights over all queries.
export function paintColumnSums(
    view: Drawn,
    context: CanvasRenderingContext2D,
    colors: Record<string, string>,
): void {
    const content = view.content!,
        { left, bottom, cell, height, width } = view.layout;
    if (!bottom) return;
    view.columnSums ??= Float32Array.from({ length: content.columns }, (_, j) => {
        let sum = 0;
        for (let i = 0; i < content.rows; ++i) sum += view.value(i, j);
        return sum;
    });
    const [, , c0, c1] = inView(view),
        digits = cell >= minDigits,
        base = height - bottom + 8;
    const top = view.columnSums.reduce((a, b) => Math.max(a, b), 1e-30);
    context.save();
    context.beginPath();
    context.rect(left, base - 4, width - left, bottom);
    context.clip();
    context.font = view.ofSums;
    context.textAlign = "center";
    context.textBaseline = "middle";
    // On whole pixels: edges between them, and a path of a hundred bars, would be felt at a key.
    const put = (j: number) => {
        const x = left + (j - view.origin[1]) * cell,
            tall = Math.max(1, (18 * view.columnSums![j]) / top);
        if (digits)
            context.fillText(
                cell >= view.digitsFrom(content) ? fixed(view.columnSums![j], 3) : short(view.columnSums![j]),
                x + cell / 2 - 1,
                base + 8,
            );
        else {
            const from = Math.round(x),
                wide = Math.max(1, Math.round(x + cell) - from - (cell >= 9 ? 1 : 0));
            context.fillRect(from, base + 20 - Math.round(tall), wide, Math.round(tall));
        }
    };
    context.fillStyle = colors.soft;
    for (let j = c0; j < c1; ++j) if (j !== view.picked[1]) put(j);
    context.fillStyle = colors.accent;
    if (view.picked[1] >= c0 && view.picked[1] < c1) put(view.picked[1]);
    context.restore();
    if (left < 45) return;
    context.font = view.ofSums;
    context.fillStyle = colors.soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText("sum", left - 9, base + 8);
}

// The whole matrix in the corner, with what is in view.
export function paintMinimap(
    view: Drawn,
    context: CanvasRenderingContext2D,
    colors: Record<string, string>,
): void {
    const content = view.content!,
        { left, top, bottom, width, height } = view.layout,
        longest = Math.max(content.rows, content.columns);
    const w = (110 * content.columns) / longest,
        h = (110 * content.rows) / longest,
        x = width - w - 8,
        y = height - bottom - h - 8;
    context.fillStyle = colors.surface;
    context.fillRect(x - 5, y - 5, w + 10, h + 10);
    context.imageSmoothingEnabled = longest > 110;
    context.drawImage(view.cellPicture()!, x, y, w, h);
    context.strokeStyle = colors.line;
    context.lineWidth = 1;
    context.strokeRect(x - 5.5, y - 5.5, w + 11, h + 11);
    context.strokeStyle = colors.accent;
    context.lineWidth = 2;
    const rows = (height - top - bottom) / view.layout.cell,
        columns = (width - left) / view.layout.cell;
    context.strokeRect(
        x + (view.origin[1] / content.columns) * w,
        y + (view.origin[0] / content.rows) * h,
        Math.min(1, columns / content.columns) * w,
        Math.min(1, rows / content.rows) * h,
    );
}

export function paintLabels(
    view: Drawn,
    context: CanvasRenderingContext2D,
    colors: Record<string, string>,
): void {
    const content = view.content!,
        { left, top, right, bottom, cell, slanted, stacked, labels, width, height } = view.layout;
    const [r0, r1, c0, c1] = inView(view);
    const strong = (i: number, axis: 0 | 1) => i === view.picked[axis] || i === view.hovered?.[axis];
    const stride = labels ? 1 : Math.max(1, Math.ceil(40 / cell));
    const gap = cell >= 20 ? 2 : 0;
    // Setting a font that is set already makes the browser look at the page's styles.
    let font = "";
    const write = (wanted: string) => {
        if (font !== wanted) context.font = wanted;
        font = wanted;
    };
    const put = (index: number, axis: 0 | 1) => {
        const on = strong(index, axis),
            room = axis && !labels ? 26 : 12; // room for the number next to the picked one
        if (!on && (index % stride || (stride > 1 && Math.abs(index - view.picked[axis]) * cell < room)))
            return false;
        write(`${on ? 600 : 450} ${(cell >= 14 ? 13 : 11) * view.type}px ${fonts}`);
        context.fillStyle = on ? (index === view.picked[axis] ? colors.accent : colors.ink) : colors.soft;
        return true;
    };
    const clip = (text: string, width: number) => {
        if (context.measureText(text).width <= width) return text;
        const letters = [...text];
        while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > width) letters.pop();
        return `${letters.join("")}…`;
    };
    context.textBaseline = "middle";
    for (let i = r0; i < r1; ++i) {
        const y = top + (i + 0.5 - view.origin[0]) * cell - gap / 2;
        if (y < top - 2 || y > height - bottom || !put(i, 0)) continue;
        context.textAlign = "right";
        context.fillText(labels ? clip(content.rowLabels[i], left - 10) : String(i), left - 9, y);
        if (right > 2 && view.zoom === 1 && cell >= 14) {
            let sum = 0;
            for (let j = 0; j < content.columns; ++j) sum += view.value(i, j);
            write(view.ofSums);
            context.fillStyle = colors.soft;
            context.textAlign = "left";
            context.fillText(fixed(sum, 3), left + content.columns * cell + 8, y);
        }
    }
    for (let j = c0; j < c1; ++j) {
        const x = left + (j + 0.5 - view.origin[1]) * cell - gap / 2;
        if (x < left || !put(j, 1)) continue;
        const text = labels
            ? clip(
                  content.columnLabels[j],
                  slanted ? Math.min((top - 14) * 1.35, (width - x + 1) * Math.SQRT2) : cell - 4,
              )
            : String(j);
        context.textAlign = slanted ? "left" : "center";
        const label = content.columnLabels[j],
            index = indexOf(label);
        if (stacked && labels) {
            context.fillText(label.slice(0, label.length - index.length), x, top - 20);
            context.fillText(index, x, top - 10);
            continue;
        }
        if (!slanted) {
            context.fillText(text, x, top - 9);
            continue;
        }
        context.save();
        context.translate(x, top - 9);
        context.rotate(-Math.PI / 4);
        context.fillText(text, 0, 0);
        context.restore();
    }
    if (right > 2 && view.zoom === 1 && cell >= 14) {
        context.font = view.ofSums;
        context.fillStyle = colors.soft;
        context.textAlign = "left";
        context.save();
        context.translate(left + content.columns * cell + (slanted ? 20 : 8), top - 9);
        if (slanted) context.rotate(-Math.PI / 4);
        context.fillText("sum", 0, 0);
        context.restore();
    }
}
