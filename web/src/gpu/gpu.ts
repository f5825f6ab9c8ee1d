// Plays plans on a WebGPU device: the dispatches that the engine's Vulkan planner cut a call into (as words, see
// web/engine/gpu_plan.hpp), with the kernels that web/tools/wgsl.mjs made of Fovea's shaders. It knows nothing of
// attention. Used by the page's Worker, by the package in web/npm and by the tests, so it touches no page.

import { FOVEA_BIND_WORKSPACE } from "../engine/fovea_abi.ts";

// One kernel: a module (its number in shaders/variants.def), constants, and the flags that its dispatches may have.
export interface Kernel {
    shader: number;
    name: string;
    constants: number[];
    flags: number;
    slots: number[]; // slots that its code declares in group 0
    code: string;
}
// Null where there is none.
export type FindKernel = (shader: number, constants: number[], flags: number) => Promise<Kernel | null>;

// The device cannot run this call as it was planned, and the CPU can.
export class GpuRefusal extends Error {
    override name = "GpuRefusal";
}

// The limits that plans depend on, as in web/engine/gpu_plan.hpp.
export interface GpuPlanLimits {
    storageBuffers: number;
    workgroupThreads: number;
    workgroupBytes: number;
    workgroups: number;
    storageRange: number;
}

// `words` gives the dispatches of a slice; slices may run in any order.
export interface GpuWork {
    slices: number;
    words(slice: number): Uint32Array;
}

export interface GpuRunOptions {
    first?: number; // slice
    count?: number;
    progress?: (share: number) => void; // 0..1 of the slices that this call runs
    signal?: AbortSignal; // ends the call between two slices
}

const upTo = (bytes: number, step: number) => Math.ceil(bytes / step) * step; // beyond 32 bits too
const recordBytes = 256; // size of one dispatch's push constants, a valid offset of uniform buffers
const slicesAhead = 2; // submitted and not yet known to be done: the device never waits for the script

interface Binding {
    slot: number;
    source: number;
    written: boolean;
    offset: number;
    size: number;
}
interface Dispatch {
    shader: number;
    flags: number;
    groups: [number, number, number];
    constants: number[];
    push: Uint32Array;
    bindings: Binding[];
}

function dispatchesOf(words: Uint32Array): Dispatch[] {
    const dispatches: Dispatch[] = [];
    let at = 0;
    const next = () => words[at++];
    const counted = () => {
        const count = next();
        at += count;
        return words.slice(at - count, at);
    };
    while (at < words.length) {
        const shader = next(),
            flags = next();
        const groups: [number, number, number] = [next(), next(), next()];
        const constants = [...counted()],
            push = counted();
        const bindings = Array.from({ length: next() }, () => {
            const [slot, source, written, offset, size] = [next(), next(), next(), next(), next()];
            return { slot, source, written: written !== 0, offset, size };
        });
        dispatches.push({ shader, flags, groups, constants, push, bindings });
    }
    return dispatches;
}

const same = (a: number[], b: number[]) => {
    const length = Math.max(a.length, b.length); // a constant that is not given is 0
    for (let n = 0; n < length; ++n) if ((a[n] ?? 0) !== (b[n] ?? 0)) return false;
    return true;
};

// Looks kernels up in a table: the one with the fewest flags that allows what the dispatch asks for.
export const kernelsOf =
    (table: Kernel[]): FindKernel =>
    async (shader, constants, flags) => {
        const able = table.filter(
            (kernel) =>
                kernel.shader === shader &&
                same(kernel.constants, constants) &&
                (flags & ~kernel.flags) === 0,
        );
        const bits = (n: number) => n.toString(2).replaceAll("0", "").length;
        return able.sort((a, b) => bits(a.flags >>> 0) - bits(b.flags >>> 0))[0] ?? null;
    };

interface Pipeline {
    pipeline: GPUComputePipeline;
    kernel: Kernel;
    hasPush: boolean;
}

const usage = { storage: 0x80 | 0x4 | 0x8, uniform: 0x40 | 0x8, read: 0x1 | 0x8 }; // GPUBufferUsage, not in node

