// Deep zoom: a map that is never stored. The engine's scheduler says which tiles a view needs and what to draw until they
// are exact; here they are colored, drawn and moved.
import type { App } from "../app/app.ts";
import type { Scale } from "../page/colors.ts";
import { headOf, keep, timeLeft, weighed } from "./zoom_source.ts";
import type { MapPiece, MapShown, OwnHead, OwnTensors, ScoreSteps, TilePixels } from "../engine/protocol.ts";
import { mostZoomed, sightButton, sightsOf } from "./sights.ts";
import type { State } from "../page/state.ts";
import { adoptStyle } from "../page/style_text.ts";
import style from "./zoom.css";
import { zoomBody } from "./zoom_body.ts";
import { listen } from "./zoom_hand.ts";
import { clearedAt, drawPiece, imageOf, keyOf, scaleOf, side, type Held } from "./zoom_tiles.ts";
import { digitsFrom, MapAxes, marginOf, showLegend, type MapPlace } from "./zoom_axes.ts";
import type { PageKit } from "../app/kit.ts";

const maxTiles = 160;
const stepMs = 10; // how long the engine's thread may be deaf to a pick or a new view
const quickMs = 400; // a forward pass that is made again with every change of the text
const patienceMs = 1000; // until a forward pass says how long it will take

// A map's source: planted patterns over so many tokens, the page's session, or tensors too long for the page.
type Source = number | "own" | "file";
const superseded = new Error("another map");
const plain = { scale: "auto", temp: 1, cap: 0, p: 0, alibi: false };

export class DeepZoom {
    readonly canvas: HTMLCanvasElement;
    private source: Source = 16384;
    private rows = 16384;
    private keys = 16384;
    private words: string[] = []; // labels of queries and keys; none: they are numbered
    private rules: State | null = null; // rules of the map's session
    private of = ""; // and what else it was made from, to see when that changes
    // `rules`: of the model that the tensors are of, in the place of the session's.
    private file: { own: OwnTensors; name: string; head: number; rules?: State } | null = null;
    private tookMs = 0; // the forward pass
    private held = new Map<string, Held>(); // the longest unused first
    private pieces: MapPiece[] = [];
    private shown: MapShown | null = null;
    private center: [number, number] = [0, 0]; // row, key
    private cellsPerPixel = 32;
    private reducer: keyof TilePixels = "mass";
    picked: [number, number] | null = null;
    private started = false;
    private run = 0; // counts forward passes: who finds another number has been given up
    private legend = ""; // which one is shown
    private seen = false; // the whole map was exact once, and its notable parts are offered
    private stateTimer = 0;
    private moved = false; // the engine does not know the view yet
    private working = false;
    private maxFlops = 2e7;
    private frame = 0;
    private lastFrame = 0;
    // Milliseconds: of each drawing, and between two frames while the map moves.
    readonly drawTimes: number[] = [];
    readonly frameTimes: number[] = [];

