// The Worker's side of the GPU: loads gpu_page.ts when something is asked for that a GPU is good for, and says why there is
// none. Whatever the GPU does not do, the CPU engine does: a reader sees the same values, later.
import type { CallModule } from "../engine/call_abi.ts";
import type { EngineModule } from "../engine/engine_abi.ts";
import type { GpuState } from "../engine/protocol.ts";
import type { PageGpu, PageGpuOptions } from "./gpu_page.ts";

declare const GPU_FILE: string; // "" in the page that is one file
declare const KERNELS_FILE: string;

// ?engine= of these asks for the GPU, and of wasm for none.
export const gpuEngines = ["webgpu", "webgpu-software", "webgpu-damaged"];

export class GpuHost {
    state: GpuState = { name: "", reason: "" };
    private page: PageGpu | null = null;
    private losses = 0;
    private readonly options: PageGpuOptions;

    constructor(
        private readonly module: EngineModule,
        private readonly wanted: string,
    ) {
        const tests = wanted === "webgpu-software" || wanted === "webgpu-damaged";
        this.options = { software: tests, damaged: wanted === "webgpu-damaged" };
        if (wanted === "wasm") this.state.reason = "the address asks for WebAssembly (engine=wasm)";
        else if (!GPU_FILE) this.state.reason = "a page of one file computes on the processor";
    }

    // Runs `work` on the GPU; undefined where the CPU must. A device that is lost once is an accident (a driver that was
    // restarted, a laptop that slept): the work begins again on a new one.
    async use<T>(work: (gpu: PageGpu) => Promise<T>): Promise<T | undefined> {
        while (!this.state.reason) {
            if (!this.page) await this.open();
            const { page } = this;
            if (!page) break;
            try {
                return await work(page);
            } catch (error) {
                const { name, message } = error as Error;
                if (name === "GpuRefusal") return undefined; // only this call
                this.page = null;
                page.close();
                this.losses += 1;
                this.state = {
                    name: "",
                    reason: this.losses > 1 ? `the GPU was lost twice: ${message}` : "",
                };
            }
        }
        return undefined;
    }

    private async open(): Promise<void> {
        try {
            if (!(navigator as { gpu?: GPU }).gpu) throw new Error("this browser has no WebGPU");
            const { PageGpu } = (await import(new URL(GPU_FILE, import.meta.url).href)) as {
                PageGpu: typeof import("./gpu_page.ts").PageGpu;
            };
            this.page = await PageGpu.open(
                this.module as EngineModule & CallModule,
                new URL(KERNELS_FILE, import.meta.url),
                this.options,
            );
            this.state = { name: this.page.gpu.name, reason: "" };
        } catch (error) {
            this.state = { name: "", reason: (error as Error).message };
        }
    }

    // With ?engine=webgpu the page wants to know at once.
    async require(): Promise<void> {
        if (!gpuEngines.includes(this.wanted)) return;
        await this.use(async () => null);
    }
}
