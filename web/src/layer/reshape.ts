// How one projection becomes heads and heads become one again: the first tokens' values move to where the shape puts them.
// Loaded with the first level that has it. It imports only types: code shared with the page would become its own file
// that the first view waits for.
import type { App, Result } from "../app/app.ts";
import type { ReshapeKit } from "../app/kit.ts";
import type { Stage } from "../engine/protocol.ts";

const steps = [
    { name: texts.heads.project, text: texts.heads.projectAbout },
    { name: texts.heads.cut, text: texts.heads.cutAbout },
    { name: texts.heads.headsFirst, text: texts.heads.headsFirstAbout },
    { name: texts.heads.merge, text: texts.heads.mergeAbout },
];
const most = { tokens: 6, width: 4, heads: 12 };
const moveMs = 700;

export class Reshape {
    private step = 0;
    private shown = 0; // between steps while it moves
    private frame = 0;
    private width = 0; // width of the canvas; 0 while it is hidden
    private readonly canvas: HTMLCanvasElement;

    constructor(
        private readonly app: App,
        private readonly kit: ReshapeKit,
    ) {
        const { byId } = kit;
        this.canvas = byId<HTMLCanvasElement>("reshape-canvas");
        byId("reshape-steps").innerHTML = steps
            .map(
                ({ name }, i) =>
                    `<label><input type="radio" name="reshape" value="${i}"${i ? "" : " checked"}><span>${i + 1} ${name}</span></label>`,
            )
            .join("");
        for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="reshape"]'))
            radio.addEventListener("change", () => this.go(Number(radio.value)));
        app.onShow.add(() => {
            if (app.result && !app.stale) this.show(app.result);
        });
        new ResizeObserver(([entry]) => {
            if (entry.contentRect.width === this.width) return;
            this.width = entry.contentRect.width;
            this.paint();
        }).observe(this.canvas);
    }

    private go(step: number): void {
        this.step = step;
        cancelAnimationFrame(this.frame);
        const from = this.shown,
            begin = performance.now();
        if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.shown = step;
        const move = (now: number) => {
            const t = Math.min(1, Math.max(0, (now - begin) / moveMs)),
                eased = t * t * (3 - 2 * t);
            if (this.shown !== step) this.shown = t >= 1 ? step : from + (step - from) * eased;
            this.paint();
            if (this.shown !== step) this.frame = requestAnimationFrame(move);
        };
        move(begin);
        if (this.app.result) this.show(this.app.result);
    }

    private show(result: Result): void {
        const { fill, hide, setText, byId } = this.kit;
        const queries = result.stages.find((s) => s.id === "queries");
        const on =
            result.own === null && !result.learned && result.state.level >= 6 && queries?.shape.length === 3;
        hide("reshape", !on);
        if (!on) return;
        const [heads, rows, dim] = queries.shape;
        setText(
            byId("reshape-note"),
            `${fill(steps[this.step].text, rows, heads, dim, heads * dim)}${rows > most.tokens || dim > most.width ? fill(texts.heads.shown, Math.min(rows, most.tokens), Math.min(dim, most.width)) : ""}`,
        );
        this.paint();
    }

    private paint(): void {
        const { canvas } = this,
            { autoRange, colorAt, colorTable, css, fill } = this.kit,
            result = this.app.result,
            queries = result?.stages.find((s) => s.id === "queries"),
            context_ = result?.stages.find((s) => s.id === "context");
        if (!result || queries?.shape.length !== 3 || !this.width) return;
        const heads = Math.min(queries.shape[0], most.heads),
            tokens = Math.min(queries.shape[1], most.tokens),
            dim = Math.min(queries.shape[2], most.width);
        const ratio = Math.min(3, devicePixelRatio || 1),
            width = this.width,
            labelWidth = 70;
        const room = width - labelWidth - 8,
            gap = 18,
            cell = Math.max(9, Math.min(34, (room - gap * (heads - 1)) / (heads * dim)));
        const height = tokens * cell + 34 + heads * 5;
        if (canvas.style.height !== `${height}px`) canvas.style.height = `${height}px`;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        const context = canvas.getContext("2d")!,
            style = getComputedStyle(canvas);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        const places = [0, 1, 2, 3].map((step) => (h: number, n: number, d: number): [number, number] => [
            labelWidth + (h * dim + d) * cell + (step === 1 || step === 2 ? h * gap : 0),
            28 + n * cell + (step === 2 ? h * 5 : 0),
        ]);
        const at = Math.min(2, Math.floor(this.shown)),
            t = this.shown - at;
        const own = (stage: Stage) => ({ stage, range: autoRange(stage.data, true) });
        const source = own(this.shown > 2.5 && context_ ? context_ : queries);
        const scale = {
            table: colorTable("balance"),
            low: source.range[0],
            high: source.range[1],
            log: false,
        };
        const colors = ["--accent", "--warm"].map((name) => style.getPropertyValue(name));
        context.textBaseline = "middle";
        context.font = `500 ${cell < 14 ? 11 : 12}px ${style.fontFamily}`;
        for (let h = 0; h < heads; ++h) {
            for (let n = 0; n < tokens; ++n)
                for (let d = 0; d < dim; ++d) {
                    const [x0, y0] = places[at](h, n, d),
                        [x1, y1] = places[at + 1](h, n, d);
                    const x = x0 + (x1 - x0) * t,
                        y = y0 + (y1 - y0) * t;
                    const value = valueAt(source.stage, h, n, d, queries.shape);
                    context.fillStyle = css(colorAt(scale, value));
                    context.beginPath();
                    context.roundRect(x, y, cell - 2, cell - 2, Math.min(4, cell / 6));
                    context.fill();
                }
            const [x0, y0] = places[at](h, 0, 0),
                [x1, y1] = places[at + 1](h, 0, 0),
                x = x0 + (x1 - x0) * t,
                y = y0 + (y1 - y0) * t;
            context.fillStyle = colors[h % 2];
            context.fillRect(x, y - 6, dim * cell - 2, 3);
            context.textAlign = "left";
            context.fillText(dim * cell > 50 ? fill(texts.heads.head, h) : String(h), x, y - 15);
        }
        context.fillStyle = style.getPropertyValue("--soft");
        context.textAlign = "right";
        const { names } = result;
        for (let n = 0; n < tokens; ++n)
            context.fillText([...names[n]].slice(0, 9).join(""), labelWidth - 8, 28 + (n + 0.5) * cell - 1);
    }
}

// Queries are [heads, tokens, width]; the merged context is [tokens, heads * width].
function valueAt(stage: Stage, h: number, n: number, d: number, [, rows, dim]: number[]): number {
    return stage.shape.length === 3
        ? stage.data[(h * rows + n) * dim + d]
        : stage.data[n * (stage.shape.at(-1) ?? 1) + h * dim + d];
}
