// The arithmetic that the inspector shows, and the Python that it copies, come to the engine's numbers.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { before, test } from "node:test";
import { join } from "node:path";
import { openEngine } from "../tools/engine.mjs";
import { pageModules } from "./page_modules.mjs";

let page, session;
before(async () => {
    page = await pageModules(
        "app/arithmetic.ts",
        "layer/copies.ts",
        "files/notebook.ts",
        "page/state.ts",
        "engine/engine_session.ts",
    );
    session = new page.EngineSession(await openEngine());
});

function compute(fields, own = null) {
    const state = { ...page.presetState(fields.level ?? 2), ...fields };
    if (fields.mask) Object.assign(state, page.ofMask(fields.mask));
    const made = session.compute({
        address: page.toHash(state),
        head: state.head,
        row: 0,
        column: 0,
        thumbnails: 0,
        own,
    });
    const tokens = own ? Array.from({ length: made.rows }, (_, i) => `q${i}`) : made.tokens;
    const keyTokens = own ? Array.from({ length: made.keys }, (_, i) => `k${i}`) : tokens;
    const visible = made.visible
        ? page.decodeBits(made.visible, tokens.length * keyTokens.length)
        : new Uint8Array();
    return {
        ...made,
        state,
        own,
        tokens,
        keyTokens,
        names: tokens,
        keyNames: keyTokens,
        visible,
        stages: [...made.shared, ...made.head],
    };
}
const ramp = (count, step) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * step));
const own = () => ({
    shape: { heads: 2, kv: 1, rows: 4, keys: 5, dim: 3, dimV: 2 },
    q: ramp(24, 0.7),
    k: ramp(15, 1.3),
    v: ramp(10, 0.4),
});

const states = {
    "level 1": [{ level: 1 }],
    "level 2": [{ level: 2 }],
    "level 3, another sentence": [{ level: 3, text: "a fresh look at seven other words" }],
    "level 3, mask after the softmax": [{ level: 3, route: "after" }],
    "level 4": [{ level: 4 }],
    "level 5, second head": [{ level: 5, head: 1 }],
    "level 6, grouped": [{ level: 6, kv: 1, head: 1 }],
    "softcap, bias, temperature": [{ level: 2, cap: 0.5, alibi: true, temp: 0.3, scale: "3" }],
    "strided mask": [{ level: 2, mask: "strided", init: "linear" }],
    "own tensors": [{ level: 2, mask: "none", head: 1 }, own],
};

for (const [name, [fields, tensors]] of Object.entries(states))
    test(`every stage that is a sum comes to its number: ${name}`, () => {
        const result = compute(fields, tensors?.() ?? null),
            explained = new Set();
        for (const { id, shape, data } of result.stages) {
            const [rows, columns] = shape.slice(-2),
                heads = shape.length > 2 ? shape[0] : 1,
                part =
                    Math.floor(result.headIndex / (result.heads / heads)) * (heads > 1 ? rows * columns : 0);
            for (let i = 0; i < rows; ++i)
                for (let j = 0; j < columns; ++j) {
                    const made = page.arithmeticOf(result, id, i, j);
                    if (!made) continue;
                    explained.add(id);
                    const value = data[part + i * columns + j],
                        // Plain float32 order in both; logarithms of two libraries differ in the last bits.
                        far = id === "lse" ? 1e-6 : result.state.route === "after" ? 1e-6 : 0;
                    assert.ok(
                        Math.abs(made.value - value) <= far,
                        `${id}[${i}][${j}]: ${made.value}, the engine has ${value}`,
                    );
                }
        }
        const wanted = tensors
            ? ["context", "lse"]
            : fields.level === 1
              ? ["context", "lse"]
              : ["queries", "keys", "values", "context", "lse", ...(fields.level === 6 ? ["output"] : [])];
        for (const id of wanted) assert.ok(explained.has(id), `${id} has no arithmetic`);
    });

