#!/usr/bin/env python3
"""Compares the texts of lens/model/checkpoint/named_tokens.hpp with llama.cpp's own.

    python3 tests/model/compare_named_tokens.py llama.cpp/src/llama-vocab.cpp

Prints each text that one of the two lacks. Exit 1 if there is one. Last agreed: llama.cpp at 00ad355e009e83abf98f96a6ded7193b95763681.
"""
import re
import sys
from pathlib import Path

TABLES = Path(__file__).resolve().parents[2] / "engine" / "model" / "checkpoint" / "named_tokens.hpp"
TEXT = r'"((?:[^"\\]|\\.)*)"'
# Where llama.cpp compares texts to set these variables; the keys of the engine's tables.
KEYS = {"eot": "", "eom": "", "eog": ""} | {f"fim_{part}": f"fim_{part}_token_id" for part in ("pre", "suf", "mid", "pad", "rep", "sep")}


def of_llama(source):
    found = {}
    for match in re.finditer(r"if \(false\n(.*?)\) \{\s*special_(\w+?)_ids?\b", source, re.S):
        texts = re.findall(r"t\.first == " + TEXT, match[1])
        if texts:
            found.setdefault(KEYS[match[2]], set()).update(texts)
    return found


def of_fovea(source):
    lists = {name: set(re.findall(TEXT, body)) for name, body in re.findall(r"string_view (\w+)\[\] = \{(.*?)\};", source, re.S)}
    return {key: lists[name] for key, name in re.findall(rf'\{{{TEXT}, \"\w*\", \w+, (\w+)\}}', source)}


def main():
    right, own = of_llama(Path(sys.argv[1]).read_text()), of_fovea(TABLES.read_text())
    differences = [f"{key or 'ends'}: {text}" for key in right.keys() | own.keys() for text in right.get(key, set()) ^ own.get(key, set())]
    print("\n".join(differences) or f"{sum(map(len, own.values()))} texts in {len(own)} tables agree")
    sys.exit(bool(differences))


main()
