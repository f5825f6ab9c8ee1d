#!/usr/bin/env python3
"""Writes lens/tokenizer/property_tables.cpp: what Unicode says of characters, as the patterns of tokenizers name it.

    python3 scripts/make_property_tables.py FOLDER

FOLDER is a checkout of https://github.com/kkos/oniguruma, the library that the patterns are written for: its tables have the
names that it knows. The committed file was made from version 6.9.11 (Unicode 16).
"""

import re
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "lens" / "tokenizer" / "property_tables.cpp"
CATEGORIES = "Cntrl Cf Cn Co Cs Ll Lm Lo Lt Lu Mc Me Mn Digit Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()
BINARY = """Alpha Lower Upper Space Emoji Emoji_Component Emoji_Modifier Emoji_Modifier_Base Emoji_Presentation Extended_Pictographic
    Ideographic Unified_Ideograph Hex_Digit Join_Control Dash Quotation_Mark Radical Regional_Indicator Terminal_Punctuation
    Sentence_Terminal Variation_Selector Bidi_Control Noncharacter_Code_Point""".split()


def number(value):
    """Base 32, the last digit from '0' on, those before it from 'P' on."""
    text = chr(48 + value % 32)
    while value >= 32:
        value //= 32
        text = chr(80 + value % 32) + text
    return text


def lines(text, indent):
    width = 110 - len(indent) - 7
    return "\n".join(f'{indent}R"({text[i:i + width]})"' for i in range(0, len(text), width))


def main():
    source = Path(sys.argv[1]) / "src"
    data = (source / "unicode_property_data.c").read_text()
    # Several names may share one array.
    ranges = {}
    for name, body in re.findall(r"^CR_(\w+)\[\] = \{ \d+,\n(.*?)^\}", data, re.M | re.S):
        numbers = [int(n, 16) for n in re.findall(r"0x([0-9a-f]+)", body)]
        ranges[name] = list(zip(numbers[0::2], numbers[1::2]))
    same = dict(re.findall(r"^#define CR_(\w+) CR_(\w+)", data, re.M))
    for name, other in same.items():
        ranges[name] = ranges[other]
    order = re.findall(r"CR_(\w+)", re.search(r"CodeRanges\[\] = \{(.*?)\};", data, re.S)[1])
    pool = dict(re.findall(r'pool_str(\d+)\[sizeof\("(\w+)"\)\]', data))
    names = {}
    for place, ctype in re.findall(r"\{pool_offset\((\d+)\),\s*(\d+)\}", data):
        names.setdefault(same.get(order[int(ctype)], order[int(ctype)]), []).append(pool[place])
    scripts = [n for n in order[15:] if n not in CATEGORIES + BINARY and n not in same and not re.match(
        r"In_|InCB|Age_|Grapheme_|Other_|Pattern_|Changes_|IDS?_|XID_|Any$|Assigned$|Unknown$|L$|LC$|C$|M$|N$|P$|S$|Z$|Case|Prepended|"
        r"Default_|Deprecated|Diacritic|Extender|Hyphen|Logical|Math$|Modifier_|Soft_|Alphabetic|Lowercase|Uppercase|White_", n)]
    rows = []
    for name in CATEGORIES + BINARY + sorted(scripts):
        runs, at = "", 0
        for first, last in ranges[name]:
            runs += number(first - at) + number(last + 1 - first)
            at = last + 1
        known = " ".join(sorted({*names.get(name, []), name.lower().replace("_", "")}))
        rows.append(f'    {{" {known} ",\n{lines(runs, " " * 5)}}},')
    blocks = ""
    for name in order:
        if name.startswith("In_") and len(ranges[name]) == 1:
            first, last = ranges[name][0]
            blocks += f"{name[2:].replace('_', '').lower()} {number(first >> 4)}{number((last + 1 - first) >> 4)} "
            assert first % 16 == 0 and last % 16 == 15, name
    folds = (source / "unicode_fold_data.c").read_text()
    parts = dict(re.findall(r"OnigUnicodeFolds(\d)\[\] = \{(.*?)\};", folds, re.S))
    # lens/tokenizer/code_set.cpp has the properties that follow NORMAL_END, I and U+0130.
    numbers = {}
    for length, body in parts.items():
        plain = re.sub(r"/\*.*?\*/", "", body[:body.index("#define")])
        numbers[length] = [int(n, 0) for n in re.findall(r"0x[0-9a-f]+|\b\d+\b", plain)]
    pairs, several, sequences, at = [], [], [], 0
    one = numbers["1"]
    while at < len(one):
        fold, count = one[at], one[at + 1]
        pairs += [(other, fold) for other in one[at + 2:at + 2 + count]]
        at += 2 + count
    for length in (2, 3):
        all_of, at = numbers[str(length)], 0
        while at < len(all_of):
            sequences.append(all_of[at:at + length])
            count = all_of[at + length]
            several += all_of[at + length + 1:at + length + 1 + count]
            at += length + 1 + count
    # Runs of (gap, step, count, the folded one's distance).
    pairs.sort()
    text, done, at = "", 0, 0
    while at < len(pairs):
        first, to = pairs[at]
        best, step_of = 1, 1
        for step in (1, 2):
            count = 1
            while at + count < len(pairs) and pairs[at + count] == (first + step * count, to + step * count):
                count += 1
            if count > best:
                best, step_of = count, step
        distance = to - first
        text += number(first - done) + number(step_of) + number(best) + number(distance * 2 if distance >= 0 else -distance * 2 - 1)
        done = first
        at += best
    several = sorted(several)
    runs, at, i = "", 0, 0
    while i < len(several):
        n = 1
        while i + n < len(several) and several[i + n] == several[i] + n:
            n += 1
        runs += number(several[i] - at) + number(n)
        at = several[i] + n
        i += n
    starts = "".join(number(a) + number(b) for a, b in sorted({(s[0], s[1]) for s in sequences}))
    OUT.write_text(f"""// Made by scripts/make_property_tables.py: what Unicode 16 says of characters. Numbers are in base 32, a set is a list of
// gaps and lengths.
// clang-format off
#include "tokenizer/code_set.hpp"

namespace fovea::tables {{

const NamedRuns kProperties[] = {{
{chr(10).join(rows)}
    {{"", ""}}}};

// Names with first >> 4 and size >> 4.
const std::string_view kBlocks =
{lines(blocks, "    ")};

// Runs of characters that fold to another: gap from the run before, step, count, distance (zigzag).
const std::string_view kFolds =
{lines(text, "    ")};

// Characters that fold to several, and the first two of what they fold to.
const std::string_view kFoldsToSeveral =
{lines(runs, "    ")};
const std::string_view kSeveral =
{lines(starts, "    ")};

}}  // namespace fovea::tables
""")


if __name__ == "__main__":
    main()
