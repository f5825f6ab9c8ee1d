// Random tokenizers and texts: compares Fovea with the library `tokenizers`.
//
//     npm install tokenizers@0.23.2                        (in a folder outside of the repository)
//     cmake --build build/default --target fovea_tokenize
//     node tests/model/compare_tokenizers.mjs FOLDER/node_modules/tokenizers build/default/bin/fovea_tokenize
//         [--configs 300] [--texts 40] [--seed 1] [--write tests/model/tokenizers/random.jsonl]
//
// Prints every difference and what Fovea rejects. Exit 1 with a difference. With --write the cases that agree become the
// data of the test RandomTokenizers.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { readFileSync, writeFileSync } from "node:fs";

const [library, program, ...rest] = process.argv.slice(2);
const option = (name, otherwise) => (rest.includes(name) ? rest[rest.indexOf(name) + 1] : otherwise);
const { Tokenizer } = createRequire(import.meta.url)(resolve(library));
const count = Number(option("--configs", 300)),
    perConfig = Number(option("--texts", 40)),
    written = option("--write", "");

// The library ends the process if a pattern, or a text, is too expensive, so each configuration has its own process.
if (program === "--library") {
    const [json, samples] = JSON.parse(readFileSync(0, "utf8"));
    const out = { encodings: [], texts: [] };
    let tokenizer = null;
    try {
        tokenizer = Tokenizer.fromString(json);
    } catch {
        process.stdout.write("null");
        process.exit(0);
    }
    for (const sample of samples)
        try {
            const encoding = await tokenizer.encode(sample, null, { addSpecialTokens: true });
            out.encodings.push([encoding.getIds(), encoding.getOffsets()]);
        } catch {
            out.encodings.push(null);
        }
    for (const one of out.encodings)
        try {
            out.texts.push(one && one[0].length ? await tokenizer.decode(one[0], true) : null);
        } catch {
            out.texts.push(null);
        }
    process.stdout.write(JSON.stringify(out));
    process.exit(0);
}

// ---- random numbers (SplitMix64) and what is drawn with them ----

let state = BigInt(option("--seed", 1));
const mask = (1n << 64n) - 1n;
function below(n) {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    return Number((z ^ (z >> 31n)) % BigInt(n));
}
const chance = (percent) => below(100) < percent;
const pick = (list) => list[below(list.length)];
const several = (most, make) => Array.from({ length: 1 + below(most) }, make);

const blocks = [
    [0x20, 95], [0x20, 95], [0x61, 26], [0x61, 26], [0x30, 10], [0x09, 5], [0xa0, 96], [0x100, 128], [0x300, 64], [0x391, 57],
    [0x410, 64], [0x531, 38], [0x5d0, 27], [0x620, 43], [0x660, 10], [0x904, 77], [0xe01, 58], [0x1100, 90], [0x180e, 1],
    [0x1e00, 96], [0x2000, 48], [0x20a0, 16], [0x2150, 48], [0x2460, 120], [0x3001, 20], [0x3041, 86], [0x30a1, 90],
    [0x4e00, 20000], [0xac00, 11172], [0xfb00, 7], [0xff01, 94], [0x1d400, 85], [0x1f300, 0x100], [0x1f600, 80], [0x200c, 2],
];
const words = ["The", "quick", "it's", "we'RE", "don't", "12345", "3.14", "return", "<s>", "[MASK]", "\r\n", "\n\n", "   ",
    "हिन्दी", "भाषा", "東京", "ﬁ", "Straße", " quick", "abc", "AB", "<mask>", "ſt", "café", "e\u0301", "a_b", "x&y", "…", "İ", "Ω", "K", "</s>", "<pad>"];
const character = () => {
    const [first, size] = pick(blocks);
    return String.fromCodePoint(first + below(size));
};
const text = () =>
    several(12, () => {
        const what = below(5);
        if (what === 0) return pick(words);
        if (what === 1) return pick([" ", " ", "\n", "\t", "\u3000", "\u00a0", "  "]);
        const [first, size] = pick(blocks);
        return several(5, () => String.fromCodePoint(first + below(size))).join("");
    }).join("");

