// Measures how long a reader waits for the first computed numbers, for builds of the page in interleaved runs: before
// and after a change. Each visit has a new browser profile, so that nothing is cached.
//
//   node web/bench/first_numbers.mjs FOLDER [FOLDER ...] [--rounds N]      FOLDER: a build/web
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { args, executablePath } from "../tests/support.mjs";
import { percentile } from "../tests/zoom_panning.mjs";
import { serve } from "../tools/serve.mjs";

const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { rounds: { type: "string", default: "9" } },
});
if (!executablePath) throw new Error("no Chromium found (set FOVEA_CHROMIUM)");
if (!positionals.length) throw new Error("which builds of the page? FOLDER ...");

// Milliseconds from the address to a result of the engine that the page shows.
async function visit(folder) {
    const host = await serve(resolve(folder), { isolated: true });
    const profile = mkdtempSync(join(tmpdir(), "fovea-first-"));
    const context = await chromium.launchPersistentContext(profile, {
        executablePath,
        args,
        headless: true,
        viewport: { width: 1440, height: 900 },
    });
    try {
        const page = await context.newPage();
        await page.goto(`${host.url}#v=1&level=2`, { waitUntil: "commit" });
        return await page
            .waitForFunction(
                () => globalThis.fovea?.app?.result?.stages?.length && performance.now(),
                undefined,
                {
                    polling: "raf",
                },
            )
            .then((found) => found.jsonValue());
    } finally {
        await context.close();
        host.server.closeAllConnections();
        await new Promise((done) => host.server.close(done));
        rmSync(profile, { recursive: true, force: true });
    }
}

const times = new Map(positionals.map((folder) => [folder, []]));
for (const folder of positionals) await visit(folder); // the machine's own caches
for (let round = 0; round < Number(values.rounds); ++round)
    for (const folder of positionals) times.get(folder).push(await visit(folder));
for (const [folder, all] of times)
    console.log(
        `${folder}: first numbers after ${percentile(all, 0.5).toFixed(0)} ms (quartiles ${percentile(all, 0.25).toFixed(0)} to ${percentile(all, 0.75).toFixed(0)})`,
    );
