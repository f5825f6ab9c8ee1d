// Lighthouse on build/web in the local Chromium, on a desktop and on a phone: 100 of 100 for accessibility and best
// practices; for performance, which a busy machine lowers, at least 95. Lighthouse is not among this project's packages:
// the first run installs it into build/lighthouse. Usage: npm run lighthouse
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { args, executablePath, missing, root, site } from "../tests/support.mjs";
import { serve } from "./serve.mjs";

const version = "12.8.2";
const folder = join(root, "build", "lighthouse");
const least = { performance: 95, accessibility: 100, "best-practices": 100 },
    categories = Object.keys(least);

const freePort = () =>
    new Promise((resolve) => {
        const probe = createServer().listen(0, "127.0.0.1", () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });

if (missing) throw new Error(missing);
const entry = join(folder, "node_modules", "lighthouse", "core", "index.js");
if (!existsSync(entry))
    execFileSync(
        "npm",
        [
            "install",
            "--prefix",
            folder,
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            `lighthouse@${version}`,
        ],
        { stdio: "inherit" },
    );
const { default: lighthouse, desktopConfig } = await import(pathToFileURL(entry));
const port = await freePort(),
    profile = mkdtempSync(join(tmpdir(), "fovea-lighthouse-"));
const host = await serve(site);
const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    args: [...args, `--remote-debugging-port=${port}`],
});
let low = 0;
try {
    for (const form of ["desktop", "mobile"]) {
        const { lhr } = await lighthouse(
            host.url,
            { port, onlyCategories: categories, logLevel: "error", output: "json" },
            form === "desktop" ? desktopConfig : undefined,
        );
        if (lhr.runtimeError) throw new Error(`${form}: ${lhr.runtimeError.message}`);
        writeFileSync(join(root, "build", `lighthouse-${form}.json`), JSON.stringify(lhr));
        const scores = categories.map((id) => [id, Math.round(lhr.categories[id].score * 100)]);
        low += scores.filter(([id, score]) => score < least[id]).length;
        const times = [
            "first-contentful-paint",
            "largest-contentful-paint",
            "total-blocking-time",
            "cumulative-layout-shift",
        ].map((id) => `${id} ${lhr.audits[id].displayValue}`);
        console.log(
            `${form}: ${scores.map(([id, score]) => `${id} ${score}`).join(", ")}; ${times.join(", ")}`,
        );
        for (const audit of Object.values(lhr.audits))
            if (
                audit.score !== null &&
                audit.score < 0.9 &&
                ["binary", "numeric", "metricSavings"].includes(audit.scoreDisplayMode)
            )
                console.log(`  ${audit.id} ${audit.score}: ${audit.title} ${audit.displayValue ?? ""}`);
    }
} finally {
    await context.close();
    host.server.closeAllConnections();
    host.server.close();
    rmSync(profile, { recursive: true, force: true });
}
if (low) {
    console.error(`${low} scores are too low: ${JSON.stringify(least)} are the least`);
    process.exit(1);
}
