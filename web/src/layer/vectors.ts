// Queries and keys with two dimensions as arrows in a plane: the picked word's query and any key can be dragged, and
// the weights follow. Dragging is only a trial: the layer's values do not change.
import type { App, Result } from "../app/app.ts";
import { byId, setHtml, setText } from "../page/dom.ts";
import { escape, fill, fixed, short } from "../page/format.ts";
import { connectLines } from "./lines.ts";
import type { Stage } from "../engine/protocol.ts";
import type { Workbench } from "./stage.ts";
import { connectWords } from "./words.ts";

type Point = [number, number];
const side = 320,
    margin = 30,
    nudge = 0.05, // step of an arrow key, as a fraction of the largest number
    reach = 12, // how near to its end an arrow is taken
    theQuery = -1; // an index outside those of the keys

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
    private readonly moved = new Map<number, Point>(); // by key, or theQuery
    private held = theQuery;
    private of = ""; // the drawn state: a result, its picked row and its head
    private result: Result | null = null;

    constructor(private readonly app: App) {
        const plot = byId("vectors-plot");
        plot.addEventListener("pointerdown", (event) => {
            if (!this.result) return;
            plot.setPointerCapture(event.pointerId);
            this.held = this.nearest(this.place(event));
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
            this.held = Number((event.target as HTMLElement).dataset.end ?? theQuery);
            const [x, y] = this.end(this.held),
                by = nudge * this.extent();
            this.move([x + by * step[0], y + by * step[1]]);
        });
        byId("vectors-back").addEventListener("click", () => {
            this.moved.clear();
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
        this.moved.clear();
        this.held = theQuery;
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
    private query = (): Point => this.moved.get(theQuery) ?? this.points("queries")[this.row()];
    private keys = (): Point[] => this.points("keys").map((key, n) => this.moved.get(n) ?? key);
    private end = (n: number): Point => (n === theQuery ? this.query() : this.keys()[n]);
    // The key whose end is there, if it is not the query's.
    private nearest([x, y]: Point): number {
        const far = reach * this.unit(),
            distance = (n: number) => Math.hypot(this.end(n)[0] - x, this.end(n)[1] - y),
            keys = this.keys().map((_, n) => n);
        if (distance(theQuery) < far) return theQuery;
        return keys.reduce((best, n) => (distance(n) < Math.min(far, distance(best)) ? n : best), theQuery);
    }
    // Equal words have one key, which moves as one.
    private move(to: Point): void {
        const keys = this.points("keys"),
            held = keys[this.held]?.join();
        if (this.held === theQuery) this.moved.set(theQuery, to);
        else keys.forEach((key, n) => key.join() === held && this.moved.set(n, to));
        this.draw();
    }
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
            this.keys(),
            root * state.temp,
            state.cap,
            keyTokens.map((_, n) => (masked ? masked[n] - before[n] : 0)),
        );
    }

    private unit = () => (this.extent() * 1.25) / (side / 2 - margin); // unit of the picture, in the plane
    private place(event: PointerEvent): Point {
        const box = byId("vectors-plot").getBoundingClientRect(),
            at = (value: number, size: number) => ((value / size) * side - side / 2) * this.unit();
        return [at(event.clientX - box.left, box.width), -at(event.clientY - box.top, box.height)];
    }
    private drag = (event: PointerEvent) => this.move(this.place(event));

    private draw(): void {
        const { result } = this;
        if (!result) return;
        const token = result.names[this.row()],
            query = this.query(),
            keys = this.keys(),
            weights = this.weights(),
            unit = this.unit(),
            at = ([x, y]: Point): Point => [side / 2 + x / unit, side / 2 - y / unit],
            round = (point: Point) => point.map((x) => fixed(x, 2)).join(", "),
            text = (n: number) => n.toFixed(1);
        const arrow = (to: Point, name: string, width: number) => {
            const [x, y] = at(to);
            return `<line class="${name}" x1="${side / 2}" y1="${side / 2}" x2="${text(x)}" y2="${text(y)}" stroke-width="${text(width)}"/>`;
        };
        const slider = (n: number, point: Point, label: string, r: number) => {
            const [x, y] = at(point),
                name = n === theQuery ? "query" : "key";
            return `<circle id="vectors-${name}${n === theQuery ? "" : n}" data-end="${n}" class="${name}" cx="${text(x)}" cy="${text(y)}" r="${r.toFixed(1)}" tabindex="0" role="slider" aria-label="${label}" aria-valuemin="-180" aria-valuemax="180" aria-valuenow="${Math.round((Math.atan2(point[1], point[0]) * 180) / Math.PI)}" aria-valuetext="${round(point)}"/>`;
        };
        // Equal words share one label; from the top down, a label that would overlap another goes below it.
        const labels: Record<string, string> = {},
            taken: Point[] = [];
        for (const n of [...keys.keys()].sort((a, b) => keys[b][1] - keys[a][1])) {
            const word = escape(result.keyTokens[n]),
                [x, y] = at(keys[n]);
            let below = y - 4;
            if (labels[word + keys[n]]) continue;
            while (taken.some(([u, v]) => Math.hypot((u - x) / 5, v - below) < 14)) ++below;
            taken.push([x, below]);
            labels[word + keys[n]] =
                `${slider(n, keys[n], fill(texts.vectors.key, word), 3 + 7 * weights[n])}<text x="${text(x + 8)}" y="${text(below)}">${word}</text>`;
        }
        const focused = document.activeElement?.id;
        setHtml(
            byId("vectors-plot"),
            `<line class="axis" x1="0" y1="${side / 2}" x2="${side}" y2="${side / 2}"/><line class="axis" x1="${side / 2}" y1="0" x2="${side / 2}" y2="${side}"/>` +
                keys.map((key, n) => arrow(key, "key", 1 + 5 * weights[n])).join("") +
                Object.values(labels).join("") +
                arrow(query, "query", 3) +
                slider(theQuery, query, fill(texts.vectors.query, escape(token)), 9),
        );
        if (focused?.startsWith("vectors-")) document.getElementById(focused)?.focus({ preventScroll: true });
        setHtml(
            byId("vectors-row"),
            weights
                .map(
                    (weight, n) =>
                        `<li><bdi>${escape(result.keyNames[n])}</bdi><meter min="0" max="1000" value="${Math.round(1000 * weight)}" aria-label="${escape(result.keyNames[n])}">${short(weight)}</meter><span>${fixed(weight)}</span></li>`,
                )
                .join(""),
        );
        byId("vectors-back").hidden = this.moved.size === 0;
        setText(
            byId("vectors-about"),
            this.held !== theQuery && this.moved.has(this.held)
                ? fill(texts.vectors.keyMoved, result.keyTokens[this.held], round(keys[this.held]))
                : this.moved.has(theQuery)
                  ? fill(texts.vectors.queryMoved, round(query))
                  : fill(texts.vectors.begin, token, fixed(query[0]), fixed(query[1])),
        );
    }
}

export function begin(app: App, workbench: Workbench): void {
    connectWords(app, workbench);
    connectLines(app, (row) => workbench.pick(row, app.state.j));
    Object.assign((globalThis as unknown as { fovea: object }).fovea, { vectors: new Vectors(app) }); // for tests and the curious
    app.showSoon();
}
