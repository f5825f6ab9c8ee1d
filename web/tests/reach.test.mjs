// Keyboards, zoomed pages, forced colors, paper, right-to-left words.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { Lab, missing, settled, stageValues } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

describe("reach", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });

    const axe = async (page) => {
        await page.evaluate(readFileSync(axeFile, "utf8"));
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        return violations.map(
            (v) =>
                `${v.id}: ${v.nodes
                    .slice(0, 3)
                    .map((n) => n.html)
                    .join(" | ")}`,
        );
    };

    test("the keyboard reaches every control, sees where it is, and is nowhere trapped", async () => {
        const page = await lab.page("#v=1&level=6&cmp=1");
        const waiting = await page.evaluate(() => {
            for (const panel of document.querySelectorAll(".panel"))
                panel.style.contentVisibility = "visible";
            globalThis.reached = new Set();
            const wanted = (e) =>
                e.checkVisibility({ visibilityProperty: true }) &&
                !e.disabled &&
                e.tabIndex >= 0 &&
                !(e.type === "radio" && !e.checked);
            globalThis.wanted = () =>
                [
                    ...document.querySelectorAll(
                        "a[href], button, input, select, summary, canvas[tabindex], [role=gridcell][tabindex='0'], pre[tabindex]",
                    ),
                ].filter(wanted);
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
                const mark =
                    at.type === "radio" || at.type === "file"
                        ? (at.nextElementSibling ?? at.closest("label, .drop"))
                        : at;
                if (at === document.body || at.getAttribute("role") === "gridcell" || at.type === "file")
                    return "";
                const style = getComputedStyle(mark);
                return style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2
                    ? at.outerHTML.slice(0, 80)
                    : "";
            });
            if (plain) unseen.add(plain);
        }
        const left = await page.evaluate(() =>
            globalThis
                .wanted()
                .filter((e) => !globalThis.reached.has(e))
                .map((e) => e.outerHTML.slice(0, 100)),
        );
        assert.deepEqual(left, []);
        assert.deepEqual([...unseen], []);
        await page.close();
    });

    test("the first stop of Tab leads past the levels to the matrix's own part of the page", async () => {
        const page = await lab.page();
        await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the matrix");
        assert.ok(
            await page.evaluate(() => document.activeElement.getBoundingClientRect().top >= 0),
            "it shows",
        );
        await page.keyboard.press("Enter");
        const passed = [];
        while (passed.length < 31) {
            await page.keyboard.press("Tab");
            const [role, name] = await page.evaluate(() => [
                document.activeElement.getAttribute("role"),
                document.activeElement.id || document.activeElement.textContent,
            ]);
            if (role === "gridcell") break;
            passed.push(name);
        }
        assert.ok(passed.length < 20, `${passed.length} stops before the matrix: ${passed.join("; ")}`);
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

    test("the mask editor without a mouse, and what a screen reader hears of it", async () => {
        const page = await lab.page("#v=1&level=3");
        const heard = () => page.textContent("#announce");
        const hidden = async () => {
            await settled(page);
            return (await stageValues(page, "weights")).values.flatMap((w, n) => (w === 0 ? [n] : []));
        };
        const upper = [1, 2, 3, 4, 5, 8, 9, 10, 11, 15, 16, 17, 22, 23, 29];
        await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
        await page.keyboard.press("Control+Home");
        await page.keyboard.press("b");
        assert.match(await heard(), /Mask editor.*Space shows or hides/);
        assert.match(await page.textContent("#mask-facts"), /21 of 36 visible \(58\.3%\)\./);
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "gridcell");
        assert.match(
            await page.evaluate(() => document.activeElement.textContent),
            /Your, Your: .*, visible$/,
        );
        assert.deepEqual(await axe(page), []);
        // One cell; then the same value along a row.
        await page.keyboard.press("Space");
        assert.equal(
            await heard(),
            "query Your, key Your: masked. 20 of 36 visible (55.6%); 1 row is fully masked: its context is 0.",
        );
        assert.match(await page.evaluate(() => document.activeElement.textContent), /, masked$/);
        assert.deepEqual(await hidden(), [0, ...upper]);
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("Space");
        await page.keyboard.press("Shift+ArrowRight");
        await page.keyboard.press("Shift+ArrowRight");
        assert.match(await heard(), /^query Your, key with: visible\. 23 of 36/);
        assert.deepEqual(await hidden(), [0, ...upper.slice(3)]);
        // A rectangle: two corners; Escape gives up one that was begun.
        await page.keyboard.press("Shift+Tab"); // Done
        for (let i = 0; i < 3; ++i) await page.keyboard.press("Shift+Tab"); // Symmetric, Invert, brush
        assert.equal(await page.evaluate(() => document.activeElement.name), "brush");
        await page.keyboard.press("ArrowRight");
        assert.equal(await page.evaluate(() => document.activeElement.value), "rectangle");
        for (let i = 0; i < 4; ++i) await page.keyboard.press("Tab");
        await page.keyboard.press("Control+End");
        await page.keyboard.press("Space");
        assert.match(await heard(), /^query step, key step: first corner\..*Space hides all between/);
        await page.keyboard.press("Escape");
        await page.keyboard.press("ArrowUp");
        assert.equal((await hidden()).length, 13);
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await page.keyboard.press("ArrowUp");
        await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("Enter");
        assert.match(await heard(), /^4 cells masked\. 20 of 36 visible/);
        assert.deepEqual(
            await hidden(),
            [0, ...upper.slice(3), 28, 34, 35].sort((a, b) => a - b),
        );
        // A whole row and column, inverted, symmetric; each one step back.
        await page.focus('input[name="brush"]:checked');
        await page.keyboard.press("ArrowRight");
        await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
        await page.keyboard.press("Space");
        assert.match(await heard(), /^row of one: visible/);
        await page.focus("#mask-invert");
        await page.keyboard.press("Enter");
        assert.match(await heard(), /^every cell is inverted/);
        const before = await hidden();
        await page.focus("#mask-symmetric");
        await page.keyboard.press("Space");
        const after = await hidden();
        assert.ok(
            after.length < before.length &&
                after.every((n) => after.includes(6 * (n % 6) + Math.floor(n / 6))),
        );
        await page.goBack();
        assert.deepEqual(await hidden(), before);
        await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
        await page.keyboard.press("Escape");
        assert.equal(await heard(), "Mask editor closed.");
        assert.ok(await page.isHidden("#mask-tools"));
        assert.deepEqual(page.faults, []);
        await page.close();
    });

    test("go to a cell by word or number, without a mouse", async () => {
        const page = await lab.page();
        await page.evaluate(() => globalThis.fovea.workbench.matrix.focus());
        await page.keyboard.press("Control+g");
        await page.keyboard.type("step"); // the field's text is selected
        await page.keyboard.press("Tab");
        await page.keyboard.type("9");
        await page.keyboard.press("Enter");
        assert.match(
            await page.textContent("#goto-note"),
            /There is no key “9”: enter a token, or an index from 0 to 5/,
        );
        await page.keyboard.press("Control+a");
        await page.keyboard.type("journey");
        await page.keyboard.press("Enter");
        assert.deepEqual(
            await page.evaluate(() => [globalThis.fovea.app.state.i, globalThis.fovea.app.state.j]),
            [5, 1],
        );
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "gridcell");
        await page.close();
    });

    test("at 200% nothing is lost", async () => {
        // A window of 1280 pixels, zoomed to twice the size.
        const page = await lab.page("#v=1&level=5", { viewport: { width: 640, height: 450 } });
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 640);
        const cut = await page.$$eval("button, label, h2, h3, p", (all) =>
            all
                .filter(
                    (e) =>
                        e.offsetParent &&
                        !e.closest(".unseen, .rail, .levels") &&
                        e.scrollWidth > e.clientWidth + 2 &&
                        getComputedStyle(e).overflow === "hidden",
                )
                .map((e) => e.outerHTML.slice(0, 80)),
        );
        assert.deepEqual(cut, []);
        await page.close();
    });

    test("forced colors: what is chosen is marked without color", async () => {
        const page = await lab.page("#v=1&level=5");
        await page.emulateMedia({ forcedColors: "active" });
        for (const selector of [
            ".rail [aria-current]",
            ".levels [aria-current]",
            ".segmented input:checked + span",
            '.thumb[aria-pressed="true"]',
        ])
            assert.notEqual(
                await page.$eval(selector, (e) => getComputedStyle(e).outlineStyle),
                "none",
                selector,
            );
        assert.deepEqual(await axe(page), []);
        await page.close();
    });

    test("on paper: the lesson without its controls", async () => {
        const page = await lab.page();
        await page.emulateMedia({ media: "print" });
        for (const [selector, seen] of [
            ["#inspector", true],
            ["#matrix", true],
            ["#lessons", true],
            ["#knobs", false],
            [".top", false],
            ["#zoom", false],
        ])
            assert.equal(await page.isVisible(selector), seen, selector);
        assert.ok((await page.pdf()).length > 10_000);
        await page.close();
    });

    test("right-to-left words keep their direction beside numbers", async () => {
        const page = await lab.page(`#v=1&level=2&table=1&text=${encodeURIComponent("שלום לעולם כולו")}`);
        assert.equal(await page.getAttribute("#text", "dir"), "auto");
        assert.equal(await page.$eval("#text", (e) => getComputedStyle(e).direction), "rtl");
        const row = await page.$$eval("#table-box tbody tr:first-child > *", (cells) =>
            cells.map((c) => c.textContent),
        );
        assert.equal(row[0], "שלום");
        assert.equal(await page.locator("#table-box tbody th bdi").count(), 3);
        // The query comes first, then the key, whatever their direction.
        assert.deepEqual(
            await page.$$eval("#inspector .label bdi", (all) => all.slice(0, 2).map((e) => e.textContent)),
            ["לעולם", "כולו"],
        );
        assert.deepEqual(await axe(page), []);
        await page.close();
    });
});