const python = spawnSync("python3", ["--version"]).status === 0;
for (const [name, [fields, tensors]] of Object.entries(states))
    test(
        `the Python copy asserts the page's number: ${name}`,
        { skip: python ? false : "no python3" },
        () => {
            const result = compute(fields, tensors?.() ?? null);
            const scripts = [
                [2, 1],
                [3, 0],
                [1, 3],
            ].map(([i, j]) => page.pythonOf(result, i, j));
            for (const script of scripts) assert.match(script, /^(X|Q|q, K) = /m);
            execFileSync("python3", ["-c", scripts.join("\n")]);
            // It is an assertion: another number fails.
            const wrong = scripts[0].replace(/assert abs\((weights\[\d+\]) - /, "assert abs($1 + 0.001 - ");
            assert.notEqual(wrong, scripts[0]);
            assert.notEqual(spawnSync("python3", ["-c", wrong]).status, 0);
        },
    );

// Debian keeps numpy in its own Python; another one may come first in the path.
const numpy = ["python3", "/usr/bin/python3"].find(
    (name) => spawnSync(name, ["-c", "import numpy"]).status === 0,
);
const layers = {
    ...states,
    "level 5, grouped, with dropout": [{ level: 5, kv: 1, p: 0.3, head: 1 }],
    "level 6, turned by their places": [{ level: 6, rope: true }],
    "level 7": [{ level: 7, text: "five words are here now", length: 0, head: 3 }],
};
for (const [name, [fields, tensors]] of Object.entries(layers))
    test(
        `the notebook's layer comes to the page's weights, contexts and output: ${name}`,
        { skip: numpy ? false : "no python3 here has numpy" },
        () => {
            const result = compute(fields, tensors?.() ?? null),
                notebook = JSON.parse(page.notebookOf(result)),
                code = notebook.cells.filter((c) => c.cell_type === "code").map((c) => c.source.join(""));
            assert.deepEqual([notebook.nbformat, notebook.nbformat_minor], [4, 5]);
            for (const cell of notebook.cells) assert.match(cell.id, /^[a-z0-9]+$/);
            const script = code.join("\n"),
                claims = [...script.matchAll(/^assert np\.allclose\((\w+)[^#]*/gm)];
            const output = result.stages.some((s) => s.id === "output") && fields.level === 6 && !fields.rope;
            assert.deepEqual(
                claims.map(([, name]) => name),
                ["weights", "joined", ...(output ? ["output"] : [])],
            );
            // Each is a claim: a number moved by a thousandth fails it.
            const wrong = claims.map(([claim, name]) => {
                const moved = claim.replace(/allclose\((\w+[^,]*),/, "allclose($1 + 0.001,");
                return `try: exec(${JSON.stringify(moved)})\nexcept AssertionError: print("${name} fails")`;
            });
            assert.ok(wrong.every((line) => line.includes(" + 0.001,")));
            const input = [script, ...wrong].join("\n"),
                { status, stdout, stderr } = spawnSync(numpy, ["-"], { input, encoding: "utf8" });
            assert.equal(status, 0, stderr);
            for (const [, name] of claims) assert.match(stdout, new RegExp(`^${name} fails$`, "m"));
        },
    );

test("a layer that is too large for a notebook says so, and where its numbers are to be had", () => {
    const large = {
        shape: { heads: 4, kv: 4, rows: 100, keys: 100, dim: 500, dimV: 500 },
        ...Object.fromEntries(["q", "k", "v"].map((name, n) => [name, ramp(4 * 100 * 500, 0.3 + n)])),
    };
    const result = compute({ level: 2, mask: "none" }, large);
    assert.throws(
        () => page.notebookOf(result),
        /this layer has 810,000 elements; the limit of a notebook is 400,000: export arrays \(npy\)/,
    );
});

// From X and the weights: what is copied can be multiplied again and comes to the page's number.
for (const [name, [fields, tensors]] of Object.entries(states))
    test(`the CSV and LaTeX copies hold every number on the way: ${name}`, () => {
        const result = compute(fields, tensors?.() ?? null),
            [i, j] = [2, 1],
            csv = page.csvOf(result, i, j),
            latex = page.latexOf(result, i, j),
            at = (id, r, c) => Number(new RegExp(`^${id},${r},${c},(.*)$`, "m").exec(csv)?.[1]);
        const end =
                result.stages.find((s) => s.id === "dropped") ??
                result.stages.find((s) => s.id === "weights"),
            columns = end.shape.at(-1),
            whole = end.data[i * columns + j];
        assert.ok(Math.abs(at("result", i, j) - whole) < 1e-7);
        assert.ok(latex.includes(String(Number(whole.toPrecision(5)))));
        const queries = result.stages.find((s) => s.id === "queries");
        const a = queries ? "queries" : "inputs",
            b = queries ? "keys" : "inputs",
            wide = (queries ?? result.stages.find((s) => s.id === "inputs")).shape.at(-1);
        let dot = 0;
        for (let d = 0; d < wide; ++d) dot += at(a, i, d) * at(b, j, d);
        assert.ok(Math.abs(dot - at("scores", i, j)) < 1e-5, `${dot}, copied ${at("scores", i, j)}`);
        if (!tensors && fields.level !== 1) {
            assert.match(csv, /^w_query,0,0,/m);
            assert.match(latex, /W_q/);
        }
    });

test("a script too long to be read is left to the engine", () => {
    for (const copy of [page.pythonOf, page.latexOf, page.csvOf])
        assert.equal(copy(compute({ level: 7 }), 1, 0), null);
});
