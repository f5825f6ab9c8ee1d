#!/usr/bin/env python3
"""Writes tests/model/tokenizers: small tokenizers and the tokens that reference libraries give for many texts.

    python3 scripts/make_tokenizers.py [--texts 150] [--out FOLDER]

NAME.json is a tokenizer.json, NAME.gguf a file with only a tokenizer. NAME.expected.json is a list of [text,
numbers, decoded, [begin, end, ...]]: bytes of the text for each token, where the reference says them (rounded to
whole characters there), else null. References: the library `tokenizers` for tokenizer.json, and for the GGUF files
of the same tables; `sentencepiece` for llama_spm.gguf. The committed files were made with tokenizers 0.23.1 and
sentencepiece 0.2.2 (Debian sid).
"""

import argparse
import base64
import io
import json
import random
import struct
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = Path(__file__).resolve().parent.parent / "tests" / "model" / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXT = ["The quick brown fox jumps over the lazy dog.", "Attention is all you need; we're reading 12345 tokens.",
        "int main() { return 0; }", "Straße, naïve café, год 1984", "the the the then there other another"] * 8
# A few normalisations in sentencepiece's form: a table of all of NFKC would take 300 KB.
RULES = [("\u00a0", " "), ("\ufb01", "fi"), ("\uff21", "A"), ("\uff22", "B"), ("\u2026", "..."), ("e\u0301", "\u00e9"), ("\u200b", "")]


# ---- tokenizers -----------------------------------------------------------------------------------------------------


def byte_level(split, normalizer=None):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = split
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                   special_tokens=["<|begin|>", "<|end|>"], show_progress=False))
    return t


def gpt2():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def llama3():
    t = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
    t.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    return t


def qwen2():
    return byte_level(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                      normalizers.NFC())


def fallback_bpe(normalizer, fuse):
    """Byte-pair encoding over characters with bytes to fall back on."""
    letters = sorted({c for s in TEXT for c in s.replace(" ", "▁")} | {"▁"})
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizer
    trained.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=130, initial_alphabet=letters, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(m) for m in model["merges"]]
    t = Tokenizer(models.BPE({p: i for i, p in enumerate(tokens)}, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=fuse))
    t.normalizer = normalizer
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def llama2():
    t = fallback_bpe(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), True)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def gemma():
    t = fallback_bpe(normalizers.Replace(" ", "▁"), True)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens([AddedToken("\n\n", special=False, normalized=False), AddedToken("  ", special=False, normalized=False)])
    return t


def word_piece(normalizer):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(cleanup=True)
    t.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=150, show_progress=False,
                                                          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def bert():
    return word_piece(normalizers.BertNormalizer())


def bert_cased():
    t = word_piece(normalizers.BertNormalizer(lowercase=False))
    t.add_tokens([AddedToken("Zebra", single_word=True, normalized=True), AddedToken("<x>", lstrip=True, rstrip=True)])
    return t


def sentence_piece(kind, **options):
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        lines = ["\t".join(" ".join(f"{ord(c):X}" for c in part) for part in rule) for rule in RULES]
        rules.write_text("\n".join(lines) + "\n")
        written = io.BytesIO()
        if options.pop("rules", False):
            options["normalization_rule_tsv"] = str(rules)
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT * 4), model_writer=written, model_type=kind,
                                                 hard_vocab_limit=False, minloglevel=2, **options)
        return written.getvalue()


def fields(message):
    """Number and value of each field of a protocol buffer."""
    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value, at
    at = 0
    while at < len(message):
        tag, at = varint(at)
        if tag & 7 == 0:
            value, at = varint(at)
        else:
            size, at = (4, at) if tag & 7 == 5 else varint(at)
            value, at = message[at:at + size], at + size
        yield tag >> 3, value


def pieces_of(model):
    for number, value in fields(model):
        if number == 1:
            piece = {1: "", 2: struct.pack("<f", 0), 3: 1} | dict(fields(value))
            yield piece[1].decode(), struct.unpack("<f", piece[2])[0], piece[3]


def unigram_with(pre_tokenizer, **more):
    model = sentence_piece("unigram", vocab_size=160, rules=True, unk_id=0, bos_id=1, eos_id=2)
    table = next(dict(fields(value))[2] for number, value in fields(model) if number == 3)
    made = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
            "pre_tokenizer": pre_tokenizer,
            "post_processor": None, "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "model": {"type": "Unigram", "unk_id": 0, "vocab": [[p, s] for p, s, _ in pieces_of(model)], "byte_fallback": False} | more}
    t = Tokenizer.from_str(json.dumps(made))
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    return t


def unigram():
    return unigram_with({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True})


def unigram_first():
    return unigram_with({"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}]})


def pieces():
    """Every other step, on words of a table."""
    t = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "quick": 2, "cafe": 3, "1": 4, "23": 5, ".": 6, "-": 7, "fi": 8, "i̇": 9},
                                   unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next"),
                                               pre_tokenizers.Digits(individual_digits=False)])
    return t


JSON = [gpt2, llama3, qwen2, llama2, gemma, bert, bert_cased, unigram, unigram_first, pieces]


# ---- GGUF -----------------------------------------------------------------------------------------------------------


