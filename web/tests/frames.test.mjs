// What a keystroke costs: one layout beyond the field's own.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Lab, missing } from "./support.mjs";
import { keyCosts } from "./key_costs.mjs";

describe("frames", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });

    for (const [name, words] of [
        ["6 tokens", 6],
        ["128 tokens", 128],
    ])
        test(`a letter typed and a pick moved cost a layout each: ${name}`, async (t) => {
            const page = await lab.page(`#v=1&level=2&text=${Array(words).fill("word").join("+")}`);
            const costs = await keyCosts(page, 20);
            for (const [what, { layouts, ms }] of Object.entries(costs))
                t.diagnostic(`${what}: ${layouts} layouts, ${ms.toFixed(1)} ms of the main thread (medians)`);
            assert.ok(costs.letter.layouts <= costs.field.layouts + 1, "a letter's numbers take one layout");
            assert.ok(costs.arrow.layouts <= 1, "a pick takes one layout");
            await page.close();
        });
});
