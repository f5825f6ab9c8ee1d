// The package `fovea`, packed, and its tarball used by an empty project: in node, and in a page without a bundler. The README's
// numbers are what its example prints.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
    createReadStream,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { build, createLogger } from "vite";
import { pack } from "../tools/npm.mjs";
import { args, executablePath, missing, root } from "./support.mjs";
import { browsers, Driven } from "./webdriver.mjs";

const skip = missing ?? false;
let project, example;
before(async () => {
    if (missing) return;
    const tarball = await pack();
    project = mkdtempSync(join(tmpdir(), "fovea-npm-"));
    writeFileSync(join(project, "package.json"), '{ "type": "module", "private": true }');
    execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], {
        cwd: project,
        stdio: "pipe",
    });
    example = readFileSync(join(root, "web/npm/README.md"), "utf8").match(/```js\n([\s\S]*?)```/)[1];
});
after(() => project && rmSync(project, { recursive: true, force: true }));

// The results of the example as text: o, lse, device.
const asText = `\nconst close = (a) => Array.from(a, (x) => Number(x.toFixed(4)));\nconst text = JSON.stringify([close(o), close(lse), device]);\n`;
const expected = '[[1,2,2.3395,3.3395],[0.7071,1.1079],"cpu"]';

test("the example computes the README's numbers in node", { skip }, () => {
    writeFileSync(join(project, "example.js"), `${example}${asText}console.log(text);`);
    const printed = execFileSync("node", ["example.js"], { cwd: project, encoding: "utf8" });
    assert.equal(printed.trim().split("\n").at(-1), expected);
    const reference = readFileSync(join(root, "docs/reference/javascript.md"), "utf8");
    assert.ok(
        example.startsWith(reference.match(/```js\n([\s\S]*?)```/)[1]),
        "the reference has another example",
    );
});

test("parts of the keys merge to the whole, and a map's rows weigh 1", { skip }, () => {
    writeFileSync(
        join(project, "more.js"),
        `import { attention, map, merge, device } from "fovea";
const random = (n, s) => Float32Array.from({ length: n }, () => ((s = (Math.imul(s, 1664525) + 1013904223) >>> 0) / 2 ** 32) * 2 - 1);
const heads = 2, queries = 5, keys = 12, dim = 8;
const q = random(heads * queries * dim, 1), k = random(heads * keys * dim, 2), v = random(heads * keys * dim, 3);
const whole = await attention(q, k, v, { shape: { heads, queries, keys, dim } });
const part = (a, first, count) => Float32Array.from({ length: heads * count * dim }, (_, n) => a[(Math.floor(n / (count * dim)) * keys + first) * dim + n % (count * dim)]);
const parts = await Promise.all([[0, 5], [5, 7]].map(([first, count]) => attention(q, part(k, first, count), part(v, first, count), { shape: { heads, queries, keys: count, dim } })));
const merged = await merge(parts, { heads, queries, dimV: dim });
const far = Math.max(...whole.o.map((x, n) => Math.abs(x - merged.o[n])), ...whole.lse.map((x, n) => Math.abs(x - merged.lse[n])));
const picture = await map(q, k, whole.lse, { shape: { heads, queries, keys, dim }, width: 6, height: 5 });
const mass = picture.mass.reduce((a, b) => a + b);
let refused = ""; try { await attention(q, k, v, { shape: { heads, queries, keys: 11, dim } }); } catch (error) { refused = error.message; }
console.log(JSON.stringify({ far, mass, refused, ...(await device()) }));`,
    );
    const got = JSON.parse(execFileSync("node", ["more.js"], { cwd: project, encoding: "utf8" }));
    assert.ok(got.far < 1e-6, `${got.far}`);
    assert.ok(Math.abs(got.mass - 10) < 1e-5, `${got.mass}`);
    assert.equal(got.refused, "binding 1 has 768 bytes; the call needs 704");
    assert.equal(got.gpu, "");
    assert.match(got.reason, /no WebGPU/);
});

// Visits a folder that is served as files.
async function served(folder, visit) {
    const types = { js: "text/javascript", wasm: "application/wasm", json: "application/json" };
    const server = createServer((request, response) => {
        const file = join(folder, request.url === "/" ? "index.html" : request.url);
        if (!existsSync(file)) return response.writeHead(404).end();
        response.setHeader("content-type", types[file.split(".").pop()] ?? "text/html");
        return createReadStream(file).pipe(response);
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    try {
        return await visit(`http://127.0.0.1:${server.address().port}/`);
    } finally {
        server.closeAllConnections();
        await new Promise((done) => server.close(done));
    }
}
async function titleInChromium(url) {
    const browser = await chromium.launch({ executablePath, args });
    try {
        const tab = await browser.newPage();
        await tab.goto(url);
        await tab.waitForFunction(() => document.title, undefined, { timeout: 120_000 });
        return await tab.title();
    } finally {
        await browser.close();
    }
}
async function titleIn(browser, url) {
    const page = await Driven.open(browser);
    try {
        await page.goto(url);
        await page.wait("the numbers", () => document.title !== "");
        return await page.evaluate(() => document.title);
    } finally {
        await page.close();
    }
}

for (const [name, lack, titleOf] of [
    ["Chromium", missing, titleInChromium],
    ...browsers.map((browser) => [browser.name, missing ?? browser.missing, (url) => titleIn(browser, url)]),
])
    test(
        `the example computes the same numbers in a page without a bundler, in ${name}`,
        { skip: lack ?? false },
        async () => {
            writeFileSync(
                join(project, "index.html"),
                `<!doctype html><script type="importmap">{"imports":{"fovea":"/node_modules/fovea/fovea.js"}}</script>
<script type="module">${example}${asText}document.title = text;</script>`,
            );
            assert.equal(await served(project, titleOf), expected);
        },
    );

test(
    "the example computes the same numbers in a page that Vite built, without a warning",
    { skip },
    async () => {
        const folder = join(project, "bundled"),
            said = [],
            warn = (text) => said.push(text);
        mkdirSync(folder);
        writeFileSync(join(folder, "main.js"), `${example}${asText}document.title = text;`);
        writeFileSync(
            join(folder, "index.html"),
            '<!doctype html><script type="module" src="/main.js"></script>',
        );
        const customLogger = { ...createLogger("warn"), warn, warnOnce: warn };
        await build({ root: folder, logLevel: "warn", customLogger });
        assert.deepEqual(said, []);
        assert.equal(await served(join(folder, "dist"), titleInChromium), expected);
    },
);
