// The page in German: every text has a translation with the same numbers and token words. Lessons show the same
// digits, and nothing of German is loaded before a reader asks for it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { textsOf } from "../tools/texts.mjs";
import { Lab, missing, root, settled, stageValues, withPages } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
    tables = (...path) => JSON.parse(readFileSync(join(root, "lens/model/tables", ...path), "utf8"));

// Every text of a table with its place: "levels.2.lead".
const textsIn = (value, place = "") =>
    typeof value === "string"
        ? { [place.slice(1)]: value }
        : Object.assign({}, ...Object.entries(value).map(([key, part]) => textsIn(part, `${place}.${key}`)));
// Thousands have a comma in English and none in German.
const numbersIn = (text) => (text.replace(/(\d),(\d{3})\b/g, "$1$2").match(/\d+(?:\.\d+)?/g) ?? []).sort();
const quotedIn = (text, [open, close]) =>
    [...text.matchAll(new RegExp(`${open}([^${close}]+)${close}`, "g"))].map(([, words]) => words);

describe("German texts", async () => {
    const [english, german] = await Promise.all(["en", "de"].map(textsOf));

    test("each part has the same keys, and each text the same values in it", () => {
        for (const part of Object.keys(english)) {
            assert.deepEqual(Object.keys(german[part]), Object.keys(english[part]), part);
            for (const [key, text] of Object.entries(english[part])) {
                const valuesIn = (one) => [...new Set(one.match(/\{\d\}/g))].sort();
                assert.deepEqual(valuesIn(german[part][key]), valuesIn(text), `${part}.${key}`);
                assert.ok(german[part][key].length, `${part}.${key} is empty`);
            }
        }
    });

    test("each text of a level, a task, a stage and a step of a walk is there, with the same numbers", () => {
        const fields = {
            levels: ["name", "term", "title", "lead"],
            stages: ["label", "about"],
            learned: ["name", "title", "lead"],
            stories: ["title", "text", "try", "see"],
        };
        for (const [name, keys] of Object.entries(fields)) {
            const [from, to] = [tables(`${name}.json`), tables("de", `${name}.json`)].map(textsIn);
            for (const [place, text] of Object.entries(from)) {
                if (!keys.includes(place.split(".").at(-1)) || /\.(show|done|keys)\./.test(place)) continue;
                assert.ok(to[place], `${name}: ${place} has no German text`);
                if (name === "stories") assert.deepEqual(numbersIn(to[place]), numbersIn(text), place);
            }
            for (const place of Object.keys(to)) assert.ok(place in from, `${name}: ${place} is no text`);
        }
    });

    test("walks quote the same token words, and controls by the names that they have on the page", () => {
        const onPage = (texts) =>
                new Set(Object.values({ ...texts.page, ...texts.stage, live: texts.app.live })),
            [from, to] = [tables("stories.json"), tables("de", "stories.json")].map(textsIn);
        for (const [place, text] of Object.entries(to)) {
            const wanted = quotedIn(from[place], "“”"),
                words = quotedIn(text, "„“"),
                // Names of controls, sentences of the page, and the text of a head's note.
                isToken = (one, texts) =>
                    !onPage(texts).has(one) && !/\d+ | an? /.test(one) && !/einem a/.test(one);
            assert.deepEqual(
                words.filter((one) => isToken(one, german)).sort(),
                wanted.filter((one) => isToken(one, english)).sort(),
                place,
            );
            assert.equal(words.length, wanted.length, place);
        }
    });
});

describe("the page in German", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);
    const { levels } = tables("de", "stories.json"),
        names = tables("de", "levels.json").map(({ name }) => name);

    for (const level of [1, 3])
        test(
            `level ${level}: German words, and the digits of the English page`,
            withPage({ hash: `#v=1&level=${level}` }, async (page) => {
                const shown = async () => ({
                        values: (await stageValues(page, "weights")).values,
                        big: await page.textContent("#inspector .big"),
                        steps: (await page.textContent("#inspector .steps")).match(/−?\d+\.\d+/g),
                    }),
                    english = await shown();
                await page.goto(page.url().replace("#", "de.html#"));
                await settled(page);
                assert.equal(await page.getAttribute("html", "lang"), "de");
                assert.deepEqual(await shown(), english);
                assert.ok((await page.textContent(".levels")).includes(names[2]));
                assert.equal(
                    await page.textContent("#intro h2"),
                    tables("de", "levels.json")[level - 1].title,
                );
                assert.match(await page.textContent("#inspector"), /Attention-Gewicht, .*Die ganze Zeile/s);
                assert.match(await page.textContent("#rail"), /Gewichte.*Kontext/s);
                assert.match(await page.textContent("#knobs"), /Scores teilen durch.*Maskenmuster/s);
                await page.click("#walk");
                await page.waitForFunction(
                    (title) => document.querySelector(".walking h2")?.textContent === title,
                    levels[level - 1][0].title,
                );
                assert.match(await page.textContent("#intro"), /^Schritt 1 von 9/);
                await page.click('[data-step="show"]');
                await page.waitForSelector(".walking .done");
                assert.ok((await page.textContent(".walking .done")).includes(levels[level - 1][0].see));
                await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
                await page.keyboard.press("ArrowRight");
                assert.match(
                    await page.textContent("#announce"),
                    /^Query .*, Key .*, .*\d\.\d{3}, .*(von \d|maskiert)$|Spalte \d/,
                );
            }),
        );

    for (const hash of ["de.html", "de.html#v=1&level=3&step=2", "de.html#v=1&level=7", "level/3/de.html"])
        test(
            `${hash}: nothing is wider than a phone, and axe finds nothing`,
            withPage(
                { hash, live: hash.startsWith("de"), viewport: { width: 390, height: 844 } },
                async (page) => {
                    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
                    assert.ok(wide <= 390, `${wide} px`);
                    await page.evaluate(readFileSync(axeFile, "utf8"));
                    const { violations } = await page.evaluate(() => globalThis.axe.run());
                    assert.deepEqual(
                        violations.map((v) => `${v.id}: ${v.nodes[0].html}`),
                        [],
                    );
                },
            ),
        );

    test(
        "a link leads to the other language and back, to the same level; English loads nothing German",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const asked = [];
            page.on("request", (r) => asked.push(r.url()));
            await page.reload();
            await settled(page);
            assert.deepEqual(
                asked.filter((url) => /\/de[-.]/.test(url)),
                [],
            );
            await page.click("#language");
            await page.waitForURL(/de\.html#v=1&level=3/);
            await settled(page);
            assert.equal(await page.evaluate(() => globalThis.fovea.app.state.level), 3);
            await page.click("#language");
            await page.waitForURL(/\?lang=en#v=1&level=3/);
            await settled(page);
            assert.equal(await page.getAttribute("html", "lang"), "en");
        }),
    );

    test("a browser that speaks German gets the German page, unless the address asks for English", async () => {
        const other = await Lab.open({ context: { locale: "de-DE" } });
        try {
            const page = await other.page("#v=1&level=2");
            await page.waitForURL(/de\.html#v=1&level=2/);
            await settled(page);
            assert.equal(await page.getAttribute("html", "lang"), "de");
            const kept = await other.page("#v=1&level=2", { query: "?lang=en" });
            assert.equal(await kept.getAttribute("html", "lang"), "en");
            assert.deepEqual([...page.faults, ...kept.faults], []);
        } finally {
            await other.close();
        }
    });
});