def gguf_text(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_key(name, value):
    head = gguf_text("tokenizer.ggml." + name)
    if isinstance(value, bool):
        return head + struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return head + struct.pack("<II", 4, value)
    if isinstance(value, str):
        return head + struct.pack("<I", 8) + gguf_text(value)
    if isinstance(value, bytes):
        return head + struct.pack("<IIQ", 9, 0, len(value)) + value
    number, pack = (8, gguf_text) if isinstance(value[0], str) else (
        (6, lambda v: struct.pack("<f", v)) if isinstance(value[0], float) else (5, lambda v: struct.pack("<i", v)))
    return head + struct.pack("<IIQ", 9, number, len(value)) + b"".join(pack(v) for v in value)


def write_gguf(path, keys):
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(gguf_key(k, v) for k, v in keys.items()))


def table_of(t):
    made = json.loads(t.to_str())
    vocabulary = t.get_vocab(with_added_tokens=True)
    tokens = sorted(vocabulary, key=vocabulary.get)
    kinds = [1] * len(tokens)
    for added in made["added_tokens"]:
        kinds[added["id"]] = 3 if added["special"] else 4
    return made, tokens, kinds


def pair_gguf(path, t, pre):
    made, tokens, kinds = table_of(t)
    merges = [m if isinstance(m, str) else " ".join(m) for m in made["model"]["merges"]]
    write_gguf(path, {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": kinds, "merges": merges, "bos_token_id": 0,
                      "add_bos_token": pre == "llama-bpe"})


def bert_gguf(path, t):
    made, tokens, kinds = table_of(t)
    marked = [p if k == 3 else p[2:] if p.startswith("##") else "▁" + p for p, k in zip(tokens, kinds)]
    write_gguf(path, {"model": "bert", "tokens": marked, "token_type": kinds, "unknown_token_id": 1, "cls_token_id": 2,
                      "seperator_token_id": 3})


def spm_gguf(path):
    model = sentence_piece("bpe", vocab_size=420, byte_fallback=True, normalization_rule_name="identity",
                           remove_extra_whitespaces=False, unk_id=0, bos_id=1, eos_id=2)
    rows = list(pieces_of(model))
    write_gguf(path, {"model": "llama", "tokens": [p for p, _, _ in rows], "scores": [s for _, s, _ in rows],
                      "token_type": [k for _, _, k in rows], "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0,
                      "add_bos_token": True})
    return sentencepiece.SentencePieceProcessor(model_proto=model)


# ---- texts ----------------------------------------------------------------------------------------------------------


def texts(count):
    rng = random.Random(20261122)
    made = ["", " ", "a", "  two  spaces ", "\n\n\tx\r\n", "Hello, world!", "it's we'll I'D", "12 1234567 3.14", "café naïve",
            "год 東京 한국 😀👍🏽", "a\u00a0b\u2003c", "<|end|>", "x<|begin|>y <tool>z", "<s>a</s>", "\x00\x01\x7f", "ﬁ ½ ², ٣",
            "The Quick BROWN fox.", "CAFÉ E\u0301e\u0301 İ ß", "a Zebra Zebras <x> b", "[MASK] the [SEP]", "x" * 150, "the" * 60]
    letters = list("abcdefgh THE the  ,.;'!?0123456789\n\t") + list("éßñжλ東한😀\u200d\u0301")
    for _ in range(min(count, 150)):
        made.append("".join(rng.choice(letters) for _ in range(rng.randrange(1, 60))))
    blocks = [(0x20, 0x7f), (0, 0x20), (0x80, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x780), (0x900, 0xe80), (0x1100, 0x1200),
              (0x1e00, 0x2070), (0x20a0, 0x2200), (0x3000, 0x3100), (0x4e00, 0x9fff), (0xac00, 0xd7a4), (0xf900, 0xfb00), (0xff00, 0xfff0),
              (0x1f300, 0x1fb00), (0x1d400, 0x1d800), (0x20000, 0x20400), (0xe000, 0xe010)]
    words = " ".join(TEXT[:5]).split(" ")
    while len(made) < count:
        parts = []
        for _ in range(rng.randrange(1, 12)):
            what = rng.randrange(5)
            low, high = rng.choice(blocks)
            if what == 0:
                parts.append(rng.choice(words))
            elif what == 1:
                parts.append(rng.choice(" \t\n\r\u00a0\u3000") * rng.randrange(1, 5))
            elif what == 2:
                parts.append(chr(rng.randrange(low, high)))
            else:
                parts.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 6))))
        made.append("".join(parts))
    return made


def byte_places(text, offsets):
    starts = [0]
    for c in text:
        starts.append(starts[-1] + len(c.encode()))
    return [starts[n] for pair in offsets for n in pair]


def write_expected(path, rows):
    lines = ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows)
    path.write_text(f'{{"texts": [\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=210)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    made = {}
    for make in JSON:
        t = made[make.__name__] = make()
        (options.out / f"{make.__name__}.json").write_text(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")))
        rows = []
        for text in texts(options.texts):
            e = t.encode(text)
            rows.append([text, e.ids, t.decode(e.ids, skip_special_tokens=True), byte_places(text, e.offsets)])
        write_expected(options.out / f"{make.__name__}.expected.json", rows)
    pair_gguf(options.out / "gpt2.gguf", made["gpt2"], "gpt-2")
    pair_gguf(options.out / "llama3.gguf", made["llama3"], "llama-bpe")
    bert_gguf(options.out / "bert.gguf", made["bert"])
    model = spm_gguf(options.out / "llama_spm.gguf")
    rows = [[text, [1] + model.encode(text), None, None] for text in texts(options.texts) if "<" not in text and "\0" not in text]
    write_expected(options.out / "llama_spm.expected.json", rows)


main()
