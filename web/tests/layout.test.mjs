// Tests the layout at the widths that the page is made for: visible parts, complete parts, overlaps.
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

    // The columns next to a trained head's matrix are longer than the matrix: it stays visible, so that no area is
    // empty.
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
                            { rows, columns } = matrix.content;
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

    for (const [width, height, hash] of [
        [1366, 768, "#v=1&level=7"],
        [1024, 768, "#v=1&level=7"],
        [1024, 768, ""],
        [768, 1024, "#v=1&level=7"],
        [768, 1024, ""],
    ])
        test(
            `the whole way is one row of matrices on one screen at ${width} x ${height}${hash ? "" : ", of a model that learned"}`,
            withPage({ viewport: { width, height }, hash }, async (page) => {
                await page.evaluate(() => document.getElementById("flow").scrollIntoView());
                await settled(page);
                const columns = await page.$$eval("#flow-body > li", (all) =>
                    all
                        .map((e) => e.getBoundingClientRect())
                        .map(({ x, y, right, height }) => [x, y + height / 2, right]),
                );
                assert.ok(columns.length >= 7);
                for (const [n, [left, middle, right]] of columns.entries()) {
                    assert.ok(Math.abs(middle - columns[0][1]) < 1, `column ${n} is in another row`);
                    assert.ok(right <= width && (n === 0 || left >= columns[n - 1][2]));
                }
                const bottom = await page.$eval("#flow-body", (e) => e.getBoundingClientRect().bottom);
                assert.ok(bottom <= height, `it ends at ${bottom}`);
            }),
        );

    for (const [width, height] of [
        [1024, 768],
        [360, 740],
    ])
        test(
            `twelve heads are a row that leaves room for the picked one's matrix at ${width} x ${height}`,
            withPage({ viewport: { width, height }, hash: "#v=1&task=text" }, async (page) => {
                const seen = () =>
                    page.evaluate(() => {
                        const { matrix } = globalThis.fovea.workbench,
                            row = document.querySelector(".learned-heads").getBoundingClientRect(),
                            head = document
                                .querySelector(".learned-heads [aria-pressed=true]")
                                .getBoundingClientRect();
                        return {
                            rows: (innerHeight - matrix.cellBox(0, 0).top) / matrix.layout.cell,
                            within: head.left >= row.left - 1 && head.right <= row.right + 1,
                            head: head.left,
                        };
                    });
                const first = await seen();
                assert.ok(first.rows >= 12, `${first.rows} rows in the first screen`);
                assert.ok(first.within, "the picked head is in sight");
                await page.evaluate(() => globalThis.fovea.app.change({ head: 0 }));
                await settled(page);
                assert.ok((await seen()).within, "and so is the next one that is picked");
            }),
        );

    test(
        "a projector's larger type keeps sums, products and numbers of cells within their places",
        withPage({ viewport: { width: 1024, height: 768 }, hash: "#v=1&level=3&big=1" }, async (page) => {
            const { over, room } = await page.evaluate(() => {
                const inner = document.getElementById("inspector").getBoundingClientRect(),
                    { left, width, cell } = globalThis.fovea.workbench.matrix.layout,
                    context = document.createElement("canvas").getContext("2d");
                context.font = `450 ${12 * 1.4}px ${getComputedStyle(document.body).fontFamily}`;
                return {
                    over: document.querySelector(".products").getBoundingClientRect().right - inner.right,
                    room: width - left - 6 * cell - 8 - context.measureText("1.000").width,
                };
            });
            assert.ok(over <= 0.5, `the products end ${over} px behind their column`);
            assert.ok(room >= 0, `sums lack ${-room} px`);
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
            `the list of colors stands whole beside its scale at ${width} px`,
            withPage({ viewport: { width, height: 900 }, hash: "" }, async (page) => {
                await page.selectOption("#colormap", "blue-orange");
                const [list, needed, below] = await page.evaluate(() => {
                    const map = document.getElementById("colormap"),
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
