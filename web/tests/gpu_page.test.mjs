// The page with a GPU, with one that computes wrong numbers, one that is lost, and with none: the words in the badge, and the
// same numbers whoever computes. The GPU is Chromium's adapter in software, which the page takes for these tests alone.
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

const on = (engine, use) => async () => {
    const page = await lab.page("", { query: `?engine=${engine}`, live: false });
    try {
        // A program in place of a GPU takes seconds for each pipeline, on a busy machine tens of them.
        await page.waitForFunction(() => globalThis.fovea?.app?.engine.info, undefined, { timeout: 300_000 });
        await use(page);
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
        assert.match(title, /no GPU: WebGPU has a program in place of a GPU/);
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

test(
    "a GPU whose numbers differ from the processor's is not used, and the badge says so",
    { skip: missing ?? false },
    on("webgpu-damaged", async (page) => {
        const { text, title } = await badge(page);
        assert.match(text, /no GPU/);
        assert.match(title, /this GPU computes something else: a mask with an empty row.*on the CPU/);
    }),
);
