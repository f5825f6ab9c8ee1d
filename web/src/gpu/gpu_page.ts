// The page's own use of a GPU: the deep zoom's forward pass and tiles, and timings. Loaded by the Worker when a reader asks
// for something that it is for (gpu_host.ts); what it computes is what the engine's CPU kernels would.
import type { CallModule } from "../engine/call_abi.ts";
import type { EngineModule } from "../engine/engine_abi.ts";
import { Gpu, GpuRefusal, kernelsOf, type Kernel } from "./gpu.ts";
import { Calls, bindings, flagCausal, outputO, tileBindings } from "./gpu_calls.ts";
import { checkResults } from "./gpu_check.ts";
import type { MapShown } from "../engine/protocol.ts";

export interface PageGpuOptions {
    software: boolean; // take an adapter that is a program: for tests
    damaged: boolean; // a result of the check is changed: for the test of what the page says then
}

interface Span {
    address: number;
    count: number;
}

// FLOPs of a slice: 2 to 20 ms on a GPU, and not seconds on a software adapter.
const sliceFlops = 2e9,
    softwareSliceFlops = 1e7;
const stepMs = 12; // how long a view may wait for a tile that it may not need

export class PageGpu {
    private inputs = new Map<number, GPUBuffer>(); // inputs of the map, by binding; lse is an input of its tiles
    private zeros: GPUBuffer | null = null;
    private forward = 0; // plan
    private nextSlice = 0;
    private tile: { plan: number; next: number; mass: GPUBuffer; max: GPUBuffer } | null = null;
    private slicesAtATime = 1;

    private constructor(
        private readonly calls: Calls,
        readonly gpu: Gpu,
        private readonly software: boolean,
    ) {}

    // Fails with the reason why there is none, or why it is not to be trusted.
    static async open(
        module: EngineModule & CallModule,
        kernels: URL,
        { software, damaged }: PageGpuOptions,
    ): Promise<PageGpu> {
        let table: Promise<Kernel[]> | null = null; // not fetched before there is a device
        const gpu = await Gpu.open(
            async (...what) => {
                table ??= fetch(kernels).then((reply) => reply.json());
                return kernelsOf(await table)(...what);
            },
            { fallback: software },
        );
        const calls = new Calls(module);
        await checkResults(calls, gpu, damaged ? (v) => (v[0] += 1) : undefined);
        return new PageGpu(calls, gpu, software);
    }

    private get module(): EngineModule & CallModule {
        return this.calls.module as EngineModule & CallModule;
    }
    private get sliceFlops(): number {
        return this.software ? softwareSliceFlops : sliceFlops;
    }

    // Another sequence: webMapBegin was called.
    mapBegin(): void {
        this.dropInputs();
        if (this.forward) this.module._webCallEnd(this.forward);
        this.forward = this.nextSlice = 0;
        this.endTile();
    }

    // As webMapPrepare: progress, 1 when done.
    async mapPrepare(): Promise<number> {
        const span = this.upload();
        if (!this.forward) {
            this.forward = this.calls.withLimits(this.gpu, (limits) =>
                this.module._webGpuMapForward(limits, this.sliceFlops),
            );
            if (!this.forward) throw new GpuRefusal(this.lastError());
        }
        const work = this.calls.work(this.forward);
        const buffers = new Map(this.inputs).set(bindings.v, this.values());
        this.nextSlice += await this.some(work, buffers, this.nextSlice);
        if (this.nextSlice < work.slices) return this.nextSlice / work.slices;
        const lse = await this.gpu.read(this.inputs.get(bindings.lse)!, 4 * span.count);
        this.module.HEAPF32.set(new Float32Array(lse), span.address / 4);
        return 1;
    }

    // lse does not depend on values: the keys are bound instead, or zeros if those are too few.
    private values(): GPUBuffer {
        const { bytes } = this.calls.info(this.forward).bindings.find((b) => b.number === bindings.v)!,
            keys = this.inputs.get(bindings.k)!;
        if (keys.size >= bytes) return keys;
        this.zeros ??= this.gpu.buffer(bytes);
        return this.zeros;
    }

    // q, k, the mask's data and lse stay on the device as long as the map. Returns the place of lse here.
    private upload(): Span {
        const { inputs, lse } = this.calls.json<{
            inputs: { binding: number; address: number; bytes: number }[];
            lse: Span;
        }>(this.module._webGpuMapTensors());
        if (this.inputs.size) return lse;
        const all = [...inputs, { binding: bindings.lse, address: lse.address, bytes: 4 * lse.count }];
        try {
            for (const { binding, address, bytes } of all)
                this.inputs.set(
                    binding,
                    this.gpu.buffer(bytes, this.module.HEAPU8.subarray(address, address + bytes)),
                );
        } catch (error) {
            this.dropInputs(); // all of them or none
            throw error;
        }
        return lse;
    }

