"""The stages of a session in float64, written only from docs/reference/sessions.md and PyTorch's definitions:
nothing of the library is used. What it cannot say (`None`): stages other than those of the attention itself,
sessions of values that are out of range."""
import base64
import math
import struct
import unicodedata

TEXT = "Your journey starts with one step"
KNOWN = {
    "your": (0.43, 0.15, 0.89),
    "journey": (0.55, 0.87, 0.66),
    "starts": (0.57, 0.85, 0.64),
    "with": (0.22, 0.58, 0.33),
    "one": (0.77, 0.25, 0.10),
    "step": (0.05, 0.80, 0.55),
}
LEVELS = {
    1: {"init": "none", "scale": "none"},
    2: {"init": "rand"},
    3: {"seed": 789, "mask": "causal"},
    4: {"seed": 789, "mask": "causal", "p": 0.5},
    5: {"mask": "causal", "heads": 2, "kv": 2},
    6: {"mask": "causal", "heads": 2, "kv": 2},
    7: {"mask": "causal", "heads": 12, "kv": 12, "len": 64},
}
# Models with trained weights: tests/train compares them with a trainer in float64.
TRAINED = ("induction", "recall", "reverse", "sort", "text")
BASE = {
    "level": 2, "text": TEXT, "len": 0, "init": "linear", "seed": 123, "scale": "auto", "temp": 1, "mask": "none", "win": 2,
    "bits": "", "side": "", "route": "before", "alibi": False, "cap": 0, "p": 0, "dseed": 123, "rng": "native", "heads": 1,
    "kv": 1, "tokenizer": "words", "rope": False, "right": 0, "hidden": [], "precision": "f32",
    "edits": "",
}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


class Twister:
    """MT19937 (Matsumoto and Nishimura, 1998) and what PyTorch's CPU generator makes of its words."""

    def __init__(self, seed):
        self.state, self.at = [seed & 0xFFFFFFFF], 624
        for i in range(1, 624):
            last = self.state[-1]
            self.state.append((1812433253 * (last ^ last >> 30) + i) & 0xFFFFFFFF)

    def word(self):
        if self.at == 624:
            s = self.state
            for i in range(624):
                y = (s[i] & 0x80000000) | (s[(i + 1) % 624] & 0x7FFFFFFF)
                s[i] = s[(i + 397) % 624] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
            self.at = 0
        y = self.state[self.at]
        self.at += 1
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        return y ^ y >> 18

    def rand(self, count):
        return [(self.word() & 0xFFFFFF) / 16777216 for _ in range(count)]

    def linear(self, count, fan_in):
        bound = 1 / math.sqrt(fan_in)
        return [f32(f32(u * f32(2 * bound)) - f32(bound)) for u in self.rand(count)]

    def double(self):
        high = self.word()
        return ((high << 32 | self.word()) & (1 << 53) - 1) / (1 << 53)

    def keep(self, count, p):
        return [self.double() < 1 - p for _ in range(count)]

    def keep_mkl(self, count, p):
        x, kept = self.word() % 2147483647 or 1, []
        for _ in range(count):
            kept.append(f32(x / 2147483647) < f32(1 - p))
            x = 1132489760 * x % 2147483647
        return kept


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def is_mark(c):
    return unicodedata.category(c)[0] == "M" or c in "\u200c\u200d" or 0x1F3FB <= ord(c) <= 0x1F3FF or 0xE0020 <= ord(c) < 0xE0080


