// The engine's thread: picks the module that this browser can run, then answers requests one by one.
import { EngineSession } from "./engine/engine_session.ts";
import { GpuHost, gpuEngines } from "./gpu/gpu_host.ts";
import { loadEngine, loadLearned } from "./engine/load_engine.ts";
import type { EngineInfo, FileTensor, NamedBytes, Request } from "./engine/protocol.ts";
import { answerInTurn, textOf } from "./engine/turns.ts";
import { unzip } from "./files/unzip.ts";

declare const ENGINE_FOLDERS: Record<string, string>;

const bytes = (...values: number[]) => new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...values]);
// Smallest modules that use one instruction of each kind.
const simdProbe = bytes(
    1,
    5,
    1,
    0x60,
    0,
    1,
    0x7b,
    3,
    2,
    1,
    0,
    10,
    10,
    1,
    8,
    0,
    0x41,
    0,
    0xfd,
    15,
    0xfd,
    98,
    11,
);
const relaxedProbe = bytes(
    1,
    5,
    1,
    0x60,
    0,
    1,
    0x7b,
    3,
    2,
    1,
    0,
    10,
    15,
    1,
    13,
    0,
    0x41,
    1,
    0xfd,
    15,
    0x41,
    2,
    0xfd,
    15,
    0xfd,
    0x80,
    2,
    11,
);

const maxThreads = 8;
let session: EngineSession | null = null;
let gpu: GpuHost | null = null;
let memoryRefused = false;

// The engine's C library turns an error into a null pointer or an abort; this keeps the reason.
if (typeof WebAssembly !== "undefined") {
    const grow = WebAssembly.Memory.prototype.grow;
    WebAssembly.Memory.prototype.grow = function (this: WebAssembly.Memory, pages: number) {
        try {
            return grow.call(this, pages);
        } catch (error) {
            memoryRefused = true;
            throw error;
        }
    };
}

function choose(wanted: string): { variant: string; reason: string } {
    if (typeof WebAssembly === "undefined")
        throw new Error("this browser has no WebAssembly, or the page is not allowed to use it");
    if (!WebAssembly.validate(simdProbe)) throw new Error("this browser's WebAssembly has no SIMD");
    const shares = typeof SharedArrayBuffer !== "undefined",
        threads = self.crossOriginIsolated && shares;
    const relaxed = WebAssembly.validate(relaxedProbe);
    const cores = navigator.hardwareConcurrency || 1;
    const reason = threads
        ? cores > 1
            ? ""
            : "this machine has one core"
        : self.crossOriginIsolated
          ? "this browser shares no memory between threads"
          : "this site is not cross-origin isolated";
    if (wanted === "wasm" || gpuEngines.includes(wanted)) wanted = ""; // the CPU's part is chosen as usual
    if (wanted && !(wanted in ENGINE_FOLDERS))
        throw new Error(
            `engine=${wanted}: this site has ${Object.keys(ENGINE_FOLDERS).join(", ")}, webgpu, wasm and static`,
        );
    if (wanted) {
        if (wanted.endsWith("-threads") && !threads) throw new Error(`engine=${wanted}: ${reason}`);
        if (wanted.startsWith("relaxed") && !relaxed)
            throw new Error(`engine=${wanted}: this browser has no relaxed SIMD`);
        return { variant: wanted, reason: "chosen by the address" };
    }
    const best = ["relaxed-threads", "simd-threads", "relaxed", "simd"].find(
        (name) =>
            name in ENGINE_FOLDERS &&
            (relaxed || !name.startsWith("relaxed")) &&
            ((threads && cores > 1) || !name.endsWith("-threads")),
    );
    if (!best) throw new Error("none of this site's engines runs in this browser");
    return { variant: best, reason };
}

async function start(engine: string, lock: string): Promise<EngineInfo> {
    // Held as long as this Worker lives: the page learns of its end when it gets the lock itself.
    navigator.locks?.request(lock, () => new Promise(() => {}));
    const { variant, reason } = choose(engine);
    const threads = variant.endsWith("-threads") ? Math.min(maxThreads, navigator.hardwareConcurrency) : 1;
    const module = await loadEngine(ENGINE_FOLDERS[variant], threads);
    session = new EngineSession(module);
    const info = session.start(threads);
    gpu = new GpuHost(module, engine);
    await gpu.require();
    return {
        variant,
        threads: info.threads,
        target: info.target,
        abi: info.abi,
        reason,
        tables: session.colorTables(),
        gpu: gpu.state,
    };
}

// The places of the tensors of the file last opened. An npz is a set of npy files.
let held: { npy: Uint8Array<ArrayBuffer> | null; index: number; count: number }[] = [];

