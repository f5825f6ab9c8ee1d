// Plays plans that another program sends, on a WebGPU in software: Chromium's with its own adapter, or Dawn's in node on
// whatever Vulkan driver the environment names. web/src/gpu/gpu.ts is what runs them, and each kernel is translated when it is
// first asked for. The program is tests/support/webgpu_executor.cpp, which so judges both by the same cases as every other
// backend.
//
// Words of 32 bits, little-endian. At first the player sends a frame with its limits. A request: a count of slices, of each
// a count and its words (web/engine/gpu_plan.hpp); a count of bindings, of each its number, 1 if it is to be sent back, its
// bytes, then those, filled to whole words. An answer: 0, then of each such binding the bytes and their contents; or 1 (2:
// the device rejects the call), a count of bytes and a text. Each frame begins with the number of its words.
//
//   --dawn        npm's package `webgpu` in node, from the folder that FOVEA_DAWN names (npm install --prefix FOLDER webgpu)
//   --buffers N   ask the adapter for N storage buffers a kernel and no more
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { writeConstants } from "../tools/abi.mjs";
import { Translator, allowed, kernelFrom, moduleNames } from "../tools/wgsl.mjs";
import { args, executablePath, root } from "./support.mjs";

export const gpuArgs = [
    ...args.filter((arg) => arg !== "--disable-gpu"),
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
];

async function scriptOf() {
    writeConstants();
    const { outputFiles } = await build({
        bundle: true,
        format: "esm",
        target: "es2022",
        write: false,
        entryPoints: [join(root, "web/tests/gpu_play.mjs")],
    });
    return outputFiles[0].text;
}

// The kernels that a plan asks for, each translated once.
function kernelMaker(translator) {
    const names = moduleNames(),
        made = new Map();
    return (shader, constants, flags) => {
        const may = allowed(flags),
            key = `${shader} ${constants} ${may}`;
        if (!made.has(key)) made.set(key, kernelFrom(translator, names[shader], constants, may));
        return made.get(key);
    };
}

