#!/usr/bin/env python3
"""fovea model --cache-cost next to a float64 forward pass of this file, with its own rounding to every type.

The model is a random Llama of two layers with grouped heads of 32, once as drawn and once with an outlier channel. There
two rows of the key's projection are times 12, and the query's are divided by 12: every score stays as it is.
"""
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import numpy as np

FOVEA = os.environ['FOVEA_COMMAND']
LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN, VOCABULARY = 2, 64, 4, 2, 32, 96, 40
TYPES = ['f16', 'bf16', 'q8_0', 'q8_0 rotated', 'f8_e4m3', 'f8_e5m2', 'q4_0', 'q4_0 rotated']


def hadamard(n):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / math.sqrt(n)


def to_float8(x, fraction, bias, largest):
    size = np.minimum(np.abs(x), largest)
    exponent = np.maximum(np.floor(np.log2(np.maximum(size, 1e-30))), 1 - bias)
    step = 2.0 ** (exponent - fraction)
    return np.sign(x) * np.minimum(np.round(size / step) * step, largest)


def to_blocks(x, bits):
    """ggml's q8_0 and q4_0, in float32 as they are stored."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    most = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    scale = (np.abs(most) / np.float32(127) if bits == 8 else most / np.float32(-8)).astype(np.float32)
    with np.errstate(divide='ignore'):
        inverse = np.where(scale == 0, 0, np.float32(1) / scale).astype(np.float32)
    if bits == 8:
        scaled = blocks * inverse
        number = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    else:
        number = np.minimum(np.trunc(blocks * inverse + np.float32(8.5)), 15) - 8
    return (number * scale.astype(np.float16).astype(np.float64)).reshape(x.shape)


def stored(x, name):
    """[..., HEAD] as a cache of the type gives it back."""
    x = x.astype(np.float32).astype(np.float64)
    if name.endswith(' rotated'):
        return to_blocks(x @ hadamard(HEAD), 8 if name.startswith('q8') else 4) @ hadamard(HEAD)
    if name == 'f16':
        return x.astype(np.float16).astype(np.float64)
    if name == 'bf16':
        bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if name == 'f8_e4m3':
        return to_float8(x, 3, 7, 448)
    if name == 'f8_e5m2':
        return to_float8(x, 2, 15, 57344)
    return to_blocks(x, 8 if name == 'q8_0' else 4)


def write_model(folder, rng, outlier):
    linear = lambda n_out, n_in: (rng.normal(size=(n_out, n_in)) / math.sqrt(n_in)).astype(np.float32)
    w = {'model.embed_tokens.weight': rng.normal(size=(VOCABULARY, WIDTH)).astype(np.float32),
         'model.norm.weight': np.ones(WIDTH, np.float32), 'lm_head.weight': linear(VOCABULARY, WIDTH) * 3}
    for n in range(LAYERS):
        p = f'model.layers.{n}.'
        w |= {p + 'self_attn.q_proj.weight': linear(HEADS * HEAD, WIDTH) * 2, p + 'self_attn.k_proj.weight': linear(KV_HEADS * HEAD, WIDTH),
              p + 'self_attn.v_proj.weight': linear(KV_HEADS * HEAD, WIDTH), p + 'self_attn.o_proj.weight': linear(WIDTH, HEADS * HEAD),
              p + 'mlp.gate_proj.weight': linear(HIDDEN, WIDTH), p + 'mlp.up_proj.weight': linear(HIDDEN, WIDTH),
              p + 'mlp.down_proj.weight': linear(WIDTH, HIDDEN), p + 'input_layernorm.weight': np.ones(WIDTH, np.float32),
              p + 'post_attention_layernorm.weight': np.ones(WIDTH, np.float32)}
        if outlier:  # a pair of RoPE, which turns it into itself
            for channel in 5, 5 + HEAD // 2:
                w[p + 'self_attn.k_proj.weight'].reshape(KV_HEADS, HEAD, WIDTH)[:, channel] *= 12
                w[p + 'self_attn.q_proj.weight'].reshape(HEADS, HEAD, WIDTH)[:, channel] /= 12
    header, data = {}, b''
    for name, value in w.items():
        header[name] = {'dtype': 'F32', 'shape': list(value.shape), 'data_offsets': [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / 'model.safetensors').write_bytes(struct.pack('<Q', len(text)) + text + data)
    (folder / 'config.json').write_text(json.dumps({
        'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': WIDTH, 'intermediate_size': HIDDEN,
        'num_hidden_layers': LAYERS, 'num_attention_heads': HEADS, 'num_key_value_heads': KV_HEADS, 'head_dim': HEAD,
        'vocab_size': VOCABULARY, 'max_position_embeddings': 64, 'rms_norm_eps': 1e-6, 'rope_theta': 10000.0, 'hidden_act': 'silu',
        'tie_word_embeddings': False, 'attention_bias': False, 'mlp_bias': False}))
    return {name: value.astype(np.float64) for name, value in w.items()}


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def divergence(p, q):
    """Mean over all rows but those of the first axes."""
    return (p * (np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300)))).sum(-1)


def forward(w, ids, types=None):
    """Probabilities of the next tokens; and of each layer (q, k, v), before anything is stored. `types`: [layers][kv_heads]."""
    n = len(ids)
    norm = lambda x, weight: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight
    x, seen = w['model.embed_tokens.weight'][ids], []
    half = HEAD // 2
    angle = np.arange(n)[:, None] / 10000.0 ** (np.arange(half) / half)
    turn = lambda a: np.concatenate([a[..., :half] * np.cos(angle) - a[..., half:] * np.sin(angle),
                                     a[..., half:] * np.cos(angle) + a[..., :half] * np.sin(angle)], -1)
    for layer in range(LAYERS):
        p = f'model.layers.{layer}.'
        z = norm(x, w[p + 'input_layernorm.weight'])
        split = lambda name, heads: (z @ w[p + f'self_attn.{name}_proj.weight'].T).reshape(n, heads, HEAD).swapaxes(0, 1)
        q, k, v = turn(split('q', HEADS)), turn(split('k', KV_HEADS)), split('v', KV_HEADS)
        seen.append((q, k, v))
        if types:
            k, v = (np.stack([stored(a[h], types[layer][h]) for h in range(KV_HEADS)]) for a in (k, v))
        x = x + attend(q, k, v)[1].swapaxes(0, 1).reshape(n, -1) @ w[p + 'self_attn.o_proj.weight'].T
        z = norm(x, w[p + 'post_attention_layernorm.weight'])
        gate = z @ w[p + 'mlp.gate_proj.weight'].T
        x = x + (gate / (1 + np.exp(-gate)) * (z @ w[p + 'mlp.up_proj.weight'].T)) @ w[p + 'mlp.down_proj.weight'].T
    return softmax(norm(x, w['model.norm.weight']) @ w['lm_head.weight'].T), seen


def attend(q, k, v):
    k, v = np.repeat(k, HEADS // KV_HEADS, 0), np.repeat(v, HEADS // KV_HEADS, 0)
    score = q @ k.swapaxes(1, 2) / math.sqrt(HEAD)
    score[:, np.triu(np.ones(score.shape[1:], bool), 1)] = -np.inf
    weight = softmax(score)
    return weight, weight @ v


def costs_of(w, texts):
    """By type: the divergence and the change of each head, and the divergence of the next token's probabilities."""
    rows = sum(map(len, texts))
    exact = [forward(w, ids) for ids in texts]
    for name in TYPES:
        parts = np.zeros((3, LAYERS, HEADS))
        next_token = 0
        for ids, (probabilities, seen) in zip(texts, exact):
            for layer, (q, k, v) in enumerate(seen):
                (p, o), (p2, o2) = attend(q, k, v), attend(q, stored(k, name), stored(v, name))
                parts[:, layer] += [divergence(p, p2).sum(1), ((o2 - o) ** 2).sum((1, 2)), (o ** 2).sum((1, 2))]
            changed, _ = forward(w, ids, [[name] * KV_HEADS] * LAYERS)
            next_token += divergence(probabilities, changed).sum()
        yield name, parts[0] / rows, np.sqrt(parts[1] / parts[2]), next_token / rows


