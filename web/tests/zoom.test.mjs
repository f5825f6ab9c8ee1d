// Deep zoom in a real Chromium: previews, exact tiles, numbers, and how smoothly it moves.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Lab, missing } from "./support.mjs";
import { panning, percentile, waitForExact } from "./zoom_panning.mjs";

describe("deep zoom", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });

    const ask = (page, kind, question) =>
        page.evaluate(
            ([kind, question]) => globalThis.fovea.app.engine.ask(kind, question),
            [kind, question],
        );

    async function prepared(page, tokens) {
        await ask(page, "mapBegin", { tokens });
        while ((await ask(page, "mapPrepare", { maxFlops: 1e9 })) < 1);
    }
    // Every tile of the view, computed.
    async function exact(page, view) {
        let shown = await ask(page, "mapView", view);
        while (shown.exact < shown.needed) shown = await ask(page, "mapStep", { maxFlops: 1e9 });
        return ask(page, "mapView", view);
    }

    test("a row of pixels sums to 1", async () => {
        const page = await lab.page();
        await prepared(page, 1024);
        const { pieces, level } = await exact(page, {
            row: 0,
            key: 0,
            rows: 1024,
            keys: 1024,
            width: 256,
            height: 256,
        });
        assert.equal(level, 2);
        assert.deepEqual(
            pieces.map(({ level, y, x, sampled, exact }) => [level, y, x, sampled, exact]),
            [[2, 0, 0, false, true]],
        );
        const rows = await page.evaluate(async () => {
            const { mass } = await globalThis.fovea.app.engine.ask("mapPixels", {
                level: 2,
                y: 0,
                x: 0,
                sampled: false,
            });
            return Array.from({ length: 256 }, (_, i) =>
                mass.slice(256 * i, 256 * i + 256).reduce((a, b) => a + b, 0),
            );
        });
        for (const [i, sum] of rows.entries()) assert.ok(Math.abs(sum - 1) < 1e-4, `row ${i} sums to ${sum}`);
        await page.close();
    });

    test("a pixel of one cell is the weight that a pick computes", async () => {
        const page = await lab.page();
        await prepared(page, 1024);
        const { level } = await exact(page, {
            row: 512,
            key: 256,
            rows: 256,
            keys: 256,
            width: 256,
            height: 256,
        });
        assert.equal(level, 0);
        const worst = await page.evaluate(async () => {
            const { engine } = globalThis.fovea.app,
                { max } = await engine.ask("mapPixels", { level: 0, y: 2, x: 1, sampled: false });
            let worst = 0;
            for (let n = 0; n < 200; ++n) {
                const row = (n * 37) % 256,
                    key = (n * 101) % 256;
                const weight = await engine.ask("mapCell", { query: 512 + row, key: 256 + key });
                worst = Math.max(worst, Math.abs(max[256 * row + key] - weight) / Math.max(weight, 1e-6));
            }
            return worst;
        });
        assert.ok(worst < 1e-3, `relative difference ${worst}`);
        assert.equal(await ask(page, "mapCell", { query: 3, key: 4 }), 0);
        await page.close();
    });

    test("sampled first, then exact; a click picks; panning is smooth", async (t) => {
        const page = await lab.page();
        await page.evaluate(() => {
            globalThis.tags = [];
            new MutationObserver(() =>
                globalThis.tags.push(document.getElementById("zoom-tag").textContent),
            ).observe(document.getElementById("zoom-tag"), {
                childList: true,
                characterData: true,
                subtree: true,
            });
        });
        await page.selectOption("#zoom-tokens", "4096");
        await page.click("#zoom-start");
        await waitForExact(page);
        const tags = await page.evaluate(() => globalThis.tags);
        assert.match(tags[0], /^sampled: 0 of \d+ tiles exact$/);
        assert.equal(tags.at(-1), "exact");

        const canvas = page.locator("#zoom-canvas");
        await canvas.scrollIntoViewIfNeeded();
        const box = await canvas.boundingBox();
        await canvas.click({ position: { x: box.width / 2 - 40, y: box.height / 2 + 40 } });
        await page.waitForFunction(() =>
            /^query [\d,]+, key [\d,]+: weight/.test(document.getElementById("zoom-pick").textContent),
        );
        await page.keyboard.press("Escape");
        for (let i = 0; i < 3; ++i) await page.keyboard.press("+");
        await waitForExact(page);
        const { draws, frames } = await panning(page, 80);
        const told = (list) =>
            [0.5, 0.95, 0.99].map((share) => percentile(list, share).toFixed(1)).join(" / ");
        t.diagnostic(
            `panning, p50 / p95 / p99: drawing ${told(draws)} ms, between frames ${told(frames)} ms (${frames.length} frames)`,
        );
        assert.ok(
            percentile(draws, 0.5) <= 16,
            `half of the drawings take longer than 16 ms: ${told(draws)}`,
        );
        await waitForExact(page);
        assert.deepEqual(page.faults, []);
        await page.close();
    });
});
