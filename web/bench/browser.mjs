// Measures the page's engines in Chromium: six tokens in the Worker, attention of 1,024 tokens x 12 heads x 64
// (causal and full) compared with ONNX Runtime Web and the native kernel, 4,096 tokens x 8 heads x 64 and the memory
// it takes, and how smoothly the deep zoom of 16,384 tokens moves. Contestants take turns, so that a busy moment of
// the machine meets all of them.
//   node web/bench/browser.mjs [--ort FOLDER] [--native FOVEA] [--rounds N] [--json FILE]
//     --ort      npm's onnxruntime-web, installed anywhere outside this repository; without it, its rows are left out
//     --native   the built command line (default: build/default/bin/fovea, where it is there)
// Fails where a promise is broken: six tokens in 1 ms, 4,096 tokens in 128 MiB, half of the frames within 17 ms.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Lab, missing, root, site } from "../tests/support.mjs";
import { panning, percentile, waitForExact } from "../tests/zoom_panning.mjs";
import { serve } from "../tools/serve.mjs";
import { operators } from "./onnx_models.mjs";
import { openWorker, pageFolder, versionOf } from "./ort_page.mjs";

const { values: options } = parseArgs({
    options: {
        ort: { type: "string" },
        native: { type: "string" },
        rounds: { type: "string", default: "5" },
        json: { type: "string" },
    },
});
if (missing) throw new Error(missing);
const rounds = Number(options.rounds),
    repeats = 3,
    a = { heads: 12, tokens: 1024, dim: 64 },
    b = { heads: 8, tokens: 4096, dim: 64 };
const builtNative = join(root, "build", "default", "bin", "fovea");
if (options.ort && !existsSync(resolve(options.ort, "package.json"))) {
    console.error(
        `--ort: ${options.ort} is not the folder of an installed onnxruntime-web (it has no package.json)`,
    );
    process.exit(2);
}
const native = options.native ? resolve(options.native) : existsSync(builtNative) ? builtNative : null;
const report = { rounds, load: [], rows: {}, broken: [] };

const variants = readdirSync(join(site, "engine")).map((name) => name.replace(/-[0-9a-f]{8}$/, ""));
const threadsText = (n) => `${n} thread${n > 1 ? "s" : ""}`;
const shares = (list, digits = 1) =>
    [0.5, 0.95, 0.99].map((share) => percentile(list, share).toFixed(digits)).join(" / ");
const promise = (kept, text) => {
    if (!kept) {
        report.broken.push(text);
        console.log(`   BROKEN: ${text}`);
    }
};
const bench = (page, question) => page.evaluate((q) => globalThis.fovea.app.engine.ask("bench", q), question);

async function sixTokens(lab) {
    console.log(
        "\nSix tokens: every stage again in the Worker, milliseconds of 300 changes of the temperature",
    );
    for (const variant of variants) {
        const page = await lab.page("", { query: `?engine=${variant}` });
        const times = await page.evaluate(async () => {
            const { app } = globalThis.fovea,
                times = [];
            for (let i = 0; i < 300; ++i) {
                app.change({ temp: 1 + i / 100 });
                times.push(
                    await new Promise((done) => {
                        const tell = (r) => {
                            app.onResult.delete(tell);
                            done(r.ms);
                        };
                        app.onResult.add(tell);
                    }),
                );
            }
            return times;
        });
        await page.close();
        report.rows[`six tokens, ${variant}`] = {
            fastest: Math.min(...times),
            median: percentile(times, 0.5),
            p95: percentile(times, 0.95),
        };
        console.log(
            `${variant.padEnd(50)} fastest ${Math.min(...times).toFixed(2)}   p50 / p95 / p99 ${shares(times, 2)}`,
        );
        promise(
            percentile(times, 0.5) < 1,
            `${variant}: half of the recomputations of six tokens take 1 ms or more`,
        );
    }
}

