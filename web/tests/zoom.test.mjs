// Deep zoom in a real Chromium: previews, exact tiles, numbers, and how smoothly it moves.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { pageModules } from "./page_modules.mjs";
import { Lab, missing, settled } from "./support.mjs";
import { panning, percentile, waitForExact } from "./zoom_panning.mjs";

test("what stands out in a map is found where it was planted, and nothing in an even one", async () => {
    const { sightsOf } = await pageModules("zoom/sights.ts");
    const causal = { rows: 64, keys: 64, causal: true };
    const even = (row) => 1 / (row + 1);
    assert.deepEqual(sightsOf(causal, even), []);
    // Every row has a fifth of its weight on key 0, a tenth on key 9, and three tenths 20 back, most of all in row 50.
    const planted = (row, key) =>
        0.2 * (key === 0) + 0.1 * (key === 9) + (row === 50 ? 0.6 : 0.3) * (row - key === 20) + 0.001;
    assert.deepEqual(
        sightsOf(causal, planted).map(({ kind, at, share }) => [kind, at, Number(share.toFixed(2))]),
        [
            ["key", 0, 0.21],
            ["key", 9, 0.11],
            ["distance", 20, 0.31], // and key 9 is 20 back once
        ],
    );
    assert.equal(sightsOf(causal, planted).at(-1).row, 50);
    // Without a mask a late key counts as an early one, and with different queries and keys there are no distances.
    const late = (row, key) => 0.5 * (key === 60) + 0.5 / 80;
    assert.deepEqual(
        sightsOf({ rows: 20, keys: 80, causal: false }, late).map(({ kind, at }) => [kind, at]),
        [["key", 60]],
    );
});

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
                const { weight } = await engine.ask("mapDerive", { query: 512 + row, key: 256 + key });
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
            // The tag comes with the map's script.
            new MutationObserver(() => {
                const tag = document.getElementById("zoom-tag")?.textContent;
                if (tag && tag !== globalThis.tags.at(-1)) globalThis.tags.push(tag);
            }).observe(document.getElementById("zoom-body"), {
                childList: true,
                characterData: true,
                subtree: true,
            });
        });
        await page.setViewportSize({ width: 1366, height: 768 });
        await page.selectOption("#zoom-tokens", "4096");
        await page.click("#zoom-start");
        await waitForExact(page);
        // The map and the line of its picked cell are on a laptop's screen together.
        const [map, pick] = await Promise.all(
            ["#zoom-canvas", "#zoom-pick"].map((part) => page.locator(part).boundingBox()),
        );
        assert.ok(pick.y + pick.height - map.y <= 768 - 100, "the map is higher than the screen");
        const tags = await page.evaluate(() => globalThis.tags);
        assert.match(tags[0], /^sampled: 0 of \d+ tiles exact$/);
        assert.equal(tags.at(-1), "exact");

        const canvas = page.locator("#zoom-canvas");
        await canvas.scrollIntoViewIfNeeded();
        const box = await canvas.boundingBox();
        await canvas.click({ position: { x: box.width / 2 - 40, y: box.height / 2 + 40 } });
        await page.waitForFunction(() =>
            /^query [\d,]+, key [\d,]+: weight/.test(document.getElementById("zoom-pick")?.textContent),
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

    test("its script comes when a map is asked for; what stands out is offered, leads there, and has its digits", async () => {
        const page = await lab.context.newPage(),
            fetched = [];
        page.on("request", (r) => {
            if (/assets\/zoom-/.test(r.url())) fetched.push(r.url());
        });
        await page.goto(lab.host.url);
        await settled(page);
        assert.deepEqual(fetched, []);
        await page.selectOption("#zoom-tokens", "4096");
        await page.click("#zoom-start");
        await waitForExact(page);
        assert.equal(fetched.length, 1);
        const chips = page.locator("#zoom-sights button");
        await chips.first().waitFor();
        const names = await chips.allTextContents();
        assert.ok(
            names.some((name) => /^the first keys: [\d.]+% of a row$/.test(name)),
            names.join("; "),
        );
        assert.ok(
            names.some((name) => /tokens back: /.test(name)),
            names.join("; "),
        );
        for (let n = 0; n < names.length; ++n) {
            await chips.nth(n).click();
            await waitForExact(page);
            // The map is centered on the chip's subject: far more weight than an even row would have there.
            const share = await page.evaluate(async () => {
                const { app, zoom } = globalThis.fovea,
                    [row, key] = zoom.center.map(Math.floor);
                let most = 0;
                for (let i = -8; i < 8; ++i)
                    for (let j = -8; j < 8; ++j)
                        if (key + j >= 0)
                            most = Math.max(
                                most,
                                (row + i) *
                                    (await app.engine.ask("mapCell", { query: row + i, key: key + j })),
                            );
                return most;
            });
            assert.ok(share > 20, `${names[n]}: at most ${share} times an even share`);
        }
        // As near as it goes, each weight has its digits: their ink is neither the ground's nor the cell's.
        const inks = () =>
            page.evaluate(() => {
                const { canvas } = globalThis.fovea.zoom,
                    { data } = canvas
                        .getContext("2d")
                        .getImageData(
                            0.3 * canvas.width,
                            0.3 * canvas.height,
                            0.2 * canvas.width,
                            0.2 * canvas.height,
                        );
                return new Set(new Uint32Array(data.buffer)).size;
            });
        await chips.first().click();
        for (let n = 0; n < 9; ++n) await page.click("#zoom-in");
        await waitForExact(page);
        await page.waitForTimeout(200);
        const near = await inks();
        for (let n = 0; n < 2; ++n) await page.click("#zoom-out");
        await page.waitForTimeout(200);
        assert.ok(near > 2 * (await inks()), "no digits");
        await page.close();
    });

    test("the wheel moves the page until the map was clicked, then it zooms, and the note says so", async () => {
        const page = await lab.page();
        await page.selectOption("#zoom-tokens", "4096");
        await page.click("#zoom-start");
        await waitForExact(page);
        assert.match(await page.textContent("#zoom-note"), /after a click the wheel alone does it/);
        const canvas = page.locator("#zoom-canvas"),
            near = () => page.evaluate(() => globalThis.fovea.zoom.cellsPerPixel);
        await page.evaluate(() => {
            document.activeElement.blur();
            document.getElementById("zoom-canvas").scrollIntoView({ block: "center", behavior: "instant" });
        });
        const before = await near(),
            at = await page.evaluate(() => scrollY);
        await canvas.hover();
        await page.mouse.wheel(0, -100);
        await page.waitForFunction((at) => scrollY < at, at);
        assert.equal(await near(), before);
        await canvas.click();
        await page.mouse.wheel(0, -100);
        await page.waitForFunction((before) => globalThis.fovea.zoom.cellsPerPixel < before, before);
        assert.deepEqual(page.faults, []);
        await page.close();
    });

    test("long texts say how long they take, and can be stopped", async () => {
        const page = await lab.page();
        await page.selectOption("#zoom-tokens", "262144");
        await page.click("#zoom-start");
        await page.waitForFunction(
            () =>
                /^Forward pass: [\d.]+%, about \d+ (minute|hour)s? left$/.test(
                    document.getElementById("zoom-progress").textContent,
                ),
            undefined,
            { timeout: 60_000 },
        );
        await page.click("#zoom-stop");
        assert.ok(await page.isVisible("#zoom-start"));
        assert.equal(await page.textContent("#zoom-progress"), "");
        // The engine is free for other work, and a shorter map comes in its place.
        await page.selectOption("#zoom-tokens", "4096");
        await page.click("#zoom-start");
        await waitForExact(page);
        assert.ok(await page.isHidden("#zoom-stop"));
        assert.deepEqual(page.faults, []);
        await page.close();
    });
});
