// Checks text next to numbers: the texts that the page shows, announces to screen readers, prints and puts into links
// belong to the visible numbers, whatever the reader did last.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { npyOf, npzOf } from "./numpy_files.mjs";
import { Lab, missing, settled, stageValues, withPages } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const ramp = (count, step) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * step));

describe("words and numbers", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    const heard = (page, pattern) =>
        page.waitForFunction(
            ([source]) => new RegExp(source).test(document.getElementById("announce").textContent),
            [pattern.source],
        );
    async function give(page, name, tensors) {
        await page.setInputFiles("#file", {
            name,
            mimeType: "application/zip",
            buffer: npzOf(Object.fromEntries(Object.entries(tensors).map(([key, t]) => [key, npyOf(...t)]))),
        });
        await page.waitForSelector("#own-show");
        await page.click("#own-show");
    }
    const square = (n) => ({ q: [[n, 4], ramp(4 * n, 0.7)], k: [[n, 4], ramp(4 * n, 1.3)] });

    for (const colorScheme of ["light", "dark"])
        test(`without an engine nothing changes words alone, and axe finds nothing (${colorScheme})`, async () => {
            const page = await lab.page("#v=1&level=3&text=other+words", {
                live: false,
                query: "?engine=static",
                colorScheme,
            });
            await page.waitForFunction(() => !document.getElementById("notice").hidden);
            await page.waitForFunction(() => document.getElementById("knobs").inert);
            assert.match(await page.textContent("#intro"), /This head looks for what came after/); // the page's variant
            assert.equal(await page.inputValue("#text"), "with fovea fovea fovea");
            for (const part of ["#sentence", "#knobs", "#rail", '.levels li:has([data-level="3"])'])
                assert.ok(await page.locator(part).evaluate((e) => e.inert), part);
            await page.evaluate(readFileSync(axeFile, "utf8"));
            const { violations } = await page.evaluate(() => globalThis.axe.run());
            assert.deepEqual(
                violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 4)}`),
                [],
            );
            await page.close();
        });

    test(
        "own tensors: the page says so, a link refuses them, a button leads back",
        withPage({}, async (page) => {
            await page.fill("#text", "one step");
            await settled(page);
            await give(page, "big.npz", square(40));
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens.length === 40);
            assert.match(await page.textContent("#intro"), /Your tensors.*big\.npz.*40 queries, 40 keys/);
            assert.ok(await page.isHidden("#sentence"));
            await page.evaluate(() => globalThis.fovea.app.change({ stage: "queries" }, { numbers: false }));
            await page.waitForFunction(() =>
                /from your file/.test(document.getElementById("stage-name").textContent),
            );
            await page.click("#share");
            assert.match(await page.textContent("#notice"), /tensors of big\.npz.*session file/);
            assert.equal(await page.textContent("#share"), "Copy link");
            // Tensors of another size: never the labels of one over the numbers of the other.
            await give(page, "small.npz", square(32));
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens.length === 32);
            await page.click("[data-back]");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens.length === 2);
            assert.ok(await page.isVisible("#sentence"));
            assert.equal(await page.inputValue("#text"), "one step");
        }),
    );

    test(
        "own tensors are not kept over a reload, and the page says so",
        withPage({}, async (page) => {
            await give(page, "mine.npz", square(5));
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            await page.reload();
            await settled(page);
            await page.waitForFunction(() =>
                /The tensors of mine\.npz were lost/.test(document.getElementById("notice").textContent),
            );
        }),
    );

    test(
        "own tensors without an element are refused in words",
        withPage({}, async (page) => {
            await give(page, "none.npz", {
                q: [[0, 4], ramp(0, 1)],
                k: [[3, 4], ramp(12, 1)],
            });
            await page.waitForFunction(
                () =>
                    document.getElementById("own-note").textContent ===
                    "the queries have 1 heads, 0 tokens and 4 elements each; none may be 0",
            );
            assert.deepEqual((await stageValues(page, "weights")).shape, [6, 6]);
        }),
    );

    test(
        "a word of 400 letters breaks instead of widening the page",
        withPage({ hash: `#v=1&level=2&text=${"ab".repeat(200)}+step` }, async (page) => {
            for (const table of [false, true]) {
                await page.evaluate(
                    (table) => globalThis.fovea.app.change({ table, i: 0 }, { numbers: false }),
                    table,
                );
                await settled(page);
                assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1440);
            }
        }),
    );

    test(
        "screen readers hear what a key changed, and the new number",
        withPage({}, async (page) => {
            await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
            for (const [key, words] of [
                ["m", /^Mask: Causal: only the past\. query journey, key starts, .*masked/],
                ["m", /^Mask: None\. .*, weights 0\.220, /],
                ["s", /^Scores divided by 1\. query journey, key starts, weights/],
                ["s", /^Scores divided by the root of the head width\. .*weights 0\.220/],
                ["PageUp", /^Scaled\. query journey, key starts, scaled 1\.281/],
                ["PageDown", /^Weights\. query journey, key starts, weights 0\.220/],
                ["l", /^Logarithmic colors\./],
                ["l", /^Linear colors\./],
            ]) {
                await page.keyboard.press(key);
                await heard(page, words);
            }
            await page.keyboard.press("d");
            await heard(page, /^Dropout 0\.50, seed 123\. query journey, key starts, /);
            const said = (await page.textContent("#announce")).match(/ (\d\.\d{3}), /)[1];
            assert.equal(
                said,
                await page.evaluate(() => globalThis.fovea.workbench.stage().data[8].toFixed(3)),
            );
            await page.keyboard.press("t");
            await heard(page, /^Table\./);
            await page.keyboard.press("Alt+3");
            await heard(page, /^Level 3: Causal mask\. query/);
        }),
    );

    test(
        "a level is found as it was left; Reset makes it new",
        withPage({ hash: "#v=1&level=2&temp=0.3&seed=7" }, async (page) => {
            for (const level of [3, 2]) {
                await page.evaluate((level) => globalThis.fovea.app.setLevel(level), level);
                await settled(page);
            }
            assert.deepEqual(
                await page.evaluate(() => [globalThis.fovea.app.state.temp, globalThis.fovea.app.state.seed]),
                [0.3, 7],
            );
            await page.click("#reset");
            await settled(page);
            assert.equal(await page.evaluate(() => globalThis.fovea.app.state.seed), 123);
        }),
    );

    test(
        "a link with more heads than the list offers shows their number",
        withPage({ hash: "#v=1&level=6&heads=4" }, async (page) => {
            assert.equal(await page.locator("#heads option:checked").textContent(), "4");
        }),
    );

    for (const [width, height] of [
        [1366, 768],
        [1024, 768],
        [360, 740],
    ])
        test(
            `the whole matrix and the picked number are in the first screen at ${width} x ${height}`,
            withPage({ viewport: { width, height } }, async (page) => {
                const { top, end, sheet, number } = await page.evaluate(() => {
                    const { layout, element, content: current } = globalThis.fovea.workbench.matrix,
                        box = element.getBoundingClientRect(),
                        of = (name) => document.querySelector(name).getBoundingClientRect();
                    return {
                        top: box.top,
                        end: box.top + layout.top + current.rows * layout.cell,
                        sheet: innerWidth < 760 ? of("#inspect-box").top : innerHeight,
                        number: of("#inspector .big").bottom,
                    };
                });
                assert.ok(top > 52 && end <= sheet, `the matrix ends at ${end}, in sight are ${sheet}`);
                assert.ok(number <= height, `the number ends at ${number}`);
                assert.ok(await page.isVisible("#text"));
            }),
        );

    for (const [width, height] of [
        [1366, 768],
        [1024, 768],
        [960, 720],
        [768, 1024],
        [360, 740],
    ])
        test(
            `the picked number is in sight beside the matrix at ${width} x ${height}`,
            withPage({ viewport: { width, height } }, async (page) => {
                await page.evaluate(() =>
                    document
                        .getElementById("matrix")
                        .scrollIntoView({ block: "center", behavior: "instant" }),
                );
                await page.waitForFunction(
                    (height) => {
                        const box = document.querySelector("#inspector .big").getBoundingClientRect();
                        return box.top >= 58 && box.bottom <= height;
                    },
                    height,
                    { timeout: 60_000 },
                );
            }),
        );

    test(
        "a link into the map leads there, and the map has axes and a legend in words",
        withPage({ hash: "#v=1&level=2&zoom=4096,1024,900,2,max" }, async (page) => {
            await page.waitForFunction(() => {
                const box = document.getElementById("zoom").getBoundingClientRect();
                return box.top > -200 && box.top < innerHeight / 2;
            });
            assert.match(await page.textContent("#zoom-note"), /“Mass” adds up .* “largest” shows/);
        }),
    );

    test(
        "on paper: no buttons, and light colors whatever the screen had",
        withPage({ colorScheme: "dark" }, async (page) => {
            await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
            await page.emulateMedia({ media: "print", colorScheme: "dark" });
            for (const part of [".copies", "#offline", "#knobs", "#share"])
                assert.ok(await page.isHidden(part), part);
            const color = await page.evaluate(() => getComputedStyle(document.querySelector(".note")).color);
            assert.equal(color, "rgb(94, 92, 87)");
            await page.emulateMedia({ media: "screen", colorScheme: "dark" });
            await page.evaluate(() => dispatchEvent(new Event("afterprint")));
            assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
        }),
    );

    for (const colorScheme of ["light", "dark"])
        test(
            `the digits of a table can be read on every shade (${colorScheme})`,
            withPage({ hash: "#v=1&level=2&table=1", colorScheme }, async (page) => {
                const poor = await page.evaluate(() => {
                    const row = document.querySelector("#table-box tbody tr"),
                        paper = document
                            .createElement("canvas")
                            .getContext("2d", { willReadFrequently: true });
                    const luminance = (color) => {
                        paper.fillStyle = color;
                        paper.fillRect(0, 0, 1, 1);
                        const [r, g, b] = [...paper.getImageData(0, 0, 1, 1).data].map((c) =>
                            c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
                        );
                        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                    };
                    const found = [];
                    for (let n = 0; n <= 10; ++n)
                        for (const kind of ["s", "n"]) {
                            const cell = row.appendChild(document.createElement("td"));
                            cell.className = kind + n;
                            const { color, backgroundColor } = getComputedStyle(cell),
                                [a, b] = [luminance(color), luminance(backgroundColor)],
                                ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                            if (!(ratio >= 4.5)) found.push(`${kind}${n}: ${ratio.toFixed(2)}`);
                        }
                    return found;
                });
                assert.deepEqual(poor, []);
            }),
        );

    test(
        "a cell of X and of a weight matrix takes a typed number, everything follows, and Back takes it away",
        withPage({ hash: "#v=1&level=3&stage=w_query&i=0&j=1" }, async (page) => {
            const stage = async (id) => {
                await settled(page);
                return page.evaluate(
                    (name) => [...globalThis.fovea.app.result.stages.find((s) => s.id === name).data],
                    id,
                );
            };
            const weights = await stage("weights"),
                matrix = await stage("w_query");
            // By keyboard: Enter opens the cell, Escape leaves it, Enter takes the number.
            const type = async (text, key) => {
                await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
                await page.keyboard.press("Enter");
                await page.waitForSelector(".cell-field:focus");
                await page.keyboard.type(text);
                await page.keyboard.press(key);
            };
            await type("7", "Escape");
            assert.equal(await page.locator(".cell-field").count(), 0);
            assert.deepEqual(await stage("w_query"), matrix);
            await type("1e9", "Enter");
            assert.equal(await page.locator(".cell-field").getAttribute("aria-invalid"), "true");
            await page.keyboard.press("Escape");
            await type("1.5", "Enter");
            const changed = await stage("w_query"),
                followed = await stage("weights");
            assert.equal(changed[1], 1.5);
            assert.deepEqual(changed.with(1, matrix[1]), matrix, "no other weight");
            assert.notDeepEqual(followed, weights);
            assert.match(page.url(), /edits=w_query\+0\+1\+1\.5/);
            assert.match(await page.textContent("#stage-about"), /1 edited/);
            assert.match(await page.textContent('.grid [aria-selected="true"]'), /1\.5000, edited/);
            // By pointer, in X.
            await page.evaluate(() => globalThis.fovea.app.change({ stage: "inputs" }, { numbers: false }));
            await settled(page);
            const box = await page.evaluate(() => {
                const { x, y, width } = globalThis.fovea.workbench.matrix.cellBox(1, 2);
                return { x: x + width / 2, y: y + width / 2 };
            });
            await page.mouse.dblclick(box.x, box.y);
            await page.waitForSelector(".cell-field:focus");
            await page.keyboard.type("-0.5");
            await page.keyboard.press("Enter");
            assert.equal((await stage("inputs"))[5], -0.5);
            // A link shows the same; Back takes one number after the other.
            const link = page.url(),
                both = await stage("weights");
            await page.goBack();
            await page.waitForFunction(() => !globalThis.fovea.app.state.edits.includes("inputs"));
            assert.deepEqual(await stage("weights"), followed);
            await page.evaluate((hash) => (location.hash = hash), new URL(link).hash);
            await page.waitForFunction(() => globalThis.fovea.app.state.edits.includes("inputs"));
            assert.deepEqual(await stage("weights"), both);
            await page.click("[data-unedit]");
            assert.deepEqual(await stage("weights"), weights);
            // A model that learned stays as it is.
            await page.evaluate(() => globalThis.fovea.app.setTask("sort"));
            await settled(page);
            assert.equal(await page.locator("[data-edit]").count(), 0);
        }),
    );

    test(
        "a painted mask stays with its words when others come and go",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const hidden = async () => {
                await settled(page);
                return page.evaluate(() => {
                    const { result } = globalThis.fovea.app,
                        { data } = result.stages.find((s) => s.id === "weights"),
                        side = result.tokens.length;
                    return [...data].flatMap((w, n) =>
                        w === 0 ? [`${Math.floor(n / side)},${n % side}`] : [],
                    );
                });
            };
            const causal = (side) =>
                Array.from({ length: side * side }, (_, n) => [Math.floor(n / side), n % side])
                    .filter(([i, j]) => j > i || (i === 3 && j === 1))
                    .map(String);
            await page.evaluate(() => globalThis.fovea.app.change({ i: 3, j: 1 }, { numbers: false }));
            await page.click("#paint");
            await settled(page); // the mask editor loads
            await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
            await page.keyboard.press("Space");
            assert.deepEqual(await hidden(), causal(6));
            await page.click("#mask-done");
            for (const [text, side] of [
                ["Your journey starts with one step today now", 8],
                ["Your journey starts with one", 5],
                ["Your journey starts with one step", 6],
            ]) {
                await page.fill("#text", text);
                assert.deepEqual(await hidden(), causal(side), text);
            }
            // A link keeps it too: the address follows a burst of typing within 0.3 s.
            await page.waitForFunction(() => location.hash === globalThis.fovea.toHash(fovea.app.state));
            await page.reload();
            assert.deepEqual(await hidden(), causal(6));
        }),
    );

    // The labels that the matrix writes next to its cells, in drawing order.
    const written = async (page) => {
        await settled(page);
        return page.evaluate(() => {
            const all = [],
                { fillText } = CanvasRenderingContext2D.prototype,
                { matrix } = globalThis.fovea.workbench;
            CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
                all.push(text);
                return fillText.call(this, text, ...at);
            };
            matrix.refresh();
            matrix.show();
            CanvasRenderingContext2D.prototype.fillText = fillText;
            return all;
        });
    };
    const arabic = "القط جلس على السجادة وبالعافية بالعالم";
    // On a phone the last slanted label has no room beyond the cells, and small cells have numbers.
    for (const [name, hash, labels, widths] of [
        [
            "a picked word, which is bold",
            `#v=1&level=2&i=4&j=4&text=${encodeURIComponent(arabic)}`,
            arabic.split(" "),
            { 360: 1, 1440: 2 },
        ],
        [
            "the numbers of 128 tokens",
            `#v=1&level=2&i=127&j=127&text=${Array(128).fill("w").join("+")}`,
            ["0", "127"],
            { 360: 2, 1440: 2 },
        ],
        [
            "the last of 30 words",
            `#v=1&level=2&text=${Array.from({ length: 30 }, (_, n) => `word${n}`).join("+")}`,
            ["word0", "word29"],
            { 1440: 2 },
        ],
    ])
        for (const [width, least] of Object.entries(widths))
            test(
                `labels are whole: ${name}, ${width} px`,
                withPage({ hash, viewport: { width: Number(width), height: 900 } }, async (page) => {
                    const all = await written(page);
                    for (const label of labels)
                        assert.ok(
                            all.filter((text) => text === label).length >= least,
                            `${label}: ${all.join(" ")}`,
                        );
                }),
            );

    test(
        "the headline is the picked number of the stage in view, and the steps end in the query's whole context",
        withPage({ hash: "#v=1&level=2&i=1&j=2" }, async (page) => {
            const weight = (await stageValues(page, "weights")).values[8].toFixed(4),
                context = (await stageValues(page, "context")).values.slice(2, 4).map((x) => x.toFixed(4));
            for (const id of ["scores", "scaled", "weights"]) {
                await page.evaluate(
                    (stage) => globalThis.fovea.app.change({ stage }, { numbers: false }),
                    id,
                );
                const number = (await stageValues(page, id)).values[8].toFixed(4);
                assert.equal(await page.textContent("#inspector .big"), number, id);
                const note = await page.textContent("#inspector .note");
                assert.match(
                    note,
                    id === "weights"
                        ? /^attention weight, /
                        : new RegExp(`^${id}; attention weight ${weight}, `),
                );
                const last = await page.textContent("#inspector .steps > li:last-child");
                assert.equal(last, `of the context of journey${context.join("  ")}`);
            }
        }),
    );

    test(
        "each level opens on a cell that has a weight",
        withPage({}, async (page) => {
            for (let level = 1; level <= 7; ++level) {
                await page.evaluate((level) => globalThis.fovea.app.setLevel(level), level);
                const { i, j, stage } = await page.evaluate(() => globalThis.fovea.app.state),
                    { values, shape } = await stageValues(page, stage);
                assert.ok(values[i * shape.at(-1) + j] > 0, `level ${level}: ${stage}[${i}][${j}]`);
            }
        }),
    );

    test(
        "a file's name and its tokens that look like HTML are shown as they are",
        withPage({ hash: "#v=1&level=2&table=1" }, async (page) => {
            const html = "<img src=x><b>bold</b>",
                elements = () => page.locator("img, #intro b, #notice b, bdi b").count(),
                before = await elements();
            await give(page, `${html}.npz`, square(3));
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens.length === 3);
            assert.ok((await page.textContent("#intro")).includes(`${html}.npz: `));
            await page.click("#share");
            assert.ok((await page.textContent("#notice")).includes(`tensors of ${html}.npz`));
            const two = { shape: [1, 2, 1], f32: "AACAPwAAAEA=" },
                tensors = { q: two, k: two, tokens: [html, "b"] };
            await page.setInputFiles("#file", {
                name: "s.fovea",
                mimeType: "application/json",
                buffer: Buffer.from(
                    JSON.stringify({ format: "fovea-session", version: 1, state: { table: true }, tensors }),
                ),
            });
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens.length === 2);
            assert.equal(await page.textContent("#table-box tbody th"), html);
            await page.evaluate(() => globalThis.fovea.workbench.pick(0, 0));
            assert.match(
                await page.textContent("#inspector .label"),
                new RegExp(`^Query ${html} → key ${html}$`),
            );
            assert.equal(await elements(), before);
        }),
    );

    test(
        "the frame to embed is of the state in view: bare, and 640 x 480",
        withPage({ hash: "#v=1&level=3&i=2&j=1" }, async (page) => {
            assert.match(
                await page.textContent("#embed-code"),
                /^<iframe src="http[^"]*#v=1&level=3&i=2&j=1&bare=1" width="640" height="480"><\/iframe>$/,
            );
        }),
    );

    for (const [level, formula] of [
        [2, "Q = X·Wq"],
        [3, "Q = X·Wqᵀ"],
        [6, "Q = X·Wqᵀ"],
    ])
        test(
            `level ${level}: the formula of the queries multiplies as its shapes say`,
            withPage({ hash: `#v=1&level=${level}&stage=queries` }, async (page) => {
                assert.match(await page.textContent("#stage-name"), new RegExp(`${formula}$`));
                const [x, w] = await page.evaluate(() =>
                    ["inputs", "w_query"].map(
                        (id) => globalThis.fovea.app.result.stages.find((s) => s.id === id).shape,
                    ),
                );
                assert.equal(x[1], formula.endsWith("ᵀ") ? w[1] : w[0]);
            }),
        );
});