export class Gpu {
    readonly limits: GpuPlanLimits;
    // Why the device went, once it has.
    readonly lost: Promise<string>;
    private gone = "";
    private pipelines = new Map<string, Promise<Pipeline>>();
    private placeholders = new Map<number, GPUBuffer>();
    private workspace = new Map<number, GPUBuffer>(); // by the first byte of a region
    private used = new Set<number>(); // regions of the run that goes on
    private last: Promise<unknown> = Promise.resolve(); // run
    private records: GPUBuffer[] = [];

    private constructor(
        readonly device: GPUDevice,
        readonly name: string,
        private findKernel: FindKernel,
    ) {
        const limits = device.limits;
        this.limits = {
            storageBuffers: limits.maxStorageBuffersPerShaderStage,
            workgroupThreads: limits.maxComputeInvocationsPerWorkgroup,
            workgroupBytes: limits.maxComputeWorkgroupStorageSize,
            workgroups: limits.maxComputeWorkgroupsPerDimension,
            storageRange: limits.maxStorageBufferBindingSize - (limits.maxStorageBufferBindingSize % 256),
        };
        this.lost = device.lost.then(
            (info) => (this.gone = info.message || info.reason || "the device was lost"),
        );
    }

    // Opens a separate device with as many of the adapter's limits as calls need. Fails with the reason. `fallback`:
    // accept a software adapter, which is slower than the CPU engine, for tests. `storageBuffers` asks for fewer.
    static async open(
        findKernel: FindKernel,
        {
            gpu,
            fallback = false,
            storageBuffers,
        }: { gpu?: GPU; fallback?: boolean; storageBuffers?: number } = {},
    ): Promise<Gpu> {
        const entry = gpu ?? (globalThis.navigator as Navigator | undefined)?.gpu;
        if (!entry) throw new Error("this browser has no WebGPU");
        const adapter = await entry.requestAdapter({ powerPreference: "high-performance" });
        if (!adapter) throw new Error("WebGPU found no GPU");
        const info = adapter.info;
        if (info?.isFallbackAdapter && !fallback)
            throw new Error("only a software WebGPU adapter is available");
        const most = adapter.limits.maxStorageBuffersPerShaderStage;
        const device = await adapter.requestDevice({
            label: "fovea",
            requiredLimits: {
                maxStorageBuffersPerShaderStage: Math.min(most, storageBuffers ?? 16),
                maxStorageBufferBindingSize: adapter.limits.maxStorageBufferBindingSize,
                maxBufferSize: adapter.limits.maxBufferSize,
            },
        });
        const name = [info?.vendor, info?.architecture, info?.description].filter(Boolean).join(" ");
        return new Gpu(device, name || "GPU", findKernel);
    }

    // Makes a buffer that plans may bind, with the bytes of `data` at its begin and zeros after them.
    buffer(bytes: number, data?: ArrayBufferView): GPUBuffer {
        const size = Math.max(16, upTo(bytes, 16));
        if (size > this.device.limits.maxBufferSize)
            throw new GpuRefusal(
                `a buffer of ${size} bytes is needed; the GPU's limit is ${this.device.limits.maxBufferSize}`,
            );
        const buffer = this.device.createBuffer({ size, usage: usage.storage });
        if (data) this.write(buffer, data);
        return buffer;
    }

    write(buffer: GPUBuffer, data: ArrayBufferView): void {
        const whole = data.byteLength - (data.byteLength % 4);
        const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
        if (whole) this.device.queue.writeBuffer(buffer, 0, bytes.subarray(0, whole) as never);
        if (whole === data.byteLength) return;
        const rest = new Uint8Array(4);
        rest.set(bytes.subarray(whole));
        this.device.queue.writeBuffer(buffer, whole, rest as never);
    }

    // The first `bytes` of a buffer, after all that was submitted.
    async read(buffer: GPUBuffer, bytes: number): Promise<ArrayBuffer> {
        const size = upTo(bytes, 4);
        const copy = this.device.createBuffer({ size: Math.max(4, size), usage: usage.read });
        try {
            const encoder = this.device.createCommandEncoder();
            if (size) encoder.copyBufferToBuffer(buffer, 0, copy, 0, size);
            this.device.queue.submit([encoder.finish()]);
            await this.orLost(copy.mapAsync(1));
            return copy.getMappedRange().slice(0, bytes);
        } finally {
            copy.destroy();
        }
    }

