// The page with a GPU, with one that computes wrong numbers, one that is lost, and with none: the text of the badge,
// and the same numbers on every device. The GPU is Chromium's software adapter, which the page accepts only for these
// tests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gpuArgs } from "./gpu_player.mjs";
import { Lab, missing } from "./support.mjs";

let lab;
before(async () => {
    if (!missing) lab = await Lab.open({ context: { args: gpuArgs } });
});
after(() => lab?.close());

const tokens = 512,
    cells = [
        [0, 0],
        [100, 50],
        [500, 499],
        [300, 0],
    ];

// A sequence of the deep zoom: the weights of some cells, the mass of the tile of the whole map, and who computed.
const explored = (page) =>
    page.evaluate(
        async ([tokens, cells]) => {
            const { engine } = globalThis.fovea.app;
            await engine.ask("mapBegin", { tokens });
            for (let progress = 0; progress < 1;)
                progress = await engine.ask("mapPrepare", { maxFlops: 1e9 });
            const weights = [];
            for (const [query, key] of cells) weights.push(await engine.ask("mapCell", { query, key }));
            let shown = await engine.ask("mapView", {
                ...{ row: 0, key: 0, rows: tokens, keys: tokens },
                ...{ width: 256, height: 256 },
            });
            let pieces = shown.pieces;
            while (shown.exact < shown.needed) {
                shown = await engine.ask("mapStep", { maxFlops: 1e9 });
                pieces = shown.pieces ?? pieces;
            }
            const exact = pieces.filter((piece) => piece.exact);
            let mass = 0;
            for (const { level, y, x, sampled } of exact)
                for (const value of (await engine.ask("mapPixels", { level, y, x, sampled })).mass)
                    mass += value;
            await engine.lookAtGpu();
            return { weights, mass, tiles: exact.length, gpu: engine.info.gpu };
        },
        [tokens, cells],
    );

const badge = async (page) => ({
    text: await page.textContent("#badge-text"),
    title: await page.getAttribute("#badge", "title"),
});

let expected; // by the CPU

function near(got) {
    got.weights.forEach((weight, n) =>
        assert.ok(
            Math.abs(weight - expected.weights[n]) <= 1e-5 * Math.max(1e-3, expected.weights[n]),
            `cell ${cells[n]}: ${weight}, expected ${expected.weights[n]}`,
        ),
    );
    assert.equal(got.tiles, expected.tiles);
    assert.ok(Math.abs(got.mass - expected.mass) < 1e-3, `mass ${got.mass}, expected ${expected.mass}`);
}

const on = (engine, use) => async (t) => {
    const page = await lab.page("", { query: `?engine=${engine}`, live: false });
    try {
        // A program in place of a GPU takes seconds for each pipeline, on a busy machine tens of them.
        await page.waitForFunction(() => globalThis.fovea?.app?.engine.info, undefined, { timeout: 300_000 });
        await use(page, t);
        assert.deepEqual(page.faults, []);
    } finally {
        await page.close();
    }
};

// Takes the device away after `calls` more submissions.
const loseDevice = (page, after) =>
    page.workers()[0].evaluate((after) => {
        const { submit } = GPUQueue.prototype,
            { createBuffer } = GPUDevice.prototype;
        let device,
            left = after;
        GPUDevice.prototype.createBuffer = function (...given) {
            device = this;
            return createBuffer.apply(this, given);
        };
        GPUQueue.prototype.submit = function (...given) {
            submit.apply(this, given);
            if (--left === 0) device.destroy();
        };
    }, after);

test(
    "without a GPU the processor computes, and the badge's title says why",
    { skip: missing ?? false },
    on("wasm", async (page) => {
        expected = await explored(page);
        assert.ok(expected.tiles > 0);
        near(expected);
        assert.deepEqual(expected.gpu, {
            name: "",
            reason: "the address asks for WebAssembly (engine=wasm)",
        });
        assert.match((await badge(page)).title, /no GPU: the address asks/);
    }),
);

test(
    "an adapter that is a program is refused unless a test asks for it",
    { skip: missing ?? false },
    on("webgpu", async (page) => {
        const { text, title } = await badge(page);
        assert.doesNotMatch(text, /WebGPU/);
        assert.match(title, /no GPU: only a software WebGPU adapter is available/);
    }),
);

