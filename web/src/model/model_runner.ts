import type { App } from "../app/app.ts";
import type { ModelConfig, ModelKind, ModelRequests } from "./model_protocol.ts";

declare const MODEL_WORKER_FILE: string;

// Larger files are read again, layer by layer, for every run.
const heldBytes = 1 << 30;
export const stopped = "stopped";

// The engine of models in its Worker, with the files that it has open.
export class Runner {
    private files: File[] = [];
    private started = false; // an engine has the files open
    private worker: Worker | null = null;
    private nextId = 1;
    private readonly waiting = new Map<
        number,
        { resolve: (value: never) => void; reject: (e: Error) => void }
    >();
    onProgress: (share: number) => void = () => {};

    constructor(private readonly app: App) {}

    open(files: File[]): Promise<ModelConfig> {
        this.stop();
        this.files = files;
        return this.begin();
    }
    // After a stop, the files are opened again.
    async ready(): Promise<void> {
        if (!this.started) await this.begin();
    }
    stop(): void {
        this.started = false;
        this.end(stopped);
    }
    private async begin(): Promise<ModelConfig> {
        const { info } = this.app.engine,
            open = async (held: number) => {
                await this.ask("start", { variant: info?.variant ?? "simd", threads: info?.threads ?? 1 });
                return this.ask("open", { files: this.files, held });
            };
        // A phone's browser may end the engine that asks for so much: what is not held needs a layer's memory.
        const config = await open(heldBytes).catch((error: Error) => {
            if (this.worker || error.message === stopped) throw error;
            return open(0);
        });
        this.started = true;
        return config;
    }
    ask<K extends ModelKind>(kind: K, ask: ModelRequests[K]["ask"]): Promise<ModelRequests[K]["answer"]> {
        this.worker ??= this.create();
        return new Promise((resolve, reject) => {
            this.worker!.postMessage({ id: this.nextId, kind, ask });
            this.waiting.set(this.nextId++, { resolve, reject });
        });
    }
    private create(): Worker {
        const worker = new Worker(new URL(MODEL_WORKER_FILE, import.meta.url), {
            type: "module",
            name: "fovea-model",
        });
        worker.addEventListener("message", ({ data }) => {
            if (data.progress !== undefined) return this.onProgress(data.progress);
            const waiting = this.waiting.get(data.id);
            this.waiting.delete(data.id);
            if (data.fatal) this.end(data.error);
            if (data.error) waiting?.reject(new Error(data.error));
            else waiting?.resolve(data.answer as never);
        });
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.end(event.message || "the engine for models could not be loaded");
        });
        return worker;
    }
    // A run knows nothing of wishes while it computes: its thread is ended, and another one begun.
    private end(reason: string): void {
        this.worker?.terminate();
        this.worker = null;
        for (const { reject } of this.waiting.values()) reject(new Error(reason));
        this.waiting.clear();
    }
}
