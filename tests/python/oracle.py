"""One attention call in float64 as fovea.h defines it, in plain numpy, and random calls for it."""
from __future__ import annotations

import math

import numpy as np


def weights(q, k, **options):
    """float64 [B, Hq, Lq, Lkv]: with an identity in the place of the values, o is the weights."""
    keys = np.broadcast_to(np.eye(k.shape[2]), (*k.shape[:2], k.shape[2], k.shape[2]))
    return attention(q, k, keys, **options)[0]


def attention(q, k, v, *, causal=False, align='top-left', scale=None, mask=None, bias=None, window=None, softcap=0.0, sinks=None,
              alibi=None, kv_lengths=None):
    """o, lse and, for each row, the largest |logit| that is seen, which bounds what float32 can do; q [B, Hq, Lq, D]."""
    batch, heads, rows, dim = q.shape
    keys, group = k.shape[2], heads // k.shape[1]
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    logits = (1 / math.sqrt(dim) if scale is None else scale) * (q @ k.swapaxes(-1, -2))
    if softcap:
        logits = softcap * np.tanh(logits / softcap)
    seen = np.ones((batch, heads, rows, keys), bool)
    lengths = np.full(batch, keys) if kv_lengths is None else np.asarray(kv_lengths)
    j = np.arange(keys)
    for b in range(batch):
        offset = {'top-left': 0, 'bottom-right': int(lengths[b]) - rows}.get(align, align)
        p = np.arange(rows)[:, None] + offset
        if alibi is not None:
            logits[b] += alibi.astype(np.float64)[:, None, None] * (j - p)
        allowed = np.broadcast_to(j < lengths[b], (rows, keys)).copy()
        if causal:
            allowed &= j <= p
        if window is not None:
            left, right = window
            if left is not None:
                allowed &= j >= p - left
            if right is not None:
                allowed &= j <= p + right
        seen[b] &= allowed
    if bias is not None:
        logits = logits + bias.astype(np.float64)
    if mask is not None:
        seen &= np.broadcast_to(mask, seen.shape) != 0
    logits = np.where(seen, logits, -np.inf)
    if sinks is not None:
        column = np.broadcast_to(sinks.astype(np.float64)[None, :, None, None], (batch, heads, rows, 1))
        logits = np.concatenate([logits, column], -1)
    largest = logits.max(-1, keepdims=True, initial=-np.inf)
    base = np.where(np.isneginf(largest), 0, largest)
    terms = np.exp(logits - base)
    total = terms.sum(-1, keepdims=True)
    with np.errstate(divide='ignore'):
        lse = (np.log(total) + base)[..., 0]
    weights = (terms / np.where(total == 0, 1, total))[..., :keys]
    size = np.abs(np.where(np.isfinite(logits), logits, 0)).max(-1, initial=0)
    return weights @ v, lse, size


def random_call(random):
    """q, k, v and options. Every option of fovea.attention but dropout, whose mask the library draws itself."""
    batch, kv_heads = random.randint(1, 2), random.randint(1, 2)
    heads = kv_heads * random.choice((1, 1, 2, 3))
    rows, keys = random.choice((1, 2, 5, 17, 40)), random.choice((1, 3, 8, 33, 70))
    dim, dim_v = random.choice((1, 2, 8, 16, 33)), random.choice((1, 3, 8, 16))
    generator = np.random.default_rng(random.getrandbits(32))

    def array(*shape, kind=np.float32):
        return generator.standard_normal(shape).astype(kind)

    kind = random.choice((np.float32, np.float32, np.float32, np.float16))
    q, k, v = array(batch, heads, rows, dim, kind=kind), array(batch, kv_heads, keys, dim, kind=kind), array(
        batch, kv_heads, keys, dim_v, kind=kind)
    options = {}
    if random.random() < 0.5:
        options['causal'] = True
    if random.random() < 0.4:
        options['window'] = (random.choice((None, 0, 3, 20)), random.choice((None, 0, 2, 9)))
    if random.random() < 0.4 or rows != keys:
        options['align'] = random.choice(('bottom-right', 'top-left', -3, 4, 100))
    if random.random() < 0.3:
        options['scale'] = random.choice((0.25, 1.0, -0.5))
    if random.random() < 0.2:
        options['softcap'] = 5.0
    if random.random() < 0.25:
        options['alibi'] = array(heads)
    if random.random() < 0.25:
        options['sinks'] = array(heads)
    if random.random() < 0.25:
        options['kv_lengths'] = generator.integers(0, keys + 1, batch)
    extents = (random.choice((1, batch)), random.choice((1, heads)), random.choice((1, rows)), keys)
    if random.random() < 0.3:
        options['mask'] = generator.random(extents) < 0.7
    if random.random() < 0.3:
        options['bias'] = array(*extents, kind=random.choice((np.float32, np.float16)))
        if random.random() < 0.3:
            options['bias'][..., 0] = -np.inf
    return q, k, v, options
