// A matrix on a canvas, with a grid for keyboards and screen readers.
import { autoRange, colorTable, logFloor, picture, themeColors, type Scale } from "../page/colors.ts";
import { attribute, setText } from "../page/dom.ts";
import { fixed, indexOf } from "../page/format.ts";
import {
    isHidden,
    sameNumbers,
    type Brush,
    type MatrixContent,
    type MatrixHandlers,
} from "./matrix_content.ts";
import {
    fonts,
    noLayout,
    paintCells,
    paintColumnSums,
    paintLabels,
    paintMinimap,
    type Layout,
} from "./matrix_painter.ts";

const maxCell = 92,
    wideDigits = 50,
    wideSigned = 58, // with room for a minus
    maxHeight = 640,
    mostWithDigits = 12, // rows that fit a screen with digits in their cells
    leastPicture = 13,
    leastWord = 11;
// Children are used again: a new grid for each key would be most of the page's work.
function resize(parent: Element, count: number, tag: string, role: string): void {
    while (parent.childElementCount > count) parent.lastElementChild!.remove();
    while (parent.childElementCount < count) {
        const child = document.createElement(tag);
        child.setAttribute("role", role);
        parent.append(child);
    }
}

// As wide as a picked label, which is bold, can become. A word is measured once: each measuring looks whether the page's
// styles have changed.
const ruler = document.createElement("canvas").getContext("2d")!;
let measured = new Map<string, number>();
function widest(labels: string[]): number {
    const known = measured;
    measured = new Map();
    ruler.font = `600 13px ${fonts}`;
    for (const label of labels.slice(0, 200))
        if (!measured.has(label)) measured.set(label, known.get(label) ?? ruler.measureText(label).width);
    return Math.max(0, ...measured.values());
}
// The same words on both sides are measured once.
function widestOf({ rowLabels, columnLabels }: MatrixContent): number[] {
    const rows = widest(rowLabels),
        columns = rowLabels.join("\n") === columnLabels.join("\n") ? rows : widest(columnLabels);
    return [
        rows,
        columns,
        widest(columnLabels.map((name) => name.slice(0, name.length - indexOf(name).length))),
    ];
}

export class MatrixView {
    private readonly canvas = document.createElement("canvas");
    readonly grid = document.createElement("div");
    content: MatrixContent | null = null;
    layout = noLayout;
    picked: [number, number] = [0, 0]; // set by `pick`
    hovered: [number, number] | null = null;
    zoom = 1;
    origin: [number, number] = [0, 0]; // first visible cell: row, column (fractions)
    private frame = 0;
    readonly type = document.documentElement.classList.contains("projector") ? 1.4 : 1; // how large
    readonly ofSums = `450 ${12 * this.type}px ${fonts}`;
    private available = 0; // pixels, 0 while it is hidden
    private room = Infinity; // from its upper edge to the end of the first screen, where it begins there
    private widths = [0, 0, 0]; // widest row label, column label, and column label without its index
    private viewTimer = 0;
    private readonly pixels = document.createElement("canvas");
    private image: HTMLCanvasElement | null = null; // `pixels`, when they are of these values
    columnSums: Float32Array | null = null;
    scale: Scale = { table: new Uint8Array(768), low: 0, high: 1, log: false };
    painting = false;
    brush: Brush | null = null;
    visible: Uint8Array | null = null; // the mask while it is edited: what is hidden is hatched
    rectangle: [[number, number], [number, number]] | null = null; // two corners, not yet filled
    marked: [number, number, number, number] | null = null; // first row and column, last row and column
    private painted: unknown[] = [];
    private scaleFor: string | undefined; // the theme that `scale` was made for

    constructor(
        host: HTMLElement,
        private readonly handlers: MatrixHandlers,
        label: string,
    ) {
        this.canvas.setAttribute("aria-hidden", "true");
        this.canvas.className = "cells";
        this.grid.className = "grid unseen-grid";
        this.grid.setAttribute("role", "grid");
        this.grid.setAttribute("aria-label", label);
        host.append(this.canvas, this.grid);
        this.listen();
        // Width and room come from here: reading them while a frame is drawn would force a layout.
        new ResizeObserver(([entry]) => {
            const width = Math.floor(entry.contentRect.width);
            if (width === this.available) return;
            this.available = width;
            this.findRoom(host);
        }).observe(host);
        addEventListener("resize", () => this.findRoom(host));
    }

