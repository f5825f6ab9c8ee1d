// The documentation site (build/docs/site) in a browser: desktop and phone, light and dark, from a server and as files.
// The command ./dev docs makes it, and so does the test docs.site, which checks its links.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Lab, missing, root } from "./support.mjs";
import { serve } from "../tools/serve.mjs";

const folder = join(root, "build", "docs", "site"),
    pictures = join(root, "build", "docs-screens");
const skip =
    missing ??
    (existsSync(join(folder, "index.html")) ? false : "build/docs/site is missing: ./dev docs makes it");
const views = ["index.html", "guides/embedding.html", "reference/cli.html", "reference/headers/fovea.h.html"];

describe("the documentation site", { skip }, () => {
    let lab, host;
    before(async () => {
        assert.equal(spawnSync("python3", [join(root, "docs/site/build.py"), "--page"]).status, 0);
        lab = await Lab.open();
        host = await serve(folder, { isolated: false, prefix: "/docs/" });
        mkdirSync(pictures, { recursive: true });
    });
    after(async () => {
        await lab?.close();
        host?.server.closeAllConnections();
        host?.server.close();
    });

    async function open(address, { width = 1440, colorScheme = "light" } = {}) {
        const page = await lab.context.newPage();
        page.faults = [];
        page.on("console", (message) => message.type() === "error" && page.faults.push(message.text()));
        page.on("pageerror", (error) => page.faults.push(error.message));
        page.on("request", (request) => {
            if (!/^(data|blob|file):/.test(request.url()) && !request.url().startsWith(host.url))
                page.faults.push(`request to ${request.url()}`);
        });
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.goto(address);
        return page;
    }

    for (const width of [1440, 390])
        for (const colorScheme of ["light", "dark"])
            test(`reads at ${width} px, ${colorScheme}`, async () => {
                for (const view of views) {
                    const page = await open(host.url + view, { width, colorScheme });
                    const { wide, light, small, size } = await page.evaluate(() => {
                        const luminance = (colour) => {
                            const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
                            return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
                        };
                        const text = document.querySelector("article p"),
                            style = getComputedStyle(text);
                        return {
                            wide: document.documentElement.scrollWidth - innerWidth,
                            light: luminance(getComputedStyle(document.body).backgroundColor),
                            size: parseFloat(style.fontSize),
                            small: luminance(style.color),
                        };
                    });
                    assert.ok(wide <= 0, `${view} is ${wide} px wider than the screen`);
                    assert.ok(size >= 15, `${view}: text of ${size} px`);
                    const isLight = colorScheme === "light";
                    assert.ok(
                        isLight ? light > 0.9 && small < 0.3 : light < 0.15 && small > 0.6,
                        `${view}: ${light}, ${small}`,
                    );
                    await page.screenshot({
                        path: join(pictures, `${view.replace(/\W/g, "-")}-${width}-${colorScheme}.png`),
                    });
                    assert.deepEqual(page.faults, []);
                    await page.close();
                }
            });

    test("a phone's menu leads to each part", async () => {
        const page = await open(`${host.url}index.html`, { width: 390 });
        await page.click('.mobile-header label[for="__navigation"]');
        for (const caption of ["Getting started", "Guides", "Concepts", "Reference", "Contributing"])
            assert.ok(await page.isVisible(`.sidebar-tree .caption-text:text-is("${caption}")`), caption);
        await page.click('.sidebar-tree a[href="reference/cli.html"]');
        assert.match(await page.title(), /Command line/);
        assert.deepEqual(page.faults, []);
        await page.close();
    });

    for (const kind of ["server", "files"])
        test(`search finds a term, from ${kind}`, async () => {
            const address = kind === "server" ? host.url : `${pathToFileURL(folder).href}/`;
            const page = await open(`${address}search.html?q=foveaPlanAttention`);
            await page.waitForSelector("#search-results li a");
            assert.match(await page.textContent("#search-results"), /foveaPlanAttention/);
            await page.click("#search-results li a");
            await page.waitForLoadState();
            assert.match(await page.textContent("article"), /foveaPlanAttention/);
            await page.close();
        });

    test(
        "its door leads to the page",
        { skip: existsSync(join(root, "build/fovea.html")) ? false : "no page" },
        async () => {
            for (const address of [host.url, `${pathToFileURL(folder).href}/`]) {
                const page = await open(`${address}start/levels.html`);
                await page.click('.door a:text-is("Open level 3")');
                await page.waitForFunction(() => globalThis.fovea?.app.settled === true);
                assert.match(await page.textContent("body"), /Causal mask/);
                await page.close();
            }
        },
    );
});