async function contestantsOf(lab, folder, host, causal) {
    const all = new Map(); // name -> a function that gives milliseconds
    for (const variant of variants) {
        const page = await lab.page("", { query: `?engine=${variant}` });
        for (const threads of variant.endsWith("-threads") ? [1, 2] : [1])
            all.set(
                `${variant}, ${threadsText(threads)}`,
                async () => 1000 * (await bench(page, { ...a, causal, threads, repeats })),
            );
    }
    for (const threads of folder ? [1, 2] : []) {
        const page = await lab.context.newPage(),
            models = operators({ ...a, causal });
        await page.goto(host.url);
        await openWorker(page);
        const got = await page.evaluate((question) => globalThis.ask(question), { threads, models });
        if (got.threads !== threads)
            throw new Error(`ONNX Runtime Web runs on ${got.threads} threads, not ${threads}`);
        for (const name of Object.keys(models))
            all.set(
                `ONNX Runtime Web ${name}, ${threadsText(threads)}`,
                async () =>
                    (await page.evaluate((question) => globalThis.ask(question), { run: name, repeats }))
                        .best,
            );
    }
    const file = join(tmpdir(), `fovea-native-${process.pid}.json`);
    for (const threads of native ? [1, 2] : [])
        all.set(`native kernel, ${threadsText(threads)}`, async () => {
            execFileSync(
                native,
                [
                    "bench",
                    "--case",
                    causal ? "a-causal" : "a-full",
                    "--threads",
                    String(threads),
                    "--seconds",
                    "0.3",
                    "--json",
                    file,
                ],
                { stdio: "ignore" },
            );
            const { rows } = JSON.parse(readFileSync(file, "utf8"));
            rmSync(file);
            return 1000 * rows.find((row) => row.threads === threads).median_seconds;
        });
    return all;
}

async function attention(lab, causal) {
    const folder = options.ort ? pageFolder(options.ort) : null,
        host = folder ? await serve(folder) : null;
    try {
        const contestants = await contestantsOf(lab, folder, host, causal),
            kind = causal ? "causal" : "full",
            medians = {},
            times = new Map([...contestants.keys()].map((name) => [name, []]));
        for (let round = 0; round < rounds; ++round)
            for (const [name, measure] of contestants) {
                times.get(name).push(await measure());
                await new Promise((done) => setTimeout(done, 50)); // threads that spin for more work go to sleep
            }
        console.log(
            `\n1,024 tokens x 12 heads x 64, ${kind}: ${rounds} rounds in turn, each the best of ${repeats} calls, milliseconds`,
        );
        for (const [name, list] of times) {
            list.sort((x, y) => x - y);
            report.rows[`${name}, ${kind}`] = medians[name] = {
                fastest: list[0],
                median: percentile(list, 0.5),
                slowest: list.at(-1),
            };
            console.log(
                `${name.padEnd(50)} median ${percentile(list, 0.5).toFixed(1).padStart(7)}   ${list[0].toFixed(1)} to ${list.at(-1).toFixed(1)}`,
            );
        }
        if (!folder) console.log("ONNX Runtime Web is left out: no --ort FOLDER");
        if (!native) console.log("the native kernel is left out: no build/default/bin/fovea and no --native");
        ratios(medians);
        await lab.closePages();
    } finally {
        host?.server.closeAllConnections();
        host?.server.close();
        if (folder) rmSync(folder, { recursive: true });
    }
}

// By the fastest rounds, which other programs disturb least, and by the medians.
function ratios(rows) {
    const names = Object.keys(rows);
    for (const threads of [1, 2]) {
        const of = (test, key) =>
            names
                .filter((name) => name.endsWith(threadsText(threads)) && test(name))
                .map((name) => rows[name][key]);
        for (const kind of ["simd", "relaxed"]) {
            const line = ["fastest", "median"]
                .map((key) => {
                    const mine = Math.min(...of((name) => name.startsWith(kind), key)),
                        theirs = of((name) => name.startsWith("ONNX"), key),
                        kernel = of((name) => name.startsWith("native"), key);
                    const text = [
                        theirs.length
                            ? `ONNX Runtime Web takes ${(Math.min(...theirs) / mine).toFixed(1)} times as long`
                            : "",
                        kernel.length
                            ? `it takes ${(mine / kernel[0]).toFixed(1)} times as long as the native kernel`
                            : "",
                    ]
                        .filter(Boolean)
                        .join(", ");
                    return text && `${key}: ${text}`;
                })
                .filter(Boolean)
                .join("; ");
            if (line) console.log(`   ${kind}, ${threadsText(threads)}, ${line}`);
        }
    }
}

