#!/usr/bin/env python3
"""Writes tests/files/data/quantised.safetensors: blocks of ggml's types and their values.

    python3 scripts/make_quantised.py [--check] [--ggml libggml-base.so.0]

Random blocks of each type (seeded) with their values as float32, computed here with numpy from the definition of the
blocks; and of q8_0 and q4_0 rows of numbers with the blocks that they become. With --ggml the library's own
dequantisation and quantize_row_*_ref are asked for the same, and any bit that differs ends the script. With --check
nothing is written: the file must be what would be. Needs numpy. The committed file was made against libggml 0.27.0 (Debian sid).
"""

import argparse
import ctypes
import json
import struct
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    sys.exit("SKIPPED: no numpy" if "--check" in sys.argv else "needs numpy")

OUT = Path(__file__).resolve().parent.parent / "tests" / "files" / "data" / "quantised.safetensors"
F = np.float32


def halves(blocks, at):
    return blocks[:, at : at + 2].copy().view(np.float16).astype(F)


def nibbles(b):  # numbers j and j + 16 of byte j
    return np.concatenate([b & 15, b >> 4], axis=1)


def fifth(b):  # bit j of a 32-bit word
    word = b.copy().view(np.uint32)
    return ((word >> np.arange(32, dtype=np.uint32)) & 1).astype(np.uint8) << 4


def q4_0(b):
    return (nibbles(b[:, 2:18]).astype(np.int32) - 8).astype(F) * halves(b, 0)


def q4_1(b):
    return nibbles(b[:, 4:20]).astype(F) * halves(b, 0) + halves(b, 2)


def q5_0(b):
    return ((nibbles(b[:, 6:22]) | fifth(b[:, 2:6])).astype(np.int32) - 16).astype(F) * halves(b, 0)


def q5_1(b):
    return (nibbles(b[:, 8:24]) | fifth(b[:, 4:8])).astype(F) * halves(b, 0) + halves(b, 2)


def q8_0(b):
    return b[:, 2:34].copy().view(np.int8).astype(F) * halves(b, 0)


def group_scales(s):  # 12 bytes -> 8 scales and 8 least values of 6 bits
    low, mid, high = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scale = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], axis=1)
    least = np.concatenate([mid & 63, (high >> 4) | (mid >> 6) << 4], axis=1)
    return scale.astype(F), least.astype(F)


def q45_k(b, with_fifth):
    scale, least = group_scales(b[:, 4:16])
    q = b[:, -128:].reshape(-1, 4, 1, 32)
    value = np.concatenate([q & 15, q >> 4], axis=2).reshape(-1, 8, 32)
    if with_fifth:
        bits = b[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)
        value = value + ((bits & 1) << 4)
    product = (halves(b, 0) * scale)[:, :, None] * value.astype(F)
    return (product - (halves(b, 2) * least)[:, :, None]).reshape(len(b), 256)


def q6_k(b):
    low = b[:, :128].reshape(-1, 2, 2, 32)
    low = np.concatenate([low & 15, low >> 4], axis=2)  # [n, half, quarter, 32]
    high = b[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    value = (low | (high & 3) << 4).astype(np.int32) - 32
    scales = b[:, 192:208].copy().view(np.int8).astype(F) * halves(b, 208)
    return (np.repeat(scales, 16, axis=1) * value.reshape(len(b), 256).astype(F)).reshape(len(b), 256)


# name: elements of a block, bytes, offsets of its halves, values, ggml's number
TYPES = {
    "q4_0": (32, 18, [0], q4_0, 2),
    "q4_1": (32, 20, [0, 2], q4_1, 3),
    "q5_0": (32, 22, [0], q5_0, 6),
    "q5_1": (32, 24, [0, 2], q5_1, 7),
    "q8_0": (32, 34, [0], q8_0, 8),
    "q4_k": (256, 144, [0, 2], lambda b: q45_k(b, False), 12),
    "q5_k": (256, 176, [0, 2], lambda b: q45_k(b, True), 13),
    "q6_k": (256, 210, [208], q6_k, 14),
}


def ask_ggml(path, number, blocks, count):
    class Traits(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char_p),
            ("blck_size", ctypes.c_int64),
            ("blck_size_interleave", ctypes.c_int64),
            ("type_size", ctypes.c_size_t),
            ("is_quantized", ctypes.c_bool),
            ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
        ]

    library = ctypes.CDLL(path)
    library.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
    out = np.zeros(count, F)
    traits = library.ggml_get_type_traits(number).contents
    assert traits.type_size * len(blocks) == blocks.size, traits.name
    traits.to_float(blocks.ctypes.data, out.ctypes.data, count)
    return out


