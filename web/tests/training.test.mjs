// The playground: a model learns in the page's own trainer; what is shown of it is what the trainer computed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { Lab, missing, withPages } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

// The playground has shown the step that the address says.
const shows = (page, step) =>
    page.waitForFunction(
        (wanted) => new RegExp(`Step ${wanted}\\b`).test(document.getElementById("play-now")?.textContent),
        step,
        { timeout: 60_000 },
    );
const facts = (page) =>
    page.evaluate(() => ({
        now: document.getElementById("play-now").textContent,
        heads: [...document.querySelectorAll(".play-head figcaption")].map((e) => e.textContent),
        train: globalThis.fovea.app.state.train,
        hash: decodeURIComponent(location.hash),
    }));
const right = (text) => Number(/([\d.]+)%/.exec(text.split("On new sequences")[1])[1]) / 100;

describe("training", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    test(
        "a head for the token before, one for induction and one for the first token form; without the first of them the model forgets",
        withPage({ hash: "#v=1&level=2&train=induction,3,400,0," }, async (page) => {
            await shows(page, 400);
            await page.waitForFunction(() => /On new/.test(document.getElementById("play-now").textContent));
            const { now, heads, hash } = await facts(page);
            assert.ok(right(now) >= 0.95, now);
            for (const name of ["previous token", "induction"])
                assert.ok(
                    heads.some((text) => text.includes(name)),
                    `${name} in ${heads.join("; ")}`,
                );
            assert.match(hash, /train=induction,3,400,0,/);
            const off = heads.findIndex((text) => text.includes("previous token"));
            await page.click(`[data-off="${off}"]`);
            await page.waitForFunction(() =>
                /heads that are off/.test(document.getElementById("play-now").textContent),
            );
            const without = Number(/off ([\d.]+)%/.exec(await page.textContent("#play-now"))[1]);
            assert.ok(without < 60, `${without}% without its previous-token head`);
            assert.match((await facts(page)).train, new RegExp(`^induction,3,400,${1 << off},`));
            await page.evaluate(readFileSync(axeFile, "utf8"));
            const { violations } = await page.evaluate(() => globalThis.axe.run("#play"));
            assert.deepEqual(
                violations.map((v) => `${v.id}: ${v.nodes[0].html}`),
                [],
            );
        }),
    );

    test(
        "train, pause, one step, rewind, scrub: the same step has the same numbers however it was reached",
        withPage({ hash: "#v=1&level=2&train=reverse,3,0,0," }, async (page) => {
            await shows(page, 0);
            await page.focus("#play-run");
            await page.keyboard.press("Enter");
            await page.waitForFunction(
                () => Number(document.getElementById("play-step").value) >= 12,
                undefined,
                { timeout: 60_000 },
            );
            await page.keyboard.press("Enter");
            await page.waitForFunction(
                () => /On new/.test(document.getElementById("play-now").textContent),
                undefined,
                { timeout: 60_000 },
            );
            const paused = await facts(page),
                at = Number(/Step (\d+)/.exec(paused.now)[1]);
            await page.click("#play-one");
            await shows(page, at + 1);
            await page.click("#play-back");
            await shows(page, 0);
            await page.evaluate((step) => {
                const range = document.getElementById("play-step");
                range.value = String(step);
                range.dispatchEvent(new Event("input"));
            }, at);
            await shows(page, at);
            await page.waitForFunction(() => /On new/.test(document.getElementById("play-now").textContent));
            assert.equal((await facts(page)).now, paused.now);
            // A link to it, too.
            await page.waitForFunction(() => location.hash === globalThis.fovea.toHash(fovea.app.state));
            const other = await lab.page(new URL(page.url()).hash);
            await shows(other, at);
            await other.waitForFunction(() => /On new/.test(document.getElementById("play-now").textContent));
            assert.equal((await facts(other)).now, paused.now);
            await other.close();
            // The reader's own sequence; an unknown token is rejected with a message.
            await page.fill("#play-tokens", "a b zz");
            await page.waitForFunction(() =>
                /'zz' is not a token/.test(document.getElementById("play-note").textContent),
            );
            await page.fill("#play-tokens", "a b c d");
            await page.waitForFunction(
                () => document.querySelectorAll("#play-next tr:first-child td").length === 4,
            );
            // A page that nobody sees does not train.
            await page.click("#play-run");
            await page.evaluate(() => {
                Object.defineProperty(document, "hidden", { value: true, configurable: true });
                dispatchEvent(new Event("visibilitychange"));
            });
            await page.waitForFunction(() => document.getElementById("play-run").textContent === "Train");
        }),
    );
});
