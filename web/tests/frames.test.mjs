// Tests the cost and the contents of a frame: a letter takes one layout beyond the field's own, a pick two. Nothing
// moves while the page loads.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Lab, missing, settled } from "./support.mjs";
import { keyCosts } from "./key_costs.mjs";

describe("frames", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });

    for (const [name, words] of [
        ["6 tokens", 6],
        ["128 tokens", 128],
    ])
        test(`a letter typed costs a layout, a pick moved two: ${name}`, async (t) => {
            const page = await lab.page(`#v=1&level=2&text=${Array(words).fill("word").join("+")}`);
            const costs = await keyCosts(page, 20);
            await page.close();
            for (const [what, { layouts, ms }] of Object.entries(costs))
                t.diagnostic(`${what}: ${layouts} layouts, ${ms.toFixed(1)} ms of the main thread (medians)`);
            assert.ok(costs.letter.layouts <= costs.field.layouts + 1, "a letter's numbers take one layout");
            // One for what a screen reader is told, one for the values. Repeated words have an index in both.
            assert.ok(costs.arrow.layouts <= 2, "a pick takes two layouts");
        });

    test("what is written over old numbers reads as if the page had been opened there", async () => {
        const page = await lab.page("#v=1&level=4&text=a+quiet+word+or+two+and+a+b"),
            inspector = (p) => p.evaluate(() => document.getElementById("inspector").innerHTML);
        const seen = new Set();
        const compare = async () => {
            await settled(page);
            const other = await lab.page(
                    await page.evaluate(() => globalThis.fovea.toHash(globalThis.fovea.app.state)),
                ),
                fresh = await inspector(other);
            await other.close();
            seen.add(fresh);
            assert.equal(await inspector(page), fresh);
        };
        await page.focus("#text");
        await page.keyboard.press("End");
        for (const key of "xy<&z") {
            await page.keyboard.type(key);
            await compare();
        }
        await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
        for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowRight", "End"]) {
            await page.keyboard.press(key);
            await compare();
        }
        assert.equal(seen.size, 11, "each key changes the arithmetic that is shown");
        assert.deepEqual(page.faults, []);
        await page.close();
    });

    test("an idle page does nothing: no layout, no style, next to no time of its thread", async (t) => {
        const page = await lab.page(),
            session = await page.context().newCDPSession(page);
        await session.send("Performance.enable", { timeDomain: "threadTicks" });
        const counts = async () =>
            Object.fromEntries(
                (await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [
                    name,
                    value,
                ]),
            );
        await page.waitForTimeout(1500); // remains of the last frame
        const before = await counts();
        await page.waitForTimeout(3000);
        const after = await counts(),
            of = (name) => after[name] - before[name];
        t.diagnostic(`${of("LayoutCount")} layouts, ${(1000 * of("TaskDuration")).toFixed(1)} ms in 3 s`);
        assert.deepEqual([of("LayoutCount"), of("RecalcStyleCount")], [0, 0]);
        assert.ok(of("ScriptDuration") < 0.005 && of("TaskDuration") < 0.06);
        await page.close();
    });

    // The measure of Core Web Vitals, https://web.dev/articles/cls: from 0.1 on a page is called unsteady.
    for (const [width, height, address] of [
        [1366, 768, ""],
        [1350, 940, ""],
        [1024, 768, ""],
        [360, 740, ""],
        [412, 823, ""],
        [1366, 768, "#v=1&level=4"],
        [360, 740, "#v=1&level=6&text=a+b+c+d"],
        [1024, 768, "#v=1&task=sort"],
    ])
        test(`nothing moves while the page loads: ${width} x ${height}, address '${address}'`, async () => {
            const page = await lab.context.newPage();
            await page.setViewportSize({ width, height });
            await page.addInitScript(() => {
                globalThis.moved = [];
                new PerformanceObserver((list) =>
                    globalThis.moved.push(
                        ...list.getEntries().map(({ value, sources }) => ({
                            value,
                            what: sources.map(({ node }) => node?.id || node?.className || node?.nodeName),
                        })),
                    ),
                ).observe({ type: "layout-shift", buffered: true });
            });
            await page.goto(lab.host.url + address);
            await settled(page);
            assert.ok(await page.isVisible("#matrix"));
            const moved = await page.evaluate(() => globalThis.moved),
                sum = moved.reduce((all, { value }) => all + value, 0);
            assert.ok(await page.evaluate(() => document.documentElement.classList.contains("is-live")));
            assert.ok(sum < 0.02, `layout shift ${sum.toFixed(3)}: ${JSON.stringify(moved)}`);
            await page.close();
        });
});
