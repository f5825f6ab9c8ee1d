// Plays plans that another program sends, on Chromium's WebGPU with its adapter in software: web/src/gpu.ts is what runs
// them, and each kernel is translated when it is first asked for. The program is tests/support/webgpu_executor.cpp, which so
// judges a browser by the same cases as every other backend.
//
// Words of 32 bits, little-endian. At first the player sends a frame with its limits. A request: a count of slices, of each
// a count and its words (web/engine/gpu_plan.hpp); a count of bindings, of each its number, 1 if it is to be sent back, its
// bytes, then those, filled to whole words. An answer: 0, then of each such binding the bytes and their contents; or 1 (2:
// the device refuses the call), a count of bytes and a text. Each frame is led by its length in words.
//
//   --buffers N   ask the adapter for N storage buffers a kernel and no more
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { Translator, allowed, kernelFrom, moduleNames } from "../tools/wgsl.mjs";
import { args, executablePath, root } from "./support.mjs";

export const gpuArgs = [
    ...args.filter((arg) => arg !== "--disable-gpu"),
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
];

async function scriptOf() {
    const { outputFiles } = await build({
        bundle: true,
        format: "esm",
        target: "es2022",
        write: false,
        entryPoints: [join(root, "web/src/gpu.ts")],
    });
    return outputFiles[0].text;
}

// A page whose `gpu` is an open device; `translator` makes its kernels.
export async function openPlayer({ buffers, translator }) {
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
    const names = moduleNames(),
        made = new Map();
    await page.exposeFunction("makeKernel", (shader, constants, flags) => {
        const may = allowed(flags),
            key = `${shader} ${constants} ${may}`;
        if (!made.has(key)) made.set(key, kernelFrom(translator, names[shader], constants, may));
        return made.get(key);
    });
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const limits = await page.evaluate(async (storageBuffers) => {
        const { Gpu } = await import("/gpu.js");
        globalThis.gpu = await Gpu.open(globalThis.makeKernel, { fallback: true, storageBuffers });
        return globalThis.gpu.limits;
    }, buffers);
    return {
        page,
        limits,
        close: async () => {
            await context.close();
            server.closeAllConnections();
            await new Promise((done) => server.close(done));
            rmSync(profile, { recursive: true, force: true });
        },
    };
}

const base64 = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");

// `bindings`: number, wanted, bytes. Returns the contents of those that are wanted.
export const play = (page, slices, bindings) =>
    page
        .evaluate(
            async ([slices, bindings]) => {
                const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
                const words = slices.map((text) => new Uint32Array(bytesOf(text).buffer));
                const { gpu } = globalThis,
                    buffers = new Map();
                try {
                    for (const { number, bytes } of bindings) {
                        const data = bytesOf(bytes);
                        buffers.set(number, gpu.buffer(data.length, data));
                    }
                    await gpu.run({ slices: words.length, words: (slice) => words[slice] }, buffers);
                    const results = [];
                    for (const { number, wanted, bytes } of bindings) {
                        if (!wanted) continue;
                        const found = new Uint8Array(
                            await gpu.read(buffers.get(number), bytesOf(bytes).length),
                        );
                        let text = "";
                        for (let n = 0; n < found.length; n += 0x8000)
                            text += String.fromCharCode(...found.subarray(n, n + 0x8000));
                        results.push(btoa(text));
                    }
                    return { results };
                } catch (error) {
                    return { error: error.message, name: error.name };
                } finally {
                    for (const buffer of buffers.values()) buffer.destroy();
                }
            },
            [
                slices.map(base64),
                bindings.map(({ number, wanted, bytes }) => ({ number, wanted, bytes: base64(bytes) })),
            ],
        )
        .then(({ results, error, name }) => {
            if (error) throw Object.assign(new Error(error), { name });
            return results.map((text) => Buffer.from(text, "base64"));
        });

function send(words) {
    const frame = Buffer.alloc(4 + words.length);
    frame.writeUInt32LE(words.length / 4, 0);
    Buffer.from(words).copy(frame, 4);
    process.stdout.write(frame);
}

const wordsOf = (...values) => Buffer.from(Uint32Array.from(values).buffer);
const filled = (bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);

async function answer(page, frame) {
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
    const results = await play(page, slices, bindings);
    return Buffer.concat([wordsOf(0), ...results.flatMap((bytes) => [wordsOf(bytes.length), filled(bytes)])]);
}

async function serveStandardInput() {
    const option = process.argv.indexOf("--buffers");
    const translator = new Translator();
    const player = await openPlayer({
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
                send(await answer(player.page, frame));
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
