// Published models on the page: their numbers in node against transformers' (tests/model/families), their tokens against the
// library tokenizers, and the part of the page that opens them.
import assert from "node:assert/strict";
import {
    closeSync,
    fstatSync,
    mkdirSync,
    mkdtempSync,
    openSync,
    readFileSync,
    readSync,
    readdirSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { after, before, describe, test } from "node:test";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { pageModules } from "./page_modules.mjs";
import { Lab, missing, near, root, settled, site, withPages } from "./support.mjs";

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const families = join(root, "tests", "model", "families"),
    tokenizers = join(root, "tests", "model", "tokenizers");

// The tensors of a safetensors file as float32.
function tensorsOf(path) {
    const bytes = readFileSync(path),
        length = Number(bytes.readBigUInt64LE()),
        header = JSON.parse(bytes.subarray(8, 8 + length).toString());
    return Object.fromEntries(
        Object.entries(header)
            .filter(([name]) => name !== "__metadata__")
            .map(
                ([
                    name,
                    {
                        dtype,
                        data_offsets: [begin, end],
                    },
                ]) => {
                    const data = bytes.buffer.slice(
                        bytes.byteOffset + 8 + length + begin,
                        bytes.byteOffset + 8 + length + end,
                    );
                    const types = {
                        F32: Float32Array,
                        F64: Float64Array,
                        I64: BigInt64Array,
                        I32: Int32Array,
                    };
                    if (dtype === "BF16")
                        return [
                            name,
                            Array.from(
                                new Float32Array(
                                    Uint32Array.from(new Uint16Array(data), (x) => x << 16).buffer,
                                ),
                            ),
                        ];
                    return [name, Array.from(new types[dtype](data), Number)];
                },
            ),
    );
}

const filesOf = (folder) =>
    readdirSync(folder)
        .filter((name) => /\.(json|safetensors)$/.test(name) && name !== "expected.safetensors")
        .map((name) => join(folder, name));

describe("models in node", { skip: missing ?? false }, () => {
    let made;
    const open = [];
    before(async () => {
        made = await pageModules("model/model_session.ts", "model/model_host.ts");
    });
    after(() => {
        for (const file of open) closeSync(file);
    });

    let session;
    async function sessionOf() {
        if (session) return session;
        const folder = readdirSync(join(site, "model")).find((name) => name.startsWith("simd-")),
            at = join(site, "model", folder),
            { default: create } = await import(pathToFileURL(join(at, "model.mjs")));
        let module = null;
        const host = made.makeHost(
            () => module,
            () => {},
        );
        module = await create({ host, wasmBinary: readFileSync(join(at, "model.wasm")) });
        module._webModelStart(1);
        session = new made.ModelSession(module, host);
        // Every value of a run on these tokens.
        session.numbers = (tokens) => session.with(tokens.join(" "), (text) => module._webModelNumbers(text));
        return session;
    }
    function readable(path, name = basename(path)) {
        const file = openSync(path);
        open.push(file);
        return {
            name,
            file: {
                size: fstatSync(file).size,
                read(first, size) {
                    const bytes = new Uint8Array(size);
                    return readSync(file, bytes, 0, size, first) === size ? bytes : null;
                },
            },
        };
    }

    const apart = (a, b) => {
        assert.equal(a.length, b.length);
        return a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0);
    };
    for (const family of readdirSync(families).filter((name) => !["older", "vit"].includes(name)))
        test(`${family}: hidden states and logits within 2e-5 of float64, from memory and from the disk`, async () => {
            const session = await sessionOf(),
                folder = join(families, family),
                expected = tensorsOf(join(folder, "expected.safetensors")),
                ways = [];
            if (readdirSync(folder).includes("config.json")) ways.push(filesOf(folder));
            if (readdirSync(folder).includes("model.gguf")) ways.push([join(folder, "model.gguf")]);
            assert.ok(ways.length);
            for (const paths of ways)
                for (const held of [1e9, 0]) {
                    const config = session.open(
                        paths.map((path) => readable(path)),
                        held,
                    );
                    assert.equal(config.held, held > 0);
                    const { hidden, logits } = session.numbers(expected.tokens);
                    const all = Array.from(
                        { length: config.layers + 1 },
                        (_, n) => expected[`hidden.${n}`],
                    ).flat();
                    assert.ok(apart(hidden, all) <= 2e-5, `hidden states: ${apart(hidden, all)}`);
                    if (logits.length || !paths[0].endsWith(".gguf"))
                        assert.ok(
                            apart(logits, expected.logits) <= 2e-5,
                            `logits: ${apart(logits, expected.logits)}`,
                        );
                }
        });

    for (const name of [
        "gpt2",
        "llama3",
        "qwen2",
        "llama2",
        "gemma",
        "bert",
        "bert_cased",
        "unigram",
        "pieces",
    ])
        test(`${name}: the browser's expressions split texts as the library tokenizers does`, async () => {
            const session = await sessionOf(),
                gpt2 = filesOf(join(families, "gpt2")).map((path) => readable(path));
            session.open([...gpt2, readable(join(tokenizers, `${name}.json`), "tokenizer.json")], 1e9);
            const { texts } = JSON.parse(readFileSync(join(tokenizers, `${name}.expected.json`)));
            let compared = 0;
            for (const [text, numbers] of texts) {
                if (text.includes("\0")) continue; // ends a text of the C boundary
                const found = numbers.length ? session.split(text).map(({ id }) => id) : [];
                assert.deepEqual(found, numbers, JSON.stringify(text));
                ++compared;
            }
            assert.ok(compared >= 150);
        });

    test("characters and white space are Unicode's, not JavaScript's", () => {
        const heap = new Uint8Array(256),
            host = made.makeHost(
                () => ({ HEAPU8: heap }),
                () => {},
            ),
            classes = (character) => (host.classes(character & ~255, 0), heap[character & 255]);
        const [space, punctuation, mark, nonspacing, number, word, other] = [1, 2, 4, 8, 16, 32, 64];
        for (const [character, expected] of [
            [0x20, space],
            [0x85, space + other],
            [0xfeff, other],
            [0x5f, punctuation + word],
            [0x31, number + word],
            [0xbd, number],
            [0x301, mark + nonspacing + word],
            [0x903, mark + word],
            [0x4e2d, word],
            [0x378, 0], // unassigned
        ])
            assert.equal(classes(character), expected, character.toString(16));
    });

    test("heads, next tokens and a weight; what a change does not touch is kept", async () => {
        const session = await sessionOf();
        session.open(
            filesOf(join(families, "llama3")).map((path) => readable(path)),
            1e9,
        );
        const text = "3 1 4 1 5 9 2 6 5 3 5",
            plain = session.run({ text, scales: [], patches: [], hidden: [] }),
            tokens = 11;
        assert.equal(plain.tokens.length, tokens);
        assert.equal(plain.pictures.length, 2 * 4 * tokens * tokens);
        const before = session.next(tokens - 1),
            head = session.head(1, 2);
        const shares = before.next.map(({ probability }) => probability);
        assert.deepEqual(
            shares,
            shares.toSorted((a, b) => b - a),
        );
        const together = shares.reduce((sum, share) => sum + share, 0);
        assert.ok(together > 0.1 && together < 1, `the ten likeliest of 24 have ${together} together`);
        assert.equal(before.said, null);
        assert.equal(before.lens.length, 3);
        assert.deepEqual(before.lens[2][0], before.next[0]);
        for (let i = 0; i < tokens; ++i)
            near([head.weights.slice(i * tokens, (i + 1) * tokens).reduce((a, b) => a + b, 0)], [1]);
        assert.equal(head.masked[1], -Infinity);
        const steps = session.derive(1, 2, 9, 4);
        near([steps.weight], [head.weights[9 * tokens + 4]]);
        assert.match(steps.origins[0], /layers\.1\..*q_proj\.weight, row 8/);
        // Ablated: the table next to the unchanged one, from the head's layer on.
        const off = session.run({ text, scales: [[1, 2, 0]], patches: [], hidden: [] });
        assert.equal(off.firstLayer, 1);
        const changed = session.next(tokens - 1);
        assert.equal(changed.said.length, changed.next.length);
        assert.deepEqual(
            changed.said.map(({ text, probability }) => [text, probability]),
            before.next.map(({ text, probability }) => [text, probability]),
        );
        assert.notDeepEqual(
            changed.next.map(({ probability }) => probability),
            before.next.map(({ probability }) => probability),
        );
        // Back: the same bits.
        session.run({ text, scales: [], patches: [], hidden: [] });
        assert.deepEqual(session.next(tokens - 1), before);
        // A change and another text at once: the unchanged table is for that text.
        const other = "2 7 1 8 2 8 1 8 2 8 4";
        session.run({ text: other, scales: [], patches: [], hidden: [] });
        const unchanged = session.next(tokens - 1);
        session.run({ text, scales: [], patches: [], hidden: [] });
        session.run({ text: other, scales: [[0, 1, 2]], patches: [], hidden: [] });
        assert.deepEqual(
            session.next(tokens - 1).said.map(({ text }) => text),
            unchanged.next.map(({ text }) => text),
        );
        // Every head patched from a text is that text's run from there on.
        const all = [0, 1, 2, 3].map((head) => [0, head, other]);
        session.run({ text, scales: [], patches: all, hidden: [] });
        const patched = session.next(tokens - 1);
        assert.notDeepEqual(patched.next, before.next);
        const own = [0, 1, 2, 3].map((head) => [0, head, text]);
        session.run({ text, scales: [], patches: own, hidden: [] });
        near(
            session.next(tokens - 1).next.map(({ probability }) => probability),
            before.next.map(({ probability }) => probability),
        );
        // Hidden: nobody looks at it.
        session.run({ text, scales: [], patches: [], hidden: [2] });
        const blind = session.head(0, 0);
        for (let i = 3; i < tokens; ++i) assert.equal(blind.weights[i * tokens + 2], 0);
        for (const [ask, words] of [
            [{ text: "1 2 x", scales: [], patches: [], hidden: [] }, /'x' is not a token ID/],
            [{ text: "", scales: [], patches: [], hidden: [] }, /the text has no token ID/],
            [{ text: "1 2 999", scales: [], patches: [], hidden: [] }, /999/],
            [
                { text: "1 2", scales: [], patches: [[0, 0, "1 2 3"]], hidden: [] },
                /has 3 tokens; .* this one, 2/,
            ],
            [{ text: "1 2", scales: [[5, 0, 1]], patches: [], hidden: [] }, /does not have that head/],
            [{ text: "1 2", scales: [], patches: [], hidden: [9] }, /masked token is 9/],
        ])
            assert.throws(() => session.run(ask), words);
    });

    // Norms, gates, joint matrices and orders of parts are other in each family; the sums are the window's.
    for (const family of readdirSync(families).filter((name) => !["older", "vit"].includes(name)))
        test(`${family}: every number of a layer is the sum that it is said to be`, async () => {
            const session = await sessionOf(),
                folder = join(families, family),
                paths = readdirSync(folder).includes("config.json")
                    ? filesOf(folder)
                    : [join(folder, "model.gguf")],
                config = session.open(
                    paths.map((path) => readable(path)),
                    1e9,
                );
            session.numbers([3, 1, 4, 1, 5]);
            const given = new Set();
            for (const layer of [0, 1]) {
                const { stages } = session.row({ layer, stage: "inputs", head: 0, row: 3 });
                for (const { id, heads } of stages)
                    for (const head of heads > 1 ? [0, config.heads - 1] : [0]) {
                        const { stage, row } = session.row({ layer, stage: id, head, row: 3 });
                        assert.equal(stage, id);
                        for (let column = 0; column < row.length; column += 1 + Math.floor(row.length / 5)) {
                            const { value, sum } = session.sum({ layer, stage: id, head, row: 3, column });
                            near([value], [row[column]]);
                            if (!sum) {
                                given.add(id);
                                continue;
                            }
                            near([sum.result], [value], 2e-5);
                            const terms = sum.terms.reduce((all, { product }) => all + product, 0);
                            near([terms + sum.leftSum + sum.added], [sum.sum], 2e-5);
                            for (const { a, b, product } of sum.terms)
                                assert.equal(Math.fround(a * b), Math.fround(product));
                        }
                    }
                for (const id of ["ff_hidden", "ff_output", "block"])
                    assert.ok(
                        stages.some((stage) => stage.id === id),
                        id,
                    );
            }
            assert.deepEqual([...given], ["inputs"]);
        });

    test("a unit of the feed-forward part comes apart to the tensors and rows of its files", async () => {
        const session = await sessionOf(),
            folder = join(families, "llama3"),
            tensors = tensorsOf(join(folder, "model.safetensors")),
            [layer, row, unit] = [1, 4, 5];
        session.open(
            filesOf(folder).map((path) => readable(path)),
            1e9,
        );
        const { hidden } = session.numbers([3, 1, 4, 1, 5, 9]),
            rowOf = (stage, head = 0) => Array.from(session.row({ layer, stage, head, row }).row),
            sumOf = (stage, column) => session.sum({ layer, stage, head: 0, row, column }).sum,
            // The matrix and the row that a sum names, as the file has them.
            named = ({ how }, width) => {
                const [, name, index] = how.match(/; (\S+), (?:row|number) (\d+)$/);
                return tensors[name].slice(width * Number(index), width * (Number(index) + 1));
            },
            dot = (a, b) => a.reduce((all, x, i) => all + x * b[i], 0);
        const x = rowOf("inputs"),
            width = x.length;
        near(x, Array.from(hidden.slice((layer * 6 + row) * width, (layer * 6 + row + 1) * width)));
        // The norm: the root of the mean square, and the weight.
        const attended = rowOf("attended"),
            normed = rowOf("ff_normed"),
            epsilon = JSON.parse(readFileSync(join(folder, "config.json"))).rms_norm_eps,
            size = Math.sqrt(dot(attended, attended) / width + epsilon),
            norm = sumOf("ff_normed", unit);
        assert.match(norm.how, /RMSNorm of row 4 of attended; .*post_attention_layernorm\.weight, number 5$/);
        near([(attended[unit] / size) * named(norm, 1)[0]], [normed[unit]], 1e-5);
        assert.match(norm.ending, new RegExp(` / ${size.toFixed(4).replace(".", "\\.")}, which is √`));
        // Gate, up and the activation.
        const up = sumOf("ff_hidden", unit),
            [gate] = up.factors,
            middle = rowOf("ff_hidden"),
            through = dot(named(gate, width), normed);
        assert.match(up.how, /mlp\.up_proj\.weight, row 5$/);
        assert.match(gate.how, /mlp\.gate_proj\.weight, row 5$/);
        near([gate.result], [through / (1 + Math.exp(-through))], 1e-5);
        near([gate.result * dot(named(up, width), normed)], [middle[unit]], 1e-5);
        // Down, and what leaves the layer.
        const down = sumOf("ff_output", unit),
            output = rowOf("ff_output");
        near([dot(named(down, middle.length), middle)], [output[unit]], 1e-5);
        near([attended[unit] + output[unit]], [rowOf("block")[unit]], 1e-5);
        // A head that is off adds nothing: what is taken apart is what was run.
        session.run({ text: "3 1 4 1 5 9", scales: [[layer, 2, 0]], patches: [], hidden: [] });
        const context = rowOf("context"),
            of = context.length / 4;
        assert.ok(context.slice(2 * of, 3 * of).every((value) => value === 0));
        assert.equal(session.sum({ layer, stage: "context", head: 0, row, column: 2 * of }).sum, null);
        near([sumOf("output", unit).result], [rowOf("output")[unit]], 1e-5);
        assert.notDeepEqual(rowOf("ff_hidden"), middle);
        const leaving = session.numbers([]).hidden.slice((2 * 6 + row) * width, (2 * 6 + row + 1) * width);
        near(rowOf("block"), Array.from(leaving), 1e-6);
        for (const [ask, words] of [
            [{ layer: 9, stage: "inputs", head: 0, row }, /does not have that layer/],
            [{ layer, stage: "inputs", head: 0, row: 99 }, /does not have that row/],
            [{ layer, stage: "ff_output", head: 0, row, column: 9999 }, /does not have that cell/],
        ])
            assert.throws(() => ("column" in ask ? session.sum(ask) : session.row(ask)), words);
    });

    // Scale, softcap and window are the layer's own.
    for (const [family, layer, head] of [
        ["llama3", 1, 2],
        ["gemma2", 0, 1],
        ["gemma2", 1, 3],
        ["modernbert", 1, 0],
        ["gpt2", 1, 1],
    ])
        test(`${family}, layer ${layer}: a map's queries and keys give the head's weights`, async () => {
            const session = await sessionOf();
            const config = session.open(
                filesOf(join(families, family)).map((path) => readable(path)),
                1e9,
            );
            const text = "3 1 4 1 5 9 2 6 5 3 5 8 9 7",
                ask = { text, scales: [[0, 1, 0.5]], patches: [], hidden: [] };
            session.run(ask);
            const { weights } = session.head(layer, head),
                { q, k, dim, tokens, scale, softcap, causal, windowed, left, right } = session.map({
                    ...ask,
                    layer,
                    head,
                }),
                n = tokens.length,
                divisor = scale === "auto" ? Math.sqrt(dim) : scale === "none" ? 1 : Number(scale);
            assert.equal(n, 14);
            assert.equal(causal, config.causal);
            const sees = (i, j) =>
                (!causal || j <= i) &&
                (!windowed || ((left < 0 || j >= i - left) && (right < 0 || j <= i + right)));
            for (let i = 0; i < n; ++i) {
                const scores = Array.from({ length: n }, (_, j) => {
                    let dot = 0;
                    for (let c = 0; c < dim; ++c) dot += q[i * dim + c] * k[j * dim + c];
                    const score = dot / divisor;
                    return sees(i, j) ? (softcap ? softcap * Math.tanh(score / softcap) : score) : -Infinity;
                });
                const exps = scores.map((score) => Math.exp(score - Math.max(...scores))),
                    sum = exps.reduce((a, b) => a + b, 0);
                near(
                    exps.map((e) => e / sum),
                    Array.from(weights.slice(i * n, (i + 1) * n)),
                    1e-5,
                );
            }
            assert.throws(() => session.map({ ...ask, hidden: [1], layer, head }), /undo them first/);
            assert.throws(() => session.map({ ...ask, layer: 99, head }), /does not have that head/);
        });

    test("wrong files are refused in words", async () => {
        const session = await sessionOf();
        const gone = readable(join(families, "llama_q8", "model.gguf"));
        session.open([gone], 0);
        gone.file.read = () => null;
        assert.throws(() => session.numbers([1, 2]), /cannot be read any more/);
        assert.throws(() => session.open([gone], 1e9), /model\.gguf: the file cannot be read any more/);
        assert.throws(
            () => session.open([readable(join(families, "gpt2", "model.safetensors"))], 1e9),
            /config\.json is missing/,
        );
        assert.throws(
            () =>
                session.open(
                    [
                        readable(join(families, "gpt2", "config.json"), "config.json"),
                        readable(join(families, "llama2", "model.safetensors"), "model.safetensors"),
                    ],
                    1e9,
                ),
            /wte\.weight/,
        );
        assert.throws(
            () =>
                session.open(
                    filesOf(join(families, "vit")).map((path) => readable(path)),
                    1e9,
                ),
            /reads pictures/,
        );
    });
});

