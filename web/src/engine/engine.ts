// The page's side of the Worker: requests as promises, and what happens when the Worker dies.
import { setTables } from "../page/colors.ts";
import type { EngineInfo, Kind, Reply, Request, Requests } from "./protocol.ts";

declare const WORKER_FILE: string;
declare const WORKER_TEXT: string; // the Worker itself, in the page that is one file

// From a disk, browsers run no Worker that is a module.
const openWorker = () =>
    WORKER_TEXT
        ? new Worker(URL.createObjectURL(new Blob([WORKER_TEXT], { type: "text/javascript" })))
        : new Worker(new URL(WORKER_FILE, import.meta.url), { type: "module", name: "fovea-engine" });

export class Engine {
    private worker: Worker | null = null;
    private nextId = 1;
    private waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
    info: EngineInfo | null = null;
    onDeath: (reason: string) => void = () => {};
    onGpu: () => void = () => {};

    // Something was asked that is not answered yet.
    get busy(): boolean {
        return this.waiting.size > 0;
    }

    async start(engine: string, task: string): Promise<EngineInfo> {
        this.stop("restarted");
        const worker = openWorker();
        this.worker = worker;
        worker.addEventListener("message", (event: MessageEvent<Reply>) => this.settle(event.data));
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.died(worker, event.message || "the Worker could not be loaded");
        });
        const lock = `fovea-${Date.now()}-${Math.random()}`;
        this.info = await this.ask("start", { engine, lock, task });
        setTables(this.info.tables);
        navigator.locks?.request(lock, () => this.died(worker, "the Worker ended"));
        return this.info;
    }

    ask<K extends Kind>(kind: K, ask: Requests[K]["ask"]): Promise<Requests[K]["answer"]> {
        return new Promise((resolve, reject) => {
            if (!this.worker) {
                reject(new Error("the engine is not running; reload the page"));
                return;
            }
            const request: Request<K> = { id: this.nextId++, kind, ask };
            this.worker.postMessage(request);
            this.waiting.set(request.id, { resolve, reject });
        });
    }

    // Asks if a GPU is used now, after work that could have used one.
    async lookAtGpu(): Promise<void> {
        const gpu = await this.ask("gpu", null);
        if (!this.info) return;
        this.info.gpu = gpu;
        this.onGpu();
    }

    stop(reason: string): void {
        this.worker?.terminate();
        this.worker = null;
        this.info = null;
        for (const { reject } of this.waiting.values()) reject(new Error(reason));
        this.waiting.clear();
    }

    private settle(reply: Reply): void {
        const waiting = this.waiting.get(reply.id);
        this.waiting.delete(reply.id);
        if (reply.fatal && this.worker) {
            waiting?.reject(new Error(reply.error));
            this.died(this.worker, reply.error ?? "");
            return;
        }
        if (reply.error === undefined) waiting?.resolve(reply.answer as never);
        else waiting?.reject(new Error(reply.error));
    }

    private died(worker: Worker, reason: string): void {
        if (worker !== this.worker) return;
        this.stop(reason);
        this.onDeath(reason);
    }
}