    // Runs slices of a plan. `buffers`: by FoveaBinding, as many bytes as the plan asks for. Fails with what the device
    // says; then the outputs hold anything. Runs take turns, as they share error scopes and workspace.
    async run(work: GpuWork, buffers: Map<number, GPUBuffer>, options: GpuRunOptions = {}): Promise<void> {
        const run = this.last.then(() => this.play(work, buffers, options));
        this.last = run.catch(() => {});
        return run;
    }

    private async play(
        work: GpuWork,
        buffers: Map<number, GPUBuffer>,
        options: GpuRunOptions,
    ): Promise<void> {
        this.used.clear();
        const first = options.first ?? 0,
            end = Math.min(work.slices, first + (options.count ?? work.slices));
        const waiting: Promise<unknown>[] = [];
        this.device.pushErrorScope("validation");
        this.device.pushErrorScope("out-of-memory");
        let failure: unknown;
        try {
            for (let slice = first; slice < end; ++slice) {
                options.signal?.throwIfAborted();
                if (waiting.length >= slicesAhead) await this.orLost(waiting.shift()!);
                await this.submit(dispatchesOf(work.words(slice)), buffers, slice % (slicesAhead + 1));
                waiting.push(this.device.queue.onSubmittedWorkDone());
                options.progress?.((slice + 1 - first) / (end - first));
            }
            for (const done of waiting) await this.orLost(done);
        } catch (error) {
            failure = error;
        }
        const memory = await this.device.popErrorScope().catch(() => null),
            invalid = await this.device.popErrorScope().catch(() => null);
        for (const [begin, buffer] of this.workspace)
            if (!this.used.has(begin)) {
                buffer.destroy();
                this.workspace.delete(begin);
            }
        if (this.gone) throw new Error(this.gone);
        if (failure) throw failure;
        if (memory ?? invalid) throw new Error((memory ?? invalid)!.message);
    }

    // Makes the pipelines of a slice, which may take seconds, without running it.
    async prepare(words: Uint32Array): Promise<void> {
        await Promise.all(dispatchesOf(words).map((dispatch) => this.pipelineOf(dispatch)));
    }

    close(): void {
        this.device.destroy();
    }

    private async orLost<T>(what: Promise<T>): Promise<T> {
        const lost = this.lost.then((reason) => {
            throw new Error(reason);
        });
        return Promise.race([what, lost]);
    }

    private async pipelineOf(dispatch: Dispatch): Promise<Pipeline> {
        const { shader, constants, flags } = dispatch;
        const kernel = await this.findKernel(shader, constants, flags);
        if (!kernel)
            throw new GpuRefusal(
                `this page has no kernel for shader ${shader}, constants ${constants.join()}, flags ${flags}`,
            );
        const key = `${shader} ${kernel.constants.join()} ${kernel.flags}`;
        let made = this.pipelines.get(key);
        if (!made) {
            made = this.makePipeline(kernel);
            this.pipelines.set(key, made);
            made.catch(() => this.pipelines.delete(key));
        }
        return made;
    }

    private async makePipeline(kernel: Kernel): Promise<Pipeline> {
        if (kernel.slots.length > this.limits.storageBuffers)
            throw new GpuRefusal(
                `${kernel.name} binds ${kernel.slots.length} storage buffers; the GPU's limit is ${this.limits.storageBuffers}`,
            );
        const module = this.device.createShaderModule({ code: kernel.code, label: kernel.name });
        const wrong = (await module.getCompilationInfo()).messages.find(
            (message) => message.type === "error",
        );
        if (wrong) throw new Error(`${kernel.name}, line ${wrong.lineNum}: ${wrong.message}`);
        const pipeline = await this.orLost(
            this.device.createComputePipelineAsync({
                label: kernel.name,
                layout: "auto",
                compute: { module, entryPoint: "main" },
            }),
        );
        return { pipeline, kernel, hasPush: kernel.code.includes("@group(1)") };
    }

