// Where things stand at the widths that the page is made for: what is in sight, what is whole, what lies on what.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Lab, missing, settled, withPages } from "./support.mjs";

describe("the layout", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    for (const width of [360, 768, 800, 1200, 1366, 1440])
        test(
            `nothing runs over the edge at ${width} px`,
            withPage({ viewport: { width, height: 900 }, hash: "#v=1&level=5" }, async (page) => {
                assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
                // A row of tools, every level's name from a laptop on, and the steps within their column.
                const edges = await page.evaluate(() => {
                    const box = (name) => document.querySelector(name).getBoundingClientRect();
                    const levels = document.querySelector(".levels");
                    return {
                        steps: box(".products").right - box(".products").left - box("#inspector").width,
                        tools: box(".stage-tools").height,
                        levels: levels.scrollWidth - levels.clientWidth,
                    };
                });
                assert.ok(edges.steps <= 0.5, `the steps are ${edges.steps} px too wide`);
                if (width < 900) assert.ok(edges.tools < 60, `tools take ${edges.tools} px`);
                if (width >= 1200) assert.equal(edges.levels, 0);
                const small = await page.$$eval(
                    "button, select, summary, .check, .segmented label, a[data-level]",
                    (all, phone) =>
                        phone
                            ? all
                                  .filter((e) => e.offsetParent && e.getBoundingClientRect().height < 44)
                                  .map((e) => e.outerHTML.slice(0, 80))
                            : [],
                    width < 500,
                );
                assert.deepEqual(small, []);
            }),
        );

    // The columns beside a learned head's matrix are longer than it: it stays in sight, so that nothing lies empty.
    for (const [width, height] of [
        [1440, 900],
        [1366, 768],
        [1024, 768],
    ])
        test(
            `a learned head is whole in the first screen, and stays beside its steps, at ${width} x ${height}`,
            withPage({ viewport: { width, height }, hash: "" }, async (page) => {
                const edges = () =>
                    page.evaluate(() => {
                        const { matrix } = globalThis.fovea.workbench,
                            { rows, columns } = matrix.current;
                        return [
                            matrix.cellBox(0, 0).top,
                            matrix.cellBox(rows - 1, columns - 1).bottom,
                            document.getElementById("inspector").getBoundingClientRect().bottom,
                        ];
                    });
                const [, bottom, steps] = await edges();
                assert.ok(bottom <= height, `the last row ends at ${bottom}`);
                assert.ok(steps > height, "the steps go on below");
                await page.evaluate((by) => scrollBy(0, by), steps - height);
                await settled(page);
                const [top, after] = await edges();
                assert.ok(top > 53 && after <= height, `rows lie at ${top} to ${after}`);
            }),
        );

    test(
        "on a phone the closed sheet shows whole lines beside its button; words of a sum are not broken on a tablet",
        withPage(
            { viewport: { width: 360, height: 740 }, hash: "#v=1&level=4&stage=context&i=2&j=1" },
            async (page) => {
                for (const stage of ["context", "masked"]) {
                    await page.evaluate((id) => globalThis.fovea.app.change({ stage: id }), stage);
                    await settled(page);
                    const [sheet, button, note, label] = await page.evaluate(() =>
                        ["#inspect-box", "#sheet", "#inspector .note", "#inspector .label"].map((name) =>
                            document.querySelector(name).getBoundingClientRect(),
                        ),
                    );
                    assert.ok(
                        note.bottom <= sheet.bottom,
                        `${stage}: the note ends at ${note.bottom} of ${sheet.bottom}`,
                    );
                    assert.ok(note.right <= button.left, `${stage}: the button lies on the note`);
                    assert.ok(label.bottom <= button.top, `${stage}: the button lies on the label`);
                }
                await page.setViewportSize({ width: 768, height: 1024 });
                await page.evaluate(() => globalThis.fovea.app.change({ stage: "context" }));
                await settled(page);
                const tall = await page.$$eval("#inspector .products tbody th", (all) =>
                    all.map((th) => th.getBoundingClientRect().height),
                );
                assert.equal(tall.length, 6);
                assert.ok(Math.max(...tall) < 32, `rows of ${tall} px`);
            },
        ),
    );

    for (const width of [360, 768, 1024, 1440])
        test(
            `the list of colours stands whole beside its scale at ${width} px`,
            withPage({ viewport: { width, height: 900 }, hash: "" }, async (page) => {
                await page.selectOption("#map", "blue-orange");
                const [list, needed, below] = await page.evaluate(() => {
                    const map = document.getElementById("map"),
                        box = map.getBoundingClientRect(),
                        free = map.cloneNode(true);
                    free.style.position = "absolute";
                    document.body.append(free);
                    const { width: needed } = free.getBoundingClientRect();
                    free.remove();
                    return [
                        box.width,
                        needed,
                        box.top - document.getElementById("bar").getBoundingClientRect().bottom,
                    ];
                });
                assert.ok(list >= needed - 0.5, `${list} px of ${needed}`);
                assert.ok(below < 24, `${below} px below its scale`);
            }),
        );
});
