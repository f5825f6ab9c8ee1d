// Queries and keys of two numbers as arrows in a plane: the picked word's query can be dragged, and the weights follow. What is
// dragged is tried out here alone; the numbers of the layer stay.
import type { App, Result } from "./app.ts";
import { byId, setHtml, setText } from "./dom.ts";
import { escape, fixed, short } from "./format.ts";
import { connectLines } from "./lines.ts";
import type { Stage } from "./protocol.ts";
import type { Workbench } from "./stage.ts";

type Point = [number, number];
const side = 320,
    margin = 30,
    nudge = 0.05; // of the largest number, by an arrow key

// A row of weights for any query, by the rules of the layer: what the mask and a distance bias add is kept.
export function weightsOf(
    query: Point,
    keys: Point[],
    divisor: number,
    softcap: number,
    added: number[],
): number[] {
    const scores = keys.map(([x, y], n) => {
            const score = (query[0] * x + query[1] * y) / divisor;
            return (softcap > 0 ? softcap * Math.tanh(score / softcap) : score) + added[n];
        }),
        highest = Math.max(...scores);
    if (highest === -Infinity) return scores.map(() => 0);
    const parts = scores.map((score) => Math.exp(score - highest)),
        sum = parts.reduce((a, b) => a + b, 0);
    return parts.map((part) => part / sum);
}

export class Vectors {
    private dragged: Point | null = null;
    private of = ""; // what is drawn: a result, its picked row and its head
    private result: Result | null = null;

    constructor(private readonly app: App) {
        const plot = byId("vectors-plot");
        plot.addEventListener("pointerdown", (event) => {
            if (!this.result) return;
            plot.setPointerCapture(event.pointerId);
            this.drag(event);
        });
        plot.addEventListener("pointermove", (event) => {
            if (plot.hasPointerCapture(event.pointerId)) this.drag(event);
        });
        plot.addEventListener("keydown", (event) => {
            const step = {
                ArrowLeft: [-1, 0],
                ArrowRight: [1, 0],
                ArrowUp: [0, 1],
                ArrowDown: [0, -1],
            }[event.key];
            if (!step || !this.result) return;
            event.preventDefault();
            const [x, y] = this.query(),
                by = nudge * this.extent();
            this.dragged = [x + by * step[0], y + by * step[1]];
            this.draw();
        });
        byId("vectors-back").addEventListener("click", () => {
            this.dragged = null;
            this.draw();
        });
        app.onShow.add(() => this.show());
    }

    private show(): void {
        const { app } = this,
            { result } = app;
        if (!result || (app.stale && app.engine.info)) return;
        const [queries, keys] = ["queries", "keys"].map((id) => result.stages.find((s) => s.id === id)),
            on = queries?.shape.at(-1) === 2 && keys?.shape.at(-1) === 2 && result.keyTokens.length <= 24;
        byId("vectors").hidden = !on;
        this.result = on ? result : null;
        const now = [app.state.i, app.state.head].join();
        if (!on || (now === this.of && this.drawnOf === result)) return;
        this.of = now;
        this.drawnOf = result;
        this.dragged = null;
        this.draw();
    }
    private drawnOf: Result | null = null;

    private points(id: string): Point[] {
        const stage = this.result!.stages.find((s) => s.id === id) as Stage,
            heads = stage.shape.length > 2 ? stage.shape[0] : 1,
            size = stage.data.length / heads,
            own = heads === 1 ? 0 : Math.floor(this.result!.headIndex / (this.result!.heads / heads)),
            data = stage.data.subarray(own * size, (own + 1) * size);
        return Array.from({ length: size / 2 }, (_, n) => [data[2 * n], data[2 * n + 1]]);
    }
    private row = () => Math.min(this.app.state.i, this.result!.tokens.length - 1);
    private query = (): Point => this.dragged ?? this.points("queries")[this.row()];
    // The largest number of a query or key: the plane ends a little beyond it.
    private extent = () =>
        Math.max(1e-6, ...[...this.points("queries"), ...this.points("keys")].flat().map(Math.abs));