// A small llama with random weights and the words of a test's tokenizer, as Hugging Face saves one.
function writeModel(folder, { layers = 3, heads = 4, width = 32, tokenizer = "gpt2" } = {}) {
    const words = JSON.parse(readFileSync(join(tokenizers, `${tokenizer}.json`))),
        vocabulary = 512,
        hidden = 2 * width,
        shapes = { "model.embed_tokens.weight": [vocabulary, width], "model.norm.weight": [width] };
    for (let n = 0; n < layers; ++n)
        for (const [name, shape] of Object.entries({
            "self_attn.q_proj": [width, width],
            "self_attn.k_proj": [width / 2, width],
            "self_attn.v_proj": [width / 2, width],
            "self_attn.o_proj": [width, width],
            "mlp.gate_proj": [hidden, width],
            "mlp.up_proj": [hidden, width],
            "mlp.down_proj": [width, hidden],
            input_layernorm: [width],
            post_attention_layernorm: [width],
        }))
            shapes[`model.layers.${n}.${name}.weight`] = shape;
    let seed = 7;
    // Multiplications as in glibc's rand: any numbers will do, the same every time.
    const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32 - 0.5;
    const header = {},
        parts = [];
    let at = 0;
    for (const [name, shape] of Object.entries(shapes)) {
        const count = shape.reduce((a, b) => a * b, 1),
            data = Float32Array.from({ length: count }, () =>
                name.includes("norm") ? 1 : (4 * random()) / Math.sqrt(shape.at(-1)),
            );
        header[name] = { dtype: "F32", shape, data_offsets: [at, (at += 4 * count)] };
        parts.push(Buffer.from(data.buffer));
    }
    const text = Buffer.from(JSON.stringify(header)),
        length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, text, ...parts]));
    writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(words));
    writeFileSync(
        join(folder, "config.json"),
        JSON.stringify({
            architectures: ["LlamaForCausalLM"],
            model_type: "llama",
            hidden_size: width,
            intermediate_size: hidden,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: heads / 2,
            vocab_size: vocabulary,
            max_position_embeddings: 4096,
            rms_norm_eps: 1e-5,
            rope_theta: 10000,
            tie_word_embeddings: true,
            hidden_act: "silu",
        }),
    );
}