    constructor(
        private readonly app: App,
        private readonly kit: PageKit,
    ) {
        const { byId, select } = kit;
        adoptStyle(style);
        byId("zoom-body").innerHTML = zoomBody;
        this.canvas = byId<HTMLCanvasElement>("zoom-canvas");
        byId("zoom-stop").addEventListener("click", () => {
            this.restart();
            void app.engine.ask("mapBegin", { tokens: 1 }).catch(() => {}); // lets the memory go
        });
        select("zoom-head").addEventListener("change", () => {
            this.file!.head = Number(select("zoom-head").value);
            void this.begin();
        });
        byId("zoom-in").addEventListener("click", () => this.zoom(0.5));
        byId("zoom-out").addEventListener("click", () => this.zoom(2));
        byId("zoom-fit").addEventListener("click", () => this.fit());
        byId("zoom-sights").addEventListener("click", (event) => {
            const at = (event.target as HTMLElement).dataset.at;
            if (!at) return;
            const [row, key, cells] = at.split(",").map(Number);
            this.center = [row, key];
            this.cellsPerPixel = cells;
            this.view();
            this.canvas.focus({ preventScroll: true });
        });
        select("zoom-tokens").addEventListener("change", () => {
            if (this.started || !byId("zoom-stop").hidden) void this.begin();
        });
        for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="reducer"]'))
            radio.addEventListener("change", () => {
                this.reducer = radio.value as keyof TilePixels;
                this.tellState();
                this.draw();
            });
        listen(this);
        new ResizeObserver(() => this.view(false)).observe(this.canvas);
    }

    // The engine was restarted, or the reader stopped it: there is no map.
    restart(): void {
        ++this.run;
        this.started = false;
        this.forget();
        this.kit.byId("zoom-body").hidden = this.kit.byId("zoom-stop").hidden = true;
        this.kit.byId("zoom-start").hidden = false;
    }

    private forget(): void {
        this.held.clear();
        this.pieces = [];
        this.shown = this.picked = null;
        for (const part of ["tag", "pick", "progress", "status", "steps"])
            this.kit.byId(`zoom-${part}`).textContent = "";
        this.seen = false;
        this.kit.byId("zoom-sights").hidden = true;
    }

    // Tensors that are too long for a whole matrix.
    openFile(own: OwnTensors, name: string, rules?: Partial<State>): void {
        const { select } = this.kit,
            list = select("zoom-tokens");
        this.file = { own, name, head: 0, rules: rules && { ...this.kit.presetState(1), ...rules } };
        list.querySelector('[value="file"]')?.remove();
        list.add(new Option(name, "file", true, true));
        select("zoom-head").replaceChildren(
            ...Array.from({ length: own.shape.heads }, (_, i) => new Option(String(i), String(i))),
        );
        void this.begin();
    }

    private get session(): State {
        return (this.source === "file" && this.file!.rules) || this.app.state;
    }
    // The inputs of the session's map as text; its tensors are compared separately.
    private get asked(): string {
        return weighed(this.session);
    }
    private madeFrom: OwnTensors | null = null;

    // The session has changed: a map of it follows at once where that is quick, else it says that it has not.
    follow(): void {
        const { app, kit } = this,
            changed = this.asked !== this.of || (this.source === "own" && app.own !== this.madeFrom);
        if (typeof this.source === "number" || !this.started || app.stale || !changed) return;
        if (this.tookMs <= quickMs) void this.begin(true);
        else {
            kit.byId("zoom-start").hidden = false;
            kit.setText(
                kit.byId("zoom-progress"),
                "The map is of the session as it was: compute it again to see the change.",
            );
        }
    }

    // One head of given tensors; null: the session's text is taken.
    private given(): OwnHead | null {
        const { app, file } = this,
            own = this.source === "file" ? file!.own : app.own;
        if (!own) return null;
        return headOf(own, this.source === "file" ? file!.head : app.state.head);
    }

    private async openMap(): Promise<void> {
        const { app, source } = this;
        this.words = [];
        this.rules = null;
        if (typeof source === "number") {
            await app.engine.ask("mapBegin", { tokens: source });
            this.rows = this.keys = source;
            return;
        }
        const state = this.session,
            own = this.given();
        this.of = this.asked;
        this.madeFrom = app.own;
        const { rows, keys, tokens, notes } = await app.engine.ask("mapSession", {
            address: this.kit.toHash(state),
            own,
        });
        this.rules = state;
        this.rows = rows;
        this.keys = keys;
        this.words = this.kit.indexed(
            this.kit.shownTokens(
                own ? ((source === "file" ? this.file!.own : app.own)?.tokens ?? []) : tokens,
            ),
        );
        const cut = notes.filter(({ key }) => key === "text").map(({ text }) => text);
        if (cut.length) this.app.onTrouble(`Deep zoom: ${cut.join(", ")}.`, false);
    }

    private get name(): string {
        const { source, rows, keys, file, app } = this,
            whole = (n: number) => n.toLocaleString("en");
        if (typeof source === "number") return `${whole(source)} tokens`;
        const what = source === "file" ? file!.name : app.own ? app.ownName : "the text above";
        return `${what}, ${rows === keys ? `${whole(rows)} tokens` : `${whole(rows)} queries, ${whole(keys)} keys`}`;
    }

    // `quietly`: the map on the screen is of an earlier state of the same session, and stays until this one is there.
    async begin(quietly = false): Promise<void> {
        const { engine } = this.app,
            { byId, select, setText, duration } = this.kit,
            run = ++this.run,
            chosen = select("zoom-tokens").value,
            said = byId("zoom-progress");
        const before = quietly ? [this.rows, this.keys].join() : "",
            picked = this.picked;
        this.source = chosen === "own" || chosen === "file" ? chosen : Number(chosen);
        this.started = false;
        this.forget();
        const start = performance.now();
        try {
            byId("zoom-start").hidden = true;
            byId("zoom-head-box").hidden = !(this.source === "file" && this.file!.own.shape.heads > 1);
            if (!quietly) {
                this.canvas.width = 0; // clears another map
                byId("zoom-stop").hidden = false;
            }
            await this.openMap();
            for (let progress = 0; progress < 1;) {
                if (run !== this.run) return;
                progress = await engine.ask("mapPrepare", { maxFlops: 1e8 });
                const passed = performance.now() - start,
                    left =
                        passed > patienceMs && progress < 1
                            ? `, about ${timeLeft((passed / progress) * (1 - progress))} left`
                            : "";
                if (run === this.run && !quietly)
                    setText(
                        said,
                        `Forward pass: ${(100 * progress).toFixed(this.rows > 1e5 ? 2 : 0)}%${left}`,
                    );
            }
            if (run !== this.run) return;
            this.tookMs = performance.now() - start;
            setText(said, "");
            byId("zoom-stop").hidden = true;
            byId("zoom-body").hidden = false;
            if (!quietly)
                setText(byId("zoom-pick"), `Forward pass of ${this.name}: ${duration(this.tookMs)}`);
            this.canvas.setAttribute("aria-label", `Map of the attention weights of ${this.name}`);
            this.started = true;
            if (before === [this.rows, this.keys].join()) {
                this.view(false);
                this.pick(picked);
            } else this.fit();
            void engine.lookAtGpu().catch(() => {});
            this.follow(); // it may have changed meanwhile
        } catch (error) {
            if (run !== this.run) return;
            this.restart();
            this.app.onTrouble((error as Error).message, false);
        }
    }

    // The state of a link: the map's source (tokens, or the session's own), row and key in the middle, cells per
    // pixel, reducer.
    private get place(): string {
        return [
            this.source,
            ...this.center.map((at) => Math.max(0, Math.round(at))),
            Number(this.cellsPerPixel.toPrecision(4)),
            this.reducer,
        ].join(",");
    }

    private tellState(): void {
        clearTimeout(this.stateTimer);
        this.stateTimer = window.setTimeout(() => {
            // A file's tensors cannot be in an address.
            if (this.started && this.source !== "file")
                this.app.change({ zoom: this.place }, { numbers: false, burst: "zoom" });
        }, 400);
    }

    goTo(place: string): void {
        if (!place || (place === this.place && this.started)) return;
        const [tokens, row, key, cells, reducer] = place.split(",");
        const look = () => {
            this.reducer = reducer as keyof TilePixels;
            for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="reducer"]'))
                radio.checked = radio.value === reducer;
            this.center = [Math.min(Number(row), this.rows), Math.min(Number(key), this.keys)];
            this.cellsPerPixel = this.within(Number(cells));
            this.view(false);
        };
        if (this.started && tokens === String(this.source)) {
            look();
            return;
        }
        const list = this.kit.select("zoom-tokens");
        list.value = tokens;
        // A link may ask for any length.
        if (list.value !== tokens)
            list.add(new Option(`${Number(tokens).toLocaleString("en")} tokens`, tokens, true, true));
        void this.begin().then(() => {
            if (this.started) look();
        });
    }

    get size(): [number, number] {
        return [this.canvas.clientWidth, this.canvas.clientHeight];
    }

    private within(cells: number): number {
        return Math.max(mostZoomed, Math.min(Math.max(this.rows, this.keys) / 64, cells));
    }

    // The whole map together with its words or values.
    fit(): void {
        const [width, height] = this.size;
        const toFit = ([left, top]: [number, number]) =>
            this.within(
                Math.max(
                    this.rows / Math.max(1, height - top - 16),
                    this.keys / Math.max(1, width - left - 16),
                ),
            );
        // The margin depends on how large cells are, and they on the room that it leaves.
        const margin = marginOf(1 / toFit([0, 0]), this.words);
        this.cellsPerPixel = toFit(margin);
        this.center = [
            this.rows / 2 - (margin[1] / 2) * this.cellsPerPixel,
            this.keys / 2 - (margin[0] / 2) * this.cellsPerPixel,
        ];
        this.view();
    }

    zoom(factor: number, x = this.size[0] / 2, y = this.size[1] / 2): void {
        const [width, height] = this.size;
        const next = this.within(this.cellsPerPixel * factor);
        const move = (at: number, pixel: number, extent: number, most: number) =>
            Math.max(0, Math.min(most, at + (pixel - extent / 2) * (this.cellsPerPixel - next)));
        this.center = [move(this.center[0], y, height, this.rows), move(this.center[1], x, width, this.keys)];
        this.cellsPerPixel = next;
        this.view();
    }

    pan(dx: number, dy: number): void {
        const keep = (v: number, most: number) => Math.max(0, Math.min(most, v));
        this.center = [
            keep(this.center[0] - dy * this.cellsPerPixel, this.rows),
            keep(this.center[1] - dx * this.cellsPerPixel, this.keys),
        ];
        this.view();
    }

    private view(byReader = true): void {
        this.moved = true;
        if (byReader) this.tellState();
        this.draw();
        void this.work();
    }

    cellAt(x: number, y: number): [number, number] | null {
        const [width, height] = this.size;
        const row = Math.floor(this.center[0] + (y - height / 2) * this.cellsPerPixel),
            key = Math.floor(this.center[1] + (x - width / 2) * this.cellsPerPixel);
        return row < 0 || key < 0 || row >= this.rows || key >= this.keys ? null : [row, key];
    }

    pick(cell: [number, number] | null): void {
        this.picked = cell;
        if (cell) void this.derive(cell);
        else this.kit.byId("zoom-steps").textContent = "";
        this.draw();
    }

    private cellName([query, key]: [number, number], weight: string): string {
        const words = this.words.length ? ` (${this.words[query]} → ${this.words[key]})` : "";
        return `query ${query.toLocaleString("en")}, key ${key.toLocaleString("en")}: weight ${weight}${words}`;
    }

    // Under the pointer: one question at a time, the newest. The number is computed from q, k and the row's log-sum-exp,
    // whatever the colors come from.
    private asking = false;
    private wanted: [number, number] | null = null;
    async describe(cell: [number, number]): Promise<void> {
        this.wanted = cell;
        if (!this.started || this.asking) return;
        this.asking = true;
        while (this.wanted && !this.picked) {
            const [query, key] = this.wanted,
                { run } = this;
            this.wanted = null;
            const weight = await this.app.engine.ask("mapCell", { query, key }).catch(() => NaN);
            if (run === this.run && this.started && !this.picked)
                this.kit.byId("zoom-pick").textContent = this.cellName(
                    [query, key],
                    this.hides(query, key) ? "0, masked (causal)" : this.kit.number(weight),
                );
        }
        this.asking = false;
    }

    private get isCausal(): boolean {
        return this.rules ? this.rules.causal : true;
    }
    private hides(query: number, key: number): boolean {
        return this.isCausal && key > query;
    }

    // Explains the picked cell: every step to its weight, with the row's largest score and sum computed again from q
    // and k.
    private async derive(cell: [number, number]): Promise<void> {
        if (!this.started) return;
        const { byId, number, escape, scoreSteps } = this.kit,
            { run } = this,
            [query, key] = cell;
        let steps: ScoreSteps;
        try {
            steps = await this.app.engine.ask("mapDerive", { query, key });
        } catch {
            return; // another map has taken its place
        }
        if (run !== this.run || this.picked?.join() !== cell.join()) return;
        byId("zoom-pick").textContent = this.cellName(
            cell,
            steps.hiddenBy ? `0, masked: ${steps.hiddenBy}` : number(steps.weight),
        );
        const name = (at: number) => `<bdi>${escape(this.words[at] ?? at.toLocaleString("en"))}</bdi>`;
        // Dropout is left out of maps.
        const list = scoreSteps(steps, { ...(this.rules ?? plain), p: 0 });
        byId("zoom-steps").innerHTML =
            `<p class="label">Query <b>${name(query)}</b> → key <b>${name(key)}</b></p><p class="big">${number(steps.weight)}</p><p class="note">${steps.visibleKeys ? `one of ${steps.visibleKeys.toLocaleString("en")} keys that this query sees; the row’s lse is ${number(steps.lse)}` : "this query sees no key"}</p><ol class="steps">${list.join("")}</ol>`;
    }

    draw(): void {
        if (!this.started || this.frame) return;
        this.frame = requestAnimationFrame((now) => {
            this.frame = 0;
            if (this.lastFrame && now - this.lastFrame < 250) keep(this.frameTimes, now - this.lastFrame);
            this.lastFrame = now;
            const begin = performance.now();
            this.paint();
            keep(this.drawTimes, performance.now() - begin);
        });
    }

    private scaleFor(level: number): Scale {
        return scaleOf(this.kit, this.reducer, level, this.keys);
    }

    private paint(): void {
        const [width, height] = this.size,
            context = clearedAt(this.canvas, width, height);
        context.imageSmoothingEnabled = this.cellsPerPixel > 1;
        const cell = 1 / this.cellsPerPixel,
            toX = (key: number) => (key - this.center[1]) * cell + width / 2,
            toY = (row: number) => (row - this.center[0]) * cell + height / 2;
        const { rows, keys, words } = this,
            place: MapPlace = { rows, keys, words, width, height, cell, toX, toY };
        context.save();
        context.beginPath();
        context.rect(toX(0), toY(0), keys * cell, rows * cell);
        context.clip();
        const { reducer } = this,
            wanted = `${reducer} ${this.kit.isDark()}`;
        for (const piece of this.pieces) {
            const held = this.held.get(keyOf(piece));
            if (held)
                drawPiece(context, place, piece, () =>
                    imageOf(held, wanted, reducer, this.scaleFor(piece.level)),
                );
        }
        context.restore();
        const axes = new MapAxes(this.kit, context, place);
        if (cell >= digitsFrom)
            axes.digits(this.scaleFor(0), (row, key) => {
                if (this.hides(row, key)) return NaN;
                const held = this.held.get(`0/${Math.floor(row / side)}/${Math.floor(key / side)}`);
                return held ? held.pixels.max[side * (row % side) + (key % side)] : NaN;
            });
        if (this.picked) axes.mark(this.picked);
        axes.axes(this.picked);
        if (!this.shown) return;
        const scale = this.scaleFor(this.shown.level),
            legend = `${scale.high} ${this.kit.isDark()}`;
        if (legend !== this.legend) showLegend(this.kit, scale);
        this.legend = legend;
    }

    // Once the whole map is exact: where its rows look most, as places to go to.
    private offerSights(): void {
        const { shown, isCausal: causal } = this;
        if (this.seen || !shown || shown.exact < shown.needed) return;
        const cells = 2 ** shown.level,
            rows = Math.ceil(this.rows / cells),
            keys = Math.ceil(this.keys / cells);
        for (let y = 0; y * side < rows; ++y)
            for (let x = 0; x * side < keys && (x <= y || !causal); ++x)
                if (!this.held.has(`${shown.level}/${y}/${x}`)) return;
        this.seen = true;
        const sights = sightsOf({ rows, keys, causal }, (row, key) => {
            const tile = this.held.get(`${shown.level}/${Math.floor(row / side)}/${Math.floor(key / side)}`)!;
            return tile.pixels.mass[side * (row % side) + (key % side)];
        });
        const box = this.kit.byId("zoom-sights");
        box.hidden = !sights.length;
        box.replaceChildren(
            "Worth a look: ",
            ...sights.map((sight) => sightButton(sight, cells, this.words)),
        );
    }

    // One request at a time: the newest view, the pixels that its pieces lack, then the tile that comes next.
    private async work(): Promise<void> {
        if (this.working || !this.started) return;
        this.working = true;
        let again = false;
        try {
            while (this.started) {
                if (this.moved) await this.tellView();
                await this.fetchPixels();
                if (this.moved) continue;
                if (!this.shown || this.shown.exact >= this.shown.needed) break;
                const step = await this.ofThisMap(
                    this.app.engine.ask("mapStep", { maxFlops: this.maxFlops }),
                );
                this.maxFlops = Math.max(
                    1e6,
                    Math.min(
                        2e9,
                        this.maxFlops * Math.min(2, Math.max(0.5, stepMs / Math.max(0.5, step.ms))),
                    ),
                );
                this.take(step);
            }
        } catch (error) {
            again = error === superseded;
            if (!again && this.app.engine.info && this.started)
                this.app.onTrouble((error as Error).message, false);
        } finally {
            this.working = false;
        }
        if (again) void this.work();
    }

    // An answer of the engine, unless it is of a map that another has replaced.
    private async ofThisMap<T>(answer: Promise<T>): Promise<T> {
        const { run } = this,
            got = await answer;
        if (run !== this.run) throw superseded;
        return got;
    }

    private async tellView(): Promise<void> {
        this.moved = false;
        const [width, height] = this.size;
        const rows = height * this.cellsPerPixel,
            keys = width * this.cellsPerPixel;
        const row = this.center[0] - rows / 2,
            key = this.center[1] - keys / 2;
        this.take(
            await this.ofThisMap(this.app.engine.ask("mapView", { row, key, rows, keys, width, height })),
        );
    }

    private take(shown: MapShown): void {
        this.shown = shown;
        if (shown.pieces) this.pieces = shown.pieces;
        const done = shown.exact >= shown.needed,
            cells = 2 ** shown.level;
        this.kit.byId("zoom-tag").textContent = done
            ? "exact"
            : `sampled: ${shown.exact} of ${shown.needed} tiles exact`;
        this.kit.byId("zoom-tag").dataset.exact = String(done);
        this.kit.byId("zoom-status").textContent =
            cells === 1 ? "a pixel is at most one weight" : `a pixel is ${cells} × ${cells} weights`;
    }

    private async fetchPixels(): Promise<void> {
        for (const piece of this.pieces) {
            const key = keyOf(piece),
                old = this.held.get(key);
            if (old) {
                this.held.delete(key);
                this.held.set(key, old);
                continue;
            }
            const { level, y, x, sampled } = piece;
            const pixels = await this.ofThisMap(
                this.app.engine.ask("mapPixels", { level, y, x, sampled }).catch(() => null),
            );
            if (!pixels) continue; // let go meanwhile
            const image = document.createElement("canvas");
            image.width = image.height = side;
            this.held.set(key, { pixels, image, paintedFor: "" });
            this.draw();
            if (this.moved) break;
        }
        const wanted = new Set(this.pieces.map(keyOf));
        for (const key of this.held.keys()) {
            if (this.held.size <= maxTiles) break;
            if (!wanted.has(key)) this.held.delete(key);
        }
        this.offerSights();
        this.draw();
    }
}
