// Calls the engine module's C functions. Used by the Worker, and at build time for the numbers in the HTML.
import { allTables, type Tables } from "./colors.ts";
import type { EngineModule, Pointer } from "./engine_abi.ts";
import type {
    Computed,
    FileTensor,
    HeadStats,
    LessonName,
    LessonResult,
    MapShown,
    OwnTensors,
    Requests,
    Stage,
    Steps,
    TileId,
    TilePixels,
} from "./protocol.ts";

export class EngineSession {
    constructor(private readonly module: EngineModule) {}

    private fail(): never {
        throw new Error(this.module.UTF8ToString(this.module._webError()) || "the engine refused");
    }

    json<T>(address: Pointer): T {
        if (!address) this.fail();
        return JSON.parse(this.module.UTF8ToString(address)) as T;
    }

    // A copy: the engine's memory may move with its next call.
    floats(address: Pointer, count: number): Float32Array {
        if (!address && count) this.fail();
        return this.module.HEAPF32.slice(address >> 2, (address >> 2) + count);
    }

    private withText<T>(text: string, use: (address: Pointer) => T): T {
        const address = this.module.stringToNewUTF8(text);
        try {
            return use(address);
        } finally {
            this.module._free(address);
        }
    }

    start(threads: number): { abi: number; target: string; threads: number; kernel: string } {
        this.module._webStart(threads);
        return this.info();
    }
    info() {
        return this.json<{ abi: number; target: string; threads: number; kernel: string }>(
            this.module._webInfo(),
        );
    }

    colorTables(): Tables {
        return Object.fromEntries(
            allTables.map(({ name, dark, key }) => [
                key,
                this.withText(name, (text) => {
                    const at = this.module._webColourTable(text, dark ? 1 : 0);
                    return this.module.HEAPU8.slice(at, at + 768);
                }),
            ]),
        );
    }

    stages(head: number): Stage[] {
        const found = this.json<{ id: string; shape: number[]; address: number; count: number }[]>(
            this.module._webStages(head),
        );
        return found.map(({ id, shape, address, count }) => ({
            id,
            shape,
            data: this.floats(address, count),
        }));
    }

    compute(ask: Requests["compute"]["ask"]): Computed {
        const { head, heads, own, thumbnails: thumbnailSize } = ask;
        const begin = performance.now();
        if (own) this.computeOwn(ask.text, own);
        else if (!this.withText(ask.text, (t) => this.module._webCompute(t))) this.fail();
        const shared = this.stages(-1);
        const stages = this.stages(head);
        const ms = performance.now() - begin;
        const thumbnails =
            heads > 1
                ? this.floats(
                      this.module._webThumbnails(thumbnailSize),
                      heads * thumbnailSize * thumbnailSize,
                  )
                : null;
        const stats = heads > 1 ? this.json<HeadStats[]>(this.module._webHeadStats()) : [];
        return {
            shared,
            head: stages,
            headIndex: head,
            steps: this.derive(head, ask.row, ask.column),
            thumbnails,
            thumbnailSize,
            stats,
            ms,
            kernel: this.info().kernel,
        };
    }

    private computeOwn(text: string, own: OwnTensors): void {
        const parts = [own.q, own.k, own.v ?? new Float32Array(0)];
        const addresses = parts.map((part) => (part.length ? this.module._webAllocate(part.byteLength) : 0));
        try {
            if (addresses.some((a, i) => !a && parts[i].length))
                throw new Error(
                    `the browser has no memory for ${parts.reduce((n, p) => n + p.byteLength, 0)} more bytes`,
                );
            parts.forEach((part, i) => this.module.HEAPF32.set(part, addresses[i] >> 2));
            const [q, k, v] = addresses;
            if (!this.withText(text, (t) => this.module._webComputeTensors(t, q, k, v))) this.fail();
        } finally {
            for (const address of addresses) if (address) this.module._webRelease(address);
        }
    }

    derive(head: number, row: number, column: number): Steps {
        return this.json<Steps>(this.module._webDerive(head, row, column));
    }

    deriveText(head: number, row: number, column: number, format: number): string {
        const address = this.module._webDeriveText(head, row, column, format);
        if (!address) this.fail();
        return this.module.UTF8ToString(address);
    }
    openFile(bytes: Uint8Array, isNpy: boolean): FileTensor[] {
        const address = this.module._webAllocate(bytes.length || 1);
        if (!address)
            throw new Error(
                `the browser has no memory for the file's ${bytes.length.toLocaleString("en")} bytes`,
            );
        this.module.HEAPU8.set(bytes, address);
        return this.json<FileTensor[]>(this.module._webOpenFile(address, bytes.length, isNpy ? 1 : 0));
    }
    fileTensor(index: number, count: number): Float32Array {
        return this.floats(this.module._webFileTensor(index), count);
    }

    lessons(): LessonName[] {
        return this.json<LessonName[]>(this.module._webLessons());
    }
    lesson(name: string, seed = -1): LessonResult {
        return this.withText(name, (address) =>
            this.json<LessonResult>(this.module._webLesson(address, seed)),
        );
    }

    mapBegin(tokens: number): null {
        if (!this.module._webMapBegin(tokens)) this.fail();
        return null;
    }
    mapPrepare(maxFlops: number): number {
        const progress = this.module._webMapPrepare(maxFlops);
        if (progress < 0) this.fail();
        return progress;
    }
    mapView(row: number, key: number, rows: number, keys: number, width: number, height: number): MapShown {
        return this.json<MapShown>(this.module._webMapView(row, key, rows, keys, width, height));
    }
    mapStep(maxFlops: number): MapShown & { ms: number } {
        const begin = performance.now();
        const shown = this.json<MapShown>(this.module._webMapStep(maxFlops));
        return { ...shown, ms: performance.now() - begin };
    }
    mapPixels({ level, y, x, sampled }: TileId): TilePixels {
        const count = 256 * 256,
            both = this.floats(this.module._webMapPixels(level, y, x, sampled ? 1 : 0), 2 * count);
        return { mass: both.slice(0, count), max: both.slice(count) };
    }
    mapCell(row: number, column: number): number {
        return this.module._webMapCell(row, column);
    }

    facts(): { bytes: number } {
        return { bytes: this.module.HEAPU8.length };
    }

    bench(
        heads: number,
        tokens: number,
        dim: number,
        causal: boolean,
        threads: number,
        repeats: number,
    ): number {
        const seconds = this.module._webBench(heads, tokens, dim, causal ? 1 : 0, threads, repeats);
        if (seconds < 0) this.fail();
        return seconds;
    }
}