// ---- patterns ----

const known = [
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}|\\s+",
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    "\\w+|[^\\w\\s]+", "\\b", "\\B", "(?<=\\p{L}+)\\d", "(?<!\\w)\\p{L}", "^", "$", "^.", ".$", "\\A.", ".\\z", ".\\Z", "\\R", "\\h+", "\\H",
    "[a-z&&[^aeiou]]+", "[[a-c][x-z]]", "[^[a-m]&&\\w]", "\\u4e2d", "\\x{4e2d}", "[\\x{4e00}-\\x{9fff}]+", "\\p{InHiragana}+", "\\p{Hiragana}|\\p{Katakana}",
    "\\O", "\\N+", "(?m).+", "(?m:.)\\n", "(?x) a b # c", "[[:alpha:]]+", "[[:^alnum:][:space:]]", "[[:punct:]]", "\\p{^L}+", "\\P{Lu}+", "\\pN", "(?>a+|\\s)b",
    "a{,3}", "a{2}?", "a{3,1}", "(?=[A-Z])", "(?<=,)|(?=;)", "(?=(\\d{3})+(?!\\d))", "x*", "", "a|", "(?:)", "[]a]", "[^]a]", "[a-]", "[-a]", "[a-c-e]", "{", "a{,}", "\\{",
    "\\s{2,}", "\\S+?\\s", "(?i)straße", "(?i)k", "(?i:[a-z])+", "(?i)[^k]", "(?i)Σ", "[\\w-]+", "[\\d\\s]+", "(?<n>a)b", "(?'n'a)", "(?#c)a", "a(?i)b|c", "\\G\\w",
    "\\p{Emoji}", "\\p{Alnum}+", "\\p{Word}+", "\\p{Graph}+", "\\p{Print}+", "\\p{Blank}", "\\p{XDigit}+", "\\p{Sc}", "\\p{Greek}+", "\\p{Lowercase_Letter}+",
    "(a|b)\\1", "\\K", "(?~a)", "(?(1)a)", "\\X", "\\y", "\\p{Nope}", "(", ")", "[", "[z-a]", "*a", "\\",
];
const atoms = ["a", "b", "e", "\\w", "\\W", "\\s", "\\S", "\\d", "\\D", "\\h", ".", "\\p{L}", "\\p{Lu}", "\\p{M}", "\\p{N}", "\\p{P}", "\\p{S}", "\\p{Z}", "\\p{Han}", "\\p{^Ll}",
    "[a-f]", "[^a-f\\s]", "[\\p{L}\\p{M}]", "[\\p{L}&&[^a-z]]", "[\\w&&[^\\d_]]", "[[:lower:][:digit:]]", "[^\\w\\s]", " ", "'", "\\n", "\\u00e9", "\\N", "\\O", "\\R", "-", "_"];
const places = ["^", "$", "\\b", "\\B", "\\A", "\\z", "\\Z"];
function pattern(depth) {
    return several(3, () =>
        several(3, () => {
            const what = below(depth > 2 ? 6 : 10);
            if (what === 5) return pick(places);
            const one =
                what < 5 ? pick(atoms)
                : what === 6 ? `(?:${pattern(depth + 1)})`
                : what === 7 ? `(${pattern(depth + 1)})`
                : what === 8 ? `(?>${pattern(depth + 1)})`
                : `${pick(["(?=", "(?!", "(?<=", "(?<!"])}${pick(atoms)}${pick(["", "+", "?", pick(atoms)])})`;
            if (what === 9) return one;
            return one + pick(["", "", "", "+", "*", "?", "+?", "*?", "??", "++", "*+", "?+", "{2}", "{1,3}", "{2,}", "{,2}", "{1,2}?"]);
        }).join(""),
    ).join("|");
}
const regex = () => {
    const made = chance(50) ? pick(known) : pattern(0);
    return chance(15) ? `(?i)${made}` : made;
};

