// Deep zoom of a reader's own: the typed text, all of it, and tensors from a file, with their masks and heads. What a map says
// of a cell is the weight that the page's matrix has there, or that plain loops in float64 compute.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { npyOf, npzOf } from "./numpy_files.mjs";
import { Lab, missing, settled, stageValues, withPages } from "./support.mjs";
import { waitForExact } from "./zoom_panning.mjs";

const ramp = (count, step) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * step));

describe("a map of one's own", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    const open = async (page) => {
        await settled(page);
        await page.selectOption("#zoom-tokens", "own");
        // A map that is there follows by itself.
        if (await page.isVisible("#zoom-start")) await page.click("#zoom-start");
        await settled(page);
        await waitForExact(page);
    };
    const give = (page, tensors) =>
        page.setInputFiles("#file", {
            name: "mine.npz",
            mimeType: "application/zip",
            buffer: npzOf(Object.fromEntries(Object.entries(tensors).map(([key, t]) => [key, npyOf(...t)]))),
        });
    const size = (page) => page.evaluate(() => [globalThis.fovea.zoom.rows, globalThis.fovea.zoom.keys]);
    // The weights of the map's first `rows` queries, cell by cell, and by the derivation of each cell.
    const cells = (page, rows, keys) =>
        page.evaluate(
            async ([rows, keys]) => {
                const { engine } = globalThis.fovea.app,
                    map = [],
                    derived = [];
                for (let query = 0; query < rows; ++query)
                    for (let key = 0; key < keys; ++key) {
                        map.push(await engine.ask("mapCell", { query, key }));
                        derived.push((await engine.ask("mapDerive", { query, key })).weight);
                    }
                return { map, derived };
            },
            [rows, keys],
        );
    const close = (actual, expected, what) => {
        assert.equal(actual.length, expected.length);
        actual.forEach((value, n) =>
            assert.ok(
                Math.abs(value - expected[n]) < 2e-5,
                `${what}, cell ${n}: ${value}, expected ${expected[n]}`,
            ),
        );
    };
    // The map of what is shown has the numbers of the matrix above it.
    const agrees = async (page) => {
        const { values, shape } = await stageValues(page, "weights"),
            rows = Math.min(shape.at(-2), 7),
            keys = shape.at(-1);
        const { map, derived } = await cells(page, rows, keys);
        close(map, values.slice(0, rows * keys), "map");
        close(derived, values.slice(0, rows * keys), "derivation");
    };

    for (const [name, hash] of [
        ["level 2", "#v=1&level=2"],
        ["a window and softcap", "#v=1&level=3&mask=window&win=2&cap=1.5"],
        ["a pattern and distance bias", "#v=1&level=3&mask=strided&alibi=1&temp=0.7"],
        ["the mask after the softmax, dropout", "#v=1&level=4&route=after"],
        ["the fifth head of level 7", "#v=1&level=7&len=16&head=4&kv=4"],
        ["a head of the second layer of a model that learned", "#v=1&task=induction&head=2"],
    ])
        test(
            `the typed text's map is its matrix: ${name}`,
            withPage({ hash }, async (page) => {
                await open(page);
                await agrees(page);
            }),
        );

    test(
        "all of a long text, not the first 128 words; its words stand along the map; a pick has its arithmetic; a link leads there",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const words = Array.from({ length: 300 }, (_, n) => `w${n}`);
            await page.fill("#text", words.join(" "));
            await settled(page);
            await page.click('#stage-about [href="#zoom"]'); // "Deep zoom shows them all"
            await waitForExact(page);
            assert.deepEqual(await size(page), [300, 300]);
            // A causal mask hides what the matrix lacks: its rows are the map's.
            const { values } = await stageValues(page, "weights"),
                { map, derived } = await cells(page, 5, 5),
                block = [0, 1, 2, 3, 4].flatMap((i) => values.slice(128 * i, 128 * i + 5));
            close(map, block, "map");
            close(derived, block, "derivation");
            // The last row, which the page's matrix does not have, sums to 1.
            const sum = await page.evaluate(async () => {
                let sum = 0;
                for (let key = 0; key < 300; ++key)
                    sum += await globalThis.fovea.app.engine.ask("mapCell", { query: 299, key });
                return sum;
            });
            assert.ok(Math.abs(sum - 1) < 1e-4, `the last row sums to ${sum}`);
            // Near enough each row and column has its word.
            await page.evaluate(() => {
                const { zoom } = globalThis.fovea,
                    { fillText } = CanvasRenderingContext2D.prototype;
                globalThis.written = [];
                CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
                    globalThis.written.push(text);
                    return fillText.call(this, text, ...at);
                };
                zoom.center = [250, 240];
                zoom.cellsPerPixel = 1 / 30;
                zoom.view();
            });
            await waitForExact(page);
            await settled(page);
            const written = await page.evaluate(() => globalThis.written);
            for (const text of ["w250", "w240", "key →", "query ↓"]) assert.ok(written.includes(text), text);
            assert.ok(
                written.some((text) => /^\.\d\d$/.test(text)),
                "no digits",
            );
            await page.focus("#zoom-canvas");
            await page.keyboard.press("Enter");
            await page.waitForFunction(() => document.querySelector("#zoom-steps .big"));
            assert.match(
                await page.textContent("#zoom-pick"),
                /^query 250, key 240: weight [\d.]+(e−\d+)? \(w250 → w240\)$/,
            );
            const steps = await page.textContent("#zoom-steps");
            for (const part of [/q · k/, /largest of the row/, /sum of the row/, /one of 251 keys/, /lse is/])
                assert.match(steps, part);
            assert.ok(
                await page.evaluate(() => {
                    const map = document.getElementById("zoom-canvas").getBoundingClientRect(),
                        steps = document.getElementById("zoom-steps").getBoundingClientRect();
                    return steps.left >= map.right && steps.top < map.bottom;
                }),
                "the steps are beside the map",
            );
            // A shorter text follows at once, and a link holds it.
            await page.fill("#text", "one two three four");
            await page.waitForFunction(() => globalThis.fovea.zoom.rows === 4);
            await waitForExact(page);
            await agrees(page);
            await page.click("#zoom-fit");
            await page.waitForFunction(() => /zoom=own,/.test(location.hash));
            const link = page.url();
            await page.goto("about:blank");
            await page.goto(link);
            await settled(page);
            await waitForExact(page);
            assert.deepEqual(await size(page), [4, 4]);
            await page.waitForFunction(
                () => Math.abs(document.getElementById("zoom").getBoundingClientRect().top) < innerHeight / 2,
            );
            await agrees(page);
        }),
    );

    test(
        "level 7 with 4,096 tokens, of which the matrix shows 1,024",
        withPage({ hash: "#v=1&level=7&len=4096" }, async (page) => {
            assert.match(
                await page.textContent("#stage-about"),
                /The text has 4096 tokens; level 7 shows the first 1024/,
            );
            await open(page);
            assert.deepEqual(await size(page), [4096, 4096]);
            const { values } = await stageValues(page, "weights"),
                { map } = await cells(page, 3, 3);
            close(
                map,
                [0, 1, 2].flatMap((i) => values.slice(1024 * i, 1024 * i + 3)),
                "map",
            );
        }),
    );

    test(
        "own tensors with grouped heads and a mask: the map is of the head in view",
        withPage({ hash: "#v=1&level=3&alibi=1" }, async (page) => {
            await give(page, {
                q: [[4, 9, 8], ramp(4 * 9 * 8, 0.7)],
                k: [[2, 9, 8], ramp(2 * 9 * 8, 1.3)],
            });
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens.length === 9);
            for (const head of [0, 3]) {
                await page.evaluate((head) => globalThis.fovea.app.change({ head }), head);
                await open(page);
                await agrees(page);
            }
            // Crossed: as many queries as it has, and keys.
            await give(page, { q: [[5, 4], ramp(20, 0.7)], k: [[9, 4], ramp(36, 1.3)] });
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.keyTokens.length === 9);
            await open(page);
            assert.deepEqual(await size(page), [5, 9]);
            await agrees(page);
        }),
    );

    test(
        "tensors of more than 4,096 tokens are a map, of any of their heads",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const [heads, kv, rows, dim] = [4, 2, 5000, 4];
            const q = ramp(heads * rows * dim, 0.7),
                k = ramp(kv * rows * dim, 1.3);
            await give(page, { q: [[heads, rows, dim], q], k: [[kv, rows, dim], k] });
            await page.click("#own-show");
            await waitForExact(page);
            assert.match(
                await page.textContent("#own-note"),
                /whole matrix is shown up to 4,096 tokens: its map is under Deep zoom/,
            );
            assert.equal(await page.inputValue("#zoom-tokens"), "file");
            const expected = (head, row, key) => {
                const dot = (j) => {
                    let sum = 0;
                    for (let d = 0; d < dim; ++d)
                        sum +=
                            q[(head * rows + row) * dim + d] * k[(Math.floor(head / 2) * rows + j) * dim + d];
                    return Math.exp(sum / 2);
                };
                let sum = 0;
                for (let j = 0; j <= row; ++j) sum += dot(j);
                return dot(key) / sum;
            };
            const weight = (query, key) =>
                page.evaluate((cell) => globalThis.fovea.app.engine.ask("mapCell", cell), { query, key });
            for (const head of [0, 3]) {
                await page.selectOption("#zoom-head", { value: String(head) });
                await waitForExact(page);
                for (const [row, key] of [
                    [0, 0],
                    [100, 7],
                    [4999, 4998],
                ]) {
                    const w = expected(head, row, key);
                    assert.ok(
                        Math.abs((await weight(row, key)) - w) < 1e-4 * w,
                        `head ${head}, ${row}, ${key}: ${await weight(row, key)}, expected ${w}`,
                    );
                }
                assert.equal(await weight(3, 4), 0);
            }
            // It cannot be in an address: nothing of it is written there.
            await page.click("#zoom-in");
            await page.waitForTimeout(600);
            assert.doesNotMatch(page.url(), /zoom=/);
        }),
    );

    test(
        "what a map cannot be of is said in words",
        withPage({ hash: "#v=1&level=3&mask=strided" }, async (page) => {
            const rows = 9000;
            await give(page, { q: [[rows, 2], ramp(rows * 2, 0.7)], k: [[rows, 2], ramp(rows * 2, 1.3)] });
            await page.click("#own-show");
            await page.waitForFunction(() =>
                /mask is strided over 9000 x 9000 cells/.test(document.getElementById("notice").textContent),
            );
            assert.ok(await page.isVisible("#zoom-start"));
        }),
    );

    test(
        "the memory of a map goes to the next one",
        withPage({}, async (page) => {
            const bytes = async (tokens) => {
                await page.evaluate(
                    (tokens) => globalThis.fovea.app.engine.ask("mapBegin", { tokens }),
                    tokens,
                );
                return (await page.evaluate(() => globalThis.fovea.app.engine.ask("facts", null))).bytes;
            };
            const first = await bytes(100_000);
            await bytes(1);
            for (let n = 0; n < 3; ++n) assert.equal(await bytes(100_000), first);
        }),
    );
});
