// Tests the notebook output of the Python package in a Chromium without a network: a map, a lesson, and the page in
// frames, whose numbers are those of Python. The file contains the objects' representations (_repr_png_,
// _repr_html_), as nbconvert embeds them.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { args, executablePath, missing, near, root, settled, stageValues } from "./support.mjs";

const built = join(root, "build", "default", "python"),
    parts = ["_declarations.py", "libfovea_runtime.so"],
    // Debian keeps numpy in its own Python; another one may come first in the path.
    python = ["python3", "/usr/bin/python3"].find(
        (name) => spawnSync(name, ["-c", "import numpy"]).status === 0,
    );
const lack =
    missing ??
    (!python
        ? "no python3 here has numpy"
        : !parts.every((name) => existsSync(join(built, name)))
          ? "the Python package is not built: ./dev build"
          : null);

const notebook = `
import base64, json, sys
import numpy as np, fovea
q, k, v = np.random.default_rng(1).standard_normal((3, 1, 2, 6, 4)).astype(np.float32)
words = ['The', ' cat', ' sat', ' on', '</script>', ' "mat"']
o, lse = fovea.attention(q, k, v, causal=True, return_lse=True, device='cpu')
look = fovea.inspect(q, k, lse=lse, causal=True, device='cpu')
own = fovea.view(q, k, v, causal=True, head=1, stage='weights', tokens=words)
task = fovea.view('induction', 'with fovea fovea fovea', head=2)
with open(sys.argv[1], 'w', encoding='utf-8') as file:
    file.write('<!doctype html><meta charset="utf-8"><title>notebook</title>')
    file.write('<img src="data:image/png;base64,' + base64.b64encode(look.map(head=1)._repr_png_()).decode() + '">')
    file.write(fovea.lesson(3)._repr_html_() + own._repr_html_() + task._repr_html_())
print(json.dumps({'words': words, 'weights': look.weights(head=1).ravel().tolist(), 'o': o.transpose(0, 2, 1, 3).ravel().tolist(),
                  'task': [float(n) for n in task.stage('weights', 2).split()],
                  'lesson': fovea.lesson(3).tables[-1].ours}))
`;

describe("notebook", { skip: lack ?? false }, () => {
    let folder, browser, page, told;
    const faults = [];
    before(async () => {
        folder = mkdtempSync(join(tmpdir(), "fovea-notebook-"));
        const package_ = join(folder, "fovea"),
            file = join(folder, "notebook.html"),
            splitPage = join(root, "python", "tools", "split_page.py");
        mkdirSync(package_);
        cpSync(join(root, "python", "fovea"), package_, { recursive: true });
        for (const name of parts) cpSync(join(built, name), join(package_, name));
        execFileSync(python, [
            ...[splitPage, join(root, "build", "fovea.html")],
            ...["page.html", "page.xz"].map((name) => join(package_, name)),
        ]);
        told = JSON.parse(
            execFileSync(python, ["-c", notebook, file], {
                env: { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1" },
            }),
        );
        browser = await chromium.launch({ executablePath, args });
        const context = await browser.newContext({ offline: true });
        context.setDefaultTimeout(60_000); // for a busy machine
        page = await context.newPage();
        page.on("pageerror", (e) => faults.push(`exception: ${e.message}`));
        page.on("request", (r) => {
            if (!/^(file|data|blob|about):/.test(r.url())) faults.push(`request to ${r.url()}`);
        });
        await page.goto(pathToFileURL(file).href);
    });
    after(async () => {
        assert.deepEqual(faults, []);
        await browser?.close();
        if (folder) rmSync(folder, { recursive: true, force: true });
    });
    const frameOf = async (n) => (await page.locator("iframe").nth(n).elementHandle()).contentFrame();

    test("the map is a picture that is large enough to be seen", async () => {
        const size = await page.evaluate(async () => {
            const image = document.querySelector("img");
            await image.decode();
            return [image.naturalWidth, image.naturalHeight];
        });
        assert.deepEqual(size, [252, 252]); // six tokens, 42 dots each
    });

    test("the lesson's tables have its digits", async () => {
        const cells = await page.$$eval("table:last-of-type td", (all) =>
            all.map((cell) => cell.textContent),
        );
        assert.deepEqual(cells.slice(-told.lesson.length), told.lesson);
    });

    test("the page in its frame computes Python's weights and output from the tensors within it", async () => {
        const frame = await frameOf(0);
        await frame.waitForFunction(() => globalThis.fovea?.app.result?.own);
        near((await stageValues(frame, "weights")).values, told.weights);
        near((await stageValues(frame, "context")).values, told.o);
        const tokens = await frame.evaluate(() => globalThis.fovea.app.result.keyTokens);
        assert.deepEqual(tokens, told.words);
    });

    test("the page in its frame shows the model that learned a task", async () => {
        const frame = await frameOf(1);
        await frame.waitForFunction(() => globalThis.fovea?.app.state.task && globalThis.fovea.app.result);
        await settled(frame);
        const shown = await frame.evaluate(() => {
            const { stages, state } = globalThis.fovea.app.result,
                { shape, data } = stages.find((s) => s.id === "weights");
            return { task: state.task, head: state.head, shape, values: Array.from(data) };
        });
        assert.deepEqual([shown.task, shown.head], ["induction", 2]);
        near(shown.values, told.task, 1e-5);
    });
});