// ---- tokenizers ----

const behaviours = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
const byteAlphabet = (() => {
    const out = [];
    let next = 256;
    for (let b = 0; b < 256; ++b)
        out.push(String.fromCodePoint((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++));
    return out;
})();
const maybe = (percent, make) => (chance(percent) ? make() : null);

// The table of a trained model.
const precompiled = JSON.parse(readFileSync(new URL("tokenizers/unigram.json", import.meta.url), "utf8")).normalizer.normalizers[0];

function normalizer(depth = 0) {
    const what = below(depth > 1 ? 14 : 16);
    return [
        () => ({ type: "NFC" }), () => ({ type: "NFD" }), () => ({ type: "NFKC" }), () => ({ type: "NFKD" }),
        () => ({ type: "Lowercase" }), () => ({ type: "StripAccents" }), () => ({ type: "Nmt" }),
        () => ({ type: "Strip", strip_left: chance(50), strip_right: chance(50) }),
        () => ({ type: "Prepend", prepend: pick(["▁", "x", " "]) }),
        () => ({ type: "Replace", pattern: { String: pick([" ", "a", "``", "\n", ".", "", "e\u0301", "  "]) }, content: pick(["▁", "", "xy"]) }),
        () => ({ type: "Replace", pattern: { Regex: regex() }, content: pick(["▁", "", "xy"]) }),
        () => ({ type: "BertNormalizer", clean_text: chance(70), handle_chinese_chars: chance(70), strip_accents: pick([null, true, false]), lowercase: chance(50) }),
        () => ({ type: "ByteLevel" }), () => precompiled,
        () => ({ type: "Sequence", normalizers: several(4, () => normalizer(depth + 1)) }),
        () => ({ type: "Sequence", normalizers: several(4, () => normalizer(depth + 1)) }),
    ][what]();
}
function splitter(depth = 0) {
    const what = below(depth > 1 ? 14 : 16);
    return [
        () => ({ type: "Split", pattern: { Regex: regex() }, behavior: pick(behaviours), invert: chance(30) }),
        () => ({ type: "Split", pattern: { Regex: regex() }, behavior: pick(behaviours), invert: chance(30) }),
        () => ({ type: "Split", pattern: { String: pick([" ", "a", "", "\n", ".", "▁", "東", "  "]) }, behavior: pick(behaviours), invert: chance(30) }),
        () => ({ type: "ByteLevel", add_prefix_space: chance(50), trim_offsets: chance(50), use_regex: chance(50) }),
        () => ({ type: "ByteLevel", add_prefix_space: chance(50), trim_offsets: chance(50) }),
        () => ({ type: "Metaspace", replacement: pick(["▁", "_"]), prepend_scheme: pick(["always", "never", "first"]), split: chance(60) }),
        () => ({ type: "Metaspace", replacement: pick(["▁", "_", " "]), ...pick([{ add_prefix_space: true }, { add_prefix_space: false, prepend_scheme: "never" }]) }),
        () => ({ type: "UnicodeScripts" }),
        () => ({ type: "Whitespace" }), () => ({ type: "WhitespaceSplit" }), () => ({ type: "BertPreTokenizer" }),
        () => ({ type: "Digits", individual_digits: chance(50) }),
        () => ({ type: "Punctuation", behavior: pick(behaviours) }),
        () => ({ type: "FixedLength", length: 1 + below(6) }),
        () => ({ type: "CharDelimiterSplit", delimiter: pick([" ", "a", ".", "東"]) }),
        () => ({ type: "Sequence", pretokenizers: several(4, () => splitter(depth + 1)) }),
        () => ({ type: "Sequence", pretokenizers: several(4, () => splitter(depth + 1)) }),
    ][what]();
}
function decoder(depth = 0) {
    const what = below(depth ? 10 : 12);
    return [
        () => ({ type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true }),
        () => ({ type: "Metaspace", replacement: "▁", prepend_scheme: pick(["always", "never", "first"]), split: true }),
        () => ({ type: "WordPiece", prefix: pick(["##", "▁"]), cleanup: chance(50) }),
        () => ({ type: "BPEDecoder", suffix: pick(["</w>", "▁", "a"]) }),
        () => ({ type: "CTC", pad_token: pick(["<pad>", "a"]), word_delimiter_token: pick(["|", "▁"]), cleanup: chance(50) }),
        () => ({ type: "Fuse" }), () => ({ type: "ByteFallback" }),
        () => ({ type: "Strip", content: pick([" ", "▁", "a"]), start: below(3), stop: below(2) }),
        () => ({ type: "Replace", pattern: { String: pick(["▁", "a", " "]) }, content: pick([" ", "", "b"]) }),
        () => ({ type: "Replace", pattern: { Regex: pick(["\\s+", "[ab]", "▁+"]) }, content: pick([" ", "", "b"]) }),
        () => null,
        () => ({ type: "Sequence", decoders: several(4, () => decoder(1)) }),
    ][what]();
}

// Characters, bytes and a few longer texts, all different.
function pieces() {
    const out = new Set(["<unk>", "<s>", "</s>", "<pad>"]);
    for (let c = 0x20; c < 0x7f; ++c) out.add(String.fromCodePoint(c));
    for (const c of byteAlphabet) if (chance(95)) out.add(c);
    out.add("▁");
    if (chance(70)) for (let b = 0; b < 256; ++b) if (chance(99)) out.add(`<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`);
    for (let n = below(40); n > 0; --n) out.add(character());
    return out;
}
function merges(vocabulary, prefix, suffix) {
    const list = [...vocabulary].filter((piece) => [...piece].length === 1),
        made = [];
    for (const piece of prefix + suffix ? [...list] : [])
        for (const affixed of [prefix + piece, piece + suffix, prefix + piece + suffix])
            if (chance(80) && !vocabulary.has(affixed)) vocabulary.add(affixed), list.push(affixed);
    for (let n = below(200); n > 0; --n) {
        const a = pick(list), b = pick(list), both = a + (b.startsWith(prefix) ? b.slice(prefix.length) : b);
        if ([...both].length > 8 || /\s/.test(a + b) || !b.startsWith(prefix)) continue;
        made.push([a, b]);
        if (!vocabulary.has(both)) list.push(both);
        vocabulary.add(both);
    }
    return made;
}
const numbered = (vocabulary) => Object.fromEntries([...vocabulary].map((piece, id) => [piece, id]));
function model() {
    const vocabulary = pieces();
    const what = below(5);
    if (what === 0) {
        const rows = [...vocabulary].map((piece) => [piece, -below(2000) / 100]);
        for (let n = below(60); n > 0; --n) rows.push([several(4, () => pick(rows)[0]).join(""), -below(2000) / 100]);
        if (chance(30)) rows.push([pick(rows)[0], -below(2000) / 100]); // a text that is there twice
        return { type: "Unigram", unk_id: chance(90) ? 0 : null, vocab: rows, byte_fallback: chance(50) };
    }
    if (what === 1) {
        const prefix = pick(["##", "##", "@", ""]);
        for (const piece of [...vocabulary]) if (chance(80)) vocabulary.add(prefix + piece);
        for (const word of words) if (chance(50)) vocabulary.add(word);
        return { type: "WordPiece", unk_token: "<unk>", continuing_subword_prefix: prefix, max_input_chars_per_word: pick([100, 100, 5, 10000]), vocab: numbered(vocabulary) };
    }
    if (what === 2) {
        for (const word of words) if (chance(50)) vocabulary.add(word);
        return { type: "WordLevel", unk_token: chance(95) ? "<unk>" : "nope", vocab: numbered(vocabulary) };
    }
    const affixed = chance(30),
        prefix = affixed ? pick(["##", "", "é"]) : "",
        suffix = affixed ? pick(["</w>", "", "ß"]) : "";
    const made = merges(vocabulary, prefix, suffix);
    return { type: "BPE", dropout: pick([null, null, null, 0, chance(20) ? 0.1 : 0]), unk_token: pick(["<unk>", "<unk>", null, null, "nope"]),
        continuing_subword_prefix: prefix || pick([null, ""]), end_of_word_suffix: suffix || pick([null, ""]), fuse_unk: chance(50), byte_fallback: chance(50),
        ignore_merges: chance(30), vocab: numbered(vocabulary), merges: chance(20) ? made.map((pair) => pair.join(" ")) : made };
}
function added(vocabulary) {
    const texts = ["<s>", "</s>", "<pad>", "[MASK]", "<mask>", "The", " quick", " ", "ab", "abc", "AB", "Straße", "\n", "é", "e\u0301", "ﬁ", "東京", "the", "▁"];
    const taken = texts.filter(() => chance(25));
    if (chance(20)) taken.push(...taken.filter(() => chance(30)));  // texts that are there twice
    return taken.map((content, n) => ({ id: vocabulary + n, content, single_word: chance(20), lstrip: chance(20), rstrip: chance(20),
        normalized: chance(40), special: chance(50) }));
}
function postProcessor() {
    const special = { A: { Sequence: { id: "A", type_id: 0 } }, s: { SpecialToken: { id: "<s>", type_id: 0 } }, e: { SpecialToken: { id: "</s>", type_id: 0 } },
        t: { SpecialToken: { id: "two", type_id: 0 } } };
    return pick([
        () => ({ type: "ByteLevel", add_prefix_space: true, trim_offsets: false, use_regex: true }),
        () => ({ type: "BertProcessing", sep: ["</s>", 2], cls: ["<s>", 1] }),
        () => ({ type: "RobertaProcessing", sep: ["</s>", 2], cls: ["<s>", 1], trim_offsets: true, add_prefix_space: true }),
        () => ({ type: "TemplateProcessing", single: [...pick(["sA", "sAe", "A", "AA", "s", "sAsAe", "e", "tAt"])].map((c) => special[c]), pair: [special.A, { Sequence: { id: "B", type_id: 1 } }],
            special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] }, "</s>": { id: "</s>", ids: [2], tokens: ["</s>"] }, two: { id: "two", ids: [2, 3], tokens: ["</s>", "<pad>"] } } }),
        () => ({ type: "Sequence", processors: [{ type: "ByteLevel", add_prefix_space: true, trim_offsets: false, use_regex: true },
            { type: "BertProcessing", sep: ["</s>", 2], cls: ["<s>", 1] }] }),
    ])();
}
function config(n) {
    // Every other one tests only the split: each word is one token, whose place shows where the text was cut.
    if (n % 2 === 0)
        return { version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null,
            pre_tokenizer: { type: "Split", pattern: { Regex: n / 2 < known.length ? known[n / 2] : regex() }, behavior: pick(behaviours), invert: chance(20) },
            post_processor: null, decoder: { type: "Fuse" }, model: { type: "WordLevel", vocab: { "<unk>": 0 }, unk_token: "<unk>" } };
    const made = model(),
        size = Array.isArray(made.vocab) ? made.vocab.length : Object.keys(made.vocab).length;
    return { version: "1.0", truncation: null, padding: null, added_tokens: maybe(50, () => added(size)) ?? [], normalizer: maybe(60, normalizer),
        pre_tokenizer: maybe(75, splitter), post_processor: maybe(40, postProcessor), decoder: decoder(), model: made };
}

