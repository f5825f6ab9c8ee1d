// Heads that learned: the first picture, its names, what the model says, heads that are off, the other tasks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { Lab, missing, settled, stageValues, withPages } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

describe("heads that learned", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);
    const names = (page) => page.$$eval("#learned b", (all) => all.map((e) => e.textContent));
    const state = (page) => page.evaluate(() => globalThis.fovea.app.state);

    test(
        "a first visit shows heads by what they do, computed for the reader's own sequence; one click leads to the levels and back",
        withPage({ hash: "" }, async (page) => {
            assert.deepEqual(await names(page), [
                "previous token",
                "no clear role",
                "induction",
                "induction",
            ]);
            assert.match(await page.textContent("#learned"), /else first token/);
            // The picked weight is the one of "a" looking at what came after "a" last time.
            const { shape, values } = await stageValues(page, "weights");
            assert.deepEqual(shape, [20, 20]);
            assert.ok(values[14 * 20 + 10] > 0.5);
            assert.match(
                await page.textContent("#inspector .big"),
                new RegExp(values[14 * 20 + 10].toFixed(4)),
            );
            assert.match(
                await page.textContent("#said .note"),
                /After a₁₄ the model says f, and is 8\d% sure/,
            );
            assert.equal(await page.evaluate(() => location.hash), "");
            // Letters that the model never saw in this order: the head finds them all the same.
            await page.fill("#text", "quartz quartz");
            await settled(page);
            const typed = (await stageValues(page, "weights")).values;
            assert.equal(typed.length, 13 * 13);
            assert.ok(typed[8 * 13 + 3] > 0.5, "the second u looks at what came after the first");
            // The pick is the last letter's largest weight, and letters that occur twice have their index.
            assert.equal(Math.max(...typed.slice(12 * 13)), typed[12 * 13 + 7]);
            assert.equal(await page.textContent("#inspector .label"), "Query z₁₂ → key q₇");
            assert.equal(
                await page.textContent("#stage-about"),
                "This model reads only letters a to z. Use words: level 2",
            );
            // Without a letter nothing stays in sight; words lead to a level that reads them.
            for (const text of ["", "42"]) {
                await page.fill("#text", text);
                await settled(page);
                for (const part of ["#matrix canvas", "#inspector", ".arcs svg"])
                    assert.ok(await page.isHidden(part), part);
            }
            assert.match(await page.textContent("#stage-about"), /letters a to z, and leaves out 42\. /);
            await page.fill("#text", "The cat");
            await page.click("[data-words]");
            await settled(page);
            assert.deepEqual(await page.evaluate(() => globalThis.fovea.app.result.tokens), ["The", "cat"]);
            assert.ok(await page.isVisible("#matrix canvas"));
            await page.goBack();
            await settled(page);
            await page.fill("#text", "quartz quartz");
            await settled(page);
            await page.click('.levels [data-level="3"]');
            await settled(page);
            assert.ok(await page.isHidden("#learned"));
            assert.equal((await state(page)).text, "Your journey starts with one step");
            await page.click(".levels [data-task]");
            await settled(page);
            assert.equal((await state(page)).text, "quartz quartz");
            assert.match(
                await page.evaluate(() => location.hash),
                /^#v=1&level=2&text=quartz\+quartz&task=induction&i=12&j=\d$/,
            );
        }),
    );

    test(
        "a head that is off: the model no longer knows; a link keeps it; what is no token is told; the sums add up",
        withPage({ hash: "#v=1&task=induction&head=0&off=1" }, async (page) => {
            assert.match(await page.textContent("#learned .off"), /previous token/);
            const sure = () => page.evaluate(() => globalThis.fovea.app.result.learned.sure[14][0]);
            const without = await sure();
            await page.click("#head-off");
            await settled(page);
            assert.ok((await sure()) > 0.8 && without < 0.6, `${await sure()}, ${without}`);
            assert.equal((await state(page)).off, 0);
            await page.fill("#text", "fovea, fovea!");
            await settled(page);
            await page.waitForFunction(() =>
                /letters a to z, and leaves out ,!/.test(document.getElementById("stage-about").textContent),
            );
            // Every projection of both layers comes to its number, bias and all.
            for (const head of [0, 1, 2, 3]) {
                await page.evaluate(
                    (h) => globalThis.fovea.app.change({ head: h, stage: "values", i: 3, j: 5 }),
                    head,
                );
                await settled(page);
                const [steps, shown] = await page.evaluate(() => [
                    document.querySelector("#inspector .steps > li:last-child output").textContent,
                    document.querySelector("#inspector .big").textContent,
                ]);
                assert.equal(steps, shown, `values of head ${head}`);
            }
        }),
    );

    test(
        "sort, reverse and recall show what is due; logits have the vocabulary's words; axe finds nothing",
        withPage({ hash: "#v=1&task=sort" }, async (page) => {
            for (const [task, label] of [
                ["sort", "next larger number"],
                ["reverse", "mirror image"],
                ["recall", "previous token"],
            ]) {
                await page.evaluate((t) => globalThis.fovea.app.setTask(t), task);
                await settled(page);
                assert.equal((await names(page))[0], label);
                const { i, j } = await state(page),
                    { shape, values } = await stageValues(page, "weights");
                assert.ok(values[i * shape[1] + j] > 0.5, task);
            }
            await page.evaluate(() => globalThis.fovea.app.change({ stage: "probabilities" }));
            await settled(page);
            assert.match(await page.textContent(".unseen-grid"), /g₁₆, h: 0\.0000/);
            await page.evaluate(readFileSync(axeFile, "utf8"));
            const { violations } = await page.evaluate(() => globalThis.axe.run());
            assert.deepEqual(
                violations.map((v) => `${v.id}: ${v.nodes[0].html}`),
                [],
            );
        }),
    );

    test(
        "a model that read a book: fetched when it is chosen, its size said before; all heads, what comes next, axe",
        withPage({ hash: "" }, async (page) => {
            const fetched = [];
            page.on("request", (r) => {
                if (/learned\/text-/.test(r.url())) fetched.push(r.url());
            });
            assert.match(await page.textContent('#intro [data-task="text"]'), /^Read English \(1\.5 MB\)$/);
            assert.deepEqual(fetched, []);
            await page.click('#intro [data-task="text"]');
            await settled(page);
            assert.equal((await names(page)).length, 12);
            assert.equal(fetched.length, 1);
            const { shape, values } = await stageValues(page, "weights");
            assert.deepEqual(shape, [24, 24]);
            assert.ok(values[19 * 24 + 17] > 0.9, "gold looks at bring");
            await page.fill("#text", "And the children of");
            await settled(page);
            await page.evaluate(() => globalThis.fovea.workbench.pick(4, 3));
            const next = await page.$$eval("#said .next li", (all) => all.map((e) => e.textContent));
            assert.equal(next.length, 5);
            assert.match(next[0], /^␣Israel +5\d%$/);
            const shares = next.map((text) => Number(/(\d+)%/.exec(text)[1]));
            assert.deepEqual(
                shares,
                shares.toSorted((a, b) => b - a),
            );
            await page.evaluate(readFileSync(axeFile, "utf8"));
            const { violations } = await page.evaluate(() => globalThis.axe.run());
            assert.deepEqual(
                violations.map((v) => `${v.id}: ${v.nodes[0].html}`),
                [],
            );
            await page.reload();
            await settled(page);
            assert.equal(await page.inputValue("#text"), "And the children of");
        }),
    );

    test(
        "lines between words: a line for each weight of the picked row, said in words, a word picks its row",
        withPage({ hash: "#v=1&level=3&i=2&j=0" }, async (page) => {
            await page.click("#lines-on");
            await page.waitForSelector("#lines svg");
            assert.equal(await page.locator("#lines .own").count(), 3);
            const weights = (await stageValues(page, "weights")).values,
                row = [0, 1, 2].map((j) => weights[12 + j]).sort((a, b) => b - a);
            assert.ok(
                (await page.getAttribute("#lines svg", "aria-label")).includes(row[0].toFixed(4)),
                await page.getAttribute("#lines svg", "aria-label"),
            );
            await page.locator("#lines text").nth(4).click();
            await settled(page);
            assert.equal((await state(page)).i, 4);
            assert.equal(await page.locator("#lines .own").count(), 5);
            await page.click("#lines-on");
            await page.waitForFunction(() => document.getElementById("lines").hidden);
        }),
    );

    // One sentence is large; the arc, the framed stripe and the walk are in sight, and the matrix has the middle.
    for (const [width, height] of [
        [1440, 900],
        [1366, 768],
        [1024, 768],
        [768, 1024],
        [390, 844],
        [360, 740],
    ])
        test(
            `the first screen of ${width} x ${height} says and shows what the head does`,
            withPage({ hash: "", viewport: { width, height } }, async (page) => {
                const seen = await page.evaluate(() => {
                    const { layout, element, content } = globalThis.fovea.workbench.matrix,
                        box = (name) => document.querySelector(name).getBoundingClientRect(),
                        matrix = element.getBoundingClientRect(),
                        end = innerWidth < 760 ? box("#inspect-box").top : innerHeight,
                        sizes = [...document.querySelectorAll("main :is(h2, p, b, a, button)")]
                            .filter(
                                (e) =>
                                    e.getClientRects().length &&
                                    e.getBoundingClientRect().top < innerHeight &&
                                    !e.matches("#inspector *"),
                            )
                            .map((e) => parseFloat(getComputedStyle(e).fontSize)),
                        paths = [...document.querySelectorAll(".arcs path")].map((e) =>
                            e.getBoundingClientRect(),
                        ),
                        letter = (row) => {
                            const { left, right } = box(`.arcs [data-row="${row}"]`);
                            return (left + right) / 2;
                        };
                    return {
                        said: document.querySelector(".intro h2").textContent,
                        large: parseFloat(getComputedStyle(document.querySelector(".intro h2")).fontSize),
                        largest: Math.max(...sizes),
                        arcs: paths.map(({ left, right }) => [left - letter(10), right - letter(14)]),
                        arcsEnd: box(".arcs").bottom,
                        walk: box("#walk").bottom,
                        walkText: document.getElementById("walk").innerText,
                        stripe: content.stripe,
                        rows: (end - matrix.top - layout.top) / layout.cell,
                        share: (Math.min(matrix.bottom, end) - matrix.top) / (end - box(".stage-box").top),
                        heads: box(".learned-heads").bottom,
                        number: box("#inspector .big, #sheet").bottom,
                        wide: document.documentElement.scrollWidth,
                    };
                });
                assert.equal(seen.said, "This head looks for what came after the same letter last time");
                assert.equal(seen.large, seen.largest);
                assert.equal(seen.arcs.length, 1); // from the second "a" to the second "f"
                for (const off of seen.arcs[0]) assert.ok(Math.abs(off) < 4, `${seen.arcs}`);
                assert.ok(seen.arcsEnd < seen.walk && seen.walk < 0.6 * height, `${seen.walk}`);
                assert.equal(seen.walkText, "Walk me through");
                assert.deepEqual(seen.stripe.run, [10, 6, 6, 1]);
                assert.equal(seen.stripe.text, "each letter finds what followed it last time");
                assert.ok(seen.share >= 0.6, `the matrix has ${seen.share} of the middle`);
                assert.ok(seen.rows >= (width < 760 ? 15 : width < 1200 ? 17 : 19.9), `${seen.rows} rows`);
                assert.ok(seen.wide <= width && (width < 1200 || seen.heads <= height), JSON.stringify(seen));
                assert.ok(width < 760 || seen.number <= height, `the number ends at ${seen.number}`);
            }),
        );

    test(
        "a letter of the sentence picks its query, and layers and heads are counted from 0",
        withPage({ hash: "" }, async (page) => {
            await page.locator('.arcs [data-row="12"]').click();
            await settled(page);
            assert.deepEqual(
                await page.evaluate(() => [globalThis.fovea.app.state.i, globalThis.fovea.app.state.j]),
                [12, 8],
            );
            assert.match(await page.textContent(".of-head"), /^It is layer 1, head 1 of a small model/);
            assert.match(await page.textContent("#learned"), /layer 0, head 0.*layer 1, head 1/);
            await page.click('#learned [data-head="1"]');
            await settled(page);
            assert.equal(await page.textContent(".intro h2"), "This head has no clear role");
            assert.equal(
                await page.evaluate(() => globalThis.fovea.workbench.matrix.content.stripe),
                undefined,
            );
        }),
    );
});
