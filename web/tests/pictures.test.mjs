// Each picture of the README and docs/ is what the programs draw now (web/tools/pictures.mjs), compared with a tolerance.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { comparing, difference, fontsOf } from "./looks.mjs";
import { Lab, missing, root } from "./support.mjs";
import { digest, draw, folder, keptDigests, lacking, pictures } from "../tools/pictures.mjs";

const fresh = join(root, "build", "pictures");

describe("the pictures of the documentation", { skip: missing ?? false }, () => {
    let lab, reduced, hasFonts;
    before(async () => {
        lab = await Lab.open();
        reduced = comparing(await lab.context.newPage());
        const page = await lab.page("");
        hasFonts =
            readFileSync(join(root, "web/tests/screens/fonts.txt"), "utf8").trim() === (await fontsOf(page));
        await page.close();
        mkdirSync(fresh, { recursive: true });
    });
    after(async () => {
        await lab?.close();
    });

    test("each has its entry", () => {
        const kept = readdirSync(folder).filter((name) => name.endsWith(".png"));
        assert.deepEqual(
            kept.sort(),
            Object.keys(pictures)
                .map((name) => `${name}.png`)
                .sort(),
        );
    });

    for (const [name, { from }] of Object.entries(pictures))
        test(name, async (t) => {
            const again = `./dev pictures ${name} draws it anew; look at it before you commit it`;
            if (from) {
                assert.equal(
                    keptDigests()[name],
                    digest(from),
                    `docs/images/${name}.png: ${from.files} changed; ${again}`,
                );
                return;
            }
            const reason =
                lacking(name) ?? (hasFonts ? null : "this machine has other fonts than the kept pictures");
            if (reason) return t.skip(reason);
            const file = join(fresh, `${name}.png`);
            await draw(name, file, { lab });
            const off = difference(
                await reduced(readFileSync(file), readFileSync(join(folder, `${name}.png`)), "png"),
            );
            assert.equal(
                off,
                null,
                `docs/images/${name}.png is not build/pictures/${name}.png: ${off}; ${again}`,
            );
        });
});
