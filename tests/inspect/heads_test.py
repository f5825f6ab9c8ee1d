#!/usr/bin/env python3
"""fovea heads FAMILIES LEARNED: its metrics next to numpy's in float64, and its files as HeadVis's loaders read them.

Weights of the small random models come from `fovea model --out`; those of the library's induction model from a forward
pass of this file. The files are read as load-head-metrics.py and load-head-sequences.py of Neuronpedia do: the members
that they require, of the types that they take. Those scripts themselves need a PostgreSQL server and are not run.
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
FAMILIES, LEARNED = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
TEXTS = 50
METRICS = ['self_attention_score', 'prev_token_score', 'pattern_entropy', 'qk_distance', 'qk_distance_variance',
           'induction_score']
TYPES = {'F32': '<f4', 'F16': '<f2'}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + size])
    notes = header.pop('__metadata__', {})
    read = lambda one: np.frombuffer(data[8 + size:][slice(*one['data_offsets'])], TYPES[one['dtype']]).reshape(one['shape'])
    return {name: read(one) for name, one in header.items()}, notes


def run(*words):
    return subprocess.run([FOVEA, *map(str, words)], check=True, capture_output=True, text=True).stdout


def weights_of_file(model, ids, folder):
    """[layers, heads, tokens, tokens] as the program says them, float32."""
    out = folder / 'weights.safetensors'
    run('model', model, '--tokens', ','.join(map(str, ids)), '--no-scores', '--out', out)
    tensors, _ = read_safetensors(out)
    return np.stack([tensors[f'layers.{n}.weights'] for n in range(sum(name.endswith('.weights') for name in tensors))])


def weights_of_learned(ids):
    """The same in float64: layer norm, rotary positions of halves, causal attention, residual sums."""
    w, notes = read_safetensors(LEARNED)
    w = {name: value.astype(np.float64) for name, value in w.items()}
    heads, theta = int(notes['heads']), float(notes['rope_theta'])
    x, out = w['embedding.weight'][ids], []
    n = len(ids)
    for layer in range(2):
        p = f'layers.{layer}.'
        z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        z = z * w[p + 'norm.weight'] + w[p + 'norm.bias']
        part = lambda name: (z @ w[p + name + '.weight'].T + w.get(p + name + '.bias', 0)).reshape(n, heads, -1).swapaxes(0, 1)
        q, k, v = part('query'), part('key'), part('value')
        half = q.shape[2] // 2
        angle = np.arange(n)[:, None] / theta ** (np.arange(half) / half)
        turn = lambda a: np.concatenate([a[..., :half] * np.cos(angle) - a[..., half:] * np.sin(angle),
                                         a[..., half:] * np.cos(angle) + a[..., :half] * np.sin(angle)], -1)
        score = turn(q) @ turn(k).swapaxes(1, 2) / math.sqrt(2 * half)
        score[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        weight = np.exp(score - score.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        out.append(weight)
        x = x + (weight @ v).swapaxes(0, 1).reshape(n, -1) @ w[p + 'output.weight'].T
    return np.stack(out)


def metrics_of(texts, weights):
    """[layers, heads, 6] by the definitions of HeadVis."""
    sums, rows, pairs, repeats = 0, 0, 0, 0
    for ids, w in zip(texts, weights):
        n, w = len(ids), w.astype(np.float64)
        away = np.abs(np.arange(n)[:, None] - np.arange(n))
        after = np.zeros((n, n), bool)
        for i in range(n):
            for j in range(i):
                after[i, j + 1] |= ids[j] == ids[i]
        entropy = -(w * np.log(np.where(w > 0, w, 1))).sum((2, 3))
        induction = np.where(after & (w >= np.float32(0.01)), w, 0).sum((2, 3))
        sums = sums + np.stack([np.trace(w, axis1=2, axis2=3), np.trace(w, -1, 2, 3), entropy, (w * away).sum((2, 3)),
                                (w * away ** 2).sum((2, 3)), induction], -1)
        rows, pairs, repeats = rows + n, pairs + n - 1, repeats + sum(ids[i] in ids[:i] for i in range(n))
    mean = sums / [rows, pairs, rows, rows, rows, repeats]
    mean[..., 4] -= mean[..., 3] ** 2
    return mean


def check_tree(run_folder, texts, layers, heads):
    """Checks the members that the loaders of HeadVis's tree require."""
    config = json.loads((run_folder / 'config.json').read_text())
    merged = config['pipeline_config'] | {key: value for key, value in config.items() if key != 'pipeline_config'}
    for key, kind in dict(model_name=str, dataset_name=str, n_sequences=int, seq_len=int, dtype=str,
                          attn_implementation=str, np_model_id=str).items():
        assert isinstance(merged[key], kind), key
    assert config['np_model_id'] == run_folder.parent.parent.name and config['metrics'] == METRICS
    assert config['heads'] == [[n, h] for n in range(layers) for h in range(heads)]
    for name in 'server_config.json', 'attributions/manifest.json':
        assert json.loads((run_folder / name).read_text()) == {}
    for name in {path.name for path in (run_folder / 'heads').iterdir()}:
        assert name in {f'L{n}H{h}.json' for n in range(layers) for h in range(heads)}
    for n in range(layers):
        for h in range(heads):
            head = json.loads((run_folder / 'heads' / f'L{n}H{h}.json').read_text())
            assert len(head['sequences']) == head['statistics']['n_samples'] > 0
            for part in 'qk_distance_histogram', 'histogram':
                assert len(head[part]['bin_edges']) == len(head[part]['bin_values']) + 1
            assert sum(head['histogram']['bin_values']) == len(texts)
            for part in 'top_query_tokens', 'top_key_tokens':
                sizes = [one['weight'] for one in head[part]]
                assert sizes == sorted(sizes, reverse=True) and all(isinstance(one['token'], str) for one in head[part])
            yield n, h, head['sequences']


