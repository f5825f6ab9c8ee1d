#!/usr/bin/env python3
"""Writes random_hashes.hpp: hashes of 100,000 values of each rule of TorchGenerator, for the test random_test.cpp.

A second implementation of the rules, on Python's own Mersenne Twister and in float64 with explicit roundings; it
shares no code with the engine. Run from anywhere: python3 random_hashes.py > random_hashes.hpp
"""
import math
import random
import struct

COUNT = 100_000
SEEDS = (0, 123, 789, 2**31 - 1, 2**64 - 5)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Words:
    def __init__(self, seed):
        mt = [seed & 0xFFFFFFFF]
        for i in range(1, 624):
            mt.append((1812433253 * (mt[-1] ^ (mt[-1] >> 30)) + i) & 0xFFFFFFFF)
        self.twister = random.Random()
        self.twister.setstate((3, tuple(mt) + (624,), None))
        self.spare = None

    def word(self):
        return self.twister.getrandbits(32)

    def u32(self):
        return (self.word() % 2**24) / 2**24

    def u64(self):
        high = self.word()
        return ((high * 2**32 + self.word()) % 2**53) / 2**53


def uniform(words, count, low, high):
    low, high = f32(low), f32(high)
    width = f32(high - low)
    return [f32(f32(words.u32() * width) + low) for _ in range(count)]


def normals(words, count):
    if count < 16:
        out = []
        for _ in range(count):
            if words.spare is None:
                u1, u2 = words.u64(), words.u64()
                r = math.sqrt(-2 * math.log1p(-u2))
                out.append(f32(r * math.cos(2 * math.pi * u1)))
                words.spare = r * math.sin(2 * math.pi * u1)
            else:
                out.append(f32(words.spare))
                words.spare = None
        return out
    x = [words.u32() for _ in range(count)]
    starts = list(range(0, count - 15, 16))
    for start in starts + ([count - 16] if count % 16 else []):
        if start % 16:
            x[start:] = [words.u32() for _ in range(16)]
        for j in range(start, start + 8):
            r = f32(math.sqrt(f32(-2 * f32(math.log(f32(1 - x[j]))))))
            theta = f32(2 * math.pi * x[j + 8])
            x[j], x[j + 8] = f32(r * f32(math.cos(theta))), f32(r * f32(math.sin(theta)))
    return x


def keep_native(words, count, p):
    return [int(words.u64() < 1 - p) for _ in range(count)]


def keep_mkl(words, count, p):
    m = 2**31 - 1
    x = words.word() % m or 1
    out = []
    for _ in range(count):
        out.append(int(f32(x / m) < f32(1 - p)))
        x = 1132489760 * x % m
    return out


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return h


def of_floats(values):
    return fnv1a(struct.pack("<%df" % len(values), *values))


def few_normals(words):
    out = []
    for n in range(COUNT // 7):
        out += normals(words, 1 + n % 15)
    return out[:COUNT]


RULES = {
    "words": lambda w: fnv1a(struct.pack("<%dI" % COUNT, *[w.word() for _ in range(COUNT)])),
    "rand": lambda w: of_floats([w.u32() for _ in range(COUNT)]),
    "uniform": lambda w: of_floats(uniform(w, COUNT, -0.3, 1.7)),
    "linear_3": lambda w: of_floats(uniform(w, COUNT, -1 / math.sqrt(3), 1 / math.sqrt(3))),
    "linear_768": lambda w: of_floats(uniform(w, COUNT, -1 / math.sqrt(768), 1 / math.sqrt(768))),
    "randn_in_blocks": lambda w: of_floats(normals(w, COUNT)),
    "randn_with_rest": lambda w: of_floats(normals(w, COUNT - 7) + normals(w, 7)),
    "randn_in_pairs": lambda w: of_floats(few_normals(w)),
    "native_0.2": lambda w: fnv1a(bytes(keep_native(w, COUNT, 0.2))),
    "native_0.5": lambda w: fnv1a(bytes(keep_native(w, COUNT, 0.5))),
    "mkl_0.1": lambda w: fnv1a(bytes(keep_mkl(w, COUNT, 0.1))),
    "mkl_0.5": lambda w: fnv1a(bytes(keep_mkl(w, COUNT, 0.5))),
}


def main():
    print("// Written by tests/model/random_hashes.py; do not edit.")
    print("#pragma once\n\n#include <cstdint>\n")
    print("namespace fovea::test {\n")
    print("struct RandomHash {\n    const char* rule;\n    std::uint64_t seed;\n    std::uint64_t fnv1a;\n};\n")
    print("inline constexpr int kRandomHashCount = %d;" % COUNT)
    print("inline constexpr RandomHash kRandomHashes[] = {")
    for rule, make in RULES.items():
        for seed in SEEDS:
            print('    {"%s", %dU, 0x%016xU},' % (rule, seed, make(Words(seed))))
    print("};\n\n}  // namespace fovea::test")


if __name__ == "__main__":
    main()
