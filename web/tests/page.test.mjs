// The page in a real Chromium. Run through `npm test`; needs `npm run build` first.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import {
    Lab,
    missing,
    near,
    readsPositive,
    root,
    settled,
    site,
    stageValues,
    withPages,
} from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const skip = missing ?? false;

const settledLive = (page) =>
    page.waitForFunction(
        () =>
            globalThis.fovea.app.engine.info &&
            /^live/.test(document.getElementById("badge-text").textContent),
        undefined,
        { timeout: 60000 },
    );
const rounded = (values, from = 0) => values.slice(from).map((v) => v.toFixed(4));

describe("the page", { skip }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });

    const withPage = withPages(() => lab);

    test("shows heads that learned, with true numbers, before any script", async () => {
        const context = await lab.context.browser().newContext({ javaScriptEnabled: false });
        const html = readFileSync(join(site, "index.html"), "utf8");
        assert.match(html, /<b>previous token<\/b>/);
        const page = await context.newPage();
        await page.goto(lab.host.url);
        const row = await page.$$eval("#table-box tbody tr:nth-child(14) td", (cells) =>
            cells.map((c) => c.textContent),
        );
        assert.deepEqual(
            row.flatMap((text, key) => (text ? [[key, text]] : [])),
            [
                [0, ".02"],
                [9, ".98"],
                [20, "1.0000"],
            ],
        );
        assert.match(await page.textContent("#inspector"), /0\.9996/);
        assert.match(await page.textContent("#intro h2"), /^This head looks for what came after/);
        assert.match(await page.textContent("#said"), /the model says f/);
        await context.close();
    });

    test(
        "level 2 answers with the tutorials' numbers",
        withPage({}, async (page) => {
            assert.match(await page.textContent("#badge-text"), /^live: WASM/);
            const { values, shape } = await stageValues(page, "weights");
            assert.deepEqual(shape, [6, 6]);
            assert.deepEqual(rounded(values).slice(6, 12), [
                "0.1500",
                "0.2264",
                "0.2199",
                "0.1311",
                "0.0906",
                "0.1820",
            ]);
            assert.deepEqual(rounded((await stageValues(page, "context")).values).slice(2, 4), [
                "0.3061",
                "0.8210",
            ]);
        }),
    );

    // Check values of the tutorials' printed tables.
    const levels = [
        [1, "weights", 6, ["0.1385", "0.2379", "0.2333", "0.1240", "0.1082", "0.1581"]],
        [1, "context", 3, ["0.4419", "0.6515", "0.5683"]],
        [3, "weights", 6, ["0.5517", "0.4483"]],
        [5, "context", 20, ["-0.5299", "-0.1081", "0.5077", "0.3493"]],
        [6, "output", 0, ["0.3190", "0.4858"]],
    ];
    for (const [level, stage, from, expected] of levels)
        test(
            `level ${level}: ${stage} as the tutorials print them`,
            withPage({ hash: `#v=1&level=${level}` }, async (page) => {
                assert.deepEqual(
                    rounded((await stageValues(page, stage)).values, from).slice(0, expected.length),
                    expected,
                );
            }),
        );

    test(
        "level 3: both routes to a causal mask give the same weights",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const before_ = (await stageValues(page, "weights")).values;
            await page.click('label:has(input[name="route"][value="after"])');
            await settled(page);
            near((await stageValues(page, "weights")).values, before_, 1e-6);
            assert.ok(await stageValues(page, "row_sums"));
        }),
    );

    test(
        "level 4: the native dropout mask of seed 123",
        withPage({ hash: "#v=1&level=4" }, async (page) => {
            const { values } = await stageValues(page, "dropped");
            assert.deepEqual(rounded(values).slice(12, 15), ["0.7599", "0.6194", "0.6206"]);
            assert.equal(values[0], 2);
            assert.deepEqual([...values.slice(6, 12)], [0, 0, 0, 0, 0, 0]);
        }),
    );

    test(
        "typing changes the tokens; the Back button undoes it",
        withPage({}, async (page) => {
            await page.fill("#text", "one step");
            await settled(page);
            assert.deepEqual((await stageValues(page, "weights")).shape, [2, 2]);
            assert.match(page.url(), /text=one\+step/);
            await page.goBack();
            await settled(page);
            assert.deepEqual((await stageValues(page, "weights")).shape, [6, 6]);
            assert.equal(await page.inputValue("#text"), "Your journey starts with one step");
        }),
    );

    test(
        "an empty sentence shows no matrix, and says why without moving anything",
        withPage({}, async (page) => {
            const top = () => page.$eval("#matrix", (e) => e.getBoundingClientRect().top),
                before = await top();
            await page.fill("#text", "   ");
            assert.equal(await page.textContent("#stage-about"), "Type at least one word.");
            assert.equal(await page.textContent("#announce"), "Type at least one word.");
            assert.deepEqual([await page.isHidden("#matrix canvas"), await top()], [true, before]);
        }),
    );

    test(
        "values beyond the color range are marked; scores have one colormap; a level pressed again begins anew",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const cut = (lo, hi) =>
                page.evaluate(
                    async ([lo, hi]) => {
                        const { app } = globalThis.fovea,
                            context = document.getElementById("bar").getContext("2d");
                        app.change({ lo, hi }, { numbers: false });
                        app.show();
                        const colors = [2, 253].map((x) => context.getImageData(x, 26, 1, 1).data.join());
                        return [
                            ...[...document.querySelectorAll("#range label:has(#low, #high)")].map(
                                (e) => e.className,
                            ),
                            ...colors,
                        ];
                    },
                    [lo, hi],
                );
            const [none, , low, high] = await cut("", ""),
                [, over, , cap] = await cut("", "0.5"),
                [under, , lowCap, same] = await cut("0.2", "");
            assert.deepEqual([none, over, under], ["", "cut", "cut"]);
            assert.ok(cap !== high && cap === lowCap && same === high && low !== lowCap);
            const maps = [];
            for (const stage of ["scores", "scaled", "masked"]) {
                await page.evaluate((id) => globalThis.fovea.app.change({ stage: id }), stage);
                await settled(page);
                maps.push(await page.evaluate(() => globalThis.fovea.workbench.matrix.scale.table.join()));
            }
            assert.equal(new Set(maps).size, 1);
            await page.evaluate(() => globalThis.fovea.app.change({ mask: "none" }));
            await page.click('[data-level="3"]');
            assert.equal(await page.evaluate(() => globalThis.fovea.app.state.mask), "causal");
        }),
    );

    test(
        "right-to-left and Chinese words are tokens",
        withPage({ hash: `#v=1&level=2&text=${encodeURIComponent("שלום עולם 你好世界")}` }, async (page) => {
            const tokens = await page.evaluate(() => globalThis.fovea.app.result.tokens);
            assert.deepEqual(tokens.slice(0, 2), ["שלום", "עולם"]);
            assert.ok(tokens.length >= 4);
            assert.equal(tokens.slice(2).join(""), "你好世界");
        }),
    );

    test(
        "a click picks a cell, the inspector derives it, the reader hears it",
        withPage({}, async (page) => {
            const box = await page.locator("#matrix canvas").boundingBox();
            await page
                .locator("#matrix canvas")
                .click({ position: { x: box.width * 0.5, y: box.height * 0.5 } });
            const { i: row, j: column } = await page.evaluate(() => globalThis.fovea.app.state);
            const { values } = await stageValues(page, "weights");
            await page.waitForFunction(
                (text) => document.querySelector("#inspector .big").textContent === text,
                values[6 * row + column].toFixed(4),
            );
            assert.match(
                await page.textContent("#announce"),
                /query \w+, key \w+, weights 0\.\d{3}, .*highest of 6/,
            );
            assert.match(page.url(), /[ij]=\d/);
        }),
    );

    test(
        "cells that a mask hides are marked and counted apart from weights of 0",
        withPage({ hash: "#v=1&level=4&table=1" }, async (page) => {
            assert.equal(await page.locator("#table-box td.hidden").count(), 15);
            const { values } = await stageValues(page, "dropped");
            assert.ok(values.filter((x) => x === 0).length > 15, "some of the seen ones are dropped");
            await page.evaluate(() =>
                globalThis.fovea.app.change({ table: false, stage: "weights", i: 2, j: 1 }),
            );
            await settled(page);
            await page.waitForFunction(() =>
                /of 3$/.test(document.querySelector("#inspector .note").textContent),
            );
            assert.match(await page.textContent("#inspector .row-facts"), /of 1\.10 nats$/); // ln 3
            for (let row = 0; row < 6; ++row) {
                await page.evaluate((row) => globalThis.fovea.app.change({ i: row, j: 0 }), row);
                await page.waitForFunction(
                    (most) =>
                        document
                            .querySelector("#inspector .row-facts")
                            .textContent.endsWith(`of ${most} nats`),
                    Math.log(row + 1).toFixed(2),
                );
                const [, entropy, most] = (await page.textContent("#inspector .row-facts"))
                    .match(/entropy (\S+) of (\S+) nats/)
                    .map(Number);
                assert.ok(
                    entropy >= 0 && entropy <= most + 0.005,
                    `row ${row}: entropy ${entropy} of at most ${most}, after dropout`,
                );
            }
            await page.evaluate(() => globalThis.fovea.app.change({ i: 2, j: 1 }));
            await page.waitForFunction(() =>
                /1\.10 nats$/.test(document.querySelector("#inspector .row-facts").textContent),
            );
            await page.locator("#matrix [aria-selected=true]").press("ArrowLeft");
            assert.match(await page.textContent("#announce"), /of 3$/);
            for (let i = 0; i < 4; ++i)
                await page.locator("#matrix [aria-selected=true]").press("ArrowRight");
            assert.match(await page.textContent("#announce"), /0\.000, masked$/);
        }),
    );

    test(
        "the machine's speed is measured, of calls shorter than a tick of the clock too",
        withPage({}, async (page) => {
            await page.click("#bench");
            await page.waitForSelector("#bench-body table");
            assert.equal(await page.locator("#bench-body tbody tr").count(), 3);
            const cells = await page.locator("#bench-body tbody td").allTextContents();
            assert.ok(cells.length >= 6 && cells.every(readsPositive), cells.join(" | "));
        }),
    );

    test(
        "the steps multiply out to the weight",
        withPage({}, async (page) => {
            const steps = await page.evaluate(() =>
                globalThis.fovea.app.engine.ask("derive", { head: 0, row: 1, column: 2 }),
            );
            near([steps.products.reduce((a, b) => a + b, 0)], [steps.dot]);
            near([Math.exp(steps.masked - steps.rowMax) / steps.denominator], [steps.weight]);
            near([steps.rowWeights[2]], [steps.weight]);
        }),
    );

    test(
        "the keyboard alone reaches and moves the pick, changes stages and knobs",
        withPage({}, async (page) => {
            for (let i = 0; i < 60; ++i) {
                await page.keyboard.press("Tab");
                if (await page.evaluate(() => document.activeElement.getAttribute("role") === "gridcell"))
                    break;
            }
            assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "gridcell");
            await page.keyboard.press("ArrowDown");
            await page.keyboard.press("End");
            assert.deepEqual(
                await page.evaluate(() => [globalThis.fovea.app.state.i, globalThis.fovea.app.state.j]),
                [2, 5],
            );
            await page.waitForFunction(() => document.activeElement.getAttribute("aria-colindex") === "6");
            await page.keyboard.press("m");
            await settled(page);
            assert.equal((await stageValues(page, "weights")).values[5], 0);
            await page.keyboard.press("PageUp");
            assert.equal(await page.evaluate(() => globalThis.fovea.app.state.stage), "masked");
            await page.keyboard.press("?");
            assert.ok(await page.isVisible("#help"));
            await page.keyboard.press("Escape");
        }),
    );

    test(
        "knobs: scale, temperature, window, softcap, seed",
        withPage({}, async (page) => {
            await page.selectOption("#scale", "none");
            await settled(page);
            const sharp = (await stageValues(page, "weights")).values[7];
            await page.selectOption("#scale", "8");
            await settled(page);
            assert.ok((await stageValues(page, "weights")).values[7] < sharp);
            await page.selectOption("#mask", "window");
            await page.fill("#window", "1");
            await settled(page);
            const { values } = await stageValues(page, "weights");
            assert.equal(values[6 * 5 + 3], 0);
            near([values[6 * 5 + 4] + values[6 * 5 + 5]], [1]);
            await page.fill("#seed", "789");
            await settled(page);
            assert.notDeepEqual((await stageValues(page, "weights")).values, values);
        }),
    );

    test(
        "painting a cell hides it and goes into the address",
        withPage({}, async (page) => {
            await page.click("#paint");
            const box = await page.locator("#matrix canvas").boundingBox();
            await page
                .locator("#matrix canvas")
                .click({ position: { x: box.width * 0.5, y: box.height * 0.5 } });
            await settled(page);
            const { i: row, j: column } = await page.evaluate(() => globalThis.fovea.app.state);
            assert.equal((await stageValues(page, "weights")).values[6 * row + column], 0);
            assert.match(page.url(), /mask=painted&bits=/);
            // A stroke masks all cells on its way; a rectangle the cells between its corners.
            const { left, top, cell } = await page.evaluate(() => globalThis.fovea.workbench.matrix.layout);
            let corner;
            const at = (i, j) => [corner.x + left + (j + 0.5) * cell, corner.y + top + (i + 0.5) * cell];
            const hidden = async () => {
                await settled(page);
                return (await stageValues(page, "weights")).values.flatMap((w, n) => (w === 0 ? [n] : []));
            };
            const drag = async (from, to) => {
                await page.locator("#matrix canvas").scrollIntoViewIfNeeded();
                corner = await page.locator("#matrix canvas").boundingBox();
                await page.mouse.move(...at(...from));
                await page.mouse.down();
                await page.mouse.move(...at(...to));
                await page.mouse.up();
            };
            await page.selectOption("#mask", "none");
            await drag([0, 0], [0, 3]);
            assert.deepEqual(await hidden(), [0, 1, 2, 3]);
            await page.click('label:has(input[name="brush"][value="rectangle"])');
            await drag([3, 5], [2, 4]);
            assert.deepEqual(await hidden(), [0, 1, 2, 3, 16, 17, 22, 23]);
            await page.goBack();
            assert.deepEqual(await hidden(), [0, 1, 2, 3]);
            await page.click("#mask-done");
            // Chosen from the list, paint begins as the mask of before.
            await page.selectOption("#mask", "causal");
            await page.selectOption("#mask", "painted");
            assert.match(await page.textContent("#mask-facts"), /21 of 36 visible/);
        }),
    );

    test(
        "a mask is painted up to 128 tokens, and the editor says so",
        withPage({ hash: "#v=1&level=7&len=256" }, async (page) => {
            await page.click("#paint");
            assert.match(await page.textContent("#mask-facts"), /More than 128 tokens cannot be painted/);
            assert.ok(await page.isDisabled("#mask-invert"));
        }),
    );

    test(
        "every part of the state survives its address",
        withPage(
            {
                hash: "#v=1&level=6&text=a+b+c+d&stage=scaled&head=1&i=2&j=1&init=linear&seed=7&scale=4&temp=2&mask=window&win=1&cap=3&p=0.25&dseed=9&rng=counter&kv=1&colormap=viridis&log=1&lo=-1&hi=2&table=1&view=1.5,1,2",
            },
            async (page) => {
                const hash = await page.evaluate(() => location.hash);
                const first = await page.evaluate(() => globalThis.fovea.app.state);
                await page.evaluate(() => globalThis.fovea.app.change({ i: 0 }, { numbers: false }));
                await page.evaluate(() => globalThis.fovea.app.change({ i: 2 }, { numbers: false }));
                const again = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
                for (const [key, value] of new URLSearchParams(hash.slice(1)))
                    if (again.get(key) !== null) assert.equal(again.get(key), value);
                await page.reload();
                await settled(page);
                assert.deepEqual(await page.evaluate(() => globalThis.fovea.app.state), first);
            },
        ),
    );

    test(
        "the view is in the address: of the matrix and of the map; Back returns to it",
        withPage({}, async (page) => {
            await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
            await page.keyboard.press("+");
            await page.waitForFunction(() => /view=[\d.]+,[\d.]+,1\.5/.test(location.hash));
            await page.waitForTimeout(1000); // changes within 0.9 s are one undo step
            await page.keyboard.press("f");
            await page.waitForFunction(() => !location.hash.includes("view="));
            await page.goBack();
            await page.waitForFunction(() => globalThis.fovea.workbench.matrix.zoom === 1.5);
            const link = `${page.url().split("#")[0]}#v=1&level=3&zoom=4096,1024,900,2,max`;
            await page.goto(link);
            await page.reload();
            await settled(page);
            await page.waitForFunction(
                () => document.getElementById("zoom-tag")?.textContent === "exact",
                undefined,
                { timeout: 60000 },
            );
            assert.deepEqual(
                await page.evaluate(() => [
                    globalThis.fovea.zoom.center,
                    globalThis.fovea.zoom.cellsPerPixel,
                    globalThis.fovea.zoom.reducer,
                ]),
                [[1024, 900], 2, "max"],
            );
            await page.focus("#zoom-canvas");
            await page.keyboard.press("ArrowDown");
            await page.waitForFunction(() => location.hash.includes("zoom=4096,1144,900,2,max"));
            await page.goBack();
            await page.waitForFunction(() => globalThis.fovea.zoom.center[0] === 1024);
        }),
    );

    test(
        "a state too long for a link: Back and reload keep it, and sharing says what to do",
        withPage({}, async (page) => {
            const text = Array.from({ length: 128 }, (_, i) => `w${i}`).join(" ");
            await page.fill("#text", text);
            await settled(page);
            await page.selectOption("#mask", "painted");
            await page.focus("#mask-invert");
            await page.keyboard.press("Enter");
            await settled(page);
            assert.equal(
                (await stageValues(page, "weights")).values.every((w) => w === 0),
                true,
            );
            assert.ok(page.url().length < 2100, `${page.url().length} characters`);
            await page.click("#share");
            assert.match(
                await page.textContent("#notice"),
                /This page needs [\d,]+ characters, and a link holds 2,000: save it as a session file/,
            );
            await page.reload();
            await settled(page);
            assert.equal(
                (await stageValues(page, "weights")).values.every((w) => w === 0),
                true,
            );
            await page.goBack();
            await settled(page);
            assert.equal(
                (await stageValues(page, "weights")).values.some((w) => w === 0),
                false,
            );
            assert.equal((await stageValues(page, "weights")).shape[0], 128);
        }),
    );

    test(
        "a slider that is dragged: one step back, and the address follows",
        withPage({}, async (page) => {
            // All in one moment, however busy the machine: what moves more than 0.9 s later is another step.
            await page.evaluate(() => {
                const slider = document.getElementById("temperature"),
                    moment = performance.now();
                performance.now = () => moment;
                for (let i = 0; i < 400; ++i) {
                    slider.value = String(-100 + i / 2);
                    slider.dispatchEvent(new Event("input"));
                }
                delete performance.now;
            });
            await settled(page);
            await page.waitForFunction(() =>
                location.hash.includes(`temp=${globalThis.fovea.app.state.temp}`),
            );
            assert.notEqual(await page.evaluate(() => globalThis.fovea.app.state.temp), 1);
            await page.goBack();
            await page.waitForFunction(() => globalThis.fovea.app.state.temp === 1);
        }),
    );

    test(
        "another seed, other digits; the tutorial's own, the same again",
        withPage({}, async (page) => {
            assert.equal(await page.inputValue("#lesson-seed"), "123");
            assert.match(await page.textContent("#lesson-body"), /1 of 1 printed tables/);
            await page.fill("#lesson-seed", "124");
            await page.waitForSelector("#lesson-body .differs");
            assert.match(await page.textContent("#lesson-body"), /0 of 1 printed tables/);
            assert.equal(await page.textContent("#lesson-seed-own"), "Back to manual_seed(123)");
            await page.click("#lesson-seed-own");
            await page.waitForSelector("#lesson-body .same");
            assert.equal(await page.inputValue("#lesson-seed"), "123");
            // Every exercise that draws has the control; one without random numbers has none.
            const seeds = await page.evaluate(async () => {
                const { engine } = globalThis.fovea.app,
                    all = [];
                for (const { name } of await engine.ask("lessons", null))
                    all.push([name, (await engine.ask("lesson", { name })).seed]);
                return all;
            });
            assert.equal(seeds.length, 44);
            assert.deepEqual(
                [
                    seeds.find(([name]) => name.startsWith("t3-08"))[1],
                    seeds.find(([name]) => name.startsWith("t3-01"))[1],
                ],
                [789, -1],
            );
            await page.selectOption("#lesson-name", "t3-01-scores");
            await page.waitForSelector("#lesson-seed-box", { state: "hidden" });
        }),
    );

    test(
        "after the first look into a cell: type your own sentence",
        withPage({}, async (page) => {
            assert.ok(await page.isHidden("#invite"));
            await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
            await page.keyboard.press("ArrowDown");
            await page.click("#invite-go");
            assert.equal(await page.evaluate(() => document.activeElement.id), "text");
            assert.ok(await page.isHidden("#invite"));
        }),
    );

    test(
        "on a phone the steps are a sheet at the lower edge while the matrix is in sight",
        withPage({ viewport: { width: 360, height: 740 } }, async (page) => {
            await page.evaluate(() => document.getElementById("matrix").scrollIntoView({ block: "center" }));
            await page.waitForSelector("#inspect-box.pinned");
            const sheet = () => page.locator("#inspect-box").boundingBox();
            // At the window's lower edge, or right under a matrix that ends just above it.
            const { y, height } = await sheet();
            assert.ok(y + height < 742 && y + height > 700 && height < 100, `${y} + ${height}`);
            const box = await page.locator("#matrix canvas").boundingBox();
            await page
                .locator("#matrix canvas")
                .click({ position: { x: box.width * 0.5, y: box.height * 0.5 } });
            const { i: row, j: column } = await page.evaluate(() => globalThis.fovea.app.state);
            const { values } = await stageValues(page, "weights");
            await page.waitForFunction(
                (text) => document.querySelector("#inspector .big").textContent === text,
                values[6 * row + column].toFixed(4),
            );
            await page.click("#sheet");
            assert.ok((await sheet()).height > 300);
            assert.equal(await page.getAttribute("#sheet", "aria-expanded"), "true");
            // The cell that was tapped is still in sight above it.
            const cell = () =>
                page.evaluate(() => {
                    const { app, workbench } = globalThis.fovea,
                        { top, bottom } = workbench.matrix.cellBox(app.state.i, app.state.j);
                    return { top, bottom };
                });
            const seen = await cell();
            assert.ok(
                seen.top >= 58 && seen.bottom <= (await sheet()).y,
                `the cell is at ${seen.top} to ${seen.bottom}, the sheet at ${(await sheet()).y}`,
            );
            await page.click("#sheet");
            await page.evaluate(() => document.getElementById("zoom").scrollIntoView());
            await page.waitForSelector("#inspect-box:not(.pinned)");
        }),
    );

    test(
        "a broken address still shows a page, and says what it took instead",
        withPage(
            { hash: "#v=1&level=99&temp=abc&heads=-4&kv=7&mask=%00&scale=zero&i=1e9&stage=nothing" },
            async (page) => {
                assert.ok(await stageValues(page, "weights"));
                const notice = await page.textContent("#notice");
                for (const key of ["Level", "Temp", "Heads", "Mask", "Scale", "I ", "Stage"])
                    assert.match(notice, new RegExp(`${key}.* is taken\\.`), key);
            },
        ),
    );

    test(
        "GPT block: 12 heads, grouped keys, thumbnails and comparison",
        withPage({ hash: "#v=1&level=7&len=64&kv=4&cmp=3&how=difference&i=40" }, async (page) => {
            assert.deepEqual((await stageValues(page, "keys")).shape, [4, 64, 64]);
            assert.equal(await page.locator(".thumb").count(), 12);
            await page.waitForFunction(() => !document.getElementById("compare").hidden);
            assert.equal(await page.inputValue("#compare-with"), "3");
            const told = (await page.textContent("#compare-note")).match(
                /Largest difference (\S+) at .+Jensen–Shannon divergence of the row of .+: (\S+) \(/,
            );
            const [largest, divergence] = await page.evaluate(async () => {
                const { app } = globalThis.fovea,
                    row = app.state.i,
                    of = async (head) =>
                        (await app.engine.ask("headStages", { head })).find((s) => s.id === "weights").data;
                const [a, b] = [await of(app.state.head), await of(3)],
                    [p, q] = [a, b].map((data) => [...data.slice(64 * row, 64 * row + 64)]);
                const entropy = (list) => list.reduce((sum, w) => sum - (w > 0 ? w * Math.log(w) : 0), 0);
                return [
                    a.reduce((m, x, i) => Math.max(m, Math.abs(x - b[i])), 0),
                    entropy(p.map((x, i) => (x + q[i]) / 2)) - (entropy(p) + entropy(q)) / 2,
                ];
            });
            assert.ok(divergence > 0 && largest > 0);
            near([told[1] / largest, told[2] / divergence], [1, 1], 6e-3); // at least three digits are shown
            const { values } = await stageValues(page, "weights");
            for (let i = 0; i < 64; ++i)
                near([values.slice(64 * i, 64 * i + 64).reduce((a, b) => a + b, 0)], [1], 1e-5);
        }),
    );

    test(
        "1,024 tokens fit",
        withPage({ hash: "#v=1&level=7&len=1024" }, async (page) => {
            assert.deepEqual((await stageValues(page, "weights")).shape, [1024, 1024]);
        }),
    );

    test(
        "two fingers zoom the matrix, one pans it, a tap picks",
        withPage({ viewport: { width: 360, height: 740 } }, async (page) => {
            await page.evaluate(() => document.getElementById("matrix").scrollIntoView({ block: "center" }));
            const box = await page.locator("#matrix canvas").boundingBox(),
                [x, y] = [box.x + box.width * 0.6, box.y + box.height * 0.5];
            const session = await page.context().newCDPSession(page);
            const touch = (type, ...points) =>
                session.send("Input.dispatchTouchEvent", {
                    type,
                    touchPoints: points.map(([x, y], id) => ({ x, y, id })),
                });
            const view = () =>
                page.evaluate(() => {
                    const { matrix } = globalThis.fovea.workbench;
                    return { zoom: matrix.zoom, origin: [...matrix.origin] };
                });
            await touch("touchStart", [x - 10, y], [x + 10, y]);
            for (let d = 15; d <= 40; d += 5) await touch("touchMove", [x - d, y], [x + d, y]);
            await touch("touchEnd");
            const { zoom, origin } = await view();
            assert.ok(zoom > 2, `zoom ${zoom}`);
            await touch("touchStart", [x, y]);
            for (let d = 10; d <= 60; d += 10) await touch("touchMove", [x - d, y - d]);
            await touch("touchEnd");
            const after = await view();
            assert.ok(after.origin[0] > origin[0] && after.origin[1] > origin[1]);
            await page.evaluate(() => globalThis.fovea.app.change({ i: 0, j: 0 }, { numbers: false }));
            await page.evaluate(() => globalThis.fovea.workbench.matrix.fit());
            await touch("touchStart", [x, y]);
            await touch("touchEnd");
            await page.waitForFunction(() => globalThis.fovea.app.state.i > 0);
        }),
    );

    test(
        "a Worker that dies is replaced",
        withPage({}, async (page) => {
            await page.evaluate(() =>
                globalThis.fovea.app.engine.worker.postMessage({ id: 0, kind: "start", ask: null }),
            );
            const workers = page.workers();
            await workers
                .find((w) => w.url().includes("/assets/worker-"))
                .evaluate(() => self.close())
                .catch(() => {}); // it may end before it answers
            await page.waitForFunction(() =>
                document.getElementById("announce").textContent.includes("started again"),
            );
            await page.fill("#text", "with one step");
            await settled(page);
            assert.deepEqual((await stageValues(page, "weights")).shape, [3, 3]);
        }),
    );

    test(
        "an engine that dies three times is not started again by itself",
        withPage({}, async (page) => {
            await page.evaluate(() => {
                // how often the badge has reported a missing engine: each time may be short
                const badge = document.getElementById("badge-text");
                globalThis.deaths = 0;
                new MutationObserver(() => {
                    if (badge.textContent === "static page") ++globalThis.deaths;
                }).observe(badge, { childList: true, characterData: true, subtree: true });
            });
            for (let i = 0; i < 3; ++i) {
                await page
                    .workers()
                    .findLast((w) => w.url().includes("/assets/worker-"))
                    .evaluate(() => self.close())
                    .catch(() => {}); // it ends before it answers
                if (i < 2)
                    await page
                        .waitForFunction((seen) => globalThis.deaths > seen, i)
                        .then(() => settledLive(page));
            }
            await page.waitForSelector("#notice button");
            assert.match(await page.textContent("#notice"), /The engine stopped/);
            assert.equal(await page.textContent("#badge-text"), "static page");
            await page.click("#notice button");
            await settledLive(page);
            assert.deepEqual((await stageValues(page, "weights")).shape, [6, 6]);
        }),
    );

    test("an unknown file of the engine: the page stays readable and offers to try again", async () => {
        const page = await lab.page("", { live: false, query: "" });
        try {
            await page.route("**/engine/**", (route) => route.abort());
            await page.reload();
            await page.waitForFunction(() => document.querySelector("#notice button"));
            assert.match(await page.textContent("#notice"), /could not start/);
            assert.ok(await page.isVisible("#table-box table"));
            await page.unroute("**/engine/**");
            await page.click("#notice button");
            await settled(page);
            assert.match(await page.textContent("#badge-text"), /^live/);
        } finally {
            await page.close();
        }
    });

    const accessible = [
        "#v=1&level=3&step=2",
        "",
        "#v=1&level=4&table=1",
        "#v=1&level=1&table=1",
        "#v=1&level=7&len=16&cmp=2",
    ];
    for (const hash of accessible)
        for (const colorScheme of ["light", "dark"])
            test(
                `axe finds nothing (${hash || "first view"}, ${colorScheme})`,
                withPage({ hash, colorScheme }, async (page) => {
                    // The page's own policy keeps foreign scripts out; this one comes through the debugger.
                    await page.evaluate(readFileSync(axeFile, "utf8"));
                    const { violations } = await page.evaluate(() => globalThis.axe.run());
                    assert.deepEqual(
                        violations.map(
                            (v) =>
                                `${v.id}: ${v.nodes
                                    .slice(0, 3)
                                    .map((n) => n.html)
                                    .join(" | ")}`,
                        ),
                        [],
                    );
                }),
            );

    test(
        "queries and keys in the plane: the engine's weights at first, others while the query is dragged by pointer or keys",
        withPage({ hash: "#v=1&level=3&i=4&cap=2&temp=0.5&alibi=1" }, async (page) => {
            await page.waitForFunction(() => !document.getElementById("vectors").hidden);
            const [shown, computed] = await page.evaluate(() => {
                const { app, vectors } = globalThis.fovea,
                    weights = app.result.stages.find((s) => s.id === "weights").data;
                return [vectors.weights(), [...weights.subarray(24, 30)]];
            });
            near(shown, computed, 1e-5);
            const row = () =>
                page.$$eval("#vectors-row span", (all) => all.map((e) => Number(e.textContent)));
            const before = await row();
            await page.focus("#vectors-query");
            for (let n = 0; n < 8; ++n) await page.keyboard.press("ArrowLeft");
            const after = await row();
            assert.equal(await page.evaluate(() => document.activeElement.id), "vectors-query");
            assert.ok(
                after.slice(0, 5).some((weight, n) => Math.abs(weight - before[n]) > 0.01),
                `${after}`,
            );
            assert.ok(Math.abs(after.reduce((a, b) => a + b, 0) - 1) < 1e-3 && after[5] === 0);
            await page.click("#vectors-back");
            assert.deepEqual(await row(), before);
            await page.locator("#vectors-plot").click({ position: { x: 60, y: 60 } });
            assert.notDeepEqual(await row(), before);
            assert.match(await page.textContent("#vectors-about"), /The query is now −[\d.]+, [\d.]+:/);
            // A key is dragged by its end, or moved by the arrow keys: the query's weight on it follows.
            await page.click("#vectors-back");
            const place = await page.locator("#vectors-key1").boundingBox();
            await page.mouse.move(place.x + place.width / 2, place.y + place.height / 2);
            await page.mouse.down();
            await page.mouse.move(place.x + 60, place.y - 40, { steps: 4 });
            await page.mouse.up();
            assert.match(await page.textContent("#vectors-about"), /The key of “journey” is now/);
            assert.ok(Math.abs((await row())[1] - before[1]) > 0.01);
            await page.focus("#vectors-key3");
            await page.keyboard.press("ArrowUp");
            assert.match(await page.textContent("#vectors-about"), /The key of “with” is now/);
            assert.equal(await page.evaluate(() => document.activeElement.id), "vectors-key3");
            // The layer's own numbers stay, and another row begins anew.
            near([...(await stageValues(page, "weights")).values.slice(24, 30)], computed, 0);
            await page.evaluate(() => globalThis.fovea.workbench.pick(2, 0));
            await settled(page);
            assert.ok(await page.isHidden("#vectors-back"));
        }),
    );

    test(
        "the words' own vectors: near words near, a pressed word is picked, and the plane follows an edited cell",
        withPage({ hash: "#v=1&level=2&i=0" }, async (page) => {
            await page.locator("#words").scrollIntoViewIfNeeded();
            await page.waitForSelector("#words-plot [data-word]");
            const points = () =>
                page.$$eval("#words-plot [data-word] circle", (all) =>
                    all.map((e) => [Number(e.getAttribute("cx")), Number(e.getAttribute("cy"))]),
                );
            const before = await points(),
                apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
            assert.equal(before.length, 6);
            // "journey" and "starts" have almost the same row; "one" is far from both.
            assert.ok(
                apart(before[1], before[2]) < 0.2 * apart(before[1], before[4]),
                JSON.stringify(before),
            );
            assert.match(await page.textContent("#words-about"), /row of 3 numbers.*\d+% of all differences/);
            await page.click('#words-plot [data-word="4"] circle');
            await settled(page);
            assert.equal(await page.evaluate(() => globalThis.fovea.app.state.i), 4);
            await page.evaluate(() => globalThis.fovea.app.change({ edits: "inputs 1 0 5" }));
            await settled(page);
            assert.notDeepEqual(await points(), before);
        }),
    );

    test(
        "the words' own vectors: words that stand in a heap are named once, and no name lies on another",
        withPage({ hash: "#v=1&level=7" }, async (page) => {
            await page.locator("#words").scrollIntoViewIfNeeded();
            await page.waitForSelector("#words-plot [data-word]");
            const names = await page.$$eval("#words-plot text", (all) =>
                all.map((e) => {
                    const { x, y, width, height } = e.getBBox();
                    return { text: e.textContent, x, y, right: x + width, bottom: y + height };
                }),
            );
            assert.ok(names.length >= 6 && names.length <= 24, `${names.length} names of 64 words`);
            const over = names.flatMap((a, i) =>
                names
                    .slice(i + 1)
                    .filter((b) => a.x < b.right && b.x < a.right && a.y + 3 < b.bottom && b.y + 3 < a.bottom)
                    .map((b) => `${a.text} ${b.text}`),
            );
            assert.deepEqual(over, []);
        }),
    );

    // The page is drawn again while the button is down: by another state, whose numbers come before it is released.
    const clicksWhileDrawn = async (page, target) => {
        await page.locator(target).scrollIntoViewIfNeeded();
        const box = await page.locator(target).boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        await page.mouse.down();
        await page.evaluate(() =>
            globalThis.fovea.app.change({ temp: globalThis.fovea.app.state.temp + 0.5 }),
        );
        await settled(page);
        await page.mouse.up();
        await settled(page);
    };
    test(
        "a click is not lost where the page is drawn again before the button is released, and keeps its focus",
        withPage({ hash: "" }, async (page) => {
            const picked = () =>
                page.evaluate(() => {
                    const { head, j, stage } = globalThis.fovea.app.state;
                    return { head, j, stage, focus: document.activeElement.textContent };
                });
            await clicksWhileDrawn(page, '#learned [data-head="0"]');
            assert.equal((await picked()).head, 0, "a head");
            await clicksWhileDrawn(page, '#rail [data-stage="scores"]');
            const { stage, focus } = await picked();
            assert.equal(stage, "scores");
            assert.match(focus, /Scores/);
            await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
            await page.evaluate(() => globalThis.fovea.app.setLevel(2));
            await settled(page);
            await clicksWhileDrawn(page, '#inspector [data-column="0"]');
            assert.equal((await picked()).j, 0, "a word of the row");
            await clicksWhileDrawn(page, '[data-copy="3"]');
            assert.match(
                await page.evaluate(() => navigator.clipboard.readText()),
                /^# "\w+" looks at [^]*assert abs/,
                "a copy",
            );
        }),
    );

    test("no inline style, no script but the one that the policy names by its hash, and no address but its own", () => {
        const html = readFileSync(join(site, "index.html"), "utf8"),
            [, policy] = /Content-Security-Policy" content="([^"]*)"/.exec(html),
            inline = [...html.matchAll(/<script>(.*?)<\/script>/gs)].map(([, text]) => text);
        assert.equal(inline.length, 1);
        assert.ok(inline[0].length < 300, "what keeps the first picture waiting is short");
        assert.ok(
            policy.includes(`'sha256-${createHash("sha256").update(inline[0]).digest("base64")}'`),
            policy,
        );
        assert.doesNotMatch(html, /\sstyle="|<style|\son\w+="/);
        assert.doesNotMatch(policy, /unsafe-inline/);
        assert.doesNotMatch(html.replace(/http:\/\/www\.w3\.org[^"]*/g, ""), /https?:\/\//);
    });

    test("sizes stay within their budgets", () => {
        const all = JSON.parse(readFileSync(join(root, "build", "web-sizes.json"), "utf8")),
            isGerman = ([f]) => /^(assets\/de-|de\.html)/.test(f),
            german = Object.fromEntries(Object.entries(all).filter(isGerman)),
            sizes = Object.fromEntries(Object.entries(all).filter((row) => !isGerman(row)));
        const sum = (prefix) =>
            Object.entries(sizes)
                .filter(([f]) => f.startsWith(prefix))
                .reduce((a, [, n]) => a + n, 0);
        const later = [
            "copies",
            "edit",
            "model_stories",
            "playground",
            "reshape",
            "timings",
            "train_worker",
            "vectors",
        ].reduce((a, name) => a + sum(`assets/${name}-`), 0);
        const gpu = sum("assets/gpu_page-") + sum("assets/kernels-"),
            zoom = sum("assets/zoom-"),
            saving = sum("assets/saving-") + sum("assets/mask-"),
            why = sum("assets/why-"),
            models = sum("assets/models-") + sum("assets/model_worker-");
        assert.ok(zoom > 0 && zoom <= 8_000, "deep zoom's script over 8 KB after brotli");
        assert.ok(saving > 0 && saving <= 5_000, "what writes files and paints masks over 5 KB after brotli");
        assert.ok(why > 0 && why <= 4_000, "why a head attends over 4 KB after brotli");
        assert.ok(
            sum("assets/") - later - gpu - zoom - models - saving - why + sizes["index.html"] <= 60_000,
            "HTML, CSS and JS over 60 KB after brotli",
        );
        // German is loaded only when asked for, and its first view is hardly larger.
        const [germanMain] = Object.keys(german).filter((f) => f.startsWith("assets/de-main-"));
        assert.ok(
            german["de.html"] + german[germanMain] + sum("assets/worker-") + sum("assets/style-") <= 63_000,
            "HTML, CSS and JS of the German page over 63 KB after brotli",
        );
        assert.ok(gpu <= 20_000, "what only a reader with a GPU loads over 20 KB after brotli");
        assert.ok(later <= 27_000, "what comes behind the first view over 27 KB after brotli");
        assert.ok(models > 0 && models <= 10_000, "script and style of own models over 10 KB after brotli");
        for (const folder of new Set(
            Object.keys(sizes)
                .filter((f) => f.startsWith("model/"))
                .map((f) => f.split("/")[1]),
        ))
            assert.ok(sum(`model/${folder}/`) <= 288_000, `models with ${folder} over 288 KB after brotli`);
        assert.ok(sum("train/") <= 200_000, "the trainer over 200 KB after brotli");
        for (const folder of new Set(
            Object.keys(sizes)
                .filter((f) => f.startsWith("engine/"))
                .map((f) => f.split("/")[1]),
        ))
            assert.ok(sum(`engine/${folder}/`) <= 276_000, `${folder} over 276 KB after brotli`);
        const first = Object.entries(sizes)
            .filter(([f]) => !/^(engine|model|train|level|task|learned\/(?!induction))/.test(f))
            .reduce((a, [, n]) => a + n, -later - models - saving - why);
        assert.ok(first <= 150_000, "the first view over 150 KB after brotli");
        const engines = Object.keys(sizes)
            .filter((f) => /^engine\/.*\.wasm$/.test(f))
            .map((f) => sum(f.slice(0, f.lastIndexOf("/") + 1)));
        assert.ok(
            first + Math.max(...engines) <= 400_000,
            "the page and one engine over 400 KB after brotli",
        );
    });
});