def check(name, model, corpus, texts, weights, folder):
    out = folder / name
    run('heads', model, '--corpus', corpus, '--out', out)
    (run_folder,) = out.glob('*/headvis/*')
    layers, heads = weights[0].shape[:2]
    expected = metrics_of(texts, weights)
    rows = json.loads((run_folder / 'scatter_data.json').read_text())
    assert [(row['layer'], row['head']) for row in rows] == [(n, h) for n in range(layers) for h in range(heads)]
    found = np.array([[row[metric] for metric in METRICS] for row in rows]).reshape(layers, heads, -1)
    error = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    print(name, 'largest error of', dict(zip(METRICS, error.max((0, 1)))))
    assert error.max() < 1e-6, error.max((0, 1))
    for n, h, samples in check_tree(run_folder, texts, layers, heads):
        largest = sorted((float(w[n, h, 1:, 1:].max()) for w in weights), reverse=True)
        for one in samples:
            w, size = weights[one['sequence_id']][n, h], one['seq_len']
            assert size == len(one['tokens']) == len(texts[one['sequence_id']])
            assert abs(one['max_activation'] - w[1:, 1:].max()) < 6e-5
            dense = np.zeros(size * size)
            dense[one['attention_indices']] = one['attention_values']
            order = np.sort(np.where(w >= 0.005, w, 0), -1)[:, ::-1]
            kept = np.where(w >= np.maximum(0.005, order[:, min(7, size - 1)][:, None]), w, 0)
            assert np.abs(dense.reshape(size, size) - kept).max() < 6e-5, 'of the eight largest weights of a row'
        top = [one['max_activation'] for one in samples if one['interval'] == 5]
        assert np.abs(np.array(top) - largest[:len(top)]).max() < 6e-5 and 0 < len(top) <= 10


def main():
    rng = random.Random(6)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        texts = [[rng.randrange(2, 24) for _ in range(rng.randrange(2, 31))] for _ in range(TEXTS)]
        corpus = folder / 'ids.txt'
        corpus.write_text(''.join(' '.join(map(str, ids)) + '\n' for ids in texts))
        for family in 'gpt2', 'llama3', 'gemma2', 'bert':
            model = FAMILIES / family
            check(family, model, corpus, texts, [weights_of_file(model, ids, folder) for ids in texts], folder)
        letters = 'abcdefghijklmnopqrstuvwxyz'
        words = [(''.join(rng.choices(letters, k=rng.randrange(5, 12))) * 9)[:rng.randrange(20, 60)] for _ in range(TEXTS)]
        corpus = folder / 'words.txt'
        corpus.write_text('\n'.join(words) + '\n')
        texts = [[40] + [letters.index(letter) for letter in word] for word in words]
        check('induction', 'induction', corpus, texts, [weights_of_learned(ids) for ids in texts], folder)


main()
