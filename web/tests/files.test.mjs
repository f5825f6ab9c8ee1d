// Export, session files, the reader's own tensors, files that are none.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { npyOf, npzOf } from "./numpy_files.mjs";
import { Lab, missing, near, root, settled, stageValues, withPages } from "./support.mjs";

describe("files", { skip: missing ?? false }, () => {
    let lab;
    before(async () => {
        lab = await Lab.open();
    });
    after(async () => {
        await lab?.close();
    });
    const withPage = withPages(() => lab);

    test(
        "export: CSV, SVG, PNG, notebook, session",
        withPage({}, async (page) => {
            const download = async (kind) => {
                await page.click("#export summary");
                const [file] = await Promise.all([
                    page.waitForEvent("download"),
                    page.click(`[data-export="${kind}"]`),
                ]);
                return readFileSync(await file.path());
            };
            const csv = (await download("csv")).toString().trim().split("\n");
            assert.equal(csv.length, 7);
            assert.equal(csv[0], ",Your,journey,starts,with,one,step");
            near(
                csv[2].split(",").slice(1).map(Number),
                [0.15001948, 0.22638379, 0.21987164, 0.13107006, 0.090628885, 0.18202609],
            );
            assert.match((await download("svg")).toString(), /<svg .*0\.2264/s);
            assert.deepEqual([...(await download("png")).subarray(1, 4)], [80, 78, 71]);
            const npy = await download("npy");
            assert.equal(
                npy
                    .subarray(10, 10 + npy.readUInt16LE(8))
                    .toString("latin1")
                    .trim(),
                "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 6), }",
            );
            assert.equal((10 + npy.readUInt16LE(8)) % 64, 0);
            near([npy.readFloatLE(10 + npy.readUInt16LE(8) + 4 * 7)], [0.22638379]);
            const notebook = JSON.parse(await download("ipynb")),
                code = notebook.cells.map((cell) => cell.source.join("")).join("\n");
            assert.equal(notebook.nbformat, 4);
            assert.match(code, /^W_q = np\.array\(\[\[[\d.]+, [\d.]+\],/m);
            assert.match(code, /^assert np\.allclose\(weights\[0\], np\.array\(\[\[.*0\.22638379/ms);
            const session = await download("session");
            const { format, version, state } = JSON.parse(session);
            assert.deepEqual(
                [format, version, state.level, state.seed, state.mask, state.alibi],
                ["fovea-session", 1, 2, 123, "none", false],
            );
            await page.fill("#text", "something else");
            await page.setInputFiles("#file", {
                name: "s.fovea",
                mimeType: "application/json",
                buffer: session,
            });
            await page.waitForFunction(
                () => document.getElementById("text").value === "Your journey starts with one step",
            );
        }),
    );

    test(
        "a session file: values that cannot be, and keys that the page does not show, are told in words",
        withPage({}, async (page) => {
            const session = {
                format: "fovea-session",
                version: 1,
                state: {
                    level: 3,
                    text: "one step",
                    mask: "window",
                    win: 1,
                    temp: "hot",
                    heads: {},
                    seed: 42,
                    alibi: true,
                    unknown: 1,
                },
                desktop: { rope: true, pinned: true },
            };
            await page.setInputFiles("#file", {
                name: "s.fovea",
                mimeType: "application/json",
                buffer: Buffer.from(JSON.stringify(session)),
            });
            await page.waitForFunction(() => globalThis.fovea.app.state.seed === 42); // the file has been read
            const state = await page.evaluate(() => globalThis.fovea.app.state);
            assert.deepEqual(
                [
                    state.level,
                    state.text,
                    state.mask,
                    state.win,
                    state.temp,
                    state.heads,
                    state.seed,
                    state.alibi,
                ],
                [3, "one step", "window", 1, 1, 1, 42, true],
            );
            await page.waitForFunction(() => !document.getElementById("notice").hidden);
            const notice = await page.textContent("#notice");
            for (const words of [
                /Temp is hot; it must be 0\.05 to 10: 1 is taken\./,
                /Heads is a list or an object; .*: 1 is taken\./,
                /A session has no key unknown; it is left out\./,
                /This page does not show rope \(rotary positions/,
                /This page does not show pinned \(/,
            ])
                assert.match(notice, words);
            // Numbers follow what the page does not show.
            const [rotated, plain] = await page.evaluate(async () => {
                const { app } = globalThis.fovea,
                    next = () => new Promise((done) => app.onResult.add(done)),
                    weights = (result) => [...result.stages.find((s) => s.id === "weights").data];
                const before = weights(app.result);
                app.change({ rope: false });
                return [before, weights(await next())];
            });
            assert.notDeepEqual(rotated, plain);
        }),
    );

    test(
        "a session's tensors bring the names of their tokens, and an exported one keeps them",
        withPage({}, async (page) => {
            const rows = { shape: [1, 2, 1], f32: "AACAPwAAAEA=" },
                tokens = ["The", ' "cat" <b>'];
            await page.setInputFiles("#file", {
                name: "s.fovea",
                mimeType: "application/json",
                buffer: Buffer.from(
                    JSON.stringify({
                        format: "fovea-session",
                        version: 1,
                        state: {},
                        tensors: { q: rows, k: rows, tokens },
                    }),
                ),
            });
            await page.waitForFunction(() => globalThis.fovea.app.result?.own);
            const [named, keys, kept] = await page.evaluate(async () => {
                const { app } = globalThis.fovea,
                    text = await app.engine.ask("writeSession", { address: "v=1" });
                return [app.result.tokens, app.result.keyTokens, JSON.parse(text).tensors.tokens];
            });
            assert.deepEqual([named, keys, kept], [tokens, tokens, tokens]);
        }),
    );

    for (const [name, session, reason] of [
        [
            "version",
            { format: "fovea-session", version: 2, state: {} },
            /version 2; this program reads version 1/,
        ],
        [
            "no state",
            { format: "fovea-session", version: 1, state: "level=2" },
            /state of the session is not an object/,
        ],
        [
            "half a tensor",
            {
                format: "fovea-session",
                version: 1,
                state: {},
                tensors: { q: { shape: [1, 2, 2], f32: "AAAA" }, k: { shape: [1, 2, 2], f32: "" } },
            },
            /q has 3 bytes; its shape needs 16/,
        ],
        [
            "a path",
            {
                format: "fovea-session",
                version: 1,
                state: {},
                tensors: { q: { path: "q.npy", sha256: "00" }, k: { path: "k.npy" } },
            },
            /q is in the file q\.npy/,
        ],
    ])
        test(
            `a session file that cannot be opened: ${name}`,
            withPage({}, async (page) => {
                await page.setInputFiles("#file", {
                    name: "s.fovea",
                    mimeType: "application/json",
                    buffer: Buffer.from(JSON.stringify(session)),
                });
                await page.waitForSelector("#import .notice");
                assert.match(await page.textContent("#import"), reason);
            }),
        );

    const safetensorsOf = (tensors) => {
        let at = 0;
        const header = Object.fromEntries(
            Object.entries(tensors).map(([name, { shape, values }]) => [
                name,
                { dtype: "F32", shape, data_offsets: [at, (at += 4 * values.length)] },
            ]),
        );
        const text = Buffer.from(
            JSON.stringify(header).padEnd(8 * Math.ceil(JSON.stringify(header).length / 8)),
        );
        const size = Buffer.alloc(8);
        size.writeBigUInt64LE(BigInt(text.length));
        return Buffer.concat([
            size,
            text,
            ...Object.values(tensors).map(({ values }) => Buffer.from(Float32Array.from(values).buffer)),
        ]);
    };
    const ramp = (count, step) => Array.from({ length: count }, (_, i) => Math.sin(i * step));

    test(
        "own tensors: a safetensors file becomes attention",
        withPage({}, async (page) => {
            const q = ramp(2 * 5 * 4, 0.7),
                k = ramp(2 * 3 * 4, 1.3),
                v = ramp(2 * 3 * 2, 0.4);
            await page.setInputFiles("#file", {
                name: "mine.safetensors",
                mimeType: "application/octet-stream",
                buffer: safetensorsOf({
                    "layer.q": { shape: [2, 5, 4], values: q },
                    "layer.k": { shape: [2, 3, 4], values: k },
                    "layer.v": { shape: [2, 3, 2], values: v },
                }),
            });
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            const { values, shape } = await stageValues(page, "weights");
            assert.deepEqual(shape, [5, 3]);
            const scores = [0, 1, 2].map(
                (j) => [0, 1, 2, 3].reduce((sum, d) => sum + q[d] * k[4 * j + d], 0) / 2,
            );
            const total = scores.reduce((sum, s) => sum + Math.exp(s), 0);
            const session = await page.evaluate(() => globalThis.fovea.sessionText());
            await page.evaluate(() => globalThis.fovea.app.setLevel(2));
            await settled(page);
            await page.setInputFiles("#file", {
                name: "s.fovea",
                mimeType: "application/json",
                buffer: Buffer.from(session),
            });
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            assert.deepEqual((await stageValues(page, "weights")).values, values);
            near(
                values.slice(0, 3),
                scores.map((s) => Math.exp(s) / total),
                1e-5,
            );
            assert.equal((await stageValues(page, "context")).shape[1], 4);
        }),
    );

    test(
        "own tensors: an npz is unpacked",
        withPage({}, async (page) => {
            const entries = { q: npyOf([4, 8], ramp(32, 0.3)), k: npyOf([4, 8], ramp(32, 0.9)) };
            await page.setInputFiles("#file", {
                name: "mine.npz",
                mimeType: "application/zip",
                buffer: npzOf(entries),
            });
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            assert.deepEqual((await stageValues(page, "weights")).shape, [4, 4]);
        }),
    );

    test(
        "own tensors: several npy files are one set, and the mask stays",
        withPage({ hash: "#v=1&level=3" }, async (page) => {
            const npy = (name, rows, phase) => ({
                name: `${name}.npy`,
                mimeType: "application/octet-stream",
                buffer: Buffer.from(npyOf([rows, 8], ramp(rows * 8, phase))),
            });
            await page.setInputFiles("#file", [npy("query", 4, 0.3), npy("key", 4, 0.9), npy("v", 4, 0.2)]);
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            const { values } = await stageValues(page, "weights");
            assert.deepEqual(values.slice(0, 4), [1, 0, 0, 0]);
            assert.deepEqual((await stageValues(page, "context")).shape, [4, 8]);
            await page.setInputFiles("#file", [npy("q", 4, 0.3), { ...npy("k", 4, 0.9), name: "k.npz" }]);
            await page.waitForSelector("#import .notice");
            assert.match(await page.textContent("#import"), /several files at once must all be \.npy/);
        }),
    );

    test(
        "own tensors: queries, keys and values in one tensor, in a chosen order",
        withPage({}, async (page) => {
            const width = 4,
                rows = 3,
                all = ramp(rows * 3 * width, 0.4),
                part = (n) =>
                    Array.from({ length: rows }, (_, r) =>
                        all.slice((3 * r + n) * width, (3 * r + n + 1) * width),
                    );
            await page.setInputFiles("#file", {
                name: "block.safetensors",
                mimeType: "application/octet-stream",
                buffer: Buffer.from(
                    safetensorsOf({ "h.0.c_attn": { shape: [rows, 3 * width], values: all } }),
                ),
            });
            assert.equal(await page.inputValue("#own-fused"), "qkv");
            await page.fill("#own-heads", "3");
            await page.click("#own-show");
            await page.waitForFunction(() =>
                /must divide the width, 4/.test(document.getElementById("own-note").textContent),
            );
            await page.fill("#own-heads", "2");
            await page.selectOption("#own-fused", "kqv");
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            const [k, q] = [part(0), part(1)],
                dot = (a, b) => a[0] * b[0] + a[1] * b[1]; // the first of two heads
            near(
                (await stageValues(page, "scores")).values.slice(0, 9),
                q.flatMap((a) => k.map((b) => dot(a, b))),
                1e-5,
            );
        }),
    );

    test(
        "own tensors: a file dropped on the page",
        withPage({}, async (page) => {
            const bytes = [
                ...safetensorsOf({
                    q: { shape: [4, 2], values: ramp(8, 0.7) },
                    k: { shape: [4, 2], values: ramp(8, 1.3) },
                }),
            ];
            const data = await page.evaluateHandle((bytes) => {
                const all = new DataTransfer();
                all.items.add(new File([Uint8Array.from(bytes)], "mine.safetensors"));
                return all;
            }, bytes);
            await page.dispatchEvent("body", "dragenter", { dataTransfer: data });
            assert.ok(await page.isVisible("#dropping"));
            await page.dispatchEvent("body", "drop", { dataTransfer: data });
            await page.click("#own-show");
            await page.waitForFunction(() => globalThis.fovea.app.result?.tokens[0] === "q0");
            assert.deepEqual((await stageValues(page, "weights")).shape, [4, 4]);
            assert.ok(await page.isHidden("#dropping"));
        }),
    );

    for (const [name, buffer, reason] of [
        ["cut.safetensors", Buffer.from([9, 0, 0, 0, 0, 0, 0, 0, 123]), /could not be opened/],
        ["words.npy", Buffer.from("not a tensor"), /could not be opened/],
        ["bad.npz", Buffer.from("PK nothing"), /not a zip archive/],
        ["old.fovea", Buffer.from("{}"), /not a session file/],
        ["photo.jpg", Buffer.from("x"), /must end in/],
    ])
        test(
            `a file that is none: ${name}`,
            withPage({}, async (page) => {
                await page.setInputFiles("#file", { name, mimeType: "application/octet-stream", buffer });
                await page.waitForSelector("#import .notice");
                assert.match(await page.textContent("#import"), reason);
                assert.match(await page.textContent("#badge-text"), /^live/);
            }),
        );
});
