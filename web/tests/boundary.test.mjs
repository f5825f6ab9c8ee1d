// Tests inputs from outside the page and from its engine: damaged archives, sizes beyond 31 and 32 bits, failed
// allocations, replies that cannot be sent. In node, without the engine.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeConstants } from "../tools/abi.mjs";
import { serve } from "../tools/serve.mjs";
import { npyOf, npzOf } from "./numpy_files.mjs";
import { pageModules } from "./page_modules.mjs";

const heard = []; // the workers' listeners
globalThis.self = { addEventListener: (_, listener) => heard.push(listener) };
writeConstants();
const page = await pageModules(
    "files/unzip.ts",
    "engine/memory.ts",
    "engine/turns.ts",
    "model/model_host.ts",
    "engine/fovea_abi.ts",
    "gpu/gpu.ts",
    "gpu/gpu_calls.ts",
    "files/saving.ts",
    "page/format.ts",
);

const bytesOf = (buffer) => Uint8Array.from(buffer);
const values = (count) => Array.from({ length: count }, (_, n) => n);

test("an npz with any bit turned over is refused, or is the same", async () => {
    const files = { "\ufeffq": npyOf([3, 4], values(12)), k: npyOf([2], values(2)) };
    const whole = bytesOf(npzOf(files)),
        expected = await page.unzip(whole);
    assert.deepEqual(
        expected.map(({ name, bytes }) => [name, Buffer.from(bytes)]),
        Object.entries(files),
    );
    let refused = 0;
    for (let at = 0; at < whole.length; ++at)
        for (const bit of [1, 128]) {
            const file = whole.slice();
            file[at] ^= bit;
            const found = await page.unzip(file).catch((error) => {
                assert.equal(error.constructor, Error, `byte ${at}: ${error.stack}`);
                ++refused;
            });
            if (found) assert.deepEqual(found, expected, `byte ${at}`);
        }
    assert.ok(refused > whole.length); // more than half
    // The entry's header: method, checksum, sizes, name. A reader could take them only from the directory.
    for (const at of [8, 14, 18, 22, 31]) {
        const file = whole.slice();
        file[at] ^= 1;
        await assert.rejects(page.unzip(file), /directory says otherwise/, `byte ${at}`);
    }
    for (const length of [0, 21, 22, whole.length - 1])
        await assert.rejects(page.unzip(whole.slice(0, length)), /not a zip archive/);
});

test("an archive cannot ask for more memory than its bytes inflate to", async () => {
    const file = npzOf({ q: npyOf([1], [1]) }),
        size = 1 << 29;
    for (const at of [22, file.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2])) + 24])
        file.writeUInt32LE(size, at);
    await assert.rejects(
        page.unzip(bytesOf(file)),
        /q\.npy: the archive is damaged: \d+ packed bytes cannot become 536870912/,
    );
});

// As much of WebGPU as gpu.ts asks for. `made`: sizes of buffers; `bound`: sizes of bindings; `log`: what ran.
function device(limit) {
    const seen = { made: [], bound: [], destroyed: 0, log: [], scopes: 0 };
    const pass = { setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} };
    const made = {
        limits: {
            maxBufferSize: limit,
            maxStorageBufferBindingSize: 2 ** 31 - 4,
            maxStorageBuffersPerShaderStage: 16,
        },
        lost: new Promise(() => {}),
        createBuffer({ size }) {
            assert.ok(size > 0 && size % 4 === 0 && size <= limit, `createBuffer of ${size}`);
            seen.made.push(size);
            return { size, destroy: () => ++seen.destroyed };
        },
        createShaderModule: () => ({ getCompilationInfo: async () => ({ messages: [] }) }),
        createComputePipelineAsync: async () => ({ getBindGroupLayout() {} }),
        createBindGroup: ({ entries }) => seen.bound.push(...entries.map(({ resource }) => resource.size)),
        createCommandEncoder: () => ({ beginComputePass: () => pass, finish() {} }),
        queue: {
            submit: () => seen.log.push("submit"),
            writeBuffer() {},
            onSubmittedWorkDone: async () => {},
        },
        pushErrorScope: () => assert.ok(++seen.scopes <= 2, "two runs share the error scopes"),
        popErrorScope: async () => (--seen.scopes, null),
    };
    return {
        seen,
        gpu: { requestAdapter: async () => ({ limits: made.limits, requestDevice: async () => made }) },
    };
}
// A dispatch with binding 0, and `workspace` bytes from `offset` on as slot 1.
const wordsOf = (bytes, offset, workspace) =>
    Uint32Array.from([
        ...[7, 0, 1, 1, 1, 0, 0, 2],
        ...[0, 0, 1, 0, bytes],
        ...[1, page.FOVEA_BIND_WORKSPACE, 1, offset, workspace],
    ]);

