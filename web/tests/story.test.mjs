// The walk of each level and each task, from its first step to its last, without a mouse: what a step asks for is not done before, it is
// done by the keys that it names, and the numbers that it then speaks of are on the page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Lab, isNightly, missing, root, settled, withPages } from "./support.mjs";

const stories = JSON.parse(readFileSync(join(root, "lens/model/tables/stories.json"), "utf8"));
const numbersIn = (text) => text.match(/−?\d+\.\d{3,4}/g) ?? [];

// The displayed values: the numbers of the stage in view and of the inspector, and those of all stages.
const shown = (page) =>
    page.evaluate(() => {
        const { app, workbench } = globalThis.fovea,
            write = (x) => x.toFixed(4).replace("-", "−"),
            stage = workbench.stage();
        return {
            here: [...workbench.content(stage, app.result).data.slice(0, 4096)].map(write),
            inspector: document.getElementById("inspector").textContent,
            all: app.result.stages.flatMap((s) => [...s.data.slice(0, 4096)].map(write)),
        };
    });

async function perform(page, step) {
    if (!step.on) {
        await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
    } else
        await page.evaluate((id) => {
            const control =
                document.querySelector(`input[name="${id}"]:checked`) ?? document.getElementById(id);
            control.focus();
            control.select?.();
        }, step.on);
    for (const key of step.keys ?? []) await page.keyboard.press(key);
    if (step.type) await page.keyboard.type(step.type);
}