def is_ideograph(c):
    name = unicodedata.name(c, "")
    return name.startswith(("CJK UNIFIED", "CJK COMPAT", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC ITERATION"))


def is_letter(c):
    return c == "_" or (unicodedata.category(c)[0] in "LN" and not is_ideograph(c))


def words(text):
    """One token after the other, by Unicode's own categories."""
    out, i = [], 0
    peek = lambda n: text[n] if n < len(text) else " "
    while i < len(text):
        c, start = text[i], i
        if c.isspace():
            i += 1
            continue
        cap = i + 1 + (peek(i + 1) == "\ufe0f")
        if c in "0123456789#*" and peek(cap) == "\u20e3":
            i = cap + 1
        elif is_letter(c):
            i += 1
            while is_letter(peek(i)) or is_mark(peek(i)) or (peek(i) in "'-\u2019\u2010" and is_letter(peek(i + 1))):
                i += 1
        else:
            flag = 0x1F1E6 <= ord(c) <= 0x1F1FF and 0x1F1E6 <= ord(peek(i + 1)) <= 0x1F1FF
            i += 2 if flag else 1
            while is_mark(peek(i)):
                i += 2 if peek(i) == "\u200d" and not peek(i + 1).isspace() else 1
        out.append(text[start:i])
    return out


def tokens_of(s):
    text = s["text"]
    if s["tokenizer"] == "words":
        all_tokens = words(text)
    elif s["tokenizer"] == "characters":
        all_tokens = ["\u2423" if c == " " else c for c in text]
    else:
        all_tokens = ["\u2423" if b == 32 else chr(b) if 32 < b < 127 else f"{b:02x}" for b in text.encode()]
    if s["level"] == 7 and s["len"]:
        all_tokens = [all_tokens[i % len(all_tokens)] for i in range(s["len"])]
    return all_tokens[: 1024 if s["level"] == 7 else 128]


def vector(token):
    word = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in token)
    if word in KNOWN:
        return [f32(x) for x in KNOWN[word]]
    value = 2166136261
    for byte in word.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return [f32(math.floor(u * 100 + 0.5) / 100) for u in Twister(value).rand(3)]


def edited(s, stage, matrix, transposed=False):
    """The matrix with the reader's own numbers, which are written for [out, in] where nn.Linear drew it."""
    for edit in s["edits"].split(",") if len(s["edits"].split(" ")) > 3 else []:
        name, row, column, value = edit.split(" ")
        i, j = (int(column), int(row)) if transposed else (int(row), int(column))
        if name == stage and i < len(matrix) and j < len(matrix[0]):
            matrix[i][j] = f32(float(value))
    return matrix


def input_vectors(s):
    return edited(s, "inputs", [vector(token) for token in tokens_of(s)])


def product(x, w):  # [n, k] x [k, m]
    return [[math.fsum(a * b[j] for a, b in zip(row, w)) for j in range(len(w[0]))] for row in x]


def heads_of(x, w, width):  # columns of x w, a matrix for each head
    y = product(x, w)
    return [[row[h : h + width] for row in y] for h in range(0, len(y[0]), width)]


def drawn(s, width):
    """The three matrices as [in, out]."""
    g, d = Twister(s["seed"]), 3

    def part(columns):
        if s["init"] == "rand":
            flat = g.rand(d * columns)
            return [flat[i * columns : (i + 1) * columns] for i in range(d)]
        flat = g.linear(d * columns, d)
        return [[flat[o * d + i] for o in range(columns)] for i in range(d)]

    def beside(parts):
        return [sum((p[i] for p in parts), []) for i in range(d)]

    if s["level"] != 5:
        return [part(s["heads"] * width), part(s["kv"] * width), part(s["kv"] * width)]
    q, k, v = [], [], []
    for h in range(s["heads"]):
        q.append(part(width))
        if h < s["kv"]:
            k.append(part(width))
            v.append(part(width))
    return [beside(q), beside(k), beside(v)]


def rotated(rows):
    half = len(rows[0]) // 2
    out = []
    for i, row in enumerate(rows):
        turned = list(row)
        for n in range(half):
            angle = i * 10000 ** (-2 * n / (2 * half))
            c, t = f32(math.cos(angle)), f32(math.sin(angle))
            turned[n], turned[n + half] = c * row[n] - t * row[n + half], t * row[n] + c * row[n + half]
        out.append(turned)
    return out


def embedded(tensor):
    raw = base64.b64decode(tensor["f32"])
    flat = struct.unpack(f"<{len(raw) // 4}f", raw)
    _, rows, columns = tensor["shape"]
    size = rows * columns
    return [[list(flat[h + r * columns : h + (r + 1) * columns]) for r in range(rows)] for h in range(0, len(flat), size)]


def unpack(bits):
    raw = base64.urlsafe_b64decode(bits + "=" * (-len(bits) % 4))
    return [raw[i >> 3] >> (i & 7) & 1 for i in range(8 * len(raw))]


def shows(s, mask, i, j, n, keys):
    if mask == "painted":
        bits = unpack(s["bits"])
        rows, columns = (int(x) for x in s["side"].split("x")) if s["side"] else (n, keys)
        if i < rows and j < columns:
            at = i * columns + j
            return at >= len(bits) or bool(bits[at])
        return shows(s, s["under"], i, j, n, keys)
    return {
        "none": True,
        "causal": j <= i,
        "window": (s["win"] < 0 or j >= i - s["win"]) and (s["right"] < 0 or j <= i + s["right"]),
        "padding": j < keys - max(1, keys // 3),
        "prefix": j <= i or j < -(-keys // 3),
        "strided": j <= i and (i - j) % 2 == 0,
        "block": i // 2 == j // 2,
    }[mask]


def settled(doc):
    given = {**doc["state"], **doc.get("desktop", {})}
    level = given.get("level", 2)
    s = {**BASE, **LEVELS[level], **given}
    s.setdefault("under", LEVELS[level].get("mask", "none"))
    if s["init"] == "none" or level < 5:
        s["heads"] = 1
    if s["heads"] % s["kv"]:
        s["kv"] = s["heads"]
    if "window_left" in s:
        s["win"], s["right"] = s["window_left"], s["window_right"]
    s.setdefault("causal", s["mask"] in ("causal", "window"))
    return s


def is_in_range(doc):
    s = doc["state"]
    numbers = all(isinstance(s.get(key, 1), (int, float)) for key in ("level", "seed", "temp", "cap", "p", "heads", "kv"))
    return numbers and s.get("level", 2) in LEVELS and 0 <= s.get("seed", 0) and s.get("p", 0) <= 0.95


def queries_and_keys(doc, s):
    """A matrix for each head, of values too."""
    if "tensors" in doc:
        t = doc["tensors"]
        return [embedded(t[name]) if name in t else None for name in "qkv"]
    x = input_vectors(s)
    if s["init"] == "none":
        return [[x], [x], [x]]
    width = 2
    if s["level"] == 6:
        width = 2 // s["heads"] if 2 % s["heads"] == 0 else 1
    stages = ("w_query", "w_key", "w_value")
    weights = [edited(s, stage, w, s["init"] != "rand") for stage, w in zip(stages, drawn(s, width))]
    all_heads = [heads_of(x, w, width) for w in weights]
    if s["rope"] and width % 2 == 0:
        all_heads[:2] = [[rotated(head) for head in heads] for heads in all_heads[:2]]
    if s["precision"] != "f32":
        all_heads = [[[[f16(f32(v)) for v in row] for row in head] for head in heads] for heads in all_heads]
    return all_heads


def softmax(row):
    top = max(row)
    if math.isnan(math.fsum(row)) and not any(math.isinf(v) for v in row):
        return [math.nan] * len(row)
    if top == -math.inf:
        return [0.0] * len(row)
    exps = [math.exp(v - top) for v in row]
    return [e / math.fsum(exps) for e in exps]


def kept(s, heads, n, keys):
    count = heads * n * keys
    if s["rng"] == "counter":
        limit = int(f32(s["p"]) * 2**32)
        seed = (s["dseed"] & 0xFFFFFFFF, s["dseed"] >> 32)
        return [philox((j // 4, i, h, 0), seed)[j % 4] >= limit for h in range(heads) for i in range(n) for j in range(keys)]
    g = Twister(s["dseed"])
    return g.keep(count, s["p"]) if s["rng"] == "native" else g.keep_mkl(count, s["p"])


def stage(doc, name, head):
    if name not in ("weights", "dropped", "scores", "scaled", "context", "inputs") or not is_in_range(doc):
        return None
    if doc["state"].get("task") in TRAINED:
        return None
    s = settled(doc)
    if s["level"] == 7 or "tensors" in doc and name == "context":
        return None
    if name == "inputs":
        return input_vectors(s)
    q, k, v = queries_and_keys(doc, s)
    heads, n, keys = len(q), len(q[0]), len(k[0])
    if any(math.isnan(x) or math.isinf(x) for m in q + k for row in m for x in row):
        return None

    def weights_of(h):
        kv = h // (heads // len(k))
        raw = [[math.fsum(a * b for a, b in zip(x, y)) for y in k[kv]] for x in q[h]]
        if name == "scores":
            return raw
        divisor = math.sqrt(len(q[0][0])) if s["scale"] == "auto" else 1 if s["scale"] == "none" else float(s["scale"])
        scaled = [[x / (divisor * s["temp"]) for x in row] for row in raw]
        if name == "scaled":
            return scaled
        if s["cap"]:
            scaled = [[s["cap"] * math.tanh(x / s["cap"]) for x in row] for row in scaled]
        if s["alibi"]:
            slope = 2.0 ** (-8 * (h + 1) / heads)
            scaled = [[x + slope * (j - i) for j, x in enumerate(row)] for i, row in enumerate(scaled)]
        seen = [
            [
                (not s["causal"] or j <= i) and j not in s["hidden"] and shows(s, s["mask"], i, j, n, keys)
                for j in range(keys)
            ]
            for i in range(n)
        ]
        # Weights of hidden keys set to 0 and rows divided by their sums: the same numbers by the other route.
        return [softmax([x if on else -math.inf for x, on in zip(*both)]) for both in zip(scaled, seen)]

    def dropped(h, rows):
        if not s["p"]:
            return rows
        keep = kept(s, heads, n, keys)
        return [[x / f32(1 - s["p"]) if keep[(h * n + i) * keys + j] else 0.0 for j, x in enumerate(row)] for i, row in enumerate(rows)]

    if name == "context":
        parts = [product(dropped(h, weights_of(h)), v[h // (heads // len(v))]) for h in range(heads)]
        return [sum((part[i] for part in parts), []) for i in range(n)]
    rows = weights_of(head)
    return dropped(head, rows) if name == "dropped" else rows