def half_of(scale):
    return scale.astype(np.float16).reshape(-1, 1).view(np.uint8)


def to_q8_0(x):
    scale = np.abs(x).max(axis=1) / F(127)
    inverse = np.divide(F(1), scale, out=np.zeros_like(scale), where=scale != 0)
    y = x * inverse[:, None]
    return np.concatenate([half_of(scale), np.trunc(y + np.copysign(F(0.5), y)).astype(np.int8).view(np.uint8)], axis=1)


def to_q4_0(x):
    scale = x[np.arange(len(x)), np.abs(x).argmax(axis=1)] / F(-8)
    inverse = np.divide(F(1), scale, out=np.zeros_like(scale), where=scale != 0)
    y = np.minimum((x * inverse[:, None] + F(8.5)).astype(np.int8), 15).astype(np.uint8)
    return np.concatenate([half_of(scale), y[:, :16] | y[:, 16:] << 4], axis=1)


def ask_ggml_to_quantise(path, name, x, size):
    out = np.zeros((len(x), size), np.uint8)
    function = getattr(ctypes.CDLL(path), f"quantize_row_{name}_ref")
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function(x.ctypes.data, out.ctypes.data, x.size)
    return out


# 32 numbers to a row: of several sizes, one largest number twice with both signs, whole and half steps, zeros.
def rows_to_quantise(rng):
    x = (rng.standard_normal((24, 32)) * 10.0 ** rng.integers(-6, 6, (24, 1))).astype(F)
    x[3, [4, 20]] = [9, -9]
    x[5, [20, 4]] = [9, -9]
    x[7] = np.arange(-16, 16) / 2
    x[8] = np.arange(32) * 4.0 + 3.0
    x[9], x[10] = 0, -1
    x[11] *= 1e-30
    x[12, 7:] = 0
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ggml")
    options = parser.parse_args()
    rng = np.random.default_rng(20261122)
    header, data = {}, b""

    def add(name, dtype, shape, raw):
        nonlocal data
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw

    for name, (numbers, size, at, values, ggml) in TYPES.items():
        blocks = rng.integers(0, 256, (2 if numbers == 256 else 6, size), dtype=np.uint8)
        for place in at:  # scales of usual size, subnormal halves among them
            half = (rng.standard_normal(len(blocks)) * [0.01, 3e-6, 1, 0.1, 1e-5, 20][: len(blocks)]).astype(np.float16)
            blocks[:, place : place + 2] = half.view(np.uint8).reshape(-1, 2)
        made = np.ascontiguousarray(values(blocks), F).reshape(-1)
        if options.ggml:
            theirs = ask_ggml(options.ggml, ggml, np.ascontiguousarray(blocks), made.size)
            if not np.array_equal(made.view(np.uint32), theirs.view(np.uint32)):
                sys.exit(f"{name}: not ggml's bits: {np.flatnonzero(made != theirs)[:5]}")
            print(f"{name}: {made.size} numbers, ggml's bits")
        add(name + ".values", "F32", made.shape, made.tobytes())
        add(name + ".blocks", "U8", blocks.shape, blocks.tobytes())
    x = rows_to_quantise(rng)
    add("quantise.rows", "F32", x.shape, x.tobytes())
    for name, quantise, size in (("q8_0", to_q8_0, 34), ("q4_0", to_q4_0, 18)):
        blocks = quantise(x)
        if options.ggml:
            theirs = ask_ggml_to_quantise(options.ggml, name, x, size)
            if not np.array_equal(blocks, theirs):
                sys.exit(f"{name}: not ggml's blocks: rows {np.flatnonzero((blocks != theirs).any(axis=1))}")
            print(f"{name}: {len(x)} rows quantised, ggml's bits")
        add(f"quantise.{name}", "U8", blocks.shape, blocks.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    made = struct.pack("<Q", len(text)) + text + data
    if options.check:
        sys.exit(None if OUT.read_bytes() == made else f"{OUT.name} is not what this script makes")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_bytes(made)


main()
