// Causal attention of 1,024 tokens x 12 heads x 64 in Chromium: each engine of build/web, operators of ONNX Runtime
// Web and the native kernel in turn, so that a busy moment of the machine meets all of them.
//   node web/bench/browser.mjs ONNXRUNTIME_WEB_FOLDER NATIVE_FOVEA [ROUNDS]
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { serve } from "../tools/serve.mjs";
import { Lab, site } from "../tests/support.mjs";
import { operators } from "./onnx_models.mjs";

const [packageFolder, native, roundsWanted] = process.argv.slice(2);
if (!native) throw new Error("usage: node web/bench/browser.mjs ONNXRUNTIME_WEB_FOLDER NATIVE_FOVEA [ROUNDS]");
const rounds = Number(roundsWanted ?? 7), repeats = 3, heads = 12, tokens = 1024, dim = 64;

// ONNX Runtime computes in a Worker too, as ours does.
const workerText = `import * as ort from "./ort.wasm.min.mjs";
const sessions = {};
let feeds;
onmessage = async ({ data: { threads, models, run } }) => {
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
            for (let n = 0; n < ${repeats}; ++n) {
                const begin = performance.now();
                await session.run(feeds);
                times.push(performance.now() - begin);
            }
            postMessage({ best: Math.min(...times) });
        }
    } catch (error) { postMessage({ error: String(error) }); }
};`;

function peerFolder() {
    const folder = mkdtempSync(join(tmpdir(), "fovea-peer-")), dist = resolve(packageFolder, "dist");
    for (const name of readdirSync(dist)) if (/^ort(\.wasm\.min|-wasm-simd-threaded)\.(mjs|wasm)$/.test(name)) symlinkSync(join(dist, name), join(folder, name));
    writeFileSync(join(folder, "index.html"), "<!doctype html><title>peer</title>");
    writeFileSync(join(folder, "worker.mjs"), workerText);
    return folder;
}

// In the page: a Worker that is asked one thing at a time.
const openWorker = (page) => page.evaluate(() => {
    const worker = new Worker("worker.mjs", { type: "module" });
    globalThis.ask = (question) => new Promise((done, fail) => {
        worker.onmessage = ({ data }) => data.error ? fail(new Error(data.error)) : done(data);
        worker.onerror = (event) => fail(new Error(event.message));
        worker.postMessage(question);
    });
});

const contestants = new Map(); // name -> a function that gives milliseconds
const lab = await Lab.open(), folder = peerFolder(), host = await serve(folder, { isolated: true });
try {
    for (const variant of readdirSync(join(site, "engine")).map((name) => name.replace(/-[0-9a-f]{8}$/, ""))) {
        const page = await lab.page("", { query: `?engine=${variant}` });
        for (const threads of variant.endsWith("-threads") ? [1, 2] : [1])
            contestants.set(`Fovea ${variant}, ${threads} thread${threads > 1 ? "s" : ""}`, async () =>
                1000 * await page.evaluate((question) => globalThis.fovea.app.engine.ask("bench", question), { heads, tokens, dim, threads, repeats }));
    }
    for (const threads of [1, 2]) {
        const page = await lab.context.newPage();
        await page.goto(host.url);
        await openWorker(page);
        const models = operators({ heads, tokens, dim });
        const got = await page.evaluate((question) => globalThis.ask(question), { threads, models });
        if (got.threads !== threads) throw new Error(`ONNX Runtime Web runs on ${got.threads} threads, not ${threads}`);
        for (const name of Object.keys(models))
            contestants.set(`ONNX Runtime Web ${name}, ${threads} thread${threads > 1 ? "s" : ""}`, async () =>
                (await page.evaluate((question) => globalThis.ask(question), { run: name })).best);
    }
    for (const threads of [1, 2])
        contestants.set(`native, ${threads} thread${threads > 1 ? "s" : ""}`, async () => {
            const report = join(folder, "native.json");
            execFileSync(resolve(native), ["bench", "--case", "a-causal", "--threads", String(threads), "--seconds", "0.3", "--json", report], { stdio: "ignore" });
            return 1000 * JSON.parse(readFileSync(report, "utf8")).rows.find((row) => row.threads === threads).median_seconds;
        });

    const times = new Map([...contestants.keys()].map((name) => [name, []]));
    for (let round = 0; round < rounds; ++round)
        for (const [name, measure] of contestants) {
            times.get(name).push(await measure());
            await new Promise((done) => setTimeout(done, 50)); // threads that spin for more work go to sleep
        }
    const version = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")).version;
    console.log(`Chromium ${lab.context.browser()?.version() ?? ""}, onnxruntime-web ${version}, ${rounds} rounds, best of ${repeats} calls each, milliseconds`);
    for (const [name, list] of times) {
        list.sort((a, b) => a - b);
        console.log(`${name.padEnd(50)} median ${list[list.length >> 1].toFixed(1).padStart(7)}   ${list[0].toFixed(1)} to ${list.at(-1).toFixed(1)}`);
    }
} finally {
    await lab.close();
    host.server.closeAllConnections();
    host.server.close();
    rmSync(folder, { recursive: true });
}
