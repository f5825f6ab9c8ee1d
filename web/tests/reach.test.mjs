// Keyboards, zoomed pages, forced colours, paper, right-to-left words.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { Lab, missing, settled, stageValues } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

describe("reach", { skip: missing ?? false }, () => {
    let lab;
    before(async () => { lab = await Lab.open(); });
    after(async () => { await lab?.close(); });

    const axe = async (page) => {
        await page.evaluate(readFileSync(axeFile, "utf8"));
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html).join(" | ")}`);
    };

    test("the keyboard reaches every control, sees where it is, and is nowhere trapped", async () => {
        const page = await lab.page("#v=1&level=6&cmp=1");
        const waiting = await page.evaluate(() => {
            for (const panel of document.querySelectorAll(".panel")) panel.style.contentVisibility = "visible";
            globalThis.reached = new Set();
            const wanted = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.tabIndex >= 0 && !(e.type === "radio" && !e.checked);
            globalThis.wanted = () => [...document.querySelectorAll("a[href], button, input, select, summary, canvas[tabindex], [role=gridcell][tabindex='0'], pre[tabindex]")].filter(wanted);
            document.body.focus();
            return globalThis.wanted().length;
        });
        const unseen = new Set();
        for (let i = 0; i < waiting + 30; ++i) {
            await page.keyboard.press("Tab");
            const plain = await page.evaluate(() => {
                const at = document.activeElement;
                globalThis.reached.add(at);
                // A cell's mark is drawn on the canvas, a hidden radio's on its label.
                const mark = at.type === "radio" || at.type === "file" ? at.nextElementSibling ?? at.closest("label, .drop") : at;
                if (at === document.body || at.getAttribute("role") === "gridcell" || at.type === "file") return "";
                const style = getComputedStyle(mark);
                return style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2 ? at.outerHTML.slice(0, 80) : "";
            });
            if (plain) unseen.add(plain);
        }
        const left = await page.evaluate(() => globalThis.wanted().filter((e) => !globalThis.reached.has(e)).map((e) => e.outerHTML.slice(0, 100)));
        assert.deepEqual(left, []);
        assert.deepEqual([...unseen], []);
        await page.close();
    });

    test("a whole visit without a mouse", async () => {
        const page = await lab.page();
        const focus = (selector) => page.focus(selector);
        await focus("#text");
        await page.keyboard.press("Control+A");
        await page.keyboard.type("one step more");
        await settled(page);
        assert.deepEqual((await stageValues(page, "weights")).shape, [3, 3]);
        await page.keyboard.press("Alt+3");
        await settled(page);
        assert.equal(await page.evaluate(() => globalThis.fovea.app.state.level), 3);
        await focus('[data-stage="scaled"]');
        await page.keyboard.press("Enter");
        assert.equal(await page.evaluate(() => globalThis.fovea.app.state.stage), "scaled");
        await focus('input[name="route"]:checked');
        await page.keyboard.press("ArrowRight");
        await settled(page);
        assert.equal(await page.evaluate(() => globalThis.fovea.app.state.route), "after");
        await focus("#alibi");
        await page.keyboard.press("Space");
        await settled(page);
        assert.equal(await page.evaluate(() => globalThis.fovea.app.state.alibi), true);
        await focus("#export summary");
        await page.keyboard.press("Enter");
        assert.ok(await page.isVisible('[data-export="csv"]'));
        await page.keyboard.press("Escape");
        assert.ok(await page.isHidden('[data-export="csv"]'));
        await page.goBack();
        await settled(page);
        assert.equal(await page.evaluate(() => globalThis.fovea.app.state.alibi), false);
        await page.close();
    });

    test("at 200% nothing is lost", async () => {
        // A window of 1280 pixels, zoomed to twice the size.
        const page = await lab.page("#v=1&level=5", { viewport: { width: 640, height: 450 } });
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 640);
        const cut = await page.$$eval("button, label, h2, h3, p", (all) => all.filter((e) => e.offsetParent && !e.closest(".unseen, .rail, .levels") && e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).overflow === "hidden").map((e) => e.outerHTML.slice(0, 80)));
        assert.deepEqual(cut, []);
        await page.close();
    });

    test("forced colours: what is chosen is marked without colour", async () => {
        const page = await lab.page("#v=1&level=5");
        await page.emulateMedia({ forcedColors: "active" });
        for (const selector of [".rail [aria-current]", ".levels [aria-current]", ".segmented input:checked + span", '.thumb[aria-pressed="true"]'])
            assert.notEqual(await page.$eval(selector, (e) => getComputedStyle(e).outlineStyle), "none", selector);
        assert.deepEqual(await axe(page), []);
        await page.close();
    });

    test("on paper: the lesson without its controls", async () => {
        const page = await lab.page();
        await page.emulateMedia({ media: "print" });
        for (const [selector, seen] of [["#inspector", true], ["#matrix", true], ["#lessons", true], ["#knobs", false], [".top", false], ["#zoom", false]])
            assert.equal(await page.isVisible(selector), seen, selector);
        assert.ok((await page.pdf()).length > 10_000);
        await page.close();
    });

    test("right-to-left words keep their direction beside numbers", async () => {
        const page = await lab.page(`#v=1&level=2&table=1&text=${encodeURIComponent("שלום לעולם כולו")}`);
        assert.equal(await page.getAttribute("#text", "dir"), "auto");
        assert.equal(await page.$eval("#text", (e) => getComputedStyle(e).direction), "rtl");
        const row = await page.$$eval("#table-box tbody tr:first-child > *", (cells) => cells.map((c) => c.textContent));
        assert.equal(row[0], "שלום");
        assert.equal(await page.locator("#table-box tbody th bdi").count(), 3);
        // The query comes first, then the key, whatever their direction.
        assert.deepEqual(await page.$$eval("#inspector .label bdi", (all) => all.slice(0, 2).map((e) => e.textContent)), ["לעולם", "כולו"]);
        assert.deepEqual(await axe(page), []);
        await page.close();
    });
});