    // Also for who changes the height of what is above it.
    findRoom(host = this.canvas.parentElement!): void {
        const top = host.getBoundingClientRect().top + scrollY;
        this.room = top < 0.75 * innerHeight ? innerHeight - top : Infinity;
        this.draw();
    }

    set(content: MatrixContent): void {
        const resized =
            !this.content || content.rows !== this.content.rows || content.columns !== this.content.columns;
        const relabelled =
            this.content?.rowLabels !== content.rowLabels ||
            this.content.columnLabels !== content.columnLabels;
        const same =
            this.content !== null &&
            sameNumbers(this.content, content) &&
            this.scaleFor === document.documentElement.dataset.theme;
        this.content = content;
        if (relabelled) this.widths = widestOf(content).map((width) => width * this.type);
        if (same) return;
        this.scaleFor = document.documentElement.dataset.theme;
        if (resized) {
            this.zoom = 1;
            this.origin = [0, 0];
        }
        const [low, high] = autoRange(content.data, content.signed);
        const map = content.map === "auto" ? (content.signed ? "balance" : "ink") : content.map;
        const highest = content.high ?? high;
        const lowest = content.log ? logFloor(content.low ?? low, highest) : (content.low ?? low);
        this.scale = { table: colorTable(map), low: lowest, high: highest, log: content.log };
        this.image = this.columnSums = null;
    }

    // Marks a cell as picked; tells nobody.
    pick(row: number, column: number): void {
        this.picked = [row, column];
        this.reveal();
    }

    // Frames the cells that are spoken of.
    mark(cells: [number, number, number, number] | null): void {
        if (cells === this.marked) return;
        this.marked = cells;
        this.draw();
    }

    // Draws at once what was set: for whoever draws a frame.
    show(): void {
        this.fillGrid();
        if (this.frame) cancelAnimationFrame(this.frame);
        this.frame = 0;
        this.paint();
    }

    // The mask under edit has changed.
    refresh(): void {
        this.painted = [];
        this.fillGrid();
        this.draw();
    }
    focus(): void {
        const cell = this.grid.querySelector<HTMLElement>('[tabindex="0"]');
        if (cell !== document.activeElement) cell?.focus({ preventScroll: true });
    }
    fit(): void {
        this.zoom = 1;
        this.origin = [0, 0];
        this.tellView();
        this.draw();
    }

    // "" for all of the matrix; else first row, first column, zoom.
    get view(): string {
        return this.zoom === 1 ? "" : [...this.origin, this.zoom].map((x) => Number(x.toFixed(2))).join(",");
    }
    look(view: string): void {
        if (view === this.view) return;
        const [row = 0, column = 0, zoom = 1] = view.split(",").map(Number);
        this.zoom = Math.min(64, Math.max(1, zoom || 1));
        this.origin = [row || 0, column || 0];
        this.draw();
    }
    private tellView(): void {
        clearTimeout(this.viewTimer);
        this.viewTimer = window.setTimeout(() => this.handlers.moved?.(this.view), 300);
    }
    get element(): HTMLCanvasElement {
        return this.canvas;
    }

    zoomBy(factor: number, x = this.layout.width / 2, y = this.layout.height / 2): void {
        const before = this.toCells(x, y);
        this.zoom = Math.min(64, Math.max(1, this.zoom * factor));
        this.measure();
        const after = this.toCells(x, y);
        this.moveBy(before[0] - after[0], before[1] - after[1]);
    }

    private moveBy(rows: number, columns: number): void {
        this.origin = [this.origin[0] + rows, this.origin[1] + columns];
        this.tellView();
        this.draw();
    }

    private toCells(x: number, y: number): [number, number] {
        const { left, top, cell } = this.layout;
        return [(y - top) / cell + this.origin[0], (x - left) / cell + this.origin[1]];
    }

    private at(event: PointerEvent | WheelEvent | MouseEvent): [number, number] | null {
        const box = this.canvas.getBoundingClientRect();
        const x = event.clientX - box.left,
            y = event.clientY - box.top;
        if (!this.content || x < this.layout.left || y < this.layout.top) return null;
        const [row, column] = this.toCells(x, y).map(Math.floor);
        return row >= 0 && column >= 0 && row < this.content.rows && column < this.content.columns
            ? [row, column]
            : null;
    }