// A player: `limits` of its device; `play(slices, bindings)` as playPlan of gpu_play.mjs; `close()`.
async function openPage({ buffers, translator }) {
    if (!executablePath) throw new Error("no Chromium found (set FOVEA_CHROMIUM)");
    const script = await scriptOf();
    const server = createServer((request, response) => {
        const isScript = request.url === "/gpu.js";
        response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
        response.end(isScript ? script : "<!doctype html><title>fovea</title>");
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    const profile = mkdtempSync(join(tmpdir(), "fovea-gpu-"));
    const context = await chromium.launchPersistentContext(profile, {
        executablePath,
        args: gpuArgs,
        headless: true,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    await page.exposeFunction("makeKernel", kernelMaker(translator));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const limits = await page.evaluate(async (storageBuffers) => {
        globalThis.player = await import("/gpu.js");
        globalThis.gpu = await globalThis.player.openGpu(globalThis.makeKernel, { storageBuffers });
        return globalThis.gpu.limits;
    }, buffers);
    return {
        limits,
        play: (slices, bindings) => playInPage(page, slices, bindings),
        close: async () => {
            await context.close();
            server.closeAllConnections();
            await new Promise((done) => server.close(done));
            rmSync(profile, { recursive: true, force: true });
        },
    };
}

const base64 = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");

async function playInPage(page, slices, bindings) {
    const { results, error, name } = await page.evaluate(
        async ([slices, bindings]) => {
            const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
            const textOf = (bytes) => {
                let text = "";
                for (let n = 0; n < bytes.length; n += 0x8000)
                    text += String.fromCharCode(...bytes.subarray(n, n + 0x8000));
                return btoa(text);
            };
            try {
                const found = await globalThis.player.playPlan(
                    globalThis.gpu,
                    slices.map((text) => new Uint32Array(bytesOf(text).buffer)),
                    bindings.map((binding) => ({ ...binding, bytes: bytesOf(binding.bytes) })),
                );
                return { results: found.map(textOf) };
            } catch (error) {
                return { error: error.message, name: error.name };
            }
        },
        [slices.map(base64), bindings.map((binding) => ({ ...binding, bytes: base64(binding.bytes) }))],
    );
    if (error) throw Object.assign(new Error(error), { name });
    return results.map((text) => Buffer.from(text, "base64"));
}

async function openDawn({ buffers, translator }) {
    const folder = process.env.FOVEA_DAWN;
    if (!folder)
        throw new Error("FOVEA_DAWN names no folder with npm's webgpu (npm install --prefix FOLDER webgpu)");
    const found = createRequire(join(folder, "here.js")).resolve("webgpu");
    const { create, globals } = await import(pathToFileURL(found));
    Object.assign(globalThis, globals);
    const folderOfScript = mkdtempSync(join(tmpdir(), "fovea-gpu-")),
        script = join(folderOfScript, "gpu.mjs");
    writeFileSync(script, await scriptOf());
    const { openGpu, playPlan } = await import(pathToFileURL(script));
    rmSync(folderOfScript, { recursive: true });
    const instance = create(["backend=vulkan"]);
    const gpu = await openGpu(kernelMaker(translator), { gpu: instance, storageBuffers: buffers });
    return {
        instance, // must outlive its devices
        limits: gpu.limits,
        // Copies: a slice of the frame may begin at any byte.
        play: (slices, bindings) =>
            playPlan(
                gpu,
                slices.map((bytes) => new Uint32Array(Uint8Array.from(bytes).buffer)),
                bindings.map((binding) => ({ ...binding, bytes: Uint8Array.from(binding.bytes) })),
            ),
        close: () => gpu.device.destroy(),
    };
}

function send(words) {
    const frame = Buffer.alloc(4 + words.length);
    frame.writeUInt32LE(words.length / 4, 0);
    Buffer.from(words).copy(frame, 4);
    process.stdout.write(frame);
}

const wordsOf = (...values) => Buffer.from(Uint32Array.from(values).buffer);
const filled = (bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);

async function answer(player, frame) {
    let at = 0;
    const next = () => frame.readUInt32LE(4 * at++);
    const taken = (words) => {
        at += words;
        return frame.subarray(4 * (at - words), 4 * at);
    };
    const slices = Array.from({ length: next() }, () => taken(next()));
    const bindings = Array.from({ length: next() }, () => {
        const [number, wanted, size] = [next(), next(), next()];
        return { number, wanted, bytes: taken((size + 3) >> 2).subarray(0, size) };
    });
    const results = await player.play(slices, bindings);
    return Buffer.concat([wordsOf(0), ...results.flatMap((bytes) => [wordsOf(bytes.length), filled(bytes)])]);
}

async function serveStandardInput() {
    const option = process.argv.indexOf("--buffers");
    const translator = new Translator();
    const open = process.argv.includes("--dawn") ? openDawn : openPage;
    const player = await open({
        buffers: option < 0 ? undefined : Number(process.argv[option + 1]),
        translator,
    });
    const { storageBuffers, workgroupThreads, workgroupBytes, workgroups, storageRange } = player.limits;
    send(
        wordsOf(
            storageBuffers,
            workgroupThreads,
            workgroupBytes,
            workgroups,
            Math.min(storageRange, 0xfffffffc),
        ),
    );
    let held = Buffer.alloc(0);
    for await (const chunk of process.stdin) {
        held = Buffer.concat([held, chunk]);
        while (held.length >= 4 && held.length >= 4 + 4 * held.readUInt32LE(0)) {
            const length = 4 * held.readUInt32LE(0),
                frame = Buffer.from(held.subarray(4, 4 + length));
            held = held.subarray(4 + length);
            try {
                send(await answer(player, frame));
            } catch (error) {
                const text = Buffer.from(error.message);
                send(
                    Buffer.concat([wordsOf(error.name === "GpuRefusal" ? 2 : 1, text.length), filled(text)]),
                );
            }
        }
    }
    await player.close();
    translator.close();
}

if (process.argv[1]?.endsWith("gpu_player.mjs")) {
    readFileSync(join(root, "shaders/variants.def")); // fails early, and with a path
    await serveStandardInput();
}
