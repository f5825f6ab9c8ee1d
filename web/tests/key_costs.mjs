// Counts what single keystrokes cost the page: used by the test of frames, and by hand to compare two builds.
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

// Medians for letters typed into the sentence and for arrow keys in the matrix: layouts, and milliseconds of tasks on
// the main thread. `field` is what a letter costs in a field that nothing listens to.
export async function keyCosts(page, rounds) {
    const session = await page.context().newCDPSession(page);
    // Time that the thread ran, not time that passed: what else a machine does is not counted.
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const counts = async () => {
        const { metrics } = await session.send("Performance.getMetrics");
        return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
    };
    const quiet = () => page.waitForTimeout(250);
    const measure = async (focus, keys) => {
        await page.evaluate(focus);
        await quiet();
        const layouts = [],
            ms = [];
        for (let i = 0; i < rounds; ++i) {
            const before = await counts();
            await page.keyboard.press(keys[i % keys.length]);
            await quiet();
            const after = await counts();
            layouts.push(after.LayoutCount - before.LayoutCount);
            ms.push(1000 * (after.TaskDuration - before.TaskDuration));
        }
        return { layouts: median(layouts), ms: median(ms) };
    };
    return {
        field: await measure(
            () => document.body.appendChild(document.createElement("input")).focus(),
            ["a", "b"],
        ),
        letter: await measure(() => document.getElementById("text").focus(), ["a", "b"]),
        arrow: await measure(() => globalThis.fovea.workbench.matrix.focus(), ["ArrowDown", "ArrowUp"]),
    };
}