    // Returns the place of a cell, in pixels of the window.
    cellBox(row: number, column: number): DOMRect {
        const { x, y } = this.canvas.getBoundingClientRect(),
            { left, top, cell } = this.layout;
        return new DOMRect(
            x + left + (column - this.origin[1]) * cell,
            y + top + (row - this.origin[0]) * cell,
            cell,
            cell,
        );
    }

    private listen(): void {
        const pointers = new Map<number, PointerEvent>();
        let dragged = 0,
            stroke = false;
        this.canvas.addEventListener("pointerdown", (event) => {
            pointers.set(event.pointerId, event);
            dragged = 0;
            if (this.zoom > 1 || pointers.size > 1 || this.painting)
                this.canvas.setPointerCapture(event.pointerId);
            const cell = this.at(event);
            if (this.painting && cell && event.button === 0 && pointers.size === 1) {
                stroke = true;
                this.brush?.down(cell);
                this.focus();
            }
        });
        this.canvas.addEventListener("pointermove", (event) => {
            const last = pointers.get(event.pointerId);
            if (!last) {
                this.hover(this.at(event));
                return;
            }
            const dx = event.clientX - last.clientX,
                dy = event.clientY - last.clientY;
            dragged += Math.abs(dx) + Math.abs(dy);
            if (pointers.size === 2) {
                const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId)!;
                const distance = (a: PointerEvent) =>
                    Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
                const box = this.canvas.getBoundingClientRect();
                this.zoomBy(
                    distance(event) / Math.max(1, distance(last)),
                    (event.clientX + other.clientX) / 2 - box.left,
                    (event.clientY + other.clientY) / 2 - box.top,
                );
            } else if (stroke) {
                const cell = this.at(event);
                if (cell) this.brush?.over(cell);
            } else if (this.zoom > 1 && !this.painting)
                this.moveBy(-dy / this.layout.cell, -dx / this.layout.cell);
            pointers.set(event.pointerId, event);
        });
        const end = (event: PointerEvent) => {
            if (!pointers.delete(event.pointerId)) return;
            const cell = this.at(event);
            if (stroke) {
                stroke = false;
                this.brush?.up(event.type === "pointercancel" ? null : cell);
                return;
            }
            if (event.type === "pointercancel" || dragged > 6 || !cell) return;
            this.handlers.pick(...cell);
            this.focus();
        };
        this.canvas.addEventListener("pointerup", end);
        this.canvas.addEventListener("pointercancel", end);
        this.canvas.addEventListener("dblclick", (event) => {
            const cell = this.at(event);
            if (cell && !this.painting) this.handlers.open?.(...cell);
        });
        this.canvas.addEventListener("pointerleave", () => this.hover(null));
        this.canvas.addEventListener(
            "wheel",
            (event) => {
                if (!event.ctrlKey && !event.metaKey && this.zoom === 1) return; // the page scrolls
                event.preventDefault();
                const box = this.canvas.getBoundingClientRect();
                if (event.ctrlKey || event.metaKey)
                    this.zoomBy(
                        Math.exp(-event.deltaY / 300),
                        event.clientX - box.left,
                        event.clientY - box.top,
                    );
                else this.moveBy(event.deltaY / this.layout.cell, event.deltaX / this.layout.cell);
            },
            { passive: false },
        );
        this.grid.addEventListener("keydown", (event) => this.key(event));
        for (const type of ["focusin", "focusout"]) this.grid.addEventListener(type, () => this.draw());
    }

    private hover(cell: [number, number] | null): void {
        if (cell?.[0] === this.hovered?.[0] && cell?.[1] === this.hovered?.[1]) return;
        this.hovered = cell;
        if (cell) this.handlers.hover?.(...cell);
        this.draw();
    }

    private key(event: KeyboardEvent): void {
        if (!this.content) return;
        const { rows, columns } = this.content;
        let [row, column] = this.picked;
        const along = this.painting && event.shiftKey,
            stride = event.shiftKey && !along ? 16 : 1;
        switch (event.key) {
            case "ArrowUp":
                row -= stride;
                break;
            case "ArrowDown":
                row += stride;
                break;
            case "ArrowLeft":
                column -= stride;
                break;
            case "ArrowRight":
                column += stride;
                break;
            case "Home":
                column = 0;
                if (event.ctrlKey) row = 0;
                break;
            case "End":
                column = columns - 1;
                if (event.ctrlKey) row = rows - 1;
                break;
            case "+":
            case "=":
                this.zoomBy(1.5);
                event.preventDefault();
                return;
            case "-":
                this.zoomBy(1 / 1.5);
                event.preventDefault();
                return;
            case "Enter":
            case " ":
                if (this.painting) this.brush?.press([row, column]);
                else if (event.key === "Enter") this.handlers.open?.(row, column);
                else return;
                event.preventDefault();
                return;
            case "Escape":
                if (this.painting) {
                    this.brush?.cancel();
                    event.preventDefault();
                }
                return;
            default:
                return;
        }
        event.preventDefault();
        const from = this.picked,
            to: [number, number] = [
                Math.max(0, Math.min(rows - 1, row)),
                Math.max(0, Math.min(columns - 1, column)),
            ];
        this.handlers.pick(...to);
        if (this.painting) {
            if (along) this.brush?.along(from, to);
            else this.brush?.moved(to);
        }
        this.focus();
    }

    // All of a small matrix; of a large one the neighbours of the pick, with which the window moves.
    private fillGrid(): void {
        const content = this.content;
        if (!content) return;
        const [row, column] = this.picked;
        const had = this.grid.contains(document.activeElement);
        const span = (at: number, count: number) => {
            const shown = count > 13 ? 7 : count,
                first = Math.max(0, Math.min(at - 3, count - shown));
            return [first, first + shown];
        };
        const [r0, r1] = span(row, content.rows),
            [c0, c1] = span(column, content.columns);
        attribute(this.grid, "aria-rowcount", content.rows);
        attribute(this.grid, "aria-colcount", content.columns);
        resize(this.grid, r1 - r0, "div", "row");
        for (let i = r0; i < r1; ++i) {
            const line = this.grid.children[i - r0];
            attribute(line, "aria-rowindex", i + 1);
            resize(line, c1 - c0, "span", "gridcell");
            for (let j = c0; j < c1; ++j) {
                const cell = line.children[j - c0],
                    here = i === row && j === column;
                attribute(cell, "aria-colindex", j + 1);
                attribute(cell, "tabindex", here ? 0 : -1);
                attribute(cell, "aria-selected", here);
                const seen = this.visible
                    ? this.visible[i * content.columns + j]
                        ? texts.stage.visible
                        : texts.stage.masked
                    : "";
                setText(
                    cell,
                    `${content.rowLabels[i]}, ${content.columnLabels[j]}: ${fixed(content.data[i * content.columns + j])}${content.edited?.has(i * content.columns + j) ? texts.stage.isEdited : ""}${seen}`,
                );
            }
        }
        if (had) queueMicrotask(() => this.focus()); // when the frame's other writing is done
    }

    private reveal(): void {
        if (this.zoom <= 1 || !this.content) return;
        const [visibleRows, visibleColumns] = [
            (this.layout.height - this.layout.top - this.layout.bottom) / this.layout.cell,
            (this.layout.width - this.layout.left - this.layout.right) / this.layout.cell,
        ];
        const into = (at: number, first: number, count: number) =>
            at < first ? at : at + 1 > first + count ? at + 1 - count : first;
        this.origin = [
            into(this.picked[0], this.origin[0], visibleRows),
            into(this.picked[1], this.origin[1], visibleColumns),
        ];
    }

    digitsFrom = ({ signed }: MatrixContent) => (signed ? wideSigned : wideDigits) * this.type;

    // Words get room if cells are large enough for them; smaller cells get indices.
    private measure(): void {
        const content = this.content!;
        this.layout = this.layoutWith(content.rows <= 200 && content.columns <= 200);
        if (this.layout.cell < leastWord && this.layout.labels) this.layout = this.layoutWith(false);
        const limit = (origin: number, count: number) =>
            Math.max(0, Math.min(origin, count - count / this.zoom));
        this.origin = [limit(this.origin[0], content.rows), limit(this.origin[1], content.columns)];
    }

    private layoutWith(labels: boolean): Layout {
        const content = this.content!;
        const available = Math.max(200, this.available);
        // In steps, so that a letter more does not move and resize the picture.
        const stepped = (width: number) => 16 * Math.ceil(width / 16);
        const left = Math.min(labels ? stepped(this.widths[0]) : 36, available * 0.28) + 14;
        const right = content.sums && content.rows <= 64 && available >= 380 ? 54 * this.type : 2; // a phone needs the room for digits
        const columnWidth = Math.min(labels ? this.widths[1] : 36, 120);
        // The last slanted label extends to the right by half of a number; with few columns there is room for it next
        // to the sums.
        const lean = labels ? Math.min(80, columnWidth * 0.72) : 14,
            aside = content.columns > 16 ? Math.max(right, lean) : right;
        // Column sums: as digits where they fit, else as bars.
        const bottom = content.sums ? 30 : 0;
        const widest = Math.min(
            maxCell * this.type,
            (available - left - aside) / content.columns,
            Math.max(6, maxHeight / content.rows),
        );
        // All of it within the first screen, as long as its digits can be read; of many rows, the picture.
        const least = content.rows > mostWithDigits ? leastPicture : this.digitsFrom(content);
        const lies = (base: number) => !labels || Math.min(columnWidth, this.widths[2]) + 4 <= base;
        const slope = stepped(this.widths[2]) + columnWidth - this.widths[2];
        const above = (base: number) => (lies(base) ? 30 : Math.min(110, slope * 0.72 + 18));
        const within = (top: number) =>
            Math.min(widest, Math.max(least, (this.room - top - bottom - 12) / content.rows));
        const lying = within(30),
            base = lies(lying) ? lying : within(above(lying));
        const cell = base * this.zoom,
            slanted = !lies(base),
            top = above(base);
        return {
            left,
            top,
            right,
            bottom,
            cell,
            slanted,
            stacked: !slanted && columnWidth + 4 > base,
            labels,
            width: Math.min(
                available,
                left + base * content.columns + Math.max(right, slanted || !labels ? lean : 0),
            ),
            height: top + base * content.rows + 2 + bottom,
        };
    }

    draw(): void {
        if (this.frame) return;
        this.frame = requestAnimationFrame(() => {
            this.frame = 0;
            this.paint();
        });
    }

    // The inputs of a picture, except a mask being edited. A pick asks for three frames (its own, its arithmetic's
    // and the moving focus), of which only one has something new to show.
    private get drawnFrom(): unknown[] {
        const { content, picked, hovered, marked, rectangle, origin } = this;
        return [
            ...[content!.rowLabels, content!.columnLabels, content!.masked, this.scale, this.visible],
            ...[this.zoom, this.available, this.room, devicePixelRatio, this.painting],
            ...[this.grid.contains(document.activeElement), document.documentElement.dataset.theme],
            [
                picked,
                hovered,
                marked,
                rectangle,
                origin,
                content!.stripe?.run,
                [...(content!.edited ?? [])],
            ].join(";"),
        ];
    }

    private paint(): void {
        if (!this.content || !this.available || this.canvas.hidden) return;
        const from = this.drawnFrom;
        if (from.every((what, n) => what === this.painted[n])) return;
        this.painted = from;
        this.paintAll();
    }

    private paintAll(): void {
        this.measure();
        const { width, height } = this.layout;
        const ratio = Math.min(3, devicePixelRatio || 1);
        const canvas = this.canvas;
        if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
            canvas.width = Math.round(width * ratio);
            canvas.height = Math.round(height * ratio);
            canvas.style.width = `${width}px`;
            canvas.style.height = `${height}px`;
        }
        const touch = this.zoom > 1 || this.painting ? "none" : "pan-y";
        if (canvas.style.touchAction !== touch) canvas.style.touchAction = touch;
        const context = canvas.getContext("2d")!;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        const colors = themeColors();
        paintCells(this, context, colors);
        paintLabels(this, context, colors);
        paintColumnSums(this, context, colors);
        if (this.zoom > 1) paintMinimap(this, context, colors);
    }

    value(row: number, column: number): number {
        const content = this.content!;
        return (content.upper && column > row ? content.upper : content.data)[row * content.columns + column];
    }

    // One pixel for each cell.
    cellPicture(): HTMLCanvasElement | null {
        const content = this.content;
        if (!content || this.image) return this.image;
        this.image = picture(
            content.rows,
            content.columns,
            this.scale,
            content.masked || content.upper
                ? content.data.map((_, cell) =>
                      isHidden(content, cell)
                          ? -Infinity
                          : this.value(Math.floor(cell / content.columns), cell % content.columns),
                  )
                : content.data,
            this.pixels,
        );
        return this.image;
    }
}
