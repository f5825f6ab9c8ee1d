// Panning the deep zoom by mouse, and what it costs: for its test and for the benchmark.
export const percentile = (list, share) =>
    [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];

export const waitForExact = (page) =>
    page.waitForFunction(() => document.getElementById("zoom-tag")?.textContent === "exact", undefined, {
        timeout: 120_000,
    });

// Drags the map for `moves` movements of the mouse; milliseconds of each drawing, and between frames.
export async function panning(page, moves) {
    const canvas = page.locator("#zoom-canvas");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox(),
        [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.evaluate(() => {
        globalThis.fovea.zoom.drawTimes.length = globalThis.fovea.zoom.frameTimes.length = 0;
    });
    await page.mouse.move(x, y);
    await page.mouse.down();
    // There and back, so that neither the map's end nor the canvas's is met.
    for (let i = 1; i <= moves; ++i) {
        const at = 80 - Math.abs(80 - ((2 * i) % 160));
        await page.mouse.move(x + 2 * at, y + at);
    }
    await page.mouse.up();
    return page.evaluate(() => ({
        draws: [...globalThis.fovea.zoom.drawTimes],
        frames: [...globalThis.fovea.zoom.frameTimes],
    }));
}
