// Pages of levels and tasks that need no script: previews, exercises whose answers are folded away, links into the live page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { after, before, describe, test } from "node:test";
import { Lab, missing, root, settled, site, withPages } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const stories = JSON.parse(readFileSync(join(root, "lens/model/tables/stories.json"), "utf8"));

describe("pages for a class", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    test("each level and task has one, with a preview that is a picture of its weights", () => {
        const places = [
            ...stories.levels.map((_, n) => `level/${n + 1}`),
            ...Object.keys(stories.tasks).map((t) => `task/${t}`),
        ];
        for (const place of places) {
            const html = readFileSync(join(site, place, "index.html"), "utf8");
            for (const name of ["og:title", "og:description", "og:image"])
                assert.match(
                    html,
                    new RegExp(`<meta property="${name}" content="[^"]+">`),
                    `${place}: ${name}`,
                );
            assert.doesNotMatch(html, /<script|\sstyle="|undefined|NaN/, place);
            const png = readFileSync(join(site, place, "preview.png"));
            assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [1200, 630]);
            const size = png.readUInt32BE(33),
                pixels = inflateSync(png.subarray(41, 41 + size)),
                colors = new Set();
            assert.equal(pixels.length, 630 * 3601);
            for (let at = 1; at + 2 < pixels.length; at += 3601 * 7 + 33)
                colors.add(pixels.readUIntBE(at, 3));
            assert.ok(colors.size >= 4, `${place}: ${colors.size} colors`);
        }
    });

    test("the front page has a card: the picture of what it shows first", () => {
        const html = readFileSync(join(site, "index.html"), "utf8"),
            image = html.match(/<meta property="og:image" content="([^"]+)">/)?.[1];
        assert.equal(image, "task/induction/preview.png");
        assert.deepEqual(readFileSync(join(site, image)).subarray(1, 4).toString(), "PNG");
        assert.match(html, /<meta name="twitter:card" content="summary_large_image">/);
        // The texts that such a card shows.
        assert.match(html, /<title>[^<]{20,}<\/title>/);
        assert.match(html, /<meta name="description" content="[^"]{60,}">/);
    });

    for (const [place, scheme] of [
        ["level/3/", "light"],
        ["task/induction/", "dark"],
    ])
        test(
            `${place}: answers are folded away, an exercise opens its step, axe finds nothing (${scheme})`,
            withPage({ hash: place, live: false, colorScheme: scheme }, async (page) => {
                const steps = place.startsWith("level") ? stories.levels[2] : stories.tasks.induction;
                assert.equal(await page.locator(".exercises > li").count(), steps.length);
                const answer = page.locator(".exercises details p").nth(1);
                assert.ok(await answer.isHidden());
                await page.locator(".exercises summary").nth(1).press("Enter");
                assert.ok(await answer.isVisible());
                assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1440);
                await page.evaluate(readFileSync(axeFile, "utf8"));
                const { violations } = await page.evaluate(() => globalThis.axe.run());
                assert.deepEqual(
                    violations.map((v) => `${v.id}: ${v.nodes[0].html}`),
                    [],
                );
                await page.locator(".exercises a").nth(1).click();
                await page.waitForFunction(
                    (title) => document.querySelector(".walking h2")?.textContent === title,
                    steps[1].title,
                );
                await settled(page);
            }),
        );
});