describe("walks", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    const walks = [
        ...stories.levels.map((steps, n) => [`level=${n + 1}`, steps]),
        ...Object.entries(stories.tasks).map(([task, steps]) => [`task=${task}`, steps]),
    ];
    // Every third of the twelve, and the last; all of them in the nightly run.
    for (const [where, steps] of walks.filter((_, n) => isNightly || n % 3 === 0 || n === walks.length - 1))
        test(
            `${where}: ${steps.length} steps by keyboard`,
            withPage({ hash: `#v=1&${where}` }, async (page) => {
                await page.focus("#walk");
                await page.keyboard.press("Enter");
                let seen = { all: [] };
                for (const [n, step] of steps.entries()) {
                    await page.waitForFunction(
                        (title) => document.querySelector(".walking h2")?.textContent === title,
                        step.title.replaceAll("_", ""),
                    );
                    await settled(page);
                    const at = `step ${n + 1}, ${step.title}`;
                    assert.ok(await page.isVisible(".walking .try"), `${at}: done before it was`);
                    assert.match(await page.evaluate(() => location.hash), new RegExp(`&step=${n + 1}\\b`));
                    const then = await shown(page);
                    await perform(page, step);
                    await page
                        .waitForSelector(".walking .done", { timeout: 60_000 })
                        .catch(() => assert.fail(`${at}: its keys do not do it`));
                    await settled(page);
                    seen = await shown(page);
                    const [first, ...others] = numbersIn(step.see),
                        hidden = (x) => ![...seen.here, ...seen.all, ...then.all].includes(x);
                    assert.ok(
                        !first || seen.here.includes(first) || seen.inspector.includes(first),
                        `${at}: ${first} is not in sight`,
                    );
                    assert.deepEqual(
                        others.filter((x) => hidden(x) && !seen.inspector.includes(x)),
                        [],
                        at,
                    );
                    // On from the matrix by its own key, and from the words by Space and the arrows.
                    if (n + 1 === steps.length) break;
                    if (n % 2 && !step.on) await page.keyboard.press(".");
                    else {
                        await page.focus("#intro");
                        await page.keyboard.press(n % 4 ? "ArrowRight" : "Space");
                    }
                }
                await page.focus("#intro");
                await page.keyboard.press("Escape");
                await settled(page);
                assert.equal(await page.isVisible(".walking"), false);
                assert.equal(await page.evaluate(() => globalThis.fovea.app.state.step), 0);
                assert.equal(await page.evaluate(() => document.activeElement.id), "walk");
            }),
        );

    test(
        "a link to a step shows what the step is about; Back, “Show me” and another level",
        withPage({ hash: "#v=1&level=2&step=6" }, async (page) => {
            await page.waitForSelector(".walking .try");
            const place = () =>
                page.evaluate(() => {
                    const { level, stage, i, j, step } = globalThis.fovea.app.state;
                    return { level, stage, i, j, step };
                });
            assert.deepEqual(await place(), { level: 2, stage: "scores", i: 1, j: 0, step: 6 });
            await page.click('[data-step="show"]');
            await page.waitForSelector(".walking .done");
            assert.deepEqual(await place(), { level: 2, stage: "scores", i: 0, j: 1, step: 6 });
            await page.evaluate(() => globalThis.fovea.app.change({ j: 5 }, { numbers: false }));
            await page.waitForSelector(".walking .try"); // it is done no more
            await page.click('[data-step="7"]');
            await page.waitForFunction(() => globalThis.fovea.app.state.step === 7);
            await page.goBack();
            await page.waitForFunction(() => globalThis.fovea.app.state.step === 6);
            await page.click('[data-level="3"]');
            await settled(page);
            assert.equal((await place()).step, 0);
            assert.equal(await page.isVisible(".walking"), false);
        }),
    );

    test(
        "the flow: every matrix on the way, the picked number's parts framed, a click leads to the stage",
        withPage({ hash: "#v=1&level=2&stage=context&i=1&j=1" }, async (page) => {
            const names = () =>
                page.$$eval("#flow-body [data-stage]", (all) => all.map((e) => e.dataset.stage));
            assert.deepEqual(await names(), [
                "inputs",
                "queries",
                "keys",
                "values",
                "scores",
                "scaled",
                "weights",
                "context",
            ]);
            // Rows and columns whose edge is drawn in ink: the row of weights, and column 1 of the values.
            const framed = (id) =>
                page.evaluate((stage) => {
                    const canvas = document.querySelector(`#flow-body [data-stage="${stage}"] canvas`),
                        { data, width, height } = canvas
                            .getContext("2d")
                            .getImageData(0, 0, canvas.width, canvas.height);
                    let [left, top, right, bottom] = [width, height, 0, 0];
                    for (let n = 0; n < width * height; ++n)
                        if (data[4 * n] === 27 && data[4 * n + 1] === 27 && data[4 * n + 2] === 31) {
                            const [x, y] = [n % width, Math.floor(n / width)];
                            [left, top] = [Math.min(left, x), Math.min(top, y)];
                            [right, bottom] = [Math.max(right, x), Math.max(bottom, y)];
                        }
                    return right ? [(right - left) / width > 0.7, (bottom - top) / height > 0.7] : null;
                }, id);
            assert.deepEqual(await framed("weights"), [true, false]);
            assert.deepEqual(await framed("values"), [false, true]);
            assert.equal(await framed("keys"), null);
            await page.click('#flow-body [data-stage="scores"]');
            await settled(page);
            const place = () =>
                page.evaluate(() => {
                    const { stage, i, j } = globalThis.fovea.app.state;
                    return [stage, i, j];
                });
            const [stage, ...cell] = await place();
            assert.equal(stage, "scores");
            // The cell is kept even by a matrix that is narrower, and Back leads back.
            await page.evaluate(() => globalThis.fovea.app.change({ i: 3, j: 5 }));
            await page.click('#flow-body [data-stage="values"]');
            assert.deepEqual(await place(), ["values", 3, 5]);
            await page.goBack();
            assert.deepEqual(await place(), ["scores", 3, 5]);
            await page.evaluate(([i, j]) => globalThis.fovea.app.change({ i, j }), cell);
            await page.click("#flow-play"); // reduced motion: all at once, and it says so
            assert.match(await page.textContent("#flow-note"), /whole path of the word/);
        }),
    );

    test(
        "the flow, played: a token's way is lit step by step, and comes to its end",
        withPage({ hash: "#v=1&level=2&stage=context&i=1&j=1" }, async (page) => {
            await page.emulateMedia({ reducedMotion: "no-preference" });
            // How many matrices have a frame in ink, whenever that changes.
            await page.evaluate(() => {
                globalThis.steps = [];
                const framed = (canvas) => {
                    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                    for (let n = 0; n < data.length; n += 4)
                        if (data[n] === 27 && data[n + 1] === 27 && data[n + 2] === 31) return true;
                    return false;
                };
                const look = () => {
                    const count = [...document.querySelectorAll("#flow-body canvas")].filter(framed).length;
                    if (count !== globalThis.steps.at(-1)?.count)
                        globalThis.steps.push({ at: performance.now(), count });
                    requestAnimationFrame(look);
                };
                look();
            });
            const whole = await page.evaluate(() => globalThis.steps[0].count);
            assert.ok(whole >= 2, `${whole} matrices are framed`);
            await page.click("#flow-play");
            await page.waitForFunction(
                (all) => globalThis.steps.length > 2 && globalThis.steps.at(-1).count === all,
                whole,
            );
            const steps = (await page.evaluate(() => globalThis.steps)).slice(1);
            assert.ok(steps[0].count < whole, "it begins with less than all of the way");
            for (let n = 1; n < steps.length; ++n)
                assert.ok(steps[n].count > steps[n - 1].count, JSON.stringify(steps));
            // 200 ms a step at the least: what is lit together is one step.
            assert.ok(steps.at(-1).at - steps[0].at > 150 * (steps.length - 1), JSON.stringify(steps));
        }),
    );

    test(
        "bare=1: the matrix with its digits and the number at 640 x 480, the key stays in the address; big=1",
        withPage({ hash: "#v=1&level=3&bare=1", viewport: { width: 640, height: 480 } }, async (page) => {
            for (const part of [".top", "h1", ".levels", "#rail", "#knobs", ".foot", "#text"])
                assert.ok(await page.isHidden(part), part);
            const { end, cell, number, wide } = await page.evaluate(() => {
                const { layout, element, content: current } = globalThis.fovea.workbench.matrix,
                    box = element.getBoundingClientRect();
                return {
                    end: box.top + layout.top + current.rows * layout.cell,
                    cell: layout.cell,
                    number: document.querySelector("#inspector .big").getBoundingClientRect().bottom,
                    wide: document.documentElement.scrollWidth,
                };
            });
            assert.ok(end <= 480 && number <= 480 && wide <= 640, `${end}, ${number}, ${wide}`);
            assert.ok(cell >= 50, `cells of ${cell} show no digits`);
            await page.evaluate(() => globalThis.fovea.workbench.pick(2, 1));
            await page.waitForFunction(() => /&i=2.*&bare=1$/.test(location.hash));
            await page.evaluate(() => {
                location.hash = "#v=1&level=2&bare=text,stages&big=1";
            });
            await page.reload();
            await settled(page);
            assert.ok((await page.isVisible("#text")) && (await page.isVisible("#rail")));
            assert.equal(
                await page.evaluate(() => getComputedStyle(document.documentElement).fontSize),
                "20px",
            );
        }),
    );
});
