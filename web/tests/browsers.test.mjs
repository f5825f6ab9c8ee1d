// The page in Firefox and WebKit: what must hold in every browser, in one visit each.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, test } from "node:test";
import { serve } from "../tools/serve.mjs";
import { npyOf, npzOf } from "./numpy_files.mjs";
import { isQuiet, missing, root, site, twoFrames } from "./support.mjs";
import { browsers, Driven } from "./webdriver.mjs";

// Neither protocol tells what a page wrote to its console, so a script of the page's own origin listens, before all others.
const listener = `globalThis.faults = [];
const say = console.error;
console.error = (...words) => { faults.push("console: " + words.join(" ")); say(...words); };
addEventListener("error", (event) => faults.push("exception: " + event.message));
addEventListener("unhandledrejection", (event) => faults.push("rejection: " + event.reason));
addEventListener("securitypolicyviolation", (event) => faults.push("policy: " + event.violatedDirective + " " + event.blockedURI));`;

const rounded = (values) => values.map((v) => v.toFixed(4));

for (const browser of browsers)
    describe(`in ${browser.name}`, { skip: missing ?? browser.missing ?? false }, () => {
        let page, host, folder;
        before(async () => {
            folder = mkdtempSync(join(tmpdir(), "fovea-browsers-"));
            cpSync(site, folder, { recursive: true });
            writeFileSync(join(folder, "listener.js"), listener);
            writeFileSync(
                join(folder, "index.html"),
                readFileSync(join(site, "index.html"), "utf8").replace(
                    '<meta name="viewport"',
                    '<script src="listener.js"></script>$&',
                ),
            );
            rmSync(join(folder, "index.html.br"));
            // The same page whose engines cannot be had.
            mkdirSync(join(folder, "static"));
            for (const name of ["index.html", "listener.js", "icon.svg", "app.webmanifest", "assets"])
                cpSync(join(folder, name), join(folder, "static", name), { recursive: true });
            host = await serve(folder, { prefix: "/sub/path/" });
            page = await Driven.open(browser);
        });
        after(async () => {
            await page?.close();
            host?.server.closeAllConnections();
            host?.server.close();
            if (folder) rmSync(folder, { recursive: true, force: true });
        });

        const open = async (hash = "#v=1&level=2") => {
            await page.goto(host.url + hash);
            await settled();
        };
        const settled = async () => {
            do await page.wait("the settled page", isQuiet);
            while (!(await page.evaluate(twoFrames)) || !(await page.evaluate(isQuiet)));
        };
        const stage = (id) =>
            page.evaluate((id) => {
                const found = globalThis.fovea.app.result.stages.find((s) => s.id === id);
                return { shape: found.shape, values: [...found.data] };
            }, id);
        const faultless = async () => {
            assert.deepEqual(await page.evaluate(() => globalThis.faults), []);
            assert.deepEqual(
                await page.evaluate(
                    (own) =>
                        performance
                            .getEntriesByType("resource")
                            .map((e) => e.name)
                            .filter((name) => !name.startsWith(own) && !/^(data|blob):/.test(name)),
                    host.url,
                ),
                [],
            );
        };

        test("without an engine: the lesson with its numbers, and why", async () => {
            await page.goto(`${host.url}static/`);
            await page.wait("the notice", () => !document.getElementById("notice").hidden);
            assert.match(
                await page.evaluate(() => document.getElementById("notice").textContent),
                /could not start/,
            );
            assert.deepEqual(
                await page.evaluate(() =>
                    [...document.querySelectorAll("#table-box tbody tr:nth-child(14) td")]
                        .map((c) => c.textContent)
                        .filter((text) => text !== ""),
                ),
                [".02", ".98", "1.0000"],
            );
        });

        test("goes live; every level gives the tutorials' numbers", async (t) => {
            await open();
            t.diagnostic(
                `${page.driver.version}: ${await page.evaluate(() => document.getElementById("badge-text").textContent)}`,
            );
            assert.match(
                await page.evaluate(() => document.getElementById("badge-text").textContent),
                /^live: WASM/,
            );
            for (const [level, id, from, expected] of [
                [1, "weights", 6, ["0.1385", "0.2379", "0.2333", "0.1240", "0.1082", "0.1581"]],
                [2, "weights", 6, ["0.1500", "0.2264", "0.2199"]],
                [3, "weights", 6, ["0.5517", "0.4483"]],
                [5, "context", 20, ["-0.5299", "-0.1081", "0.5077", "0.3493"]],
                [6, "output", 0, ["0.3190", "0.4858"]],
            ]) {
                await page.evaluate((level) => globalThis.fovea.app.setLevel(level), level);
                await settled();
                assert.deepEqual(
                    rounded((await stage(id)).values.slice(from, from + expected.length)),
                    expected,
                    `level ${level}`,
                );
            }
            await faultless();
        });

        test("all 133 tables, digit for digit", async () => {
            await open();
            await page.evaluate(() => document.getElementById("lesson-all").click());
            await page.wait("the score", () => document.getElementById("lesson-score").dataset.done === "1");
            assert.equal(
                await page.evaluate(() => document.getElementById("lesson-score").textContent),
                "133 of 133 tables the same, digit for digit",
            );
        });

        test("typing, Back, a picked cell and its derivation", async () => {
            await open();
            await page.evaluate(() => {
                performance.now = () => 1;
            }); // letters 0.9 s apart, on a busy machine, would be two steps back
            await page.type("#text", "one step", { clear: true });
            await page.wait("two tokens", () => globalThis.fovea.app.result.tokens.join() === "one,step");
            await page.back();
            await page.wait(
                "the text of before",
                () =>
                    document.getElementById("text").value !== "one step" &&
                    globalThis.fovea.app.result.tokens.length !== 2,
            );
            await open();
            await page.type("#matrix [role=gridcell][tabindex='0']", "\uE015"); // arrow down
            await page.wait("the picked cell", () => globalThis.fovea.app.state.i === 2);
            const { values } = await stage("weights");
            await page.wait(
                "its derivation",
                (text) => document.querySelector("#inspector .big").textContent === text,
                values[2 * 6 + 2].toFixed(4),
            );
            assert.match(
                await page.evaluate(() => document.getElementById("announce").textContent),
                /^query starts, key starts, weights 0\.\d{3}, /,
            );
            await faultless();
        });

        test("a file becomes attention; one that is none is refused", async () => {
            await open();
            const give = (name, bytes) =>
                page.evaluate(
                    (name, bytes) => {
                        const files = new DataTransfer(),
                            field = document.getElementById("file");
                        files.items.add(new File([Uint8Array.from(bytes)], name));
                        field.files = files.files;
                        field.dispatchEvent(new Event("change"));
                    },
                    name,
                    [...bytes],
                );
            await give("words.npz", Buffer.from("PK nothing"));
            await page.wait("the refusal", () =>
                /not a zip archive/.test(document.getElementById("import").textContent),
            );
            await give(
                "mine.npz",
                npzOf({ q: npyOf([4, 8], ramp(32, 0.3)), k: npyOf([4, 8], ramp(32, 0.9)) }),
            );
            await page.wait("the sheet", () => !!document.getElementById("own-show"));
            await page.evaluate(() => document.getElementById("own-show").click());
            await page.wait("the tensors' attention", () => globalThis.fovea.app.result?.tokens[0] === "q0");
            assert.deepEqual((await stage("weights")).shape, [4, 4]);
            await faultless();
        });

        test("deep zoom: every tile exact, and a weight picked", async () => {
            await open();
            await page.evaluate(() => {
                const list = document.getElementById("zoom-tokens");
                list.value = "4096";
                list.dispatchEvent(new Event("change"));
                document.getElementById("zoom-start").click();
            });
            await page.wait(
                "the exact map",
                () => document.getElementById("zoom-tag")?.textContent === "exact",
            );
            await page.type("#zoom-canvas", "\uE007"); // Enter: the weight in the middle
            await page.wait("the weight", () =>
                /^query [\d,]+, key [\d,]+: weight \d/.test(document.getElementById("zoom-pick").textContent),
            );
            await faultless();
        });

        test("the page as one file, opened from a disk", async () => {
            await page.goto(`${pathToFileURL(join(root, "build", "fovea.html")).href}#v=1&level=2`);
            await settled();
            assert.equal(
                await page.evaluate(() => document.getElementById("badge-text").textContent),
                "live: WASM SIMD, 1 thread",
            );
            assert.deepEqual(rounded((await stage("weights")).values.slice(6, 9)), [
                "0.1500",
                "0.2264",
                "0.2199",
            ]);
        });

        test("axe finds nothing; nothing runs over the edge", async () => {
            await open("#v=1&level=5&cmp=1");
            // Before axe: afterwards WebKit draws no more pictures while other programs use the cores.
            const pictures = join(root, "build", "screens");
            mkdirSync(pictures, { recursive: true });
            writeFileSync(join(pictures, `${browser.name.toLowerCase()}.png`), await page.screenshot());
            const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
            await page.driver.send("ExecuteAsyncScript", {
                script: `${axe}; arguments[arguments.length - 1]({});`,
                args: [],
            });
            assert.deepEqual(
                await page.evaluate(async () =>
                    // The row of levels scrolls, and axe takes each link in front of the first one to another page
                    // for a way to skip to the content, which must not be out of sight.
                    (await globalThis.axe.run({ rules: { "skip-link": { enabled: false } } })).violations.map(
                        (v) =>
                            `${v.id}: ${v.nodes
                                .slice(0, 3)
                                .map((n) => n.html)
                                .join(" | ")}`,
                    ),
                ),
                [],
            );
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        });
    });

const ramp = (count, step) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * step));
