// The page's look at 360, 768 and 1440 pixels, light and dark, against pictures kept in tests/screens: a fourth of the
// page's size, compared with a tolerance. After an intended change: npm run screens:accept, then look at the pictures.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { comparing, difference, fontsOf } from "./looks.mjs";
import { Lab, missing, root, settled } from "./support.mjs";

const accept = process.env.FOVEA_ACCEPT === "1";
const folder = join(root, "web", "tests", "screens"),
    fresh = join(root, "build", "screens");
const views = [
    ["lesson", ""],
    ["heads", "#v=1&level=5&cmp=1"],
];

describe("the page's look", { skip: missing ?? false }, () => {
    let lab, reduced;
    before(async () => {
        lab = await Lab.open();
        reduced = comparing(await lab.context.newPage());
        for (const path of [folder, fresh]) mkdirSync(path, { recursive: true });
    });
    after(async () => {
        await lab?.close();
    });

    for (const width of [360, 768, 1440])
        for (const colorScheme of ["light", "dark"])
            for (const [view, hash] of views)
                test(`${view}, ${width} px, ${colorScheme}`, async (t) => {
                    const page = await lab.page(hash, { viewport: { width, height: 900 }, colorScheme });
                    const fontFile = join(folder, "fonts.txt"),
                        fonts = await fontsOf(page);
                    if (accept) writeFileSync(fontFile, `${fonts}\n`);
                    else if (readFileSync(fontFile, "utf8").trim() !== fonts) {
                        await page.close();
                        t.skip("this machine has other fonts than the kept pictures");
                        return;
                    }
                    // Leaves out parts that differ between machines and runs.
                    await page.evaluate(() => {
                        document.getElementById("badge-text").textContent = "live";
                        document.getElementById("embed-code").textContent = "<iframe>";
                        for (const id of ["cores", "cores-note"]) document.getElementById(id).hidden = true;
                        for (const panel of document.querySelectorAll(".panel"))
                            panel.style.contentVisibility = "visible";
                        document.getElementById("flow").scrollIntoView(); // drawn when it is seen
                    });
                    await settled(page);
                    await page.evaluate(() => scrollTo(0, 0));
                    const shot = await page.screenshot({ fullPage: true, animations: "disabled" });
                    await page.close();
                    const name = `${view}-${width}-${colorScheme}`,
                        file = join(folder, `${name}.webp`);
                    writeFileSync(join(fresh, `${name}.png`), shot);
                    const golden = !accept && existsSync(file) ? readFileSync(file) : null;
                    const found = await reduced(shot, golden);
                    if (accept) {
                        writeFileSync(file, Buffer.from(found.picture, "base64"));
                        return;
                    }
                    assert.ok(
                        golden,
                        `tests/screens/${name}.webp is missing: npm run screens:accept makes it`,
                    );
                    const off = difference(found);
                    assert.equal(off, null, `${off}; see build/screens/${name}.png`);
                });
});