async function large(lab) {
    console.log("\n4,096 tokens x 8 heads x 64: one call, and all of the engine's memory after it");
    for (const variant of variants) {
        const page = await lab.page("", { query: `?engine=${variant}` });
        const threads = variant.endsWith("-threads") ? 2 : 1;
        for (const causal of [true, false]) {
            const seconds = await bench(page, { ...b, causal, threads, repeats: 1 });
            const mib =
                (await page.evaluate(() => globalThis.fovea.app.engine.ask("facts", null))).bytes / 1048576;
            const name = `${variant}, ${threadsText(threads)}, ${causal ? "causal" : "full"}`;
            report.rows[`4,096 tokens, ${name}`] = { milliseconds: 1000 * seconds, mebibytes: mib };
            console.log(
                `${name.padEnd(50)} ${(1000 * seconds).toFixed(0).padStart(7)} ms   ${mib.toFixed(0)} MiB`,
            );
            promise(mib <= 128, `${name}: ${mib.toFixed(0)} MiB, more than 128`);
        }
        await page.close();
    }
}

async function deepZoom(lab) {
    console.log("\nDeep zoom, 16,384 tokens: milliseconds p50 / p95 / p99 while a mouse pans");
    for (const variant of variants.filter((name) => name.startsWith("simd"))) {
        const page = await lab.page("", { query: `?engine=${variant}` });
        const begin = Date.now();
        await page.click("#zoom-start");
        await page.waitForFunction(
            () => /^Forward pass of/.test(document.getElementById("zoom-pick")?.textContent),
            undefined,
            { timeout: 120_000 },
        );
        const forward = (await page.textContent("#zoom-pick")).split(": ")[1];
        await waitForExact(page);
        console.log(
            `${variant}: forward pass ${forward}, every tile of the whole map exact after ${((Date.now() - begin) / 1000).toFixed(1)} s`,
        );
        for (const steps of [0, 3]) {
            for (let i = 0; i < steps; ++i) await page.click("#zoom-in");
            if (steps) await waitForExact(page);
            const { frames, draws } = await panning(page, 240),
                name = `${variant}, ${steps ? `zoomed in ${2 ** steps} times, new tiles come in` : "the whole map"}`;
            report.rows[`panning, ${name}`] = Object.fromEntries(
                [
                    ["frames", frames],
                    ["draws", draws],
                ].map(([key, list]) => [key, [0.5, 0.95, 0.99].map((share) => percentile(list, share))]),
            );
            console.log(
                `   ${name.padEnd(60)} between frames ${shares(frames)}   drawing ${shares(draws)}   (${frames.length} frames)`,
            );
            promise(percentile(frames, 0.5) <= 17, `${name}: half of the frames take longer than 17 ms`);
        }
        await page.close();
    }
}

const lab = await Lab.open();
lab.closePages = async () => {
    for (const page of lab.context.pages()) if (page.url() !== "about:blank") await page.close();
};
try {
    report.browser = `Chromium ${lab.context.browser()?.version() ?? ""}`.trim();
    report.load.push(loadavg()[0]);
    console.log(
        `${report.browser}${options.ort ? `, onnxruntime-web ${versionOf(options.ort)}` : ""}, ${cpus().length} processors, load ${loadavg()[0].toFixed(1)}`,
    );
    await sixTokens(lab);
    for (const causal of [true, false]) await attention(lab, causal);
    await large(lab);
    await deepZoom(lab);
    report.load.push(loadavg()[0]);
    console.log(
        `\nload at the end ${loadavg()[0].toFixed(1)}${report.broken.length ? `; ${report.broken.length} promises broken` : "; every promise kept"}`,
    );
} finally {
    await lab.close();
}
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 1)}\n`);
if (report.broken.length) process.exit(1);
