// The flow on one screen: from the words' vectors to what leaves the layer, as small matrices. What the picked number is made
// of is framed in each of them, and a token's way through can be played.
import { arithmeticOf } from "../app/arithmetic.ts";
import type { App, Result } from "../app/app.ts";
import { autoRange, colorTable, isDark, picture, themeColors } from "../page/colors.ts";
import { byId, drawnInSight, setHtml, setText } from "../page/dom.ts";
import { escape, fill, shapeText } from "../page/format.ts";
import type { Stage } from "../engine/protocol.ts";
import type { Workbench } from "./stage.ts";
import { stageTexts } from "../page/state.ts";

// In columns from left to right; of two weights the later one multiplies the values.
const columns = [
    ["inputs", "normed"],
    ["queries", "keys", "values"],
    ["scores"],
    ["masked", "scaled"],
    ["dropped", "weights"],
    ["context"],
    ["output"],
    ["probabilities"],
];
const either = new Set(["masked", "dropped"]); // shows the first of a column's stages that the layer has
const mostCell = 26,
    stepMs = 200;
// All of it stays on one screen and, but on a phone, in one row.
const wide = matchMedia("(min-width: 1200px) and (min-height: 880px)"),
    narrower = [1200, 1000, 760].map((width) => ({ width, is: matchMedia(`(min-width: ${width}px)`) }));
// Limit of the larger side of a picture: fewer columns leave room for larger ones.
function mostSide(columns: number): number {
    const width = narrower.find(({ is }) => is.matches)?.width ?? Infinity;
    return wide.matches ? 104 + 26 * Math.max(0, 8 - columns) : Math.min(104, (width - 80) / columns - 42);
}

interface Frame {
    row?: number;
    column?: number;
}

export class Flow {
    private lit = Infinity; // columns up to this one are framed: all, or as the token has come
    private timer = 0;
    private drawn = ""; // which cell of which stage is framed
    private of: Result | null = null;
    private numbers = ""; // which head, in which theme
    private readonly pictures = new Map<string, HTMLCanvasElement>(); // by stage
    private readonly current = new Set<string>(); // stages whose picture is of these values: a pick moves frames only

    constructor(
        private readonly app: App,
        private readonly workbench: Workbench,
    ) {
        byId("flow-body").addEventListener("click", (event) => {
            const id = (event.target as Element).closest<HTMLElement>("[data-stage]")?.dataset.stage;
            if (!id) return;
            app.change({ stage: id, lo: "", hi: "" }, { numbers: false });
            byId("work").scrollIntoView();
        });
        byId("flow-play").addEventListener("click", () => this.play());
        app.onShow.add(() => this.show());
    }

    private shown(result: Result): Stage[][] {
        const find = (id: string) => result.stages.find((s) => s.id === id);
        return columns
            .map((ids) => {
                const found = ids.flatMap((id) => find(id) ?? []);
                return either.has(ids[0]) ? found.slice(0, 1) : found;
            })
            .filter((stages) => stages.length > 0);
    }

    // Frames the cells of a stage that the picked value is computed from, or that it is an input of.
    private framesOf(result: Result, id: string): Frame[] {
        const { state } = this.app,
            stage = this.workbench.stage()!,
            rows = result.tokens.length,
            i = Math.min(state.i, rows - 1);
        if (stageTexts[stage.id].pairs) {
            const j = Math.min(state.j, result.keyTokens.length - 1);
            if (id === "inputs" || id === "normed") return [{ row: i }, { row: j }];
            if (id === "queries") return [{ row: i }];
            if (id === "keys" || id === "values") return [{ row: j }];
            return stageTexts[id].pairs ? [{ row: i, column: j }] : [{ row: i }];
        }
        if (id === stage.id) return [{ row: i, column: state.j }];
        const made = arithmeticOf(result, stage.id, i, state.j);
        return (made?.uses ?? [])
            .filter(([from]) => from === id || (from === "weights" && id === "dropped"))
            .map(([, axis, at]) => (axis === "row" ? { row: at } : { column: at }));
    }

