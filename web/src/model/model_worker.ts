// The thread that runs a reader's own model. It reads the model's files in place, piece by piece.
import type { ModelModule } from "./model_abi.ts";
import { makeHost, type ReadableFile } from "./model_host.ts";
import { ModelSession } from "./model_session.ts";
import type { ModelRequest } from "./model_protocol.ts";

// Exists only in Workers, so the page's declarations lack it.
declare class FileReaderSync {
    readAsArrayBuffer(blob: Blob): ArrayBuffer;
}
declare const MODEL_FOLDERS: Record<string, string>;

let session: ModelSession | null = null;

async function start(variant: string, threads: number): Promise<null> {
    const folder = MODEL_FOLDERS[variant] ?? MODEL_FOLDERS.simd;
    if (!folder) throw new Error("this site was built without the engine for models");
    const url = new URL(`../${folder}/model.mjs`, import.meta.url);
    const { default: create } = (await import(url.href)) as {
        default: (options: object) => Promise<ModelModule>;
    };
    let module: ModelModule | null = null;
    const host = makeHost(
        () => module!,
        (share) => self.postMessage({ progress: share }),
    );
    module = await create({ host, pthreadPoolSize: threads - 1 });
    session = new ModelSession(module, host);
    module._webModelStart(threads);
    return null;
}

const readable = (file: File): ReadableFile => {
    const reader = new FileReaderSync();
    return {
        size: file.size,
        read(first, size) {
            try {
                return new Uint8Array(reader.readAsArrayBuffer(file.slice(first, first + size)));
            } catch {
                return null; // changed or moved since it was chosen
            }
        },
    };
};

async function answer({ kind, ask }: ModelRequest): Promise<unknown> {
    const given = ask as never as Record<string, never>;
    if (kind === "start") return start(given.variant, given.threads);
    if (!session) throw new Error("the engine has not started");
    switch (kind) {
        case "open": {
            const { files, held } = ask as { files: File[]; held: number };
            return session.open(
                files.map((file) => ({ name: file.name, file: readable(file) })),
                held,
            );
        }
        case "run":
        case "row":
        case "map":
        case "sum":
            return session[kind](ask as never);
        case "next":
            return session.next(given.token);
        case "head":
        case "derive":
        case "why":
            return session[kind as "why"](given.layer, given.head, given.query, given.key);
    }
}

let queue = Promise.resolve();
self.addEventListener("message", (event: MessageEvent<ModelRequest>) => {
    queue = queue.then(async () => {
        const { id } = event.data;
        try {
            const found = await answer(event.data);
            const transfer = Object.values(found ?? {})
                .filter((value) => value instanceof Float32Array)
                .map(({ buffer }) => buffer as ArrayBuffer);
            self.postMessage({ id, answer: found }, { transfer });
        } catch (error) {
            const fatal = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
            self.postMessage({
                id,
                fatal,
                error: fatal
                    ? `the engine ended (${(error as Error).message}): most likely the browser gives it no more memory`
                    : error instanceof Error
                      ? error.message
                      : String(error),
            });
        }
    });
});
