// Deep zoom: tiles of a map that is never stored, exact ones replacing sampled ones as they are computed.
import type { App } from "./app.ts";
import { colorAt, colorTable, type Scale } from "./colors.ts";
import { byId } from "./dom.ts";
import { duration, number } from "./format.ts";
import type { Tile } from "./protocol.ts";

const tokens = 16384, dim = 32, seed = 7;
const side = 128; // pixels of a tile's edge
const prepareFlops = 1e8;
const maxTiles = 512;

interface Held { tile: Tile; exact: boolean; image: HTMLCanvasElement | null; paintedFor: string }

export class DeepZoom {
    private readonly canvas = byId<HTMLCanvasElement>("zoom-canvas");
    private tiles = new Map<string, Held>();
    private center: [number, number] = [tokens / 2, tokens / 2]; // row, column
    private cellsPerPixel = 32;
    private reducer: "mass" | "max" = "mass";
    private working = false;
    private started = false;
    private frame = 0;
    private parts = new Map<string, number>(); // next pixel row of tiles begun
    readonly frameTimes: number[] = [];

    constructor(private readonly app: App) {
        byId("zoom-start").addEventListener("click", () => void this.begin());
        byId("zoom-in").addEventListener("click", () => this.zoom(0.5));
        byId("zoom-out").addEventListener("click", () => this.zoom(2));
        byId("zoom-fit").addEventListener("click", () => this.fit());
        for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="reducer"]'))
            radio.addEventListener("change", () => { this.reducer = radio.value as "mass" | "max"; this.draw(); });
        this.listen();
        new ResizeObserver(() => this.draw()).observe(this.canvas);
        app.onState.add(() => this.draw());
    }

    // The engine was started anew: what it held is gone.
    restart(): void {
        this.started = false;
        this.tiles.clear();
        this.parts.clear();
        byId("zoom-body").hidden = true;
        byId("zoom-start-box").hidden = false;
    }

    private async begin(): Promise<void> {
        byId<HTMLButtonElement>("zoom-start").disabled = true;
        const start = performance.now();
        try {
            await this.app.engine.ask("mapBegin", { tokens, dim, seed });
            byId("zoom-start-box").hidden = true;
            byId("zoom-body").hidden = false;
            for (let progress = 0; progress < 1; ) {
                progress = await this.app.engine.ask("mapPrepare", { maxFlops: prepareFlops });
                byId("zoom-status").textContent = `Forward pass: ${Math.floor(progress * 100)}%`;
            }
            byId("zoom-status").textContent = `Forward pass of ${tokens.toLocaleString("en")} tokens: ${duration(performance.now() - start)}`;
            this.started = true;
            this.fit();
        } catch (error) {
            this.restart();
            this.app.onTrouble((error as Error).message, false);
        } finally {
            byId<HTMLButtonElement>("zoom-start").disabled = false;
        }
    }

    private get size(): [number, number] { return [this.canvas.clientWidth, this.canvas.clientHeight]; }

    private fit(): void {
        const [width, height] = this.size;
        this.cellsPerPixel = tokens / Math.max(1, Math.min(width, height) - 16);
        this.center = [tokens / 2, tokens / 2];
        this.draw();
    }

    private zoom(factor: number, x = this.size[0] / 2, y = this.size[1] / 2): void {
        const [width, height] = this.size;
        const next = Math.min(tokens / 64, Math.max(1 / 24, this.cellsPerPixel * factor));
        const move = (at: number, pixel: number, extent: number) => Math.max(0, Math.min(tokens, at + (pixel - extent / 2) * (this.cellsPerPixel - next)));
        this.center = [move(this.center[0], y, height), move(this.center[1], x, width)];
        this.cellsPerPixel = next;
        this.draw();
    }

    private pan(dx: number, dy: number): void {
        const keep = (v: number) => Math.max(0, Math.min(tokens, v));
        this.center = [keep(this.center[0] - dy * this.cellsPerPixel), keep(this.center[1] - dx * this.cellsPerPixel)];
        this.draw();
    }

    private listen(): void {
        const pointers = new Map<number, PointerEvent>();
        const { canvas } = this;
        canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); });
        canvas.addEventListener("pointermove", (event) => {
            const last = pointers.get(event.pointerId);
            if (!last) { void this.describe(event); return; }
            const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
            if (other) {
                const box = canvas.getBoundingClientRect();
                const distance = (p: PointerEvent) => Math.max(1, Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY));
                this.zoom(distance(last) / distance(event), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
            } else this.pan(event.clientX - last.clientX, event.clientY - last.clientY);
            pointers.set(event.pointerId, event);
        });
        for (const type of ["pointerup", "pointercancel"] as const) canvas.addEventListener(type, (event) => pointers.delete(event.pointerId));
        canvas.addEventListener("wheel", (event) => {
            if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return; // click it first
            event.preventDefault();
            this.zoom(Math.exp(event.deltaY / 400), event.offsetX, event.offsetY);
        }, { passive: false });
        canvas.addEventListener("keydown", (event) => {
            const moves: Record<string, () => void> = {
                ArrowUp: () => this.pan(0, 60), ArrowDown: () => this.pan(0, -60), ArrowLeft: () => this.pan(60, 0), ArrowRight: () => this.pan(-60, 0),
                "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), f: () => this.fit(), Home: () => this.fit(),
            };
            if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
            event.preventDefault();
            moves[event.key]();
        });
    }

    private async describe(event: PointerEvent): Promise<void> {
        if (!this.started || this.working) return;
        const [width, height] = this.size;
        const row = Math.floor(this.center[0] + (event.offsetY - height / 2) * this.cellsPerPixel);
        const column = Math.floor(this.center[1] + (event.offsetX - width / 2) * this.cellsPerPixel);
        if (row < 0 || column < 0 || row >= tokens || column >= tokens) return;
        const weight = await this.app.engine.ask("mapCell", { row, column }).catch(() => NaN);
        byId("zoom-status").textContent = `query ${row.toLocaleString("en")}, key ${column.toLocaleString("en")}: weight ${column > row ? "0 (hidden)" : number(weight)}`;
    }

    private get level(): number { return Math.max(0, Math.round(Math.log2(this.cellsPerPixel))); }

    private wanted(): string[] {
        const [width, height] = this.size, level = this.level, span = side * 2 ** level;
        const first = (at: number, extent: number) => Math.max(0, Math.floor((at - (extent / 2) * this.cellsPerPixel) / span));
        const last = (at: number, extent: number) => Math.floor(Math.min(tokens - 1, at + (extent / 2) * this.cellsPerPixel) / span);
        const found: { key: string; distance: number }[] = [];
        for (let y = first(this.center[0], height); y <= last(this.center[0], height); ++y)
            for (let x = first(this.center[1], width); x <= Math.min(y, last(this.center[1], width)); ++x) // above the diagonal nothing is seen
                found.push({ key: `${level}/${y}/${x}`, distance: Math.hypot((y + 0.5) * span - this.center[0], (x + 0.5) * span - this.center[1]) });
        return found.sort((a, b) => a.distance - b.distance).map((f) => f.key);
    }

    private draw(): void {
        if (!this.started || this.frame) return;
        this.frame = requestAnimationFrame(() => {
            this.frame = 0;
            const begin = performance.now();
            this.paint();
            this.frameTimes.push(performance.now() - begin);
            if (this.frameTimes.length > 600) this.frameTimes.shift();
            void this.work();
        });
    }

    private scaleFor(level: number): Scale {
        // Mass grows with the number of cells in a pixel; the colours follow a logarithm.
        return { table: colorTable("ink"), low: 0, high: this.reducer === "mass" ? Math.min(1, 0.05 * 2 ** level + 0.05) : 0.5, log: true };
    }

    private image(held: Held, level: number): HTMLCanvasElement {
        const theme = `${this.reducer} ${document.documentElement.dataset.theme}`;
        if (held.image && held.paintedFor === theme) return held.image;
        const scale = this.scaleFor(level), pixels = new ImageData(side, side);
        const values = held.tile[this.reducer];
        for (let i = 0; i < values.length; ++i) { pixels.data.set(colorAt(scale, values[i]), 4 * i); pixels.data[4 * i + 3] = 255; }
        held.image ??= document.createElement("canvas");
        held.image.width = held.image.height = side;
        held.image.getContext("2d")!.putImageData(pixels, 0, 0);
        held.paintedFor = theme;
        return held.image;
    }

    private paint(): void {
        const [width, height] = this.size, ratio = Math.min(2, devicePixelRatio || 1);
        if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
            this.canvas.width = Math.round(width * ratio);
            this.canvas.height = Math.round(height * ratio);
        }
        const context = this.canvas.getContext("2d")!;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        context.imageSmoothingEnabled = this.cellsPerPixel > 1;
        const current = this.level;
        // Coarser tiles first, the wanted level on top.
        const keys = [...this.tiles.keys()].map((key) => key.split("/").map(Number)).filter(([level]) => level >= current).sort((a, b) => b[0] - a[0]);
        for (const [level, y, x] of keys) {
            const span = side * 2 ** level, size = span / this.cellsPerPixel;
            const left = (x * span - this.center[1]) / this.cellsPerPixel + width / 2, top = (y * span - this.center[0]) / this.cellsPerPixel + height / 2;
            if (left > width || top > height || left + size < 0 || top + size < 0) continue;
            context.drawImage(this.image(this.tiles.get(`${level}/${y}/${x}`)!, level), left, top, size + 0.5, size + 0.5);
        }
    }

    // One request at a time: first samples of all that is in view, then exact tiles from the centre out.
    private async work(): Promise<void> {
        if (this.working || !this.started) return;
        this.working = true;
        try {
            for (;;) {
                const wanted = this.wanted();
                const missing = wanted.find((key) => !this.tiles.has(key));
                const rough = wanted.find((key) => this.tiles.has(key) && !this.tiles.get(key)!.exact);
                const key = missing ?? rough;
                const exact = wanted.filter((k) => this.tiles.get(k)?.exact).length;
                byId("zoom-status").textContent = `${key ? `${exact} of ${wanted.length} tiles exact, the rest sampled` : "exact"}; ${describeScale(2 ** this.level)}`;
                if (!key || !this.started) break;
                await (missing ? this.sample(key) : this.refine(key));
                this.paint();
            }
        } catch (error) {
            if (this.app.engine.info) this.app.onTrouble((error as Error).message, false);
        } finally {
            this.working = false;
        }
    }

    private async sample(key: string): Promise<void> {
        const [level, y, x] = key.split("/").map(Number);
        const tile = await this.app.engine.ask("mapTile", { level, row: y * side, column: x * side, rows: side, columns: side, sampled: level > 0 });
        this.hold(key, { tile, exact: level === 0, image: null, paintedFor: "" });
    }

    // Some rows at a time, so that a zoom or a pick never waits long.
    private async refine(key: string): Promise<void> {
        const [level, y, x] = key.split("/").map(Number);
        const held = this.tiles.get(key)!;
        const begin = this.parts.get(key) ?? 0;
        const rows = Math.min(side - begin, Math.max(1, Math.floor(side / 4 ** Math.max(0, level - 3)))); 
        const part = await this.app.engine.ask("mapTile", { level, row: y * side + begin, column: x * side, rows, columns: side, sampled: false });
        held.tile.mass.set(part.mass, begin * side);
        held.tile.max.set(part.max, begin * side);
        held.paintedFor = "";
        if (begin + rows < side) { this.parts.set(key, begin + rows); return; }
        this.parts.delete(key);
        held.exact = true;
    }

    private hold(key: string, held: Held): void {
        this.tiles.set(key, held);
        for (const old of this.tiles.keys()) { if (this.tiles.size <= maxTiles) break; this.tiles.delete(old); this.parts.delete(old); }
    }
}

const describeScale = (cells: number) => (cells === 1 ? "one pixel is one weight" : `one pixel is ${cells} × ${cells} weights`);
