// Each engine that was built, hosts with and without headers, and the page without its server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { join } from "node:path";
import { Lab, missing, root, settled, site, stageValues } from "./support.mjs";

describe("engines and hosts", { skip: missing ?? false }, () => {
    let built = [];
    before(() => {
        built = Object.keys(JSON.parse(readFileSync(join(root, "build", "web-sizes.json"), "utf8")))
            .map((f) => f.match(/^engine\/(.*)-[0-9a-f]+\/fovea\.wasm$/)?.[1])
            .filter(Boolean);
    });

    test("each engine gives the tutorials' weights and all of their tables", async () => {
        const lab = await Lab.open();
        try {
            for (const variant of built) {
                const page = await lab.page(undefined, { query: `?engine=${variant}` });
                assert.equal(await page.evaluate(() => globalThis.fovea.app.engine.info.variant), variant);
                assert.deepEqual(
                    (await stageValues(page, "weights")).values.slice(6, 9).map((v) => v.toFixed(4)),
                    ["0.1500", "0.2264", "0.2199"],
                );
                await page.click("#lesson-all");
                await page.waitForSelector('#lesson-score[data-done="1"]');
                assert.equal(
                    await page.textContent("#lesson-score"),
                    "133 of 133 tables the same, digit for digit",
                    variant,
                );
                assert.deepEqual(page.faults, []);
                await page.close();
            }
        } finally {
            await lab.close();
        }
    });

    test("an engine that the address asks for in vain, and none at all", async () => {
        const lab = await Lab.open({ isolated: false });
        const threaded = built.find((name) => name.endsWith("-threads"));
        try {
            for (const [name, reason] of [
                ["fast", /engine=fast: this site has .*simd.* and static/],
                ...(threaded ? [[threaded, /: this site is not cross-origin isolated/]] : []),
                ["static", /without its engine/],
            ]) {
                const page = await lab.page("", { live: false, query: `?engine=${name}` });
                await page.waitForFunction(() => !document.getElementById("notice").hidden);
                assert.match(await page.textContent("#notice"), reason);
                assert.equal(await page.textContent("#badge-text"), "static page");
                assert.match(await page.textContent("#table-box"), /\.98/); // the picture that the page was built with
                await page.close();
            }
        } finally {
            await lab.close();
        }
    });

    test("a host without headers: one thread, and it says why", async (t) => {
        if (!built.some((name) => name.endsWith("-threads"))) {
            t.skip("no engine with threads was built");
            return;
        }
        const lab = await Lab.open({ isolated: false });
        try {
            const page = await lab.page();
            assert.match(await page.textContent("#badge-text"), /1 thread$/);
            assert.match(await page.textContent("#cores-note"), /not cross-origin isolated/);
            await page.click("#cores");
            await page.waitForFunction(
                () => globalThis.crossOriginIsolated && globalThis.fovea?.app.engine.info?.threads > 1,
                undefined,
                { timeout: 60000 },
            );
            assert.deepEqual(page.faults, []);
        } finally {
            await lab.close();
        }
    });

    test("kept offline, the page loads and computes without a server", async () => {
        const lab = await Lab.open();
        try {
            const page = await lab.page();
            await page.click("#offline");
            await page.waitForFunction(
                () => document.getElementById("offline").textContent === "Kept offline",
                undefined,
                { timeout: 60000 },
            );
            await settled(page);
            await lab.context.setOffline(true);
            await page.reload();
            await settled(page);
            assert.match(await page.textContent("#badge-text"), /^live/);
            await page.fill("#text", "one step");
            await settled(page);
            assert.deepEqual((await stageValues(page, "weights")).shape, [2, 2]);
        } finally {
            await lab.close();
        }
    });
});
