// Calls the engine module's C functions. Used by the Worker, and at build time for the values in the HTML.
import { allTables, type Tables } from "../page/colors.ts";
import type { EngineModule, Pointer } from "./engine_abi.ts";
import { allocateText } from "./memory.ts";
import type {
    Computed,
    FileTensor,
    LessonName,
    LessonResult,
    MapOf,
    MapShown,
    Note,
    OwnTensors,
    ReadSession,
    Requests,
    ScoreSteps,
    Stage,
    Steps,
    TileId,
    TilePixels,
    Why,
} from "./protocol.ts";

// Numbers in the engine's memory.
interface Held {
    shape: number[];
    address: Pointer;
    count: number;
}

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
        return this.module.HEAPF32.slice(address / 4, address / 4 + count);
    }

    private withText<T>(text: string, use: (address: Pointer) => T): T {
        const address = allocateText(this.module, text);
        try {
            return use(address);
        } finally {
            this.module._free(address);
        }
    }

    start(threads: number): { abi: number; target: string; threads: number } {
        this.module._webStart(threads);
        return this.json(this.module._webInfo());
    }

    private text(address: Pointer): string {
        if (!address) this.fail();
        return this.module.UTF8ToString(address);
    }

    readSession({ text, isFile }: Requests["readSession"]["ask"]): ReadSession {
        const { session, notes, tensors, tokens } = this.withText(text, (t) =>
            this.json<{ session: ReadSession["session"]; notes: Note[]; tensors: Held[]; tokens: string[] }>(
                this.module._webReadSession(t, isFile ? 1 : 0),
            ),
        );
        const [q, k, v] = tensors.map(({ shape, address, count }) => ({
            shape:
                shape.length === 4 && shape[0] === 1
                    ? shape.slice(1)
                    : shape.length === 2
                      ? [1, ...shape]
                      : shape,
            data: this.floats(address, count),
        }));
        if (!q.data.length) return { session, notes, own: null };
        for (const { shape, data } of [q, k, v])
            if (data.length && shape.length !== 3)
                throw new Error(
                    `a tensor of the session has shape [${shape.join(", ")}]; it must be [heads, tokens, width]`,
                );
        const [heads, rows, dim] = q.shape,
            [kv, keys, keyDim] = k.shape;
        if (!k.data.length) throw new Error("the session's tensors have no k; q and k are needed");
        if (dim !== keyDim) throw new Error(`queries are ${dim} wide and keys ${keyDim}; they must be equal`);
        const dimV = v.data.length ? v.shape[2] : 0;
        if (dimV && (v.shape[0] !== kv || v.shape[1] !== keys))
            throw new Error(
                `values have ${v.shape[0]} heads and ${v.shape[1]} tokens, keys ${kv} and ${keys}; both must be equal`,
            );
        const own = {
            shape: { heads, kv, rows, keys, dim, dimV },
            q: q.data,
            k: k.data,
            v: dimV ? v.data : null,
            tokens,
        };
        return { session, notes, own };
    }
    writeSession(address: string): string {
        return this.withText(address, (t) => this.text(this.module._webWriteSession(t)));
    }
    writeAddress(address: string): string {
        return this.withText(address, (t) => this.text(this.module._webWriteAddress(t)));
    }
    sessionStage(session: string, stage: string, head: number): { text: string; notes: Note[] } {
        return this.withText(session, (file) =>
            this.withText(stage, (id) => this.json(this.module._webSessionStage(file, id, head))),
        );
    }

    colorTables(): Tables {
        return Object.fromEntries(
            allTables.map(({ name, dark, key }) => [
                key,
                this.withText(name, (text) => {
                    const at = this.module._webColorTable(text, dark ? 1 : 0);
                    return this.module.HEAPU8.slice(at, at + 768);
                }),
            ]),
        );
    }

    stages(head: number): Stage[] {
        const found = this.json<(Held & { id: string; formula: string })[]>(this.module._webStages(head));
        return found.map(({ id, formula, shape, address, count }) => ({
            id,
            formula,
            shape,
            data: this.floats(address, count),
        }));
    }

    // The model that sessions of its task show.
    takeLearned(bytes: Uint8Array): void {
        const address = this.module._webAllocate(bytes.length);
        if (!address) throw new Error("the browser has no memory left for a trained model");
        this.module.HEAPU8.set(bytes, address);
        try {
            if (!this.module._webLearned(address, bytes.length)) this.fail();
        } finally {
            this.module._webRelease(address);
        }
    }

    // The head and the cell that are asked for, or the last that there are.
    compute(ask: Requests["compute"]["ask"]): Computed {
        const { own } = ask,
            begin = performance.now();
        const page = this.withText(ask.address, (t) =>
            this.json<Omit<Computed, "head">>(own ? this.computeOwn(t, own) : this.module._webCompute(t)),
        );
        const { rows, keys, heads } = page,
            head = Math.min(ask.head, heads - 1),
            thumbnailSize = Math.min(ask.thumbnails, rows, keys); // with few tokens, each weight
        const shared = this.stages(-1),
            stages = this.stages(head),
            steps = this.derive(head, Math.min(ask.row, rows - 1), Math.min(ask.column, keys - 1));
        const ms = performance.now() - begin;
        const cells = heads * thumbnailSize * thumbnailSize,
            several = heads > 1 && thumbnailSize > 0;
        const pictures = several
            ? this.floats(this.module._webThumbnails(thumbnailSize), cells + 4 * heads)
            : null;
        const stats = Array.from({ length: pictures ? heads : 0 }, (_, h) => {
            const [entropy, distance, first, previous] = pictures!.subarray(cells + 4 * h, cells + 4 * h + 4);
            return { entropy, distance, first, previous };
        });
        return {
            ...page,
            shared,
            head: stages,
            headIndex: head,
            steps,
            thumbnails: pictures && pictures.slice(0, cells),
            thumbnailSize,
            stats,
            ms,
        };
    }

    private computeOwn(address: Pointer, own: OwnTensors): Pointer {
        const { heads, kv, rows, keys, dim, dimV } = own.shape;
        return this.withArrays([own.q, own.k, own.v ?? new Float32Array(0)], ([q, k, v]) =>
            this.withText(own.tokens?.length ? JSON.stringify(own.tokens) : "", (tokens) =>
                this.module._webComputeTensors(address, heads, kv, rows, keys, dim, dimV, q, k, v, tokens),
            ),
        );
    }

    // Arrays in the engine's memory for one call; an empty one is address 0.
    private withArrays<T>(parts: Float32Array[], use: (addresses: Pointer[]) => T): T {
        const addresses = parts.map((part) => (part.length ? this.module._webAllocate(part.byteLength) : 0));
        try {
            if (addresses.some((a, i) => !a && parts[i].length))
                throw new Error(
                    `the browser has no memory left for ${parts.reduce((n, p) => n + p.byteLength, 0)} more bytes`,
                );
            parts.forEach((part, i) => this.module.HEAPF32.set(part, addresses[i] / 4));
            return use(addresses);
        } finally {
            for (const held of addresses) if (held) this.module._webRelease(held);
        }
    }

    derive(head: number, row: number, column: number): Steps {
        return this.json<Steps>(this.module._webDerive(head, row, column));
    }

    why(head: number, row: number, column: number): Why {
        const { split, matrix } = this.json<{ split: Why["split"]; matrix: Held }>(
            this.module._webWhy(head, row, column),
        );
        return { split, matrix: this.floats(matrix.address, matrix.count) };
    }

    deriveText(head: number, row: number, column: number, format: number): string {
        return this.text(this.module._webDeriveText(head, row, column, format));
    }
    openFile(bytes: Uint8Array, isNpy: boolean): FileTensor[] {
        const address = this.module._webAllocate(bytes.length || 1);
        if (!address)
            throw new Error(
                `the browser has no memory left for the file's ${bytes.length.toLocaleString("en")} bytes`,
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
    mapSession({ address, own }: Requests["mapSession"]["ask"]): MapOf {
        const begin = (q: Pointer, k: Pointer) =>
            this.withText(address, (text) =>
                this.json<MapOf>(
                    this.module._webMapSession(
                        text,
                        own?.head ?? 0,
                        own?.heads ?? 1,
                        own?.rows ?? 0,
                        own?.keys ?? 0,
                        own?.dim ?? 0,
                        q,
                        k,
                    ),
                ),
            );
        return own ? this.withArrays([own.q, own.k], ([q, k]) => begin(q, k)) : begin(0, 0);
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
    mapCell(query: number, key: number): number {
        const weight = this.module._webMapCell(query, key);
        if (weight < 0) this.fail();
        return weight;
    }
    mapDerive(query: number, key: number): ScoreSteps {
        return this.json<ScoreSteps>(this.module._webMapDerive(query, key));
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
