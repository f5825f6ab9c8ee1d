#!/usr/bin/env python3
"""Writes FILE.safetensors with queries, keys and values of 12 layers of 12 heads, with patterns that trained heads have.

    made_model.py FILE.safetensors

There is no model: the file is for pictures of the grid of layers and heads, and the same on every run.
"""

import json
import math
import random
import struct
import sys

LAYERS, HEADS, DIM, PAIRS = 12, 12, 16, 4
TEXT = ("the cat sat on the mat and the dog sat on the rug because it was warm in the sun and the cat and the dog like the "
        "sun more than the rain that fell on the mat in the garden near the house and the cat sat")
WORDS = TEXT.split()[:48]


def head(layer, meanings):
    """Local, sink or same-word heads, stronger in later layers."""
    kind, strength = random.random(), random.uniform(0.5, 4.5) * (0.4 + layer / LAYERS)
    sink, local, same = random.random() * strength * 0.9, strength if kind < 0.4 else 0.3, strength if kind > 0.7 else 0.2
    shift = random.choice([0, 1, 1, 2, 3])
    parts = []
    for is_key in (False, True):
        values = []
        for i, word in enumerate(WORDS):
            turn, size = i + (shift if is_key else 0), math.sqrt(local * 2)
            for pair in range(PAIRS):
                angle = turn * 2 * math.pi / (6 * 3**pair)
                values += [size * math.cos(angle), size * math.sin(angle)]
            values += [math.sqrt(same * 0.6) * x for x in meanings[word]]
            values += [1.0 if not is_key else sink * 4.8 if i == 0 else 0.0, random.gauss(0, 0.3)]
        parts.append(values)
    return parts + [[random.gauss(0, 1) for _ in range(len(WORDS) * DIM)]]


def main():
    random.seed(3)
    meanings = {word: [random.gauss(0, 1) for _ in range(6)] for word in sorted(set(WORDS))}
    header, data = {}, b""
    for layer in range(LAYERS):
        heads = [head(layer, meanings) for _ in range(HEADS)]
        for part, name in enumerate("qkv"):
            values = [x for one in heads for x in one[part]]
            packed = struct.pack(f"<{len(values)}f", *values)
            header[f"layers.{layer}.{name}"] = {"dtype": "F32", "shape": [1, HEADS, len(WORDS), DIM],
                                                "data_offsets": [len(data), len(data) + len(packed)]}
            data += packed
    header["__metadata__"] = {"fovea": "attention", "version": "1", "model": "made up", "layer": "all", "layout": "bhld",
                              "scale": "0.25", "causal": "top-left", "tokens": json.dumps(WORDS)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(sys.argv[1], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