    weights(): number[] {
        const { stages, state, keyTokens } = this.result!,
            row = (id: string) => {
                const stage = stages.find((s) => s.id === id);
                return stage?.data.subarray(
                    this.row() * keyTokens.length,
                    (this.row() + 1) * keyTokens.length,
                );
            },
            before = row("capped") ?? row("scaled") ?? row("scores")!,
            masked = row("masked"),
            root = state.scale === "auto" ? Math.SQRT2 : state.scale === "none" ? 1 : Number(state.scale);
        return weightsOf(
            this.query(),
            this.points("keys"),
            root * state.temp,
            state.cap,
            keyTokens.map((_, n) => (masked ? masked[n] - before[n] : 0)),
        );
    }

    private drag(event: PointerEvent): void {
        const box = byId("vectors-plot").getBoundingClientRect(),
            scale = (this.extent() * 1.25) / (side / 2 - margin),
            at = (value: number, size: number) => ((value / size) * side - side / 2) * scale;
        this.dragged = [at(event.clientX - box.left, box.width), -at(event.clientY - box.top, box.height)];
        this.draw();
    }

    private draw(): void {
        const { result } = this;
        if (!result) return;
        const token = result.tokens[this.row()],
            query = this.query(),
            keys = this.points("keys"),
            weights = this.weights(),
            scale = (side / 2 - margin) / (this.extent() * 1.25),
            at = ([x, y]: Point): Point => [side / 2 + x * scale, side / 2 - y * scale],
            text = (n: number) => n.toFixed(1);
        const arrow = (to: Point, name: string, width: number) => {
            const [x, y] = at(to);
            return `<line class="${name}" x1="${side / 2}" y1="${side / 2}" x2="${text(x)}" y2="${text(y)}" stroke-width="${width.toFixed(2)}"/>`;
        };
        // Equal words have one label.
        const seen = new Set<string>(),
            labels = keys.map((key, n) => {
                const [x, y] = at(key),
                    place = `${result.keyTokens[n]} ${text(x)} ${text(y)}`;
                if (seen.has(place)) return "";
                seen.add(place);
                return `<circle class="key" cx="${text(x)}" cy="${text(y)}" r="${(3 + 7 * weights[n]).toFixed(1)}"/><text x="${text(x + 8)}" y="${text(y + 4)}">${escape(result.keyTokens[n])}</text>`;
            });
        const [x, y] = at(query),
            angle = Math.round((Math.atan2(query[1], query[0]) * 180) / Math.PI),
            focused = document.activeElement?.id === "vectors-query";
        setHtml(
            byId("vectors-plot"),
            `<line class="axis" x1="0" y1="${side / 2}" x2="${side}" y2="${side / 2}"/><line class="axis" x1="${side / 2}" y1="0" x2="${side / 2}" y2="${side}"/>` +
                keys.map((key, n) => arrow(key, "key", 1 + 5 * weights[n])).join("") +
                labels.join("") +
                arrow(query, "query", 3) +
                `<circle id="vectors-query" class="query" cx="${text(x)}" cy="${text(y)}" r="9" tabindex="0" role="slider" aria-label="Query of ${escape(token)}" aria-valuemin="-180" aria-valuemax="180" aria-valuenow="${angle}" aria-valuetext="${fixed(query[0], 2)}, ${fixed(query[1], 2)}"/>`,
        );
        if (focused) byId("vectors-query").focus({ preventScroll: true });
        setHtml(
            byId("vectors-row"),
            weights
                .map(
                    (weight, n) =>
                        `<li><bdi>${escape(result.keyTokens[n])}</bdi><meter min="0" max="1000" value="${Math.round(1000 * weight)}" aria-label="${escape(result.keyTokens[n])}">${short(weight)}</meter><span>${fixed(weight)}</span></li>`,
                )
                .join(""),
        );
        byId("vectors-back").hidden = this.dragged === null;
        setText(
            byId("vectors-about"),
            this.dragged
                ? `The query is now ${fixed(query[0], 2)}, ${fixed(query[1], 2)}: keys that point its way win, the more the longer it is.`
                : `The query of “${token}” is ${fixed(query[0], 4)}, ${fixed(query[1], 4)}. Drag its end, or move it with the arrow keys: keys that point its way win.`,
        );
    }
}

export function begin(app: App, workbench: Workbench): void {
    connectLines(app, (row) => workbench.pick(row, app.state.j));
    Object.assign((globalThis as unknown as { fovea: object }).fovea, { vectors: new Vectors(app) }); // for tests and the curious
    app.showSoon();
}
