// The playground's thread: training runs here, so that the page and its other engine stay quick.
import type { TrainModule } from "./train_abi.ts";
import type { Probe, TrainRequest } from "./train_protocol.ts";

declare const TRAIN_FOLDER: string;

let module: Promise<TrainModule> | null = null;

async function load(): Promise<TrainModule> {
    const url = new URL(`../${TRAIN_FOLDER}/train.mjs`, import.meta.url);
    const { default: create } = (await import(url.href)) as { default: () => Promise<TrainModule> };
    return create();
}

async function answer({ kind, ask }: TrainRequest): Promise<unknown> {
    const engine = await (module ??= load());
    const given = ask as never as Record<string, never>;
    const texts: number[] = [];
    const text = (value: string) => {
        texts.push(engine.stringToNewUTF8(value));
        return texts.at(-1)!;
    };
    const call = () => {
        switch (kind) {
            case "open":
                return engine._webTrainOpen(text(given.place));
            case "step":
                return engine._webTrainStep(given.count);
            case "seek":
                return engine._webTrainSeek(given.step);
            case "evaluate":
                return engine._webTrainEvaluate(given.off);
            case "probe":
                return engine._webTrainProbe(text(given.tokens), given.off);
        }
    };
    try {
        const address = call();
        if (!address) throw new Error(engine.UTF8ToString(engine._webTrainError()));
        const found = JSON.parse(engine.UTF8ToString(address));
        if (kind !== "probe") return found;
        const { address: at, count, ...rest } = found;
        return { ...rest, weights: engine.HEAPF32.slice(at / 4, at / 4 + count) } as Probe;
    } finally {
        for (const held of texts) engine._free(held);
    }
}

let queue = Promise.resolve();
self.addEventListener("message", (event: MessageEvent<TrainRequest>) => {
    queue = queue.then(async () => {
        const { id } = event.data;
        try {
            const found = await answer(event.data);
            const { weights } = found as Partial<Probe>;
            self.postMessage(
                { id, answer: found },
                { transfer: weights instanceof Float32Array ? [weights.buffer] : [] },
            );
        } catch (error) {
            self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
        }
    });
});
