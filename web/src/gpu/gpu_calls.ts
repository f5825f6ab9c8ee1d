// Calls by number: planned by the engine's module, run on a GPU by gpu.ts or on the CPU by the module itself. fovea.h
// documents the calls; this file names their fields and their buffers. It does not depend on a page.
import type { CallModule } from "../engine/call_abi.ts";
import { allocate } from "../engine/memory.ts";
import type { Gpu } from "./gpu.ts";
import { GpuRefusal } from "./gpu.ts";

export const bindings = { q: 0, k: 1, v: 2, o: 3, mask: 4, bias: 5, alibi: 7, sinks: 8, lse: 11 } as const;
export const tileBindings = { mass: 23, max: 24 } as const;
export const mergeBindings = { x: 17, y: 18, partLse: 33, lse: 11 } as const;
export const outputO = 1,
    outputLse = 2; // FOVEA_OUTPUT_*
export const flagCausal = 1,
    flagWindow = 2; // FOVEA_FLAG_*

export type Operation = "attention" | "tile" | "merge";
const operations: Operation[] = ["attention", "tile", "merge"];
export type Numbers = Record<string, number>;

export interface CallInfo {
    kernel: string;
    reason: string;
    slices: number;
    flops: number;
    bindings: { number: number; bytes: number; tensor: number; written: number }[];
}

// Tensors by the number of their binding. Results: the bytes of each binding that the call writes.
export type Tensors = Map<number, ArrayBufferView>;
export type Results = Map<number, ArrayBuffer>;

const bindingCount = 48; // FOVEA_BIND_COUNT

// The engine takes NaN for what is not given, and would make another number of what a field does not hold.
const floats = /^(scale|softcap|dropout_p)$/,
    wide = /len|strides|offset|window|seed|page|row|key|first|cost|limit/; // names of 64-bit fields
function isHeld(name: string, value: unknown): boolean {
    if (typeof value !== "number") return false;
    if (floats.test(name)) return Number.isFinite(Math.fround(value)) && !(value && !Math.fround(value));
    return Number.isSafeInteger(value) && (wide.test(name) || (value >= 0 && value < 2 ** 32));
}

export class Calls {
    private fields = new Map<number, string[]>();
    constructor(readonly module: CallModule & { _webError(): number }) {}

    fail(): never {
        throw new Error(this.module.UTF8ToString(this.module._webError()) || "the engine refused");
    }
    json<T>(address: number): T {
        if (!address) this.fail();
        return JSON.parse(this.module.UTF8ToString(address)) as T;
    }

    // An array of values in the engine's memory for the time of one call.
    private withNumbers<T>(numbers: number[] | null, use: (address: number) => T): T {
        if (!numbers) return use(0);
        const address = allocate(this.module, 8 * numbers.length);
        try {
            this.module.HEAPU8.set(new Uint8Array(Float64Array.from(numbers).buffer), address);
            return use(address);
        } finally {
            this.module._free(address);
        }
    }

    withLimits<T>(gpu: Gpu, use: (address: number) => T): T {
        const { storageBuffers, workgroupThreads, workgroupBytes, workgroups, storageRange } = gpu.limits;
        return this.withNumbers(
            [storageBuffers, workgroupThreads, workgroupBytes, workgroups, storageRange],
            use,
        );
    }

    // The plan's number. Fails with the reason why there is none.
    plan(operation: Operation, numbers: Numbers, gpu: Gpu | null): number {
        const index = operations.indexOf(operation);
        let names = this.fields.get(index);
        if (!names) this.fields.set(index, (names = this.json<string[]>(this.module._webCallFields(index))));
        for (const [name, value] of Object.entries(numbers)) {
            if (!names.includes(name))
                throw new Error(`${name} is not a field of ${operation}; its fields are ${names.join(", ")}`);
            if (!isHeld(name, value))
                throw new Error(
                    `${name} is ${value}; it must be ${floats.test(name) ? "a number that float32 holds" : "an integer that the field holds"}`,
                );
        }
        const values = names.map((name) => numbers[name] ?? NaN);
        const plan = this.withNumbers(values, (address) =>
            gpu
                ? this.withLimits(gpu, (limits) => this.module._webCallPlan(index, address, limits))
                : this.module._webCallPlan(index, address, 0),
        );
        if (!plan) this.fail();
        return plan;
    }
    info(plan: number): CallInfo {
        return this.json<CallInfo>(this.module._webCallInfo(plan));
    }
    // The slices of a GPU's plan, as Gpu.run takes them.
    work(plan: number): { slices: number; words(slice: number): Uint32Array } {
        return {
            slices: this.info(plan).slices,
            words: (slice) => {
                const address = this.module._webCallSlice(plan, slice);
                if (!address) throw new GpuRefusal(this.module.UTF8ToString(this.module._webError()));
                const heap = new Uint32Array(this.module.HEAPU8.buffer);
                return heap.slice(address / 4 + 1, address / 4 + 1 + heap[address / 4]);
            },
        };
    }

    onCpu(operation: Operation, numbers: Numbers, tensors: Tensors): Results {
        const plan = this.plan(operation, numbers, null),
            held: number[] = [];
        try {
            const { bindings } = this.info(plan);
            const addresses = new Uint32Array(bindingCount);
            for (const { number, bytes } of bindings) {
                addresses[number] = allocate(this.module, bytes + 16);
                held.push(addresses[number]);
            }
            for (const { number, tensor, written } of bindings)
                if (!written) this.module.HEAPU8.set(bytesOf(tensors, number, tensor), addresses[number]);
            const list = allocate(this.module, addresses.byteLength);
            held.push(list);
            this.module.HEAPU8.set(new Uint8Array(addresses.buffer), list);
            if (!this.module._webCallRun(plan, list)) this.fail();
            return new Map(
                bindings
                    .filter((binding) => binding.written)
                    .map(({ number, tensor }) => [
                        number,
                        this.module.HEAPU8.slice(addresses[number], addresses[number] + tensor)
                            .buffer as ArrayBuffer,
                    ]),
            );
        } finally {
            for (const address of held) this.module._free(address);
            this.module._webCallEnd(plan);
        }
    }

    async onGpu(operation: Operation, numbers: Numbers, tensors: Tensors, gpu: Gpu): Promise<Results> {
        const plan = this.plan(operation, numbers, gpu),
            buffers = new Map<number, GPUBuffer>();
        try {
            const { bindings } = this.info(plan);
            for (const { number, bytes, tensor, written } of bindings)
                buffers.set(
                    number,
                    gpu.buffer(bytes, written ? undefined : bytesOf(tensors, number, tensor)),
                );
            await gpu.run(this.work(plan), buffers);
            const results: Results = new Map();
            for (const { number, tensor, written } of bindings)
                if (written) results.set(number, await gpu.read(buffers.get(number)!, tensor));
            return results;
        } finally {
            for (const buffer of buffers.values()) buffer.destroy();
            this.module._webCallEnd(plan);
        }
    }
}

function bytesOf(tensors: Tensors, number: number, bytes: number): Uint8Array {
    const view = tensors.get(number);
    if (!view && bytes) throw new Error(`binding ${number} is missing; the call needs ${bytes} bytes there`);
    if (!view) return new Uint8Array(0);
    if (view.byteLength !== bytes)
        throw new Error(`binding ${number} has ${view.byteLength} bytes; the call needs ${bytes}`);
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
