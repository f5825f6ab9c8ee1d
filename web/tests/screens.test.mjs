// The page's look at 360, 768 and 1440 pixels, light and dark, against pictures kept in tests/screens: a fourth of the
// page's size, compared with a tolerance. After an intended change: npm run screens:accept, then look at the pictures.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { Lab, missing, root, settled } from "./support.mjs";

const accept = process.env.FOVEA_ACCEPT === "1";
const folder = join(root, "web", "tests", "screens"),
    fresh = join(root, "build", "screens");
const shrink = 4;
// Tolerances of 255: for the mean difference of all pixels, and for the number of different pixels.
const meanTolerance = 3,
    pixelTolerance = 40,
    pixelShare = 0.01;

const views = [
    ["lesson", ""],
    ["heads", "#v=1&level=5&cmp=1"],
];

describe("the page's look", { skip: missing ?? false }, () => {
    let lab, tool;
    before(async () => {
        lab = await Lab.open();
        tool = await lab.context.newPage();
        for (const path of [folder, fresh]) mkdirSync(path, { recursive: true });
    });
    after(async () => {
        await lab?.close();
    });

    // Pictures hold for the fonts that they were made with.
    const fontsOf = (page) =>
        page.evaluate(() => {
            const context = document.createElement("canvas").getContext("2d");
            return ["--sans", "--mono"]
                .map((name) => {
                    context.font = `500 40px ${getComputedStyle(document.documentElement).getPropertyValue(name)}`;
                    return context.measureText("Weights of Mj 0123456789").width.toFixed(1);
                })
                .join(" ");
        });

    // A fourth of the size, each pixel the mean of sixteen; and, where there is one, its difference from the kept picture.
    const reduced = (shot, golden) =>
        tool.evaluate(
            async ([shot, golden, shrink, far]) => {
                const load = async (base64, type) =>
                    createImageBitmap(await (await fetch(`data:image/${type};base64,${base64}`)).blob());
                const full = await load(shot, "png"),
                    width = Math.floor(full.width / shrink),
                    height = Math.floor(full.height / shrink);
                const canvas = Object.assign(document.createElement("canvas"), { width, height }),
                    context = canvas.getContext("2d", { willReadFrequently: true });
                const source = new OffscreenCanvas(width * shrink, height * shrink).getContext("2d");
                source.drawImage(full, 0, 0);
                const from = source.getImageData(0, 0, width * shrink, height * shrink).data,
                    pixels = new ImageData(width, height);
                for (let y = 0; y < height; ++y)
                    for (let x = 0; x < width; ++x)
                        for (let c = 0; c < 3; ++c) {
                            let sum = 0;
                            for (let v = 0; v < shrink; ++v)
                                for (let u = 0; u < shrink; ++u)
                                    sum += from[4 * ((y * shrink + v) * width * shrink + x * shrink + u) + c];
                            pixels.data[4 * (y * width + x) + c] = sum / shrink ** 2;
                        }
                for (let i = 3; i < pixels.data.length; i += 4) pixels.data[i] = 255;
                context.putImageData(pixels, 0, 0);
                const result = { picture: canvas.toDataURL("image/webp", 0.7).split(",")[1], width, height };
                if (!golden) return result;
                const kept = await load(golden, "webp");
                if (kept.width !== width || kept.height !== height)
                    return {
                        ...result,
                        size: `${width} x ${height} pixels, kept ${kept.width} x ${kept.height}`,
                    };
                const other = new OffscreenCanvas(width, height).getContext("2d");
                other.drawImage(kept, 0, 0);
                const theirs = other.getImageData(0, 0, width, height).data;
                let sum = 0,
                    off = 0;
                for (let i = 0; i < theirs.length; ++i) {
                    const difference = Math.abs(pixels.data[i] - theirs[i]);
                    sum += difference;
                    if (difference > far) ++off;
                }
                return { ...result, mean: sum / theirs.length, share: off / theirs.length };
            },
            [shot.toString("base64"), golden?.toString("base64") ?? "", shrink, pixelTolerance],
        );

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
                    assert.equal(found.size, undefined, `${found.size}; see build/screens/${name}.png`);
                    const { mean, share } = found;
                    assert.ok(
                        mean <= meanTolerance && share <= pixelShare,
                        `mean difference ${mean.toFixed(2)}, ${(100 * share).toFixed(2)}% of the values far off; see build/screens/${name}.png`,
                    );
                });
});