describe("models on the page", { skip: missing ?? false }, () => {
    let lab, folder;
    before(async () => {
        lab = await Lab.open();
        folder = join(mkdtempSync(join(tmpdir(), "fovea-own-")), "my-model");
        writeModel(folder);
    });
    after(async () => {
        await lab?.close();
        rmSync(join(folder, ".."), { recursive: true });
    });
    const withPage = withPages(() => lab);

    test(
        "a folder is opened, typed into, looked into, changed",
        withPage({}, async (page) => {
            await page.setInputFiles("#model-files", filesOf(folder));
            await settled(page);
            assert.match(await page.textContent(".model-config"), /Llama: 3 layers, 4 heads over 2 of keys/);
            assert.match(await page.textContent(".model-config"), /F32/);
            await page.fill("#model-text", "the cat sat. the cat");
            await settled(page);
            const tokens = await page.$$eval("#model-tokens button", (all) => all.map((b) => b.textContent));
            assert.equal(tokens.join("").replace(/[^a-z.]/g, ""), "thecatsat.thecat");
            const next = await page.$$eval("#model-next tbody tr", (rows) =>
                rows.map((row) => row.children[2].textContent),
            );
            assert.equal(next.length, 10);
            assert.equal(await page.$$eval("#model-lens tbody tr", (rows) => rows.length), 4);
            // A head by its picture, by the keyboard; a weight with its sum.
            await page.focus("#model-grid");
            for (const key of [
                "ArrowUp",
                "ArrowUp",
                "ArrowUp",
                "ArrowLeft",
                "ArrowLeft",
                "ArrowLeft",
                "ArrowDown",
                "ArrowRight",
            ])
                await page.keyboard.press(key);
            await settled(page);
            assert.match(await page.textContent("#model-head-name"), /^Layer 1, head 1/);
            await page.focus('#model-matrix [tabindex="0"]');
            await page.keyboard.press("Home");
            await settled(page);
            const cell = await page.textContent("#model-cell");
            assert.match(cell, /q · k/);
            assert.match(cell, /model\.layers\.1\.self_attn\.q_proj\.weight, row 8/);
            assert.match(cell, /model\.layers\.1\.self_attn\.k_proj\.weight, row 0/);
            // Ablated: the unchanged table is shown, too; undone: it disappears.
            await page.click("#model-off");
            await settled(page);
            assert.match(await page.textContent("#model-next thead"), /with the changes.*without/);
            assert.match(await page.textContent("#model-note"), /from layer 1 on/);
            await page.fill("#model-patch", "the cab sat. the cab");
            await page.keyboard.press("Enter");
            await settled(page);
            assert.match(await page.textContent("#model-note"), /tokens, .* ms, from layer 1 on/);
            await page.click("#model-reset");
            await settled(page);
            assert.equal(await page.inputValue("#model-patch"), "");
            assert.doesNotMatch(await page.textContent("#model-next thead"), /without/);
            assert.deepEqual(
                await page.$$eval("#model-next tbody tr", (rows) =>
                    rows.map((row) => row.children[2].textContent),
                ),
                next,
            );
            // Hidden from all: the first token.
            await page.click('#model-tokens [data-token="0"]');
            await settled(page);
            await page.click("#model-hide");
            await settled(page);
            assert.equal(await page.getAttribute("#model-hide", "aria-pressed"), "true");
            // One value of a layer: the stage's largest, its sum, and after a click the value that it was computed
            // from.
            assert.match(await page.textContent("#model-row-name"), /^Layer 1: Feed-forward of “the₀”$/);
            assert.match(
                await page.textContent("#model-sum"),
                /mlp\.gate_proj\.weight, row \d+.*silu\(sum\), the gate/,
            );
            await page.selectOption("#model-stage", "ff_output");
            await settled(page);
            assert.match(await page.textContent("#model-sum"), /mlp\.down_proj\.weight, row \d+/);
            const unit = await page.textContent("#model-sum tbody button");
            await page.click("#model-sum tbody button");
            await settled(page);
            assert.equal(await page.inputValue("#model-stage"), "ff_hidden");
            assert.match(await page.textContent("#model-sum"), new RegExp(`^Feed-forward, number ${unit}`));
            await page.focus('#model-row [tabindex="0"]');
            await page.keyboard.press("Home");
            await settled(page);
            assert.match(await page.textContent("#model-sum .label"), /number (0|32)$/);
            await page.evaluate(readFileSync(axeFile, "utf8"));
            for (const colorScheme of ["light", "dark"]) {
                await page.emulateMedia({ colorScheme });
                await settled(page);
                const { violations } = await page.evaluate(() => globalThis.axe.run("#model"));
                assert.deepEqual(
                    violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))]),
                    [],
                );
            }
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
        }),
    );

    // As the reports of `fovea heads` link to a text of a published model.
    test(
        "the address's text is the model's",
        withPage({ hash: "#v=1&level=2&text=the+dog+sat" }, async (page) => {
            const opened = async () => {
                await page.setInputFiles("#model-files", filesOf(folder));
                await settled(page);
                const tokens = await page.$$eval("#model-tokens button", (all) =>
                    all.map((b) => b.textContent),
                );
                return [await page.inputValue("#model-text"), tokens.join("").replace(/[^a-z]/g, "")];
            };
            assert.deepEqual(await opened(), ["the dog sat", "thedogsat"]);
            await page.evaluate(() => (location.hash = "#v=1&level=5&task=induction&text=abcabc"));
            await settled(page);
            assert.notEqual((await opened())[0], "abcabc"); // a sequence of another model
        }),
    );

    test(
        "a head on a text that is too long for its matrix is a map, with the model's own rules",
        withPage({ hash: "#v=1&level=2&scale=none&cap=3&mask=window" }, async (page) => {
            await page.setInputFiles("#model-files", filesOf(folder));
            await settled(page);
            await page.fill("#model-text", "the cat sat. the cat");
            await settled(page);
            await page.focus('#model-matrix [tabindex="0"]');
            await page.keyboard.press("Home");
            await settled(page);
            const shown = await page.textContent("#model-cell .big"),
                query = (await page.$$eval("#model-tokens button", (all) => all.length)) - 1;
            await page.click("#model-map");
            await settled(page);
            const weight = (query) =>
                page.evaluate((query) => fovea.app.engine.ask("mapCell", { query, key: 0 }), query);
            near([await weight(query)], [Number(shown.replace("e−", "e-"))], 1e-3);
            assert.match(
                await page.getAttribute("#zoom-canvas", "aria-label"),
                /Your model, L\dH\d, \d+ tokens$/,
            );
            await page.fill("#model-text", "the cat sat. ".repeat(150));
            await settled(page);
            assert.match(await page.textContent("#model-text-note"), /the page shows 1024 at most/);
            await page.click("#model-map");
            await settled(page);
            assert.match(await page.getAttribute("#zoom-canvas", "aria-label"), /1,\d{3} tokens$/);
            await page.focus("#zoom-canvas");
            await page.keyboard.press("Enter");
            await settled(page);
            await page.waitForFunction(() => document.querySelector("#zoom-steps .steps"));
            assert.match(await page.textContent("#zoom-steps"), /÷ √8/);
            assert.equal(await page.evaluate(() => location.hash.includes("zoom=")), false);
            await page.evaluate(readFileSync(axeFile, "utf8"));
            const { violations } = await page.evaluate(() => globalThis.axe.run("#zoom"));
            assert.deepEqual(
                violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))]),
                [],
            );
        }),
    );

    test(
        "a GGUF file without a tokenizer takes numbers; wrong files say why, and the next one opens",
        withPage({}, async (page) => {
            await page.setInputFiles("#model-files", {
                name: "broken.gguf",
                mimeType: "application/octet-stream",
                buffer: Buffer.from("GGUF but not really"),
            });
            await settled(page);
            assert.match(
                await page.textContent("#model-note"),
                /could not be opened: broken\.gguf: .*too few/,
            );
            assert.equal(await page.isHidden("#model-body"), true);
            await page.setInputFiles("#model-files", join(families, "llama_q8", "model.gguf"));
            await settled(page);
            assert.match(await page.textContent(".model-config"), /Q8_0/);
            await page.fill("#model-text", "1 2 three");
            await page.waitForFunction(() =>
                /is not a token ID/.test(document.querySelector("#model-text-note").textContent),
            );
            await page.fill("#model-text", "1 2 3 1 2");
            await page.waitForFunction(() =>
                /^5 tokens/.test(document.querySelector("#model-note").textContent),
            );
            assert.equal(await page.$$eval("#model-tokens button", (all) => all.length), 5);
        }),
    );

    test(
        "on a phone nothing runs over the edge",
        withPage({ viewport: { width: 360, height: 740 } }, async (page) => {
            await page.setInputFiles("#model-files", filesOf(folder));
            await settled(page);
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
        }),
    );
});