// ---- both ----

// Places of the library count characters.
function bytePlaces(text, pairs) {
    const bytes = [0];
    for (const c of text) bytes.push(bytes.at(-1) + Buffer.byteLength(c));
    return pairs.map(([a, b]) => [bytes[a], bytes[b]]);
}
const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
let pending = "";
const answers = [];
let wake = () => {};
child.stdout.setEncoding("utf8").on("data", (chunk) => {
    const lines = (pending + chunk).split("\n");
    pending = lines.pop();
    answers.push(...lines.map((line) => JSON.parse(line)));
    wake();
});
child.on("exit", (code) => code && (console.error(`${program} ended with ${code}`), process.exit(1)));
async function fovea(json, texts, lists) {
    child.stdin.write(JSON.stringify([json, texts, lists]) + "\n");
    while (answers.length === 0) await new Promise((done) => (wake = done));
    return answers.shift();
}

let compared = 0, differences = 0, rejected = 0, both = 0, texts = 0, configs = 0, ended = 0, taken = 0, costly = 0;
const reasons = new Map(), kept = [];
for (let n = 0; configs < count; ++n) {
    const made = config(n), json = JSON.stringify(made), samples = Array.from({ length: perConfig }, text);
    const where = () => json.length < 700 ? json : JSON.stringify({ ...made, model: { ...made.model, vocab: "...", merges: "..." } }).slice(0, 1200);
    const ran = spawnSync(process.execPath, [fileURLToPath(import.meta.url), library, "--library"], { input: JSON.stringify([json, samples]),
        maxBuffer: 1 << 28, timeout: 60000 });
    if (ran.status !== 0) {
        ++ended;
        continue;
    }
    const of = JSON.parse(ran.stdout.toString());
    const wanted = (of?.encodings ?? []).map((one, i) => one && { ids: one[0], places: bytePlaces(samples[i], one[1]) });
    const lists = wanted.map((one) => one?.ids ?? []);
    const answer = await fovea(json, samples, lists);
    if (!of) {
        if (typeof answer !== "string") ++taken, console.log(`TAKEN, the library rejects it: ${where()}`);
        ++both;
        continue;
    }
    ++configs;
    if (typeof answer === "string") {
        ++rejected;
        const reason = answer.replace(/at its byte \d+|'.*?'/g, "...");
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        continue;
    }
    ++compared;
    const [found, decoded] = answer;
    let good = true;
    const differs = (what, sample, right, got) => {
        good = false;
        if (++differences <= 40) console.log(`DIFFERENT ${what}: ${JSON.stringify(sample)}\n  right ${JSON.stringify(right)}\n  got   ${JSON.stringify(got)}\n  ${where()}`);
    };
    samples.forEach((sample, i) => {
        ++texts;
        if (typeof found[i] === "string" && found[i].includes("too many steps")) return void ++costly;
        const got = typeof found[i] === "string" ? found[i] : found[i].filter((_, at) => at % 3 === 0);
        if (!wanted[i]) {
            if (typeof got !== "string") differs("(the library rejects the text)", sample, null, got);
            return;
        }
        if (JSON.stringify(got) !== JSON.stringify(wanted[i].ids)) return differs("IDs", sample, wanted[i].ids, got);
        const at = found[i].filter((_, k) => k % 3 !== 0);
        if (made.model.unk_token === "<unk>" && Object.keys(made.model.vocab).length === 1 && JSON.stringify(at) !== JSON.stringify(wanted[i].places.flat()))
            differs("places", sample, wanted[i].places, at);
    });
    of.texts.forEach((right, i) => {
        if (right !== null && !right.includes("\ufffd") && right !== decoded[i]) differs("text", lists[i], right, decoded[i]);
    });
    if (good && written)
        kept.push([json, samples.flatMap((sample, i) => (wanted[i] ? [[sample, wanted[i].ids, wanted[i].places.flat(), of.texts[i]?.includes("\ufffd") ? null : of.texts[i]]] : [])).slice(0, 6)]);
}
child.stdin.end();
console.log(`${configs} configurations that the library takes, ${both} that it rejects (Fovea took ${taken}), ${ended} that ended it; compared ${compared} with ${texts} texts, ` +
    `rejected ${rejected} and ${costly} texts that cost too many steps, ${differences} differences`);
for (const [reason, times] of reasons) console.log(`  ${times} x ${reason}`);
if (written) {
    // Small ones: the file is read at each run of the tests.
    let left = 1 << 18;
    const small = kept.map((one) => JSON.stringify(one) + "\n").filter((line) => line.length < 12000 && (left -= line.length) > 0);
    writeFileSync(written, small.join(""));
}
process.exit(differences ? 1 : 0);
