// A Chromium, a server of build/web, and pages that record what went wrong in them.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "../tools/serve.mjs";

const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, "..", "..");
export const site = join(root, "build", "web");
const candidates = [
    process.env.FOVEA_CHROMIUM,
    "/usr/bin/chromium-headless-shell",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];
export const executablePath = candidates.find((path) => path && existsSync(path));

// True if the long sweeps run too: `./dev test nightly`.
export const isNightly = process.env.FOVEA_NIGHTLY === "1";

// Why the browser tests cannot run here; null when they can.
export const missing = !executablePath
    ? "no Chromium found (set FOVEA_CHROMIUM)"
    : !existsSync(join(site, "index.html"))
      ? "build/web is missing: run `npm run build` first"
      : null;

export const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--force-color-profile=srgb",
];

const viewport = { width: 1440, height: 900 },
    media = { colorScheme: "light", reducedMotion: "reduce" };

export class Lab {
    static async open(options = {}) {
        const lab = new Lab();
        lab.profile = mkdtempSync(join(tmpdir(), "fovea-web-"));
        lab.host = await serve(site, { isolated: true, prefix: "/sub/path/", ...options });
        lab.context = await chromium.launchPersistentContext(lab.profile, {
            ...{ executablePath, args, headless: true, viewport, acceptDownloads: true },
            ...media,
            ...options.context,
        });
        lab.context.setDefaultTimeout(60_000); // for a busy machine
        return lab;
    }

    // A page on the demo, at level 2 unless `hash` says otherwise ("": the first visit). `faults` keeps its console errors,
    // uncaught exceptions and requests elsewhere. Closing it gives its tab back for the next page: half of what a new tab
    // costs is its process.
    async page(hash = "#v=1&level=2", { query = "", live = true, viewport, colorScheme } = {}) {
        const page = this.tab ?? (await this.newTab());
        this.tab = undefined;
        page.faults = [];
        page.on("console", (m) => {
            if (m.type() === "error") page.faults.push(`console: ${m.text()}`);
        });
        page.on("pageerror", (e) => page.faults.push(`exception: ${e.message}`));
        page.on("request", (r) => {
            if (!r.url().startsWith(this.host.url) && !/^(data|blob):/.test(r.url()))
                page.faults.push(`request to ${r.url()}`);
        });
        await page.bringToFront();
        if (viewport) await page.setViewportSize(viewport);
        if (colorScheme) await page.emulateMedia({ colorScheme });
        page.live = false;
        await page.goto(`${this.host.url}${query}${hash}`);
        if (live) await settled(page);
        page.live = live;
        return page;
    }

    async newTab() {
        const page = await this.context.newPage();
        const close = page.close.bind(page);
        // These outlive a document: such a tab is not used again.
        for (const name of ["addInitScript", "exposeFunction", "exposeBinding", "route", "unroute"]) {
            const change = page[name].bind(page);
            page[name] = (...given) => ((page.changed = true), change(...given));
        }
        page.close = async (options) => {
            if (page.isClosed()) return;
            if (page.changed || this.tab) return close(options);
            page.removeAllListeners();
            try {
                await page.mouse.move(-9, -9);
                await page.evaluate(() => sessionStorage.clear());
                await page.emulateMedia({ media: null, forcedColors: null, ...media });
                await page.setViewportSize(viewport);
                await page.goto(`${this.host.url}icon.svg`); // stays in the process, unlike about:blank
                this.tab = page;
            } catch {
                await close();
            }
        };
        lookWhenSettled(page);
        return page;
    }

    async close() {
        await this.context.close();
        this.host.server.closeAllConnections();
        await new Promise((done) => this.host.server.close(done));
        rmSync(this.profile, { recursive: true, force: true });
    }
}

// These two run in the page. Nothing is on its way, in its own words (App.settled); and canvases are painted, and what
// waits for a size has been told.
export const isQuiet = () =>
    document.readyState === "complete" &&
    document.fonts.status === "loaded" &&
    globalThis.fovea?.app.settled === true;
export const twoFrames = () =>
    new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))));

// The page, or a frame of it, shows what it was last asked for, whole. Each test waits with this before it looks.
export async function settled(page) {
    let last;
    // An answer from a page that is being left counts as no.
    const answer = (use) => page.evaluate(use).catch((error) => ((last = error), false));
    for (const end = Date.now() + 60_000; Date.now() < end;) {
        if ((await answer(isQuiet)) && (await answer(twoFrames)) && (await answer(isQuiet))) return;
        if (page.isClosed?.()) break;
        await new Promise((done) => setTimeout(done, 20));
    }
    throw new Error("the page did not settle within 60 s", last && { cause: last });
}

// Looking at words or controls waits until they are those of the last action.
const looks = ["textContent", "inputValue", "isVisible", "isHidden", "isDisabled", "getAttribute", "$$eval"];
function lookWhenSettled(page) {
    for (const name of looks) {
        const look = page[name].bind(page);
        page[name] = async (...given) => {
            if (page.live) await settled(page);
            return look(...given);
        };
    }
}

// The float32 values of a stage as the page holds them.
export async function stageValues(page, id) {
    await settled(page);
    const stage = await page.evaluate((wanted) => {
        const stage = globalThis.fovea.app.result.stages.find((s) => s.id === wanted);
        if (!stage) return undefined;
        // As text: a list of a million values takes half a minute on its way.
        const bytes = new Uint8Array(Float32Array.from(stage.data).buffer);
        let text = "";
        for (let at = 0; at < bytes.length; at += 8192)
            text += String.fromCharCode(...bytes.subarray(at, at + 8192));
        return { shape: stage.shape, text: btoa(text) };
    }, id);
    if (!stage) return undefined;
    const { buffer, byteOffset, byteLength } = Buffer.from(stage.text, "base64");
    return {
        shape: stage.shape,
        values: Array.from(new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength))),
    };
}

export const near = (actual, expected, tolerance = 1e-6) => {
    assert.equal(actual.length, expected.length);
    actual.forEach((value, i) =>
        assert.ok(
            value === expected[i] ||
                Math.abs(value - expected[i]) <= tolerance * Math.max(1, Math.abs(expected[i])),
            `element ${i}: ${value}, expected ${expected[i]}`,
        ),
    );
};

// Gives a test's body a new page, in which nothing may go wrong.
export const withPages = (lab) => (options, use) => async () => {
    const { hash = "#v=1&level=2", ...rest } = options;
    const page = await lab().page(hash, rest);
    try {
        await use(page);
        assert.deepEqual(page.faults, []);
    } finally {
        await page.close();
    }
};

// Text that begins with a positive number: "1.0 µs" as well as "10 ms", not "0.0 µs", "NaN" or "Infinity". Measured
// numbers are read as numbers: a pattern of letters and digits matches some of them by chance.
export const readsPositive = (text) => Number.isFinite(parseFloat(text)) && parseFloat(text) > 0;