// Several npy files are one set of tensors, as the entries of an npz are.
async function openFiles(files: NamedBytes[]): Promise<FileTensor[]> {
    const engine = session!;
    const count = (t: FileTensor) => t.shape.reduce((a, b) => a * b, 1);
    held = [];
    const [{ name, bytes }] = files;
    if (!/\.np[yz]$/i.test(name)) {
        const tensors = engine.openFile(bytes, false);
        held = tensors.map((t, index) => ({ npy: null, index, count: count(t) }));
        return tensors;
    }
    const entries = /\.npz$/i.test(name)
        ? await unzip(bytes)
        : files.map((file) => ({ name: file.name.replace(/\.npy$/i, ""), bytes: file.bytes }));
    const tensors: FileTensor[] = [];
    for (const entry of entries) {
        let tensor: FileTensor;
        try {
            [tensor] = engine.openFile(entry.bytes, true);
        } catch (error) {
            const { message } = error as Error;
            throw new Error(entries.length > 1 ? `${entry.name}: ${message}` : message);
        }
        tensors.push({ ...tensor, name: entry.name });
        held.push({ npy: entry.bytes, index: 0, count: count(tensor) });
    }
    return tensors;
}

function fileTensor(index: number): Float32Array {
    const tensor = held[index];
    if (!tensor) throw new Error("the file does not have that tensor");
    if (tensor.npy) session!.openFile(tensor.npy, true);
    return session!.fileTensor(tensor.index, tensor.count);
}

// The weights of a task are fetched when a session first needs them, in parallel to the engine if the page begins
// with them.
let shownTask = "";
const fetched = new Map<string, Promise<Uint8Array>>();
function fetchLearned(task: string): Promise<Uint8Array> {
    const known = fetched.get(task) ?? loadLearned(task);
    fetched.set(task, known);
    known.catch(() => fetched.delete(task));
    return known;
}
async function wantTask(text: string): Promise<void> {
    const task = /[#&]task=(\w+)/.exec(text)?.[1] ?? "";
    if (!task || task === shownTask) return;
    session!.takeLearned(await fetchLearned(task));
    shownTask = task;
}

async function answer(request: Request): Promise<unknown> {
    if (request.kind === "start") {
        const { engine, lock, task } = (request as Request<"start">).ask;
        if (task) void fetchLearned(task).catch(() => {}); // it is asked for again, and told, when it is wanted
        return start(engine, lock);
    }
    if (!session) throw new Error("the engine has not started");
    const ask = (request.ask ?? {}) as never as Record<string, never>;
    switch (request.kind) {
        case "compute":
            if (!(ask as { own?: object }).own) await wantTask(ask.address);
            return session.compute(ask as never);
        case "readSession":
            return session.readSession(ask as never);
        case "writeSession":
            return session.writeSession(ask.address);
        case "headStages":
            return session.stages(ask.head);
        case "derive":
            return session.derive(ask.head, ask.row, ask.column);
        case "why":
            return session.why(ask.head, ask.row, ask.column);
        case "deriveText":
            return session.deriveText(ask.head, ask.row, ask.column, ask.format);
        case "openFiles":
            return openFiles(ask.files);
        case "fileTensor":
            return fileTensor(ask.index);
        case "lessons":
            return session.lessons();
        case "lesson":
            return session.lesson(ask.name, ask.seed);
        case "mapBegin":
            session.mapBegin(ask.tokens);
            await gpu!.use(async (page) => page.mapBegin());
            return null;
        case "mapSession": {
            const { own, address } = ask as never as Request<"mapSession">["ask"];
            if (!own) await wantTask(address);
            const of = session.mapSession({ own, address });
            await gpu!.use(async (page) => page.mapBegin());
            return of;
        }
        case "mapPrepare":
            return (await gpu!.use((page) => page.mapPrepare())) ?? session.mapPrepare(ask.maxFlops);
        case "mapView":
            return session.mapView(ask.row, ask.key, ask.rows, ask.keys, ask.width, ask.height);
        case "mapStep":
            return (await gpu!.use((page) => page.mapStep())) ?? session.mapStep(ask.maxFlops);
        case "mapPixels":
            return session.mapPixels(ask as never);
        case "mapCell":
            return session.mapCell(ask.query, ask.key);
        case "mapDerive":
            return session.mapDerive(ask.query, ask.key);
        case "facts":
            return session.facts();
        case "gpu":
            return gpu!.state;
        case "bench":
            if (ask.threads === 0)
                return (
                    (await gpu!.use((page) => page.bench(ask.heads, ask.tokens, ask.dim, ask.repeats))) ??
                    null
                );
            return session.bench(ask.heads, ask.tokens, ask.dim, ask.causal, ask.threads, ask.repeats);
    }
}

function buffersIn(value: unknown, found: ArrayBuffer[] = []): ArrayBuffer[] {
    if (value instanceof Float32Array) found.push(value.buffer as ArrayBuffer);
    else if (Array.isArray(value) && typeof value[0] === "object") value.forEach((v) => buffersIn(v, found));
    else if (value && typeof value === "object" && !Array.isArray(value))
        Object.values(value).forEach((v) => buffersIn(v, found));
    return found;
}

answerInTurn(
    answer,
    (found) => buffersIn(found),
    (error) =>
        // A trap leaves the engine in no known state.
        typeof WebAssembly !== "undefined" && error instanceof WebAssembly.RuntimeError
            ? {
                  fatal: true,
                  error: memoryRefused
                      ? "the browser gives it no more memory"
                      : `it failed (${error.message})`,
              }
            : { error: textOf(error) },
);
