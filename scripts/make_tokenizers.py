#!/usr/bin/env python3
"""Writes tests/model/tokenizers: small tokenizers and the numbers that the library `tokenizers` gives for many texts.

    python3 scripts/make_tokenizers.py

NAME.json is a tokenizer.json, NAME.expected.json a list of [text, numbers, decoded]. The committed files were made with
tokenizers 0.23.1 (Debian sid).
"""

import json
import random
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = Path(__file__).resolve().parent.parent / "tests" / "model" / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXT = ["The quick brown fox jumps over the lazy dog.", "Attention is all you need; we're reading 12345 tokens.",
        "int main() { return 0; }", "Straße, naïve café, год 1984", "the the the then there other another"] * 8


def byte_level(split):
    t = Tokenizer(models.BPE())
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


def llama2():
    letters = sorted({c for s in TEXT for c in s.replace(" ", "▁")} | {"▁"})
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=130, initial_alphabet=letters, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(m) for m in model["merges"]]
    t = Tokenizer(models.BPE({p: i for i, p in enumerate(tokens)}, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = trained.normalizer
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def texts():
    rng = random.Random(20261122)
    made = ["", " ", "a", "  two  spaces ", "\n\n\tx\r\n", "Hello, world!", "it's we'll I'D", "12 1234567 3.14", "café naïve",
            "год 東京 한국 😀👍🏽", "a\u00a0b\u2003c", "<|end|>", "x<|begin|>y <tool>z", "<s>a</s>", "\x00\x01\x7f", "ﬁ ½ ², ٣"]
    letters = list("abcdefgh THE the  ,.;'!?0123456789\n\t") + list("éßñжλ東한😀\u200d\u0301")
    for _ in range(150):
        made.append("".join(rng.choice(letters) for _ in range(rng.randrange(1, 60))))
    return made


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for make in (gpt2, llama3, llama2):
        t = make()
        (OUT / f"{make.__name__}.json").write_text(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")))
        rows = []
        for text in texts():
            ids = t.encode(text).ids
            rows.append([text, ids, t.decode(ids, skip_special_tokens=True)])
        lines = ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows)
        (OUT / f"{make.__name__}.expected.json").write_text(f'{{"texts": [\n{lines}\n]}}\n')


main()