def close(name, found, expected, relative, absolute):
    error = np.abs(np.asarray(found) - expected) / (np.abs(expected) * relative + absolute)
    assert error.max() < 1, (name, found, expected)
    return error.max()


def run(*words):
    return subprocess.run([FOVEA, *map(str, words)], check=True, capture_output=True, text=True).stdout


def check(name, folder, w, ids):
    expected = dict((one[0], one[1:]) for one in costs_of(w, [ids]))
    words = ['model', folder, '--cache-cost', '--tokens', ','.join(map(str, ids)), '--json']
    made = json.loads(run(*words))
    assert (made['texts'], made['tokens'], made['layers'], made['heads'], made['kv_heads']) == (1, len(ids), LAYERS, HEADS, KV_HEADS)
    found = {one['type'] + (' rotated' if one['rotated'] else ''): one for one in made['types']}
    assert sorted(found) == sorted(TYPES)
    for kind, (heads, change, next_token) in expected.items():
        one = found[kind]
        # A value near the middle of two codes may round otherwise in float32.
        close((name, kind), np.reshape(one['divergence'], (LAYERS, HEADS)), heads, 0.02, 3e-7)
        close((name, kind), np.reshape(one['context_change'], (LAYERS, HEADS)), change, 0.02, 2e-6)
        close((name, kind), one['next_token_divergence'], next_token, 0.03, 3e-7)
        bits = {'f16': 16, 'bf16': 16, 'f8_e4m3': 8, 'f8_e5m2': 8, 'q8_0': 8.5, 'q4_0': 4.5}[kind.split()[0]]
        assert one['bytes_per_token'] == 2 * LAYERS * KV_HEADS * HEAD * bits / 8
    limit = float(np.median(expected['q4_0 rotated'][0]))
    plan = json.loads(run(*words, '--limit', repr(limit)))['plan']
    size = {t['type']: t['bytes_per_token'] / (LAYERS * KV_HEADS) for t in made['types']} | {'f32': 2 * HEAD * 4}
    chosen = [t['type'] + (' rotated' if t['rotated'] else '') for t in plan['types']]
    for n, kind in enumerate(chosen):
        group = [n // KV_HEADS * HEADS + n % KV_HEADS * (HEADS // KV_HEADS) + h for h in range(HEADS // KV_HEADS)]
        worst = {t: max(found[t]['divergence'][h] for h in group) for t in found} | {'f32': 0}
        assert worst[kind] <= limit and all(worst[t] > limit for t in found if size[t.split()[0]] < size[kind.split()[0]])
    assert plan['bytes_per_token'] == sum(size[kind.split()[0]] for kind in chosen)
    mixed, _ = forward(w, ids, np.reshape(chosen, (LAYERS, KV_HEADS)).tolist())
    close((name, 'plan'), plan['next_token_divergence'], divergence(forward(w, ids)[0], mixed).mean(), 0.03, 3e-7)
    print(name, {t: f'{np.mean(found[t]["divergence"]):.2g}, {found[t]["next_token_divergence"]:.2g}' for t in TYPES}, 'plan', chosen)
    return found


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ids = random.Random(3).choices(range(VOCABULARY), k=48)
        found = {}
        for outlier in False, True:
            path = folder / ('outlier' if outlier else 'plain')
            w = write_model(path, np.random.default_rng(8), outlier)
            found[outlier] = check(path.name, path, w, ids)
        cost = lambda outlier, kind: np.mean(found[outlier][kind]['divergence'])
        assert cost(True, 'q4_0') > 4 * cost(False, 'q4_0') and cost(True, 'q4_0') > 4 * cost(True, 'q4_0 rotated')
        refused = subprocess.run([FOVEA, 'model', folder / 'plain', '--cache-cost', '--tokens', '1,2', '--limit', '-1'], capture_output=True,
                                 text=True)
        assert refused.returncode == 2 and refused.stderr == 'fovea: error: --limit is -1; it must be at least 0\n', refused.stderr


main()