test("buffers and bindings beyond 31 and 32 bits have their size, and those that do not fit are refused", async () => {
    const { gpu, seen } = device(2 ** 33);
    const kernel = { shader: 7, name: "k", constants: [], flags: 0, slots: [0], code: "" };
    const opened = await page.Gpu.open(async () => kernel, { gpu });
    assert.equal(opened.limits.storageRange, 2 ** 31 - 256); // multiples of what sizes are rounded up to
    for (const [bytes, size] of [
        [0, 16],
        [17, 32],
        [2 ** 31 - 1, 2 ** 31],
        [2 ** 31 + 1, 2 ** 31 + 16],
        [2 ** 32 + 4, 2 ** 32 + 16],
        [2 ** 33, 2 ** 33],
    ])
        assert.equal(opened.buffer(bytes).size, size);
    for (const bytes of [2 ** 33 + 1, 2 ** 40])
        assert.throws(() => opened.buffer(bytes), {
            name: "GpuRefusal",
            message: new RegExp(`buffer of ${bytes - (bytes % 16) + (bytes % 16 && 16)} bytes`),
        });
    const large = 3 * 2 ** 30 + 4,
        buffer = opened.buffer(large);
    await opened.run({ slices: 1, words: () => wordsOf(large, 0, 64) }, new Map([[0, buffer]]));
    assert.deepEqual(seen.bound, [3 * 2 ** 30 + 16]);
});

test("runs take turns, and a workspace that the next run does not use is freed", async () => {
    const { gpu, seen } = device(2 ** 33);
    const kernel = { shader: 7, name: "k", constants: [], flags: 0, slots: [0, 1], code: "" };
    const opened = await page.Gpu.open(async () => kernel, { gpu }),
        buffers = new Map([[0, opened.buffer(64)]]);
    const run = (offset) => opened.run({ slices: 2, words: () => wordsOf(64, offset, 1000) }, buffers);
    await Promise.all([run(0), run(0), run(4096)]);
    assert.equal(seen.log.length, 6);
    assert.deepEqual(
        seen.made.filter((size) => size === 1024),
        [1024, 1024],
    );
    const before = seen.destroyed;
    await run(0);
    assert.equal(seen.destroyed, before + 1);
});

// A module whose memory ends at `end`.
function memory(end) {
    let next = 8;
    const HEAPU8 = new Uint8Array(end);
    const _malloc = (bytes) => (next + (bytes >>> 0) > end ? 0 : ((next += (bytes + 7) >>> 0), next - bytes));
    return { HEAPU8, _malloc, stringToNewUTF8: (text) => _malloc(text.length + 1), _free() {} };
}

test("memory that the engine does not get is an error, not address 0", () => {
    const small = memory(64);
    for (const bytes of [100, 2 ** 32 + 8, 2 ** 53])
        assert.throws(() => page.allocate(small, bytes), {
            name: "RangeError",
            message: new RegExp(`${bytes} more`),
        });
    assert.throws(() => page.allocateText(small, "x".repeat(100)), RangeError);
    assert.throws(() => page.allocateText(memory(64), "a\0b"), /U\+0000/);
    assert.ok(page.allocate(memory(64), 0) > 0);
    // An output above 4 GiB, of a call for the CPU.
    const texts = [
        "",
        '["batch"]',
        JSON.stringify({ bindings: [{ number: 3, bytes: 2 ** 32 + 32, tensor: 2 ** 32 + 32, written: 1 }] }),
    ];
    const module = {
        ...memory(4096),
        UTF8ToString: (at) => texts[at],
        _webCallFields: () => 1,
        _webCallPlan: () => 1,
        _webCallInfo: () => 2,
        _webCallEnd() {},
    };
    assert.throws(() => new page.Calls(module).onCpu("attention", { batch: 1 }, new Map()), RangeError);
});

test("a call's numbers are those that its fields hold", () => {
    const names = ["batch", "len_kv", "window_left", "scale"];
    const texts = ["", JSON.stringify(names)];
    const module = {
        ...memory(4096),
        UTF8ToString: (at) => texts[at],
        _webCallFields: () => 1,
        _webCallPlan: () => 5,
    };
    const calls = new page.Calls(module);
    const right = { batch: 2 ** 32 - 1, len_kv: 2 ** 40, window_left: -1, scale: -0.5 };
    assert.equal(calls.plan("attention", right, null), 5);
    for (const [name, values] of Object.entries({
        batch: [undefined, NaN, 1.5, -1, 2 ** 32, "2", Infinity],
        len_kv: [undefined, NaN, 0.5, 2 ** 53],
        window_left: [NaN, 0.5, -(2 ** 53)],
        scale: [NaN, 1e39, 1e-50, Infinity, true],
    }))
        for (const value of values)
            assert.throws(
                () => calls.plan("attention", { ...right, [name]: value }, null),
                ({ message }) => message.startsWith(`${name} is ${value}; it must be`),
                `${name} ${value}`,
            );
});