    private async submit(
        dispatches: Dispatch[],
        buffers: Map<number, GPUBuffer>,
        turn: number,
    ): Promise<void> {
        const { device } = this;
        const pipelines = await Promise.all(dispatches.map((dispatch) => this.pipelineOf(dispatch)));
        const regions = this.regionsOf(dispatches);
        const records = this.recordsOf(dispatches, turn);
        const encoder = device.createCommandEncoder(),
            pass = encoder.beginComputePass();
        dispatches.forEach((dispatch, n) => {
            const { pipeline, kernel, hasPush } = pipelines[n];
            const entries = kernel.slots.map((slot) => {
                const binding = dispatch.bindings.find((b) => b.slot === slot);
                const resource = binding ? this.resource(binding, regions, buffers) : this.placeholder(slot);
                return { binding: slot, resource };
            });
            pass.setPipeline(pipeline);
            pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
            if (hasPush)
                pass.setBindGroup(
                    1,
                    device.createBindGroup({
                        layout: pipeline.getBindGroupLayout(1),
                        entries: [
                            {
                                binding: 0,
                                resource: {
                                    buffer: records,
                                    offset: recordBytes * n,
                                    size: upTo(4 * dispatch.push.length, 16),
                                },
                            },
                        ],
                    }),
                );
            pass.dispatchWorkgroups(...dispatch.groups);
        });
        pass.end();
        device.queue.submit([encoder.finish()]);
    }

    // Overlapping ranges of the workspace become one buffer, others separate ones: WebGPU rejects a buffer that one
    // dispatch both reads and writes.
    private regionsOf(dispatches: Dispatch[]): { begin: number; end: number; buffer: GPUBuffer }[] {
        const ranges = dispatches
            .flatMap((dispatch) => dispatch.bindings)
            .filter((binding) => binding.source === FOVEA_BIND_WORKSPACE)
            .map(({ offset, size }) => ({ begin: offset, end: offset + size }))
            .sort((a, b) => a.begin - b.begin);
        const merged: { begin: number; end: number }[] = [];
        for (const range of ranges) {
            const last = merged.at(-1);
            if (last && range.begin < last.end) last.end = Math.max(last.end, range.end);
            else merged.push({ ...range });
        }
        return merged.map(({ begin, end }) => {
            const size = upTo(end - begin, 256); // a struct before a run-time array may be larger than what is bound
            this.used.add(begin);
            let buffer = this.workspace.get(begin);
            if (!buffer || buffer.size < size) {
                buffer?.destroy();
                buffer = this.buffer(size);
                this.workspace.set(begin, buffer);
            }
            return { begin, end, buffer };
        });
    }

    // Binds a slot that a kernel declares and this dispatch does not use.
    private placeholder(slot: number): GPUBufferBinding {
        let buffer = this.placeholders.get(slot);
        if (!buffer) this.placeholders.set(slot, (buffer = this.buffer(256)));
        return { buffer };
    }

    private resource(
        binding: Binding,
        regions: { begin: number; end: number; buffer: GPUBuffer }[],
        buffers: Map<number, GPUBuffer>,
    ): GPUBufferBinding {
        if (binding.source === FOVEA_BIND_WORKSPACE) {
            const region = regions.find(({ begin, end }) => binding.offset >= begin && binding.offset < end)!;
            return {
                buffer: region.buffer,
                offset: binding.offset - region.begin,
                size: Math.min(upTo(binding.size, 256), region.buffer.size - (binding.offset - region.begin)),
            };
        }
        const buffer = buffers.get(binding.source);
        if (!buffer) throw new Error(`binding ${binding.source} has no buffer`);
        const size = Math.min(upTo(binding.size, 16), buffer.size - binding.offset);
        return { buffer, offset: binding.offset, size };
    }

    // Push constants of a slice's dispatches. A buffer for each slice that may be on its way.
    private recordsOf(dispatches: Dispatch[], turn: number): GPUBuffer {
        const bytes = recordBytes * dispatches.length;
        let buffer = this.records[turn];
        if (!buffer || buffer.size < bytes) {
            buffer?.destroy();
            buffer = this.device.createBuffer({ size: bytes, usage: usage.uniform });
            this.records[turn] = buffer;
        }
        const words = new Uint32Array(bytes / 4);
        dispatches.forEach((dispatch, n) => words.set(dispatch.push, (recordBytes / 4) * n));
        this.device.queue.writeBuffer(buffer, 0, words);
        return buffer;
    }
}
