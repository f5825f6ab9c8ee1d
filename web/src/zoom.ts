// Deep zoom: a map that is never stored. The engine's scheduler says which tiles a view needs and what to draw until they
// are exact; here they are coloured, drawn and moved.
import type { App } from "./app.ts";
import type { Rgb, Scale } from "./colors.ts";
import type { MapPiece, MapShown, TileId, TilePixels } from "./protocol.ts";
import { sightsOf } from "./sights.ts";
import type { ZoomKit } from "./zoom_door.ts";

const side = 256; // pixels of a tile's edge
const maxTiles = 160;
const stepMs = 10; // how long the engine's thread may be deaf to a pick or a new view
const samplesKept = 600;
const mostZoomed = 1 / 24; // cells in a pixel: room for a weight's digits
const patienceMs = 1000; // until a forward pass says how long it will take

interface Held {
    pixels: TilePixels;
    image: HTMLCanvasElement;
    paintedFor: string;
}
const keyOf = (id: TileId) => `${id.level}/${id.y}/${id.x}${id.sampled ? "s" : ""}`;

export class DeepZoom {
    private readonly canvas: HTMLCanvasElement;
    private tokens = 16384;
    private held = new Map<string, Held>(); // the longest unused first
    private pieces: MapPiece[] = [];
    private shown: MapShown | null = null;
    private center: [number, number] = [0, 0]; // row, key
    private cellsPerPixel = 32;
    private reducer: keyof TilePixels = "mass";
    private picked: [number, number] | null = null;
    private started = false;
    private run = 0; // counts forward passes: who finds another number has been given up
    private seen = false; // the whole map was exact once, and what stands out in it is offered
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
        private readonly kit: ZoomKit,
    ) {
        const { byId, select } = kit;
        this.canvas = byId<HTMLCanvasElement>("zoom-canvas");
        byId("zoom-stop").addEventListener("click", () => {
            this.restart();
            void app.engine.ask("mapBegin", { tokens: 1 }).catch(() => {}); // lets the memory go
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
        this.listen();
        new ResizeObserver(() => this.view(false)).observe(this.canvas);
    }

    // The engine was started anew, or the reader stopped it: there is no map.
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
        for (const part of ["tag", "pick", "progress", "status"])
            this.kit.byId(`zoom-${part}`).textContent = "";
        this.seen = false;
        this.kit.byId("zoom-sights").hidden = true;
    }

    async begin(): Promise<void> {
        const { engine } = this.app,
            { byId, select, setText, duration } = this.kit,
            run = ++this.run;
        this.started = false;
        this.forget();
        const start = performance.now(),
            tokens = Number(select("zoom-tokens").value),
            whole = tokens.toLocaleString("en"),
            said = byId("zoom-progress");
        try {
            byId("zoom-start").hidden = true;
            this.canvas.width = 0; // of another map
            byId("zoom-stop").hidden = false;
            await engine.ask("mapBegin", { tokens });
            for (let progress = 0; progress < 1;) {
                if (run !== this.run) return;
                progress = await engine.ask("mapPrepare", { maxFlops: 1e8 });
                const passed = performance.now() - start,
                    left =
                        passed > patienceMs && progress < 1
                            ? `, about ${timeLeft((passed / progress) * (1 - progress))} left`
                            : "";
                if (run === this.run)
                    setText(said, `Forward pass: ${(100 * progress).toFixed(tokens > 1e5 ? 2 : 0)}%${left}`);
            }
            if (run !== this.run) return;
            this.tokens = tokens;
            setText(said, "");
            byId("zoom-stop").hidden = true;
            byId("zoom-body").hidden = false;
            setText(
                byId("zoom-pick"),
                `Forward pass of ${whole} tokens: ${duration(performance.now() - start)}`,
            );
            this.canvas.setAttribute("aria-label", `Map of the attention weights of ${whole} tokens`);
            this.started = true;
            this.fit();
            void engine.lookAtGpu().catch(() => {});
        } catch (error) {
            if (run !== this.run) return;
            this.restart();
            this.app.onTrouble((error as Error).message, false);
        }
    }

    // Tokens, row and key in the middle, cells in a pixel, reducer: what a link holds.
    private get place(): string {
        return [
            this.tokens,
            ...this.center.map(Math.round),
            Number(this.cellsPerPixel.toPrecision(4)),
            this.reducer,
        ].join(",");
    }

    private tellState(): void {
        clearTimeout(this.stateTimer);
        this.stateTimer = window.setTimeout(() => {
            if (this.started) this.app.change({ zoom: this.place }, { numbers: false, burst: "zoom" });
        }, 400);
    }

    goTo(place: string): void {
        if (!place || (place === this.place && this.started)) return;
        const [tokens, row, key, cells, reducer] = place.split(",");
        const look = () => {
            this.reducer = reducer as keyof TilePixels;
            for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="reducer"]'))
                radio.checked = radio.value === reducer;
            this.center = [Math.min(Number(row), this.tokens), Math.min(Number(key), this.tokens)];
            this.cellsPerPixel = Math.min(this.tokens / 64, Math.max(mostZoomed, Number(cells)));
            this.view(false);
        };
        if (this.started && Number(tokens) === this.tokens) {
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

    private get size(): [number, number] {
        return [this.canvas.clientWidth, this.canvas.clientHeight];
    }

    private fit(): void {
        this.cellsPerPixel = this.tokens / Math.max(1, Math.min(...this.size) - 16);
        this.center = [this.tokens / 2, this.tokens / 2];
        this.view();
    }

    private zoom(factor: number, x = this.size[0] / 2, y = this.size[1] / 2): void {
        const [width, height] = this.size;
        const next = Math.min(this.tokens / 64, Math.max(mostZoomed, this.cellsPerPixel * factor));
        const move = (at: number, pixel: number, extent: number) =>
            Math.max(0, Math.min(this.tokens, at + (pixel - extent / 2) * (this.cellsPerPixel - next)));
        this.center = [move(this.center[0], y, height), move(this.center[1], x, width)];
        this.cellsPerPixel = next;
        this.view();
    }

    private pan(dx: number, dy: number): void {
        const keep = (v: number) => Math.max(0, Math.min(this.tokens, v));
        this.center = [
            keep(this.center[0] - dy * this.cellsPerPixel),
            keep(this.center[1] - dx * this.cellsPerPixel),
        ];
        this.view();
    }

    private view(byReader = true): void {
        this.moved = true;
        if (byReader) this.tellState();
        this.draw();
        void this.work();
    }

    private cellAt(x: number, y: number): [number, number] | null {
        const [width, height] = this.size;
        const row = Math.floor(this.center[0] + (y - height / 2) * this.cellsPerPixel),
            key = Math.floor(this.center[1] + (x - width / 2) * this.cellsPerPixel);
        return row < 0 || key < 0 || row >= this.tokens || key >= this.tokens ? null : [row, key];
    }

    private listen(): void {
        const pointers = new Map<number, PointerEvent>();
        const { canvas } = this;
        let dragged = 0;
        canvas.addEventListener("pointerdown", (event) => {
            pointers.set(event.pointerId, event);
            canvas.setPointerCapture(event.pointerId);
            dragged = 0;
        });
        canvas.addEventListener("pointermove", (event) => {
            const last = pointers.get(event.pointerId);
            if (!last) {
                const cell = this.cellAt(event.offsetX, event.offsetY);
                if (cell && !this.picked) void this.describe(cell);
                return;
            }
            const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
            dragged += Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY);
            if (other) {
                const box = canvas.getBoundingClientRect();
                const distance = (p: PointerEvent) =>
                    Math.max(1, Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY));
                this.zoom(
                    distance(last) / distance(event),
                    (event.clientX + other.clientX) / 2 - box.left,
                    (event.clientY + other.clientY) / 2 - box.top,
                );
            } else this.pan(event.clientX - last.clientX, event.clientY - last.clientY);
            pointers.set(event.pointerId, event);
        });
        canvas.addEventListener("pointerup", (event) => {
            if (pointers.size === 1 && dragged < 4) this.pick(this.cellAt(event.offsetX, event.offsetY));
            pointers.delete(event.pointerId);
        });
        canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
        canvas.addEventListener(
            "wheel",
            (event) => {
                if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return; // click it first
                event.preventDefault();
                this.zoom(Math.exp(event.deltaY / 400), event.offsetX, event.offsetY);
            },
            { passive: false },
        );
        canvas.addEventListener("keydown", (event) => {
            const moves: Record<string, () => void> = {
                ArrowUp: () => this.pan(0, 60),
                ArrowDown: () => this.pan(0, -60),
                ArrowLeft: () => this.pan(60, 0),
                ArrowRight: () => this.pan(-60, 0),
                "+": () => this.zoom(0.5),
                "=": () => this.zoom(0.5),
                "-": () => this.zoom(2),
                f: () => this.fit(),
                Home: () => this.fit(),
                Enter: () => this.pick(this.cellAt(this.size[0] / 2, this.size[1] / 2)),
                Escape: () => this.pick(null),
            };
            if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
            event.preventDefault();
            moves[event.key]();
        });
    }

    private pick(cell: [number, number] | null): void {
        this.picked = cell;
        if (cell) void this.describe(cell);
        this.draw();
    }

    // The number is computed from q, k and the row's log-sum-exp, whatever the colours come from.
    private async describe([query, key]: [number, number]): Promise<void> {
        if (!this.started) return;
        const weight = await this.app.engine.ask("mapCell", { query, key }).catch(() => NaN);
        this.kit.byId("zoom-pick").textContent =
            `query ${query.toLocaleString("en")}, key ${key.toLocaleString("en")}: weight ${key > query ? "0, hidden by the causal mask" : this.kit.number(weight)}`;
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

    // Mass grows with the number of cells in a pixel; the colours follow a logarithm.
    private scaleFor(level: number): Scale {
        const high = this.reducer === "mass" ? Math.min(1, 0.05 * 2 ** level + 0.05) : 0.5;
        return { table: this.kit.colorTable("ink"), low: this.kit.logFloor(0, high), high, log: true };
    }

    private imageOf(held: Held, level: number): HTMLCanvasElement {
        const wanted = `${this.reducer} ${this.kit.isDark()}`;
        if (held.paintedFor === wanted) return held.image;
        const scale = this.scaleFor(level),
            pixels = new ImageData(side, side),
            colors = new Uint32Array(pixels.data.buffer);
        const values = held.pixels[this.reducer],
            table = new Uint32Array(257);
        for (let i = 0; i < 256; ++i)
            table[i] =
                0xff000000 |
                (scale.table[3 * i + 2] << 16) |
                (scale.table[3 * i + 1] << 8) |
                scale.table[3 * i];
        const factor = 255 / Math.log(scale.high / scale.low),
            shift = Math.log(scale.low);
        for (let i = 0; i < values.length; ++i) {
            const x = values[i];
            colors[i] =
                x > scale.low
                    ? table[Math.min(255, Math.round((Math.log(x) - shift) * factor))]
                    : x <= scale.low
                      ? table[0]
                      : 0xff9a00d6; // no number: magenta
        }
        held.image.getContext("2d")!.putImageData(pixels, 0, 0);
        held.paintedFor = wanted;
        return held.image;
    }

    private paint(): void {
        const [width, height] = this.size,
            ratio = Math.min(2, devicePixelRatio || 1);
        if (
            this.canvas.width !== Math.round(width * ratio) ||
            this.canvas.height !== Math.round(height * ratio)
        ) {
            this.canvas.width = Math.round(width * ratio);
            this.canvas.height = Math.round(height * ratio);
        }
        const context = this.canvas.getContext("2d")!;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        context.imageSmoothingEnabled = this.cellsPerPixel > 1;
        const toX = (key: number) => (key - this.center[1]) / this.cellsPerPixel + width / 2,
            toY = (row: number) => (row - this.center[0]) / this.cellsPerPixel + height / 2;
        context.save();
        context.beginPath();
        context.rect(toX(0), toY(0), this.tokens / this.cellsPerPixel, this.tokens / this.cellsPerPixel);
        context.clip();
        for (const piece of this.pieces) {
            const held = this.held.get(keyOf(piece));
            if (!held) continue;
            const [row, key, rows, keys, x, y, w, h] = piece.at;
            const left = toX(key),
                top = toY(row),
                right = toX(key + keys),
                bottom = toY(row + rows);
            if (left > width || top > height || right < 0 || bottom < 0) continue;
            context.drawImage(
                this.imageOf(held, piece.level),
                x,
                y,
                w,
                h,
                left,
                top,
                right - left + 0.5,
                bottom - top + 0.5,
            );
        }
        context.restore();
        if (this.cellsPerPixel <= mostZoomed) this.paintDigits(context, toX, toY);
        this.paintAxes(context, toX, toY);
        if (!this.picked) return;
        const style = getComputedStyle(this.canvas),
            x = toX(this.picked[1] + 0.5),
            y = toY(this.picked[0] + 0.5),
            half = Math.max(5, 0.5 / this.cellsPerPixel);
        for (const [color, line] of [
            [style.getPropertyValue("--surface"), 4],
            [style.getPropertyValue("--accent"), 2],
        ] as const) {
            context.strokeStyle = color;
            context.lineWidth = line;
            context.strokeRect(x - half, y - half, 2 * half, 2 * half);
        }
    }

    // The weights themselves, where a pixel is less than a cell and each is exact.
    private paintDigits(
        context: CanvasRenderingContext2D,
        toX: (key: number) => number,
        toY: (row: number) => number,
    ): void {
        const { colorAt, inkOn, short } = this.kit,
            [width, height] = this.size,
            scale = this.scaleFor(0);
        context.font = `500 10px ${getComputedStyle(this.canvas).fontFamily}`;
        context.textAlign = "center";
        context.textBaseline = "middle";
        const [top, left] =
            this.cellAt(0, 0) ??
            [0, 0].map((_, n) =>
                Math.max(0, Math.floor(this.center[n] - (this.size[1 - n] / 2) * this.cellsPerPixel)),
            );
        for (let row = top; row < this.tokens && toY(row) < height; ++row)
            for (let key = left; key <= row && toX(key) < width; ++key) {
                const held = this.held.get(`0/${Math.floor(row / side)}/${Math.floor(key / side)}`);
                if (!held) continue;
                const value = held.pixels.max[side * (row % side) + (key % side)];
                context.fillStyle = inkOn(colorAt(scale, value));
                context.fillText(short(value), toX(key + 0.5), toY(row + 0.5));
            }
    }

    // Once the whole map is exact: where its rows look most, as places to go to.
    private offerSights(): void {
        const { shown, tokens } = this;
        if (this.seen || !shown || shown.exact < shown.needed) return;
        const cells = 2 ** shown.level,
            pixels = Math.ceil(tokens / cells);
        for (let y = 0; y * side < pixels; ++y)
            for (let x = 0; x <= y; ++x) if (!this.held.has(`${shown.level}/${y}/${x}`)) return;
        this.seen = true;
        const sights = sightsOf(pixels, (row, key) => {
            const tile = this.held.get(`${shown.level}/${Math.floor(row / side)}/${Math.floor(key / side)}`)!;
            return tile.pixels.mass[side * (row % side) + (key % side)];
        });
        const box = this.kit.byId("zoom-sights");
        box.hidden = !sights.length;
        box.replaceChildren(
            "Worth a look: ",
            ...sights.map(({ kind, at, row, share }) => {
                const button = document.createElement("button"),
                    middle = (n: number) => (n + 0.5) * cells,
                    key = kind === "key" ? at : row - at,
                    about = cells > 1 && at ? "about " : "",
                    name =
                        kind === "distance"
                            ? `${about}${(at * cells).toLocaleString("en")} tokens back`
                            : at
                              ? `key ${about}${Math.round(middle(at)).toLocaleString("en")}`
                              : "the first keys";
                button.type = "button";
                button.className = "quiet";
                button.dataset.at = `${middle(row)},${middle(key)},${Math.max(mostZoomed, cells / 64)}`;
                button.textContent = `${name}: ${(100 * share).toPrecision(2)}% of a row`;
                return button;
            }),
        );
    }

    // Numbers of keys along the upper edge and of queries along the left one, and what the colours mean.
    private paintAxes(
        context: CanvasRenderingContext2D,
        toX: (key: number) => number,
        toY: (row: number) => number,
    ): void {
        const [width, height] = this.size,
            style = getComputedStyle(this.canvas);
        const step = 2 ** Math.max(0, Math.ceil(Math.log2(90 * this.cellsPerPixel)));
        context.font = `500 12px ${style.fontFamily}`;
        context.textBaseline = "middle";
        const write = (text: string, x: number, y: number, align: CanvasTextAlign) => {
            context.textAlign = align;
            context.lineWidth = 4;
            context.lineJoin = "round";
            context.strokeStyle = style.getPropertyValue("--surface");
            context.strokeText(text, x, y);
            context.fillStyle = style.getPropertyValue("--ink");
            context.fillText(text, x, y);
        };
        // Beside digits the numbers of the axes have a margin of their own.
        if (this.cellsPerPixel <= mostZoomed) {
            context.fillStyle = style.getPropertyValue("--surface");
            context.fillRect(0, 0, width, 20);
            context.fillRect(0, 20, 70, height - 20);
        }
        write("key →", 8, 10, "left");
        write("query ↓", 8, 28, "left");
        for (let at = 0; at <= this.tokens; at += step) {
            const x = toX(at),
                y = toY(at),
                text = at.toLocaleString("en");
            if (x > 70 && x < width - 20) write(text, x, 10, "center");
            if (y > 44 && y < height - 34) write(text, 8, y, "left");
        }
        if (!this.shown) return;
        const { table, low, high } = this.scaleFor(this.shown.level),
            wide = 164,
            left = width - wide - 12;
        // Below the tag: the maps here are causal, and empty there until one zooms in.
        for (let i = 0; i < wide; ++i) {
            context.fillStyle = this.kit.css([...table.subarray(6 * i, 6 * i + 3)] as Rgb);
            context.fillRect(left + i, 64, 1, 10);
        }
        write(this.kit.number(low), left, 86, "left");
        write(`${this.kit.number(high)} or more`, width - 12, 86, "right");
    }

    // One request at a time: the newest view, the pixels that its pieces lack, then the tile that comes next.
    private async work(): Promise<void> {
        if (this.working || !this.started) return;
        this.working = true;
        try {
            while (this.started) {
                if (this.moved) await this.tellView();
                await this.fetchPixels();
                if (this.moved) continue;
                if (!this.shown || this.shown.exact >= this.shown.needed) break;
                const step = await this.app.engine.ask("mapStep", { maxFlops: this.maxFlops });
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
            if (this.app.engine.info && this.started) this.app.onTrouble((error as Error).message, false);
        } finally {
            this.working = false;
        }
    }

    private async tellView(): Promise<void> {
        this.moved = false;
        const [width, height] = this.size;
        const rows = height * this.cellsPerPixel,
            keys = width * this.cellsPerPixel;
        this.take(
            await this.app.engine.ask("mapView", {
                row: this.center[0] - rows / 2,
                key: this.center[1] - keys / 2,
                rows,
                keys,
                width,
                height,
            }),
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
            const pixels = await this.app.engine
                .ask("mapPixels", { level: piece.level, y: piece.y, x: piece.x, sampled: piece.sampled })
                .catch(() => null);
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

function keep(list: number[], value: number): void {
    list.push(value);
    if (list.length > samplesKept) list.shift();
}

function timeLeft(ms: number): string {
    const [n, unit] = [
        [ms / 1000, "second"] as const,
        [ms / 60_000, "minute"] as const,
        [ms / 3_600_000, "hour"] as const,
    ].findLast(([n]) => n >= 1.5) ?? [1, "second"];
    return `${Math.round(n)} ${unit}${Math.round(n) > 1 ? "s" : ""}`;
}