test("exports keep every label readable, and say what a drawing leaves out", () => {
    const labels = ['a "b"', "one\rtwo", "\u0001\ufffe\ud800😀abc", "\u05e9\u05dc\u05d5\u05dd"],
        count = labels.length;
    const content = (columns) => ({
        name: "weights",
        rows: count,
        columns,
        rowLabels: labels,
        columnLabels: Array.from({ length: columns }, (_, n) => labels[n % count]),
        data: new Float32Array(count * columns).fill(0.5),
    });
    const lines = page.csvOf(content(1)).trim().split("\n");
    assert.deepEqual(
        lines.slice(1).map((line) => line.slice(0, -4)),
        ['"a ""b"""', '"one\rtwo"', labels[2], labels[3]],
    );
    const drawing = {
        escape: page.escape,
        fixed: page.fixed,
        colorAt: () => [0, 0, 0],
        css: () => "#000",
        inkOn: () => "#fff",
        isHidden: () => false,
    };
    for (const [columns, told] of [
        [4, false],
        [33, true],
    ]) {
        const svg = page.svgOf(content(columns), { scale: null }, drawing);
        // Characters that no XML 1.0 has would make the whole drawing unreadable.
        assert.doesNotMatch(svg, /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u);
        for (const label of ["\ufffd\ufffd\ufffd😀abc", labels[3]]) assert.ok(svg.includes(`>${label}<`));
        assert.equal(
            /4 \u00d7 33 cells are too many for their numbers and the names of the keys/.test(svg),
            told,
        );
    }
});

test("a text keeps a byte order mark at its front, and its places are those of its bytes", () => {
    const module = memory(4096),
        host = page.makeHost(
            () => module,
            () => {},
        );
    const text = new TextEncoder().encode("\ufeffab\ufeff");
    module.HEAPU8.set(text, 1024);
    const answer = (address) => {
        const count = new DataView(module.HEAPU8.buffer).getUint32(address, true);
        return { count, at: address + 4 };
    };
    const normal = answer(host.normal(0, 1024, text.length));
    assert.deepEqual(module.HEAPU8.slice(normal.at, normal.at + normal.count), text);
    const ends = answer(host.graphemes(1024, text.length)),
        view = new DataView(module.HEAPU8.buffer);
    assert.equal(view.getUint32(ends.at + 4 * (ends.count - 1), true), text.length);
    assert.throws(
        () =>
            page
                .makeHost(
                    () => memory(8),
                    () => {},
                )
                .lower(65),
        RangeError,
    );
});

test(
    "a Worker whose answer cannot be sent says so and answers the next request",
    { timeout: 10_000 },
    async () => {
        const sent = [];
        globalThis.self.postMessage = (message, { transfer = [] } = {}) => {
            structuredClone(message, { transfer });
            sent.push(message);
        };
        page.answerInTurn(
            async ({ ask }) => ask(),
            () => [],
        );
        const asked = [() => 1, () => () => {}, () => Promise.reject(new Error("no")), () => 2];
        asked.forEach((ask, id) => heard.at(-1)({ data: { id, ask } }));
        while (sent.length < asked.length) await new Promise((resolve) => setTimeout(resolve, 1));
        assert.deepEqual(
            sent.map(({ id, answer, error }) => [id, answer, error && /no|clone/.test(error)]),
            [
                [0, 1, undefined],
                [1, undefined, true],
                [2, undefined, true],
                [3, 2, undefined],
            ],
        );
    },
);

test("the server outlives a file that goes while it is read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fovea-serve-")),
        path = join(folder, "large.js");
    const { server, url } = await serve(folder);
    try {
        const fetched = () =>
            new Promise((resolve) => {
                const request = get(`${url}large.js`, (reply) => {
                    reply.resume();
                    reply.on("end", () => resolve(reply.statusCode)).on("error", () => resolve("cut"));
                });
                request.on("error", () => resolve("cut"));
                request.on("socket", () => server.once("request", () => unlinkSync(path)));
            });
        for (let n = 0; n < 5; ++n) {
            writeFileSync(path, "x".repeat(1000));
            assert.ok([200, 404, "cut"].includes(await fetched()));
        }
        writeFileSync(path, "1;");
        assert.equal((await fetch(`${url}large.js`)).status, 200);
    } finally {
        server.closeAllConnections();
        server.close();
        rmSync(folder, { recursive: true, force: true });
    }
});
