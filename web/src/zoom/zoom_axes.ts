// Draws over a map: values and words along its edges, the weights' digits, and the legend of colors.
import type { Rgb, Scale } from "../page/colors.ts";
import type { PageKit } from "../app/kit.ts";

// The place of a map on its canvas.
export interface MapPlace {
    rows: number;
    keys: number;
    words: string[]; // labels of queries and keys; none: they are numbered
    width: number;
    height: number;
    cell: number; // pixels of a cell's side
    toX(key: number): number;
    toY(row: number): number;
}

export const digitsFrom = 24; // pixels of a cell's side
const fourDigitsFrom = 44,
    wordsFrom = 15;
const wordMargin: [number, number] = [108, 72]; // left, top: for words
const numberMargin: [number, number] = [70, 20];

// Returns the margin for the labels of cells, if cells are large enough to be read.
export function marginOf(cell: number, words: string[]): [number, number] {
    if (words.length && cell >= wordsFrom) return wordMargin;
    return cell >= digitsFrom ? numberMargin : [0, 0];
}

// Shows the legend of colors: a bar next to the map's tools.
export function showLegend({ byId, css, number, setText }: PageKit, { table, low, high }: Scale): void {
    const bar = byId<HTMLCanvasElement>("zoom-bar"),
        context = bar.getContext("2d")!;
    for (let x = 0; x < bar.width; ++x) {
        const at = 3 * Math.floor((255 * x) / (bar.width - 1));
        context.fillStyle = css([...table.subarray(at, at + 3)] as Rgb);
        context.fillRect(x, 0, 1, bar.height);
    }
    setText(byId("zoom-low"), number(low));
    setText(byId("zoom-high"), `${number(high)} or more`);
}

export class MapAxes {
    private readonly style: CSSStyleDeclaration;

    constructor(
        private readonly kit: PageKit,
        private readonly context: CanvasRenderingContext2D,
        private readonly place: MapPlace,
    ) {
        this.style = getComputedStyle(context.canvas);
    }

    private color(name: string): string {
        return this.style.getPropertyValue(name);
    }
    private font(weight: number, size: number): void {
        this.context.font = `${weight} ${size}px ${this.style.fontFamily}`;
    }
    private write(text: string, x: number, y: number, align: CanvasTextAlign): void {
        const { context } = this;
        context.textAlign = align;
        context.lineWidth = 4;
        context.lineJoin = "round";
        context.strokeStyle = this.color("--surface");
        context.strokeText(text, x, y);
        context.fillStyle = this.color("--ink");
        context.fillText(text, x, y);
    }
    private cut(text: string, width: number): string {
        const { context } = this;
        if (context.measureText(text).width <= width) return text;
        const letters = [...text];
        while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > width) letters.pop();
        return `${letters.join("")}…`;
    }

    // The weights themselves; NaN where one is not known yet.
    digits(scale: Scale, valueAt: (row: number, key: number) => number): void {
        const { context, kit, place } = this,
            { cell } = place;
        if (cell < digitsFrom) return;
        this.font(500, cell >= fourDigitsFrom ? 12 : 10);
        context.textAlign = "center";
        context.textBaseline = "middle";
        const first = (at: number) => Math.max(0, Math.floor(-at / cell));
        for (let row = first(place.toY(0)); row < place.rows && place.toY(row) < place.height; ++row)
            for (let key = first(place.toX(0)); key < place.keys && place.toX(key) < place.width; ++key) {
                const value = valueAt(row, key);
                if (Number.isNaN(value)) continue;
                context.fillStyle = kit.inkOn(kit.colorAt(scale, value));
                const text = cell >= fourDigitsFrom ? kit.fixed(value) : kit.short(value);
                context.fillText(text, place.toX(key + 0.5), place.toY(row + 0.5));
            }
    }

    // Keys along the upper edge and queries along the left one.
    axes(picked: [number, number] | null): void {
        const { context, place } = this,
            { width, height, cell, words } = place,
            [left, top] = marginOf(cell, words);
        context.textBaseline = "middle";
        context.fillStyle = this.color("--surface");
        context.fillRect(0, 0, width, top);
        context.fillRect(0, top, left, height - top);
        if (words.length && cell >= wordsFrom) this.wordAxes(left, top, picked);
        else this.numberAxes();
        this.font(500, 12);
        this.write("key →", 8, 10, "left");
        this.write("query ↓", 8, 28, "left");
    }

    private wordAxes(left: number, top: number, picked: [number, number] | null): void {
        const { context, place } = this,
            { words, cell } = place;
        const put = (at: number, axis: 0 | 1) => {
            const on = picked?.[axis] === at;
            this.font(on ? 600 : 450, 12);
            context.fillStyle = this.color(on ? "--accent" : "--soft");
        };
        const begin = (at: number) => Math.max(0, Math.ceil(-at / cell - 0.5));
        context.textAlign = "right";
        for (let row = begin(place.toY(0) - top); row < place.rows; ++row) {
            const y = place.toY(row + 0.5);
            if (y > place.height) break;
            if (y < Math.max(top, 38)) continue;
            put(row, 0);
            context.fillText(this.cut(words[row], left - 14), left - 8, y);
        }
        context.textAlign = "left";
        for (let key = begin(place.toX(0) - left); key < place.keys; ++key) {
            const x = place.toX(key + 0.5);
            if (x > place.width) break;
            if (x < left) continue;
            put(key, 1);
            context.save();
            context.translate(x, top - 8);
            context.rotate(-Math.PI / 4);
            context.fillText(
                this.cut(words[key], Math.min((top - 16) * 1.35, (place.width - x) * Math.SQRT2)),
                0,
                0,
            );
            context.restore();
        }
    }

    // Writes indices at round distances, followed by the word at that place.
    private numberAxes(): void {
        const { place } = this,
            { width, height, cell, words } = place,
            step = 2 ** Math.max(0, Math.ceil(Math.log2(90 / cell)));
        this.font(500, 12);
        const name = (at: number, room: number) =>
            this.cut(`${at.toLocaleString("en")}${words[at] ? ` ${words[at]}` : ""}`, room);
        for (let at = 0; at <= Math.max(place.rows, place.keys); at += step) {
            const x = place.toX(at),
                y = place.toY(at);
            if (at <= place.keys && x > 70 && x < width - 20)
                this.write(name(at, step * cell - 12), x, 10, "center");
            if (at <= place.rows && y > 44 && y < height - 34) this.write(name(at, 100), 8, y, "left");
        }
    }

    mark([row, key]: [number, number]): void {
        const { context, place } = this,
            x = place.toX(key + 0.5),
            y = place.toY(row + 0.5),
            half = Math.max(5, 0.5 * place.cell);
        for (const [color, line] of [
            ["--surface", 4],
            ["--accent", 2],
        ] as const) {
            context.strokeStyle = this.color(color);
            context.lineWidth = line;
            context.strokeRect(x - half, y - half, 2 * half, 2 * half);
        }
    }
}
