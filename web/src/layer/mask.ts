// The mask editor: cells, rectangles, rows and columns of a mask shown or hidden, by pointer or keyboard. What a rule
// hid before becomes paint, so that each cell can be changed. Loaded when it is first opened. It imports only types: code
// shared with the page would become its own file that the first view waits for.
import type { App } from "../app/app.ts";
import type { MaskKit } from "../app/kit.ts";
import type { State } from "../page/state.ts";
import type { Workbench } from "./stage.ts";

type Tool = "cell" | "rectangle" | "row" | "column";
type Cell = [number, number];

// A mask is painted up to so many tokens; beyond, the engine gives no cells to edit.
const maxPaintedSide = 128;

function fill(cells: Uint8Array, keys: number, [r0, c0]: Cell, [r1, c1]: Cell, value: number): void {
    for (let i = Math.min(r0, r1); i <= Math.max(r0, r1); ++i)
        cells.fill(value, i * keys + Math.min(c0, c1), i * keys + Math.max(c0, c1) + 1);
}

export class MaskEditor {
    private on = false;
    private shown = false;
    private tool: Tool = "cell";
    private last: Cell | null = null; // where the stroke is, or the rectangle's first corner
    private value = 0; // value that the stroke sets: 1 visible, 0 masked
    private strokes = 0;

