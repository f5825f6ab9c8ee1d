#!/usr/bin/env python3
"""Writes tests/model/tokenizers/hashes.json: what the library `tokenizers` makes of 10,000 texts, for each tokenizer.json there.

    python3 scripts/make_tokenizer_hashes.py

The texts are those of tests/model/random_texts.hpp, made by the same rules here: all scripts, emoji, control characters, runs of
white space. A hash for each hundred texts: FNV-1a of 64 bits over the numbers of their tokens, 32 bits each, low byte first, and
over their count before them. The committed file was made with tokenizers 0.23.1 (Debian sid).
"""
import json
import struct
from pathlib import Path

from tokenizers import Tokenizer

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "model" / "tokenizers"
COUNT, BLOCK, MASK = 10_000, 100, 2**64 - 1
WORDS = ["The", "quick", "the", "other", "there", "tokens", "we're", "Attention", "12345", "3.14", "return", "<|end|>", "<s>", "[MASK]"]
SPACES = " \t\n\r\u00a0\u3000\u2003"
# First character and how many from there on.
BLOCKS = [(0x20, 95), (0x00, 32), (0x7F, 1), (0xA0, 96), (0x100, 128), (0x300, 0x40), (0x391, 57), (0x410, 64), (0x531, 38), (0x5D0, 27),
          (0x620, 43), (0x660, 10), (0x904, 54), (0x966, 10), (0xE01, 58), (0x10A0, 38), (0x1100, 90), (0x1E00, 96), (0x2010, 24),
          (0x20A0, 16), (0x2150, 16), (0x2190, 90), (0x2460, 60), (0x3041, 86), (0x30A1, 90), (0x4E00, 20000), (0xAC00, 11172),
          (0xFB00, 7), (0xFF01, 94), (0x1D400, 85), (0x1F300, 0x100), (0x1F600, 80), (0x20000, 0x400), (0xE000, 16)]


class Random:
    """SplitMix64 (Steele, Lea and Flood, 2014)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, count):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return (z ^ z >> 31) % count


def text_of(seed):
    rng, text = Random(seed), ""
    for _ in range(1 + rng.below(12)):
        what = rng.below(5)
        if what == 0:
            text += WORDS[rng.below(len(WORDS))]
            continue
        if what == 1:
            space = SPACES[rng.below(len(SPACES))]
            text += space * (1 + rng.below(4))
            continue
        first, count = BLOCKS[rng.below(len(BLOCKS))]
        for _ in range(1 + rng.below(1 if what == 2 else 6)):
            text += chr(first + rng.below(count))
    return text


def hashes(tokenizer):
    found = []
    for begin in range(0, COUNT, BLOCK):
        value = 0xCBF29CE484222325
        for seed in range(begin, begin + BLOCK):
            ids = tokenizer.encode(text_of(seed)).ids
            for byte in struct.pack(f"<{len(ids) + 1}I", len(ids), *ids):
                value = (value ^ byte) * 0x100000001B3 & MASK
        found.append(f"{value:016x}")
    return found


def main():
    files = sorted(p for p in FOLDER.glob("*.json") if ".expected" not in p.name and p.name != "hashes.json")
    lines = [f'"{p.stem}": {json.dumps(hashes(Tokenizer.from_file(str(p))))}' for p in files]
    (FOLDER / "hashes.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
