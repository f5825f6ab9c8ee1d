// The package `fovea` (web/npm): attention, map and merge on arrays, by the engine's module and, for large calls, by
// a GPU. web/tools/npm.mjs bundles it with the module; its types are in web/npm/index.d.ts.
import type { CallModule } from "./engine/call_abi.ts";
import type { EngineModule } from "./engine/engine_abi.ts";
import { Gpu, kernelsOf, type Kernel } from "./gpu/gpu.ts";
import {
    Calls,
    bindings,
    flagCausal,
    flagWindow,
    mergeBindings,
    outputLse,
    outputO,
    tileBindings,
    type Numbers,
    type Operation,
    type Results,
    type Tensors,
} from "./gpu/gpu_calls.ts";
import { checkResults } from "./gpu/gpu_check.ts";
import type {
    AttentionOptions,
    AttentionResult,
    MapOptions,
    MapResult,
    MergeShape,
    Weights,
} from "../npm/index.d.ts";
// @ts-expect-error -- the engine's module: tools/npm.mjs says where it is
import create from "engine";

const gpuFlops = 2e9; // below it the way to the GPU and back is longer than the call
const massUnit = 2 ** -40;
const typeU8 = 2,
    typeF32 = 0; // FoveaDtype

async function bytesOf(name: string): Promise<Uint8Array<ArrayBuffer>> {
    const url =
        name === "fovea.wasm"
            ? new URL("./fovea.wasm", import.meta.url)
            : new URL("./kernels.json", import.meta.url);
    if (url.protocol === "file:") {
        const files = "node:fs/promises"; // a name that bundlers for pages do not follow
        const { readFile } = (await import(/* @vite-ignore */ files)) as {
            readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
        };
        return readFile(url);
    }
    const reply = await fetch(url);
    if (!reply.ok) throw new Error(`${url.href}: ${reply.status}`);
    return new Uint8Array(await reply.arrayBuffer());
}

let opened: Promise<Calls> | null = null;
async function open(): Promise<Calls> {
    const module = (await create({ wasmBinary: await bytesOf("fovea.wasm") })) as EngineModule & CallModule;
    module._webStart(1);
    return new Calls(module);
}
const engine = () => (opened ??= open());

let found: Promise<{ gpu: Gpu | null; reason: string }> | null = null;
async function findGpu(): Promise<{ gpu: Gpu | null; reason: string }> {
    try {
        let table: Promise<Kernel[]> | null = null;
        const gpu = await Gpu.open(async (...what) => {
            table ??= bytesOf("kernels.json").then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
            return kernelsOf(await table)(...what);
        });
        await checkResults(await engine(), gpu);
        return { gpu, reason: "" };
    } catch (error) {
        return { gpu: null, reason: (error as Error).message };
    }
}
const theGpu = () => (found ??= findGpu());

export async function device(): Promise<{ gpu: string; reason: string }> {
    const { gpu, reason } = await theGpu();
    return { gpu: gpu?.name ?? "", reason };
}

async function computed(
    operation: Operation,
    numbers: Numbers,
    tensors: Tensors,
    flops: number,
    wanted: "cpu" | "gpu" | undefined,
): Promise<{ results: Results; device: "cpu" | "gpu" }> {
    for (const [number, tensor] of tensors) {
        const kind = operation !== "merge" && number === bindings.mask ? "Uint8Array" : "Float32Array";
        if ((tensor as Float32Array | undefined)?.[Symbol.toStringTag] !== kind)
            throw new Error(`${nameOf(number)} must be a ${kind}`);
    }
    const calls = await engine();
    if (wanted === "gpu" || (wanted !== "cpu" && flops >= gpuFlops)) {
        const { gpu, reason } = await theGpu();
        if (!gpu && wanted === "gpu") throw new Error(`no GPU can be used: ${reason}`);
        try {
            if (gpu) return { results: await calls.onGpu(operation, numbers, tensors, gpu), device: "gpu" };
        } catch (error) {
            if ((error as Error).name !== "GpuRefusal") found = null; // lost: another is looked for next time
            if (wanted === "gpu") throw error;
        }
    }
    return { results: calls.onCpu(operation, numbers, tensors), device: "cpu" };
}

const nameOf = (binding: number) =>
    Object.entries(bindings).find(([, number]) => number === binding)?.[0] ?? `binding ${binding}`;