    constructor(
        private readonly app: App,
        private readonly workbench: Workbench,
        private readonly kit: MaskKit,
    ) {
        const { byId } = kit,
            { matrix } = workbench;
        matrix.brush = {
            down: (cell) => this.down(cell),
            over: (cell) => this.over(cell),
            up: (cell) => this.up(cell),
            press: (cell) => {
                if (this.tool === "rectangle" && this.last) this.up(cell);
                else this.down(cell);
            },
            along: (from, to) => {
                if (!this.last) this.down(from);
                this.over(to);
            },
            moved: (cell) => {
                if (this.tool === "rectangle") this.over(cell);
                else this.last = null;
            },
            cancel: () => {
                if (this.tool === "rectangle" && this.last) this.forget();
                else this.toggle(false);
            },
        };
        for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="brush"]'))
            radio.addEventListener("change", () => {
                this.tool = radio.value as Tool;
                this.forget();
            });
        byId("mask-done").addEventListener("click", () => this.toggle(false));
        byId("mask-invert").addEventListener("click", () =>
            this.change(texts.mask.inverted, (cells) =>
                cells.forEach((v, n) => {
                    cells[n] = 1 - v;
                }),
            ),
        );
        byId("mask-symmetric").addEventListener("click", () => {
            const [rows, keys] = this.size,
                before = this.cells();
            this.change(texts.mask.mirrored, (cells) => {
                for (let i = 0; i < rows; ++i)
                    for (let j = 0; j < keys; ++j) cells[i * keys + j] |= before[j * keys + i];
            });
        });
        app.onShow.add(() => this.show());
    }

    toggle(on = !this.on): void {
        this.on = on;
        this.last = null;
        const { byId, stageTexts } = this.kit,
            stage = this.workbench.stage();
        if (on && stage && (!stageTexts[stage.id].pairs || this.app.state.table))
            this.app.change(
                { stage: stageTexts[stage.id].pairs ? stage.id : "weights", table: false },
                { numbers: false },
            );
        this.show();
        this.say(on ? (this.possible ? texts.mask.open : "") : texts.mask.closed);
        if (on) this.workbench.matrix.focus();
        else if (byId("mask-tools").contains(document.activeElement)) byId("paint").focus();
    }

    // A mask chosen from the list as "painted" begins as the one before it, whose cells may be on their way.
    adopt(): void {
        const { stale, onResult } = this.app,
            later = () => {
                onResult.delete(later);
                this.adopt();
            };
        if (stale) {
            onResult.add(later);
            return;
        }
        this.app.change(this.painted(this.cells()));
        this.toggle(true);
    }

    private get size(): Cell {
        const { result } = this.app;
        return result ? [result.tokens.length, result.keyTokens.length] : [0, 0];
    }
    private get possible(): boolean {
        return Math.max(...this.size) <= maxPaintedSide;
    }
    // Every cell of the mask: 1 is visible. An edit that the engine has not seen yet counts already.
    private cells(): Uint8Array {
        const { state, result } = this.app,
            [rows, keys] = this.size;
        const bits =
            state.mask === "painted" && state.side === `${rows}x${keys}`
                ? state.bits
                : (result?.visible ?? "");
        return this.kit.decodeBits(bits, rows * keys);
    }
    // Where words are added later, the mask of before counts.
    private painted(cells: Uint8Array): Partial<State> {
        const { mask, under } = this.app.state;
        return {
            mask: "painted",
            bits: this.kit.encodeBits(cells),
            side: this.size.join("x"),
            under: mask === "painted" ? under : mask,
        };
    }

    private down(cell: Cell): void {
        const [, keys] = this.size;
        this.value = this.cells()[cell[0] * keys + cell[1]] ? 0 : 1;
        this.last = cell;
        ++this.strokes;
        if (this.tool === "rectangle") {
            this.preview(cell);
            this.say(
                this.kit.fill(this.value ? texts.mask.cornerShows : texts.mask.cornerHides, this.name(cell)),
            );
        } else this.apply(cell);
    }

    private over(cell: Cell): void {
        if (!this.last) return;
        if (this.tool === "rectangle") this.preview(cell);
        else if (cell[0] !== this.last[0] || cell[1] !== this.last[1]) this.apply(cell);
    }

    private up(cell: Cell | null): void {
        const first = this.last;
        this.forget();
        if (!first || !cell || this.tool !== "rectangle") return;
        const [, keys] = this.size,
            count = (Math.abs(cell[0] - first[0]) + 1) * (Math.abs(cell[1] - first[1]) + 1);
        this.change(
            this.kit.fill(this.value ? texts.mask.cellsVisible : texts.mask.cellsHidden, count),
            (cells) => fill(cells, keys, first, cell, this.value),
            cell,
        );
    }

    // From where the stroke is to a cell: a fast pointer leaves no gaps.
    private apply(cell: Cell): void {
        const [rows, keys] = this.size,
            from = this.last ?? cell;
        const steps = Math.max(1, Math.abs(cell[0] - from[0]), Math.abs(cell[1] - from[1]));
        this.last = cell;
        const what =
            this.tool === "row"
                ? this.kit.fill(texts.mask.row, this.label(0, cell[0]))
                : this.tool === "column"
                  ? this.kit.fill(texts.mask.column, this.label(1, cell[1]))
                  : this.name(cell);
        this.change(
            this.kit.fill(this.value ? texts.mask.nowVisible : texts.mask.nowHidden, what),
            (cells) => {
                for (let n = 0; n <= steps; ++n) {
                    const [i, j] = [0, 1].map((axis) =>
                        Math.round(from[axis] + ((cell[axis] - from[axis]) * n) / steps),
                    );
                    fill(
                        cells,
                        keys,
                        [this.tool === "column" ? 0 : i, this.tool === "row" ? 0 : j],
                        [this.tool === "column" ? rows - 1 : i, this.tool === "row" ? keys - 1 : j],
                        this.value,
                    );
                }
            },
            cell,
        );
    }

    // One stroke is one step back.
    private change(what: string, edit: (cells: Uint8Array) => void, cell?: Cell): void {
        const cells = this.cells();
        edit(cells);
        this.app.change(
            { ...this.painted(cells), ...(cell ? { i: cell[0], j: cell[1] } : {}) },
            { burst: `stroke ${cell ? this.strokes : ++this.strokes}` },
        );
        this.say(`${what}. ${this.facts()}`);
    }

    private facts(): string {
        const [rows, keys] = this.size,
            cells = this.cells();
        const visible = cells.reduce((a, b) => a + b, 0);
        let empty = 0;
        for (let i = 0; i < rows; ++i) if (!cells.subarray(i * keys, (i + 1) * keys).includes(1)) ++empty;
        const rest = empty ? this.kit.fill(empty === 1 ? texts.mask.oneEmpty : texts.mask.empty, empty) : "";
        return this.kit.fill(
            texts.mask.share,
            visible,
            cells.length,
            ((100 * visible) / Math.max(1, cells.length)).toFixed(1),
            rest,
        );
    }

    private preview(cell: Cell): void {
        this.workbench.matrix.rectangle = this.last && [this.last, cell];
        this.workbench.matrix.draw();
    }
    private forget(): void {
        this.last = null;
        this.workbench.matrix.rectangle = null;
        this.workbench.matrix.draw();
    }

    private label(axis: 0 | 1, at: number): string {
        const { result } = this.app;
        return result ? (axis ? result.keyNames : result.names)[at] : "";
    }
    private name([row, column]: Cell): string {
        return this.kit.fill(texts.mask.pair, this.label(0, row), this.label(1, column));
    }
    private say(text: string): void {
        this.workbench.say(text);
    }

    private show(): void {
        const { matrix } = this.workbench,
            { byId, fill, hide, setText, stageTexts } = this.kit,
            stage = this.workbench.stage(),
            on = this.on && !!stage && !!stageTexts[stage.id].pairs,
            possible = this.possible;
        matrix.painting = on && possible;
        matrix.visible = matrix.painting ? this.cells() : null;
        if (!matrix.painting) matrix.rectangle = null;
        byId("paint").setAttribute("aria-pressed", String(this.on));
        hide("mask-tools", !on);
        for (const control of byId("mask-tools").querySelectorAll<HTMLInputElement | HTMLButtonElement>(
            "input, button:not(#mask-done)",
        ))
            control.disabled = !possible;
        const [rows, keys] = this.size;
        if (rows !== keys) byId<HTMLButtonElement>("mask-symmetric").disabled = true;
        if (on)
            setText(byId("mask-facts"), possible ? this.facts() : fill(texts.mask.tooLong, maxPaintedSide));
        if (on || this.shown) matrix.refresh();
        this.shown = on;
    }
}
