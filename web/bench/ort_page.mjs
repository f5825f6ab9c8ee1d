// A page for ONNX Runtime Web: its files and a Worker that computes, as ours does.
import { mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const workerText = `import * as ort from "./ort.wasm.min.mjs";
const sessions = {};
onmessage = async ({ data: { threads, models, run, repeats } }) => {
    try {
        if (models) {
            ort.env.wasm.numThreads = threads;
            for (const [name, { bytes, inputs }] of Object.entries(models)) {
                const session = await ort.InferenceSession.create(Uint8Array.from(bytes), { executionProviders: ["wasm"] });
                const feeds = {};
                for (const [input, { shape }] of Object.entries(inputs)) {
                    const count = shape.reduce((a, b) => a * b, 1);
                    feeds[input] = new ort.Tensor("float32", Float32Array.from({ length: count }, () => Math.random() * 2 - 1), shape);
                }
                sessions[name] = { session, feeds };
            }
            postMessage({ threads: ort.env.wasm.numThreads });
        } else {
            const { session, feeds } = sessions[run], times = [];
            for (let n = 0; n < repeats; ++n) {
                const begin = performance.now();
                await session.run(feeds);
                times.push(performance.now() - begin);
            }
            postMessage({ best: Math.min(...times) });
        }
    } catch (error) { postMessage({ error: String(error) }); }
};`;

export const versionOf = (packageFolder) =>
    JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")).version;

export function pageFolder(packageFolder) {
    const folder = mkdtempSync(join(tmpdir(), "fovea-peer-")),
        dist = resolve(packageFolder, "dist");
    for (const name of readdirSync(dist))
        if (/^ort(\.wasm\.min|-wasm-simd-threaded)\.(mjs|wasm)$/.test(name))
            symlinkSync(join(dist, name), join(folder, name));
    writeFileSync(join(folder, "index.html"), "<!doctype html><title>peer</title>");
    writeFileSync(join(folder, "worker.mjs"), workerText);
    return folder;
}

// In the page: a Worker that is asked one thing at a time.
export const openWorker = (page) =>
    page.evaluate(() => {
        const worker = new Worker("worker.mjs", { type: "module" });
        globalThis.ask = (question) =>
            new Promise((done, fail) => {
                worker.onmessage = ({ data }) => (data.error ? fail(new Error(data.error)) : done(data));
                worker.onerror = (event) => fail(new Error(event.message));
                worker.postMessage(question);
            });
    });