    // As webMapStep; null where the view needs no tile.
    async mapStep(): Promise<MapShown | null> {
        if (this.tile && !this.module._webGpuMapTile()) this.endTile(); // a new view gave it up
        if (!this.tile) {
            this.upload();
            const plan = this.calls.withLimits(this.gpu, (limits) =>
                this.module._webGpuMapPlan(limits, this.sliceFlops),
            );
            const reason = plan ? "" : this.lastError();
            if (reason) throw new GpuRefusal(reason);
            if (!plan) return null;
            const sizes = new Map(this.calls.info(plan).bindings.map((b) => [b.number, b.bytes]));
            this.tile = {
                plan,
                next: 0,
                mass: this.gpu.buffer(sizes.get(tileBindings.mass) ?? 0),
                max: this.gpu.buffer(sizes.get(tileBindings.max) ?? 0),
            };
        }
        const { tile } = this,
            work = this.calls.work(tile.plan);
        const buffers = new Map(this.inputs)
            .set(tileBindings.mass, tile.mass)
            .set(tileBindings.max, tile.max);
        try {
            tile.next += await this.some(work, buffers, tile.next);
            if (tile.next < work.slices) return this.running().shown;
            for (const [name, buffer] of [
                ["mass", tile.mass],
                ["max", tile.max],
            ] as ["mass" | "max", GPUBuffer][]) {
                const { address, count } = this.running()[name];
                const bytes = await this.gpu.read(buffer, count * (name === "mass" ? 8 : 4));
                this.module.HEAPU8.set(new Uint8Array(bytes), address);
            }
            this.endTile();
            return this.calls.json<MapShown>(this.module._webGpuMapStore());
        } catch (error) {
            this.endTile();
            this.module._webGpuMapGiveUp();
            throw error;
        }
    }

    // Seconds of one causal call, the best of `repeats`; inputs stay on the device.
    async bench(heads: number, tokens: number, dim: number, repeats: number): Promise<number> {
        const numbers = { batch: 1, heads_q: heads, heads_kv: heads, dim_qk: dim, dim_v: dim };
        const plan = this.calls.plan(
            "attention",
            { ...numbers, len_q: tokens, len_kv: tokens, flags: flagCausal, outputs: outputO },
            this.gpu,
        );
        const buffers = new Map<number, GPUBuffer>();
        try {
            const work = this.calls.work(plan);
            for (const { number, bytes, written } of this.calls.info(plan).bindings) {
                const values = written ? undefined : new Float32Array(bytes / 4);
                values?.forEach(
                    (_, n) => (values[n] = ((Math.imul(n, 2654435761) >>> 8) & 0xffff) / 32768 - 1),
                );
                buffers.set(number, this.gpu.buffer(bytes, values));
            }
            await this.gpu.run(work, buffers); // makes the pipeline
            let best = Infinity;
            for (let n = 0; n < repeats; ++n) {
                const begin = performance.now();
                await this.gpu.run(work, buffers);
                best = Math.min(best, (performance.now() - begin) / 1000);
            }
            return best;
        } finally {
            for (const buffer of buffers.values()) buffer.destroy();
            this.module._webCallEnd(plan);
        }
    }

    close(): void {
        this.mapBegin();
        this.gpu.close();
    }

    private lastError(): string {
        return this.module.UTF8ToString(this.module._webError());
    }

    private running(): { shown: MapShown; mass: Span; max: Span } {
        return this.calls.json(this.module._webGpuMapTile());
    }

    // Slices for about stepMs; how many.
    private async some(
        work: { slices: number; words(slice: number): Uint32Array },
        buffers: Map<number, GPUBuffer>,
        first: number,
    ): Promise<number> {
        const count = Math.min(this.slicesAtATime, work.slices - first);
        if (count <= 0) return 0;
        const begin = performance.now();
        await this.gpu.run(work, buffers, { first, count });
        const ms = performance.now() - begin;
        if (ms < stepMs / 2 && count === this.slicesAtATime) this.slicesAtATime *= 2;
        else if (ms > 2 * stepMs) this.slicesAtATime = Math.max(1, this.slicesAtATime >> 1);
        return count;
    }

    private dropInputs(): void {
        this.zeros?.destroy();
        this.zeros = null;
        for (const buffer of this.inputs.values()) buffer.destroy();
        this.inputs.clear();
    }

    private endTile(): void {
        if (!this.tile) return;
        this.tile.mass.destroy();
        this.tile.max.destroy();
        this.module._webCallEnd(this.tile.plan);
        this.tile = null;
    }
}