    private show(): void {
        const { app } = this,
            { result } = app;
        if (!result || (app.stale && app.engine.info)) return;
        const all = this.shown(result),
            token = result.names[Math.min(app.state.i, result.tokens.length - 1)];
        const fresh = setHtml(
            byId("flow-body"),
            all
                .map(
                    (stages) =>
                        `<li>${stages.map(({ id, shape }) => `<button type="button" class="flow-stage" data-stage="${id}"><span>${stageTexts[id].label}</span><canvas aria-hidden="true"></canvas><small>${shapeText(shape.slice(-2))}</small></button>`).join("")}</li>`,
                )
                .join(""),
        );
        setHtml(byId("flow-about"), fill(texts.flow.about, escape(token)));
        const { i, j, stage, head } = app.state,
            numbers = [head, isDark()].join(),
            key = [i, j, stage, this.lit].join();
        if (fresh || numbers !== this.numbers || this.of !== result) this.current.clear();
        else if (key === this.drawn) return;
        this.drawn = key;
        this.numbers = numbers;
        this.of = result;
        this.draw();
        for (const button of byId("flow-body").querySelectorAll<HTMLElement>("[data-stage]"))
            button.setAttribute("aria-pressed", String(button.dataset.stage === this.workbench.stage()!.id));
    }

    private readonly draw = drawnInSight(byId("flow-body"), () => {
        const result = this.of!;
        const all = this.shown(result),
            most = mostSide(all.length);
        all.forEach((stages, column) =>
            stages.forEach((stage) => this.paint(result, stage, most, column <= this.lit)),
        );
    });

    private paint(result: Result, stage: Stage, most: number, lit: boolean): void {
        const canvas = byId("flow-body").querySelector<HTMLCanvasElement>(
                `[data-stage="${stage.id}"] canvas`,
            )!,
            content = this.workbench.content(stage, result),
            { rows, columns: across, data } = content;
        const cell = Math.min(mostCell, most / rows, most / Math.min(across, 64)),
            width = Math.min(across, 64) * cell,
            height = rows * cell,
            ratio = Math.min(2, devicePixelRatio || 1),
            side = (length: number) => Math.round((length + 4) * ratio);
        if (canvas.width !== side(width) || canvas.height !== side(height)) {
            canvas.width = side(width);
            canvas.height = side(height);
            canvas.style.width = `${width + 4}px`;
            canvas.style.height = `${height + 4}px`;
        }
        const context = canvas.getContext("2d")!;
        let cells = this.pictures.get(stage.id);
        if (!cells || !this.current.has(stage.id)) {
            const [low, high] = autoRange(data, content.signed),
                scale = { table: colorTable(content.signed ? "balance" : "ink"), low, high, log: false };
            cells = picture(rows, Math.min(across, 64), scale, data, cells, across);
            this.pictures.set(stage.id, cells);
            this.current.add(stage.id);
        }
        context.setTransform(ratio, 0, 0, ratio, 2 * ratio, 2 * ratio);
        context.clearRect(-2, -2, width + 4, height + 4);
        context.imageSmoothingEnabled = cell < 1;
        context.drawImage(cells, 0, 0, width, height);
        const gap = cell >= 8 ? 1 : 0;
        for (let c = 1; gap && c * cell < width + 1; ++c) context.clearRect(c * cell - gap, 0, gap, height);
        for (let r = 1; gap && r * cell < height + 1; ++r) context.clearRect(0, r * cell - gap, width, gap);
        if (!lit) return;
        const colors = themeColors();
        for (const [color, line] of [
            [colors.surface, 4],
            [colors.ink, 2],
        ] as const)
            for (const { row, column } of this.framesOf(result, stage.id)) {
                context.strokeStyle = color;
                context.lineWidth = line;
                const x = (column ?? 0) * cell,
                    y = (row ?? 0) * cell;
                if (x < width && y < height)
                    context.strokeRect(
                        x,
                        y,
                        (column === undefined ? width : cell) - gap,
                        (row === undefined ? height : cell) - gap,
                    );
            }
    }

    // The picked token on its way, a column after the other; with reduced motion all at once.
    private play(): void {
        clearInterval(this.timer);
        if (matchMedia("(prefers-reduced-motion: reduce)").matches || !this.app.result) {
            setText(byId("flow-note"), texts.flow.whole);
            return;
        }
        const end = this.shown(this.app.result).length;
        this.lit = 0;
        this.app.showSoon();
        this.timer = window.setInterval(() => {
            if (++this.lit >= end) {
                clearInterval(this.timer);
                this.lit = Infinity;
            }
            this.app.showSoon();
        }, stepMs);
    }
}