// The call that the weights are of.
function described(
    q: Float32Array,
    k: Float32Array,
    options: Weights,
): { numbers: Numbers; tensors: Tensors } {
    const { shape, causal, window, mask, bias, alibi, softcap, scale } = options;
    const { batch = 1, heads, kvHeads = heads, queries, keys, dim, dimV = dim } = shape;
    const numbers: Numbers = {
        batch,
        heads_q: heads,
        heads_kv: kvHeads,
        len_q: queries,
        len_kv: keys,
        dim_qk: dim,
        dim_v: dimV,
        align: alignTopLeft,
        flags: (causal ? flagCausal : 0) | (window ? flagWindow : 0) | (alibi ? flagAlibi : 0),
    };
    const tensors: Tensors = new Map<number, ArrayBufferView>([
        [bindings.q, q],
        [bindings.k, k],
    ]);
    if (softcap !== undefined) numbers.softcap = softcap;
    if (scale === 0)
        throw new Error(
            "scale is 0, which would make all weights of a row the same; leave it out for the default",
        );
    if (scale !== undefined) numbers.scale = scale;
    if (window) [numbers.window_left, numbers.window_right] = window;
    for (const [name, matrix, type] of [
        ["mask", mask, typeU8],
        ["bias", bias, typeF32],
    ] as ["mask" | "bias", Uint8Array | Float32Array | undefined, number][]) {
        if (!matrix) continue;
        const part = { present: 1, type, batch: 1, heads: 1, rows: queries, keys };
        for (const [member, value] of Object.entries(part)) numbers[`${name}.${member}`] = value;
        tensors.set(bindings[name], matrix);
    }
    if (alibi) tensors.set(bindings.alibi, alibi);
    return { numbers, tensors };
}

const flagAlibi = 4,
    flagSinks = 8; // FOVEA_FLAG_*
const alignTopLeft = 3; // FOVEA_ALIGN_TOP_LEFT

const pairs = ({ batch = 1, heads, queries, keys }: Weights["shape"]) => batch * heads * queries * keys;

export async function attention(
    q: Float32Array,
    k: Float32Array,
    v: Float32Array,
    options: AttentionOptions,
): Promise<AttentionResult> {
    const { numbers, tensors } = described(q, k, options);
    tensors.set(bindings.v, v);
    numbers.outputs = outputO | outputLse;
    if (options.sinks) {
        numbers.flags |= flagSinks;
        tensors.set(bindings.sinks, options.sinks);
    }
    const { dim, dimV = dim } = options.shape;
    const flops = 2 * (dim + dimV) * pairs(options.shape) * (options.causal ? 0.5 : 1);
    const { results, device } = await computed("attention", numbers, tensors, flops, options.device);
    return {
        o: new Float32Array(results.get(bindings.o)!),
        lse: new Float32Array(results.get(bindings.lse)!),
        device,
    };
}

export async function map(
    q: Float32Array,
    k: Float32Array,
    lse: Float32Array,
    options: MapOptions,
): Promise<MapResult> {
    const { numbers, tensors } = described(q, k, options);
    tensors.set(bindings.lse, lse);
    const { rows, keys, head, width, height, shape } = options;
    numbers["tile.width"] = width;
    numbers["tile.height"] = height;
    numbers["tile.outputs"] = 3; // mass and largest
    if (rows) [numbers["tile.first_row"], numbers["tile.row_count"]] = rows;
    if (keys) [numbers["tile.first_key"], numbers["tile.key_count"]] = keys;
    if (head !== undefined) {
        numbers["tile.first_head"] = head;
        numbers["tile.head_count"] = 1;
    }
    const flops = 2 * shape.dim * pairs(shape);
    const { results, device } = await computed("tile", numbers, tensors, flops, options.device);
    const none = 2n ** 64n - 1n; // marks a weight that is not finite
    return {
        mass: Float64Array.from(new BigUint64Array(results.get(tileBindings.mass)!), (units) =>
            units === none ? NaN : Number(units) * massUnit,
        ),
        max: new Float32Array(results.get(tileBindings.max)!),
        device,
    };
}

export async function merge(
    parts: { o: Float32Array; lse: Float32Array }[],
    { batch = 1, heads, queries, dimV }: MergeShape,
): Promise<{ o: Float32Array; lse: Float32Array }> {
    const joined = (arrays: Float32Array[]) => {
        const all = new Float32Array(arrays.reduce((count, array) => count + array.length, 0));
        arrays.reduce((at, array) => (all.set(array, at), at + array.length), 0);
        return all;
    };
    const tensors: Tensors = new Map([
        [mergeBindings.x, joined(parts.map((part) => part.o))],
        [mergeBindings.partLse, joined(parts.map((part) => part.lse))],
    ]);
    const numbers = { parts: parts.length, batch, heads, dim: dimV, len: queries };
    const results = (await engine()).onCpu("merge", numbers, tensors);
    return {
        o: new Float32Array(results.get(mergeBindings.y)!),
        lse: new Float32Array(results.get(mergeBindings.lse)!),
    };
}