test(
    "the deep zoom's numbers come from the GPU and are the same, and a device that is lost is replaced once",
    { skip: missing ?? false },
    on("webgpu-software", async (page) => {
        const got = await explored(page);
        near(got);
        assert.match(got.gpu.name, /swiftshader/);
        const { text, title } = await badge(page);
        assert.match(text, /WebGPU/);
        assert.match(title, /deep zoom on .*swiftshader/);

        // Lost once: opened again. Lost twice: given up.
        await loseDevice(page, 3);
        const again = await explored(page);
        near(again);
        assert.match(again.gpu.name, /swiftshader/);
        await loseDevice(page, 3);
        const given = await explored(page);
        near(given);
        assert.equal(given.gpu.name, "");
        assert.match(given.gpu.reason, /^the GPU was lost twice: /);
        assert.match((await badge(page)).text, /no GPU/);
    }),
);

const ramp = (count, step) => Array.from({ length: count }, (_, i) => Math.sin(i * step));
// One page for all: each opened device compiles its kernels anew.
test(
    "a reader's own map comes from the GPU",
    { skip: missing ?? false },
    on("webgpu-software", async (page, t) => {
        const submitted = () => page.workers()[0].evaluate(() => globalThis.submitted);
        await page.workers()[0].evaluate(() => {
            const { submit } = GPUQueue.prototype;
            globalThis.submitted = 0;
            GPUQueue.prototype.submit = function (...given) {
                ++globalThis.submitted;
                return submit.apply(this, given);
            };
        });
        for (const [name, address, rows, keys, dim] of [
            ["level 7 with 4,096 tokens", "#v=1&level=7&len=4096", 4096, 4096, 0],
            ["tensors of 128 columns, not as many queries as keys", "#v=1&level=2", 300, 500, 128],
            ["tensors of 8 columns, causal", "#v=1&level=3", 300, 300, 8],
        ])
            await t.test(name, async () => {
                const ask = (kind, question) =>
                    page.evaluate(
                        ([kind, question]) => globalThis.fovea.app.engine.ask(kind, question),
                        [kind, question],
                    );
                const [q, k] = dim ? [ramp(rows * dim, 0.7), ramp(keys * dim, 1.3)] : [];
                const of = await page.evaluate(
                    ([address, rows, keys, dim, q, k]) =>
                        globalThis.fovea.app.engine.ask("mapSession", {
                            address,
                            own: dim
                                ? {
                                      ...{ head: 0, heads: 1, rows, keys, dim },
                                      ...{ q: Float32Array.from(q), k: Float32Array.from(k) },
                                  }
                                : null,
                        }),
                    [address, rows, keys, dim, q, k],
                );
                assert.deepEqual([of.rows, of.keys], [rows, keys]);
                const before = await submitted();
                while ((await ask("mapPrepare", { maxFlops: 1e9 })) < 1);
                const forward = await submitted();
                assert.ok(forward > before, "the forward pass ran on the processor");
                // A tile where each pixel is a cell, in the last rows.
                let shown = await ask("mapView", {
                    ...{ row: rows - 200, key: keys - 200, rows: 200, keys: 200 },
                    ...{ width: 200, height: 200 },
                });
                while (shown.exact < shown.needed) shown = await ask("mapStep", { maxFlops: 1e9 });
                assert.ok((await submitted()) > forward, "the tiles were computed by the processor");
                const worst = await page.evaluate(
                    async ([row, key]) => {
                        const { engine } = globalThis.fovea.app,
                            side = 256;
                        let worst = 0;
                        for (let n = 0; n < 20; ++n) {
                            const i = row - ((7 * n) % 40),
                                j = key - ((11 * n) % 40);
                            const { max } = await engine.ask("mapPixels", {
                                ...{ level: 0, y: Math.floor(i / side), x: Math.floor(j / side) },
                                sampled: false,
                            });
                            const { weight } = await engine.ask("mapDerive", { query: i, key: j });
                            worst = Math.max(
                                worst,
                                Math.abs(max[side * (i % side) + (j % side)] - weight) /
                                    Math.max(weight, 1e-4),
                            );
                        }
                        return worst;
                    },
                    [rows - 1, keys - 1],
                );
                assert.ok(worst < 1e-3, `relative difference ${worst}`);
            });
    }),
);

test(
    "a GPU whose numbers differ from the processor's is not used, and the badge says so",
    { skip: missing ?? false },
    on("webgpu-damaged", async (page) => {
        const { text, title } = await badge(page);
        assert.match(text, /no GPU/);
        assert.match(title, /the results of this GPU are wrong \(a mask with an empty row.*on the CPU/);
    }),
);
