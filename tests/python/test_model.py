"""Models: a small random GGUF file against its forward pass in NumPy's float64, and against the command line."""
from __future__ import annotations

import gc
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import fovea
import numpy as np

COMMAND = os.environ['FOVEA_COMMAND']
LAYERS, WIDTH, HEADS, KV_HEADS, INNER, EPSILON, THETA = 3, 24, 4, 2, 40, 1e-5, 10000.0
HEAD = WIDTH // HEADS
MERGES = [('t', 'h'), ('th', 'e'), ('Ġ', 'c'), ('a', 't'), ('Ġc', 'at'), ('Ġ', 'the')]


def letters():
    """GPT-2's character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(byte if byte in plain else next(rest)) for byte in range(256)]


TOKENS = letters() + [a + b for a, b in MERGES] + ['<end>']
END = len(TOKENS) - 1


def gguf_value(value):
    def string(text):
        data = text.encode()
        return struct.pack('<Q', len(data)) + data
    if isinstance(value, str):
        return struct.pack('<I', 8) + string(value)
    if isinstance(value, float):
        return struct.pack('<If', 6, value)
    if isinstance(value, int):
        return struct.pack('<II', 4, value)
    if isinstance(value[0], str):
        return struct.pack('<IIQ', 9, 8, len(value)) + b''.join(map(string, value))
    return struct.pack(f'<IIQ{len(value)}i', 9, 5, len(value), *value)


def write_gguf(path, keys, tensors):
    out = struct.pack('<4sIQQ', b'GGUF', 3, len(tensors), len(keys))
    for key, value in keys.items():
        out += struct.pack('<Q', len(key)) + key.encode() + gguf_value(value)
    data = b''
    for name, array in tensors.items():
        out += struct.pack('<Q', len(name)) + name.encode() + struct.pack(f'<I{array.ndim}QIQ', array.ndim, *array.shape[::-1], 0, len(data))
        data += array.tobytes()
        data += bytes(-len(data) % 32)
    path.write_bytes(out + bytes(-len(out) % 32) + data)


def make_model(path, seed):
    """A Qwen 2 of random weights; returns them."""
    generator = np.random.default_rng(seed)
    w = {}

    def add(name, *shape, mean=0.0):
        w[name] = (mean + generator.standard_normal(shape) * (0.1 if mean else 0.7 / np.sqrt(shape[-1]))).astype(np.float32)
    add('token_embd.weight', len(TOKENS), WIDTH)
    w['token_embd.weight'] *= 4
    for n in range(LAYERS):
        for part, rows in (('q', WIDTH), ('k', KV_HEADS * HEAD), ('v', KV_HEADS * HEAD)):
            add(f'blk.{n}.attn_{part}.weight', rows, WIDTH)
            add(f'blk.{n}.attn_{part}.bias', rows)
        add(f'blk.{n}.attn_output.weight', WIDTH, WIDTH)
        add(f'blk.{n}.ffn_gate.weight', INNER, WIDTH)
        add(f'blk.{n}.ffn_up.weight', INNER, WIDTH)
        add(f'blk.{n}.ffn_down.weight', WIDTH, INNER)
        add(f'blk.{n}.attn_norm.weight', WIDTH, mean=1.0)
        add(f'blk.{n}.ffn_norm.weight', WIDTH, mean=1.0)
    add('output_norm.weight', WIDTH, mean=1.0)
    add('output.weight', len(TOKENS), WIDTH)
    keys = {'general.architecture': 'qwen2', 'qwen2.block_count': LAYERS, 'qwen2.context_length': 128, 'qwen2.embedding_length': WIDTH,
            'qwen2.feed_forward_length': INNER, 'qwen2.attention.head_count': HEADS, 'qwen2.attention.head_count_kv': KV_HEADS,
            'qwen2.attention.layer_norm_rms_epsilon': EPSILON, 'qwen2.rope.freq_base': THETA, 'tokenizer.ggml.model': 'gpt2',
            'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.tokens': TOKENS, 'tokenizer.ggml.merges': [f'{a} {b}' for a, b in MERGES],
            'tokenizer.ggml.token_type': [1] * END + [3], 'tokenizer.ggml.eos_token_id': END}
    write_gguf(path, keys, w)
    return w


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight


def turned(x):
    """Rotary positions of [heads, tokens, HEAD], first half with second."""
    angles = np.arange(x.shape[1])[:, None] * THETA ** -(np.arange(HEAD // 2) / (HEAD // 2))
    a, b = x[..., :HEAD // 2], x[..., HEAD // 2:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], -1)


def forward(w, ids, *, scales={}, patches={}, masked=(), hook=None):
    """Everything in float64, as a dictionary by the names of `keep`."""
    w = {name: array.astype(np.float64) for name, array in w.items()}
    x, kept = w['token_embd.weight'][list(ids)], {name: [] for name in ('hidden', 'q', 'k', 'v', 'lse', 'weights', 'context')}
    tokens = len(ids)
    hides = np.triu(np.ones((tokens, tokens), bool), 1)
    hides[:, list(masked)] = True

    def enter(n, x):
        x = np.array(patches.get((n, 'hidden'), x), np.float64)
        if hook:
            hook(n, x)
        kept['hidden'].append(x)
        return x
    for n in range(LAYERS):
        x = enter(n, x)
        inside = norm(x, w[f'blk.{n}.attn_norm.weight'])
        q, k, v = ((inside @ w[f'blk.{n}.attn_{part}.weight'].T + w[f'blk.{n}.attn_{part}.bias']).reshape(tokens, -1, HEAD).swapaxes(0, 1)
                   for part in 'qkv')
        q, k = turned(q), turned(k)
        scores = q @ np.repeat(k, HEADS // KV_HEADS, 0).swapaxes(1, 2) / np.sqrt(HEAD)
        scores[:, hides] = -np.inf
        with np.errstate(invalid='ignore', divide='ignore'):
            lse = np.log(np.exp(scores).sum(-1))
            weights = np.nan_to_num(np.exp(scores - lse[..., None]))
        context = weights @ np.repeat(v, HEADS // KV_HEADS, 0)
        for (layer, head), scale in scales.items():
            if layer == n:
                context[head] *= scale
        for (layer, head), array in patches.items():
            if layer == n and head != 'hidden':
                context[head] = array
        for name, value in (('q', q), ('k', k), ('v', v), ('lse', lse), ('weights', weights), ('context', context)):
            kept[name].append(value)
        x = x + context.swapaxes(0, 1).reshape(tokens, -1) @ w[f'blk.{n}.attn_output.weight'].T
        inside = norm(x, w[f'blk.{n}.ffn_norm.weight'])
        gate = inside @ w[f'blk.{n}.ffn_gate.weight'].T
        x = x + (gate / (1 + np.exp(-gate)) * (inside @ w[f'blk.{n}.ffn_up.weight'].T)) @ w[f'blk.{n}.ffn_down.weight'].T
    x = enter(LAYERS, x)
    kept['logits'] = norm(x, w['output_norm.weight']) @ w['output.weight'].T
    return {name: np.array(value) for name, value in kept.items()}


def setUpModule():
    global FOLDER, PATH, MODEL, WEIGHTS, IDS
    FOLDER = tempfile.TemporaryDirectory()
    PATH = pathlib.Path(FOLDER.name) / 'random.gguf'
    seed = int(time.time())
    print(f'seed {seed}', flush=True)
    WEIGHTS = make_model(PATH, seed)
    MODEL = fovea.model(PATH)
    IDS = np.random.default_rng(seed + 1).integers(0, END, 17).tolist()


def tearDownModule():
    FOLDER.cleanup()


def command(*words):
    return subprocess.run([COMMAND, *words], check=True, capture_output=True, text=True).stdout


class Model(unittest.TestCase):
    def near(self, got, expected):
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)

    def test_sizes(self):
        m = MODEL
        self.assertEqual((m.layers, m.width, m.heads, m.kv_heads, m.head_width, m.vocabulary, m.context, m.end_tokens),
                         (LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, len(TOKENS), 128, (END,)))
        self.assertIn('3 layers of 4 heads', repr(m))

    def test_every_kept_tensor_is_that_of_the_forward_pass(self):
        expected = forward(WEIGHTS, IDS)
        run = MODEL.run(IDS, keep=[*expected, 'weights:2.1', 'q:1', 'k:0.1', 'logits:4'])
        for name, array in expected.items():
            self.assertEqual(run[name].shape, array.shape, name)
            self.assertEqual(run[name].dtype, np.float32)
            self.near(run[name], array)
        self.near(run['weights:2.1'], expected['weights'][2, 1])
        self.near(run['q:1'], expected['q'][1])
        self.near(run['k:0.1'], expected['k'][0, 1])
        self.near(run['logits:4'], expected['logits'][4])
        self.assertTrue((MODEL.logits(IDS) == run.logits).all())
        self.assertEqual(run.tokens, IDS)
        self.assertTrue('q:1' in run and 'q' in run and 'scores' not in run)

    def test_changes(self):
        other = MODEL.run(IDS[::-1], keep='context')['context']
        entering = forward(WEIGHTS, IDS)['hidden'][1] * 1.5
        for changes, meant in (({'heads': [(0, 1), (2, 3)]}, {'scales': {(0, 1): 0, (2, 3): 0}}),
                               ({'heads': {(1, 2): -0.5}}, {'scales': {(1, 2): -0.5}}),
                               ({'masked': [6, 2, 6]}, {'masked': [6, 2]}),
                               ({'patches': {(1, 0): other[1, 0]}}, {'patches': {(1, 0): other[1, 0]}}),
                               ({'patches': {(1, 'hidden'): entering}}, {'patches': {(1, 'hidden'): entering}})):
            expected = forward(WEIGHTS, IDS, **meant)
            run = MODEL.run(IDS, keep=['logits', 'hidden'], **changes)
            self.near(run['hidden'], expected['hidden'])
            self.near(run.logits, expected['logits'])
            self.assertGreater(np.abs(run.logits - MODEL.logits(IDS)).max(), 1e-3)

    def test_a_hook_writes_between_layers(self):
        seen = []

        def hook(layer, hidden):
            seen.append((layer, hidden, hidden.copy()))
            if layer in (1, LAYERS):
                hidden *= 1 + layer
        run = MODEL.run(IDS, keep=['logits', 'hidden'], hook=hook)
        expected = forward(WEIGHTS, IDS, hook=lambda n, x: np.multiply(x, 1 + n if n in (1, LAYERS) else 1, out=x))
        self.near(run['hidden'], expected['hidden'])
        self.near(run.logits, expected['logits'])
        self.assertEqual([layer for layer, _, _ in seen], [0, 1, 2, 3])
        for layer, hidden, before in seen:  # kept beyond the call, they are what the hook left
            self.assertTrue((hidden == run['hidden'][layer]).all())
            self.assertTrue((hidden == before * (1 + layer if layer in (1, LAYERS) else 1)).all())

    def test_a_hook_that_raises_stops_the_run(self):
        for error in (KeyError('mine'), KeyboardInterrupt(), SystemExit(3)):
            seen = []

            def hook(layer, hidden):
                seen.append(layer)
                if layer == 1:
                    raise error
            with self.assertRaises(type(error)) as caught:
                MODEL.run(IDS, hook=hook)
            self.assertIs(caught.exception, error)
            self.assertEqual(seen, [0, 1])
        self.near(MODEL.logits(IDS), forward(WEIGHTS, IDS)['logits'])

    def test_a_hook_may_run_the_model(self):
        inside = []
        MODEL.run(IDS, hook=lambda layer, hidden: inside.append(MODEL.logits(IDS)))
        self.assertTrue(all((one == MODEL.logits(IDS)).all() for one in inside))
        self.assertEqual(len(inside), LAYERS + 1)

    def test_views_keep_their_run_alive_and_cannot_be_written(self):
        run = fovea.model(PATH).run(IDS, keep='hidden')
        gone, view = weakref.ref(run), run['hidden'][1:, 2]
        expected = view.copy()
        del run
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertTrue((view == expected).all())
        with self.assertRaises(ValueError):
            view[0, 0] = 1
        del view
        gc.collect()
        self.assertIsNone(gone())

    def test_a_batch_is_a_list_of_runs(self):
        texts = ['the cat', IDS, 'a']
        runs = MODEL.run(texts, keep='logits')
        for run, text in zip(runs, texts):
            self.assertTrue((run.logits == MODEL.logits(text)).all())
        self.assertEqual([array.tolist() for array in MODEL.logits(texts)], [run.logits.tolist() for run in runs])
        self.assertEqual(len(MODEL.run(np.array([IDS, IDS]))), 2)
        self.assertEqual(MODEL.run(np.array(IDS)).tokens, IDS)
        with self.assertRaisesRegex(fovea.Refused, 'tokens is -1'):
            MODEL.run([IDS, [3, -1]], hook=lambda layer, hidden: self.fail('a text ran before all were checked'))

    def test_threads_and_a_forked_process(self):
        expected, got = MODEL.logits(IDS), []
        threads = [threading.Thread(target=lambda: got.append(MODEL.logits(IDS))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(len(got) == 4 and all((one == expected).all() for one in got))
        text, threaded = MODEL.generate(IDS, 3), fovea.model(PATH, 0, threads=2)  # kernels of device 0, the CPU
        by_kernels = threaded.logits(IDS * 6)
        inside, forked = threading.Event(), threading.Event()

        def hook(layer, hidden):
            inside.set()
            forked.wait(60)
        busy = threading.Thread(target=lambda: MODEL.run(IDS, hook=hook))
        busy.start()
        inside.wait(60)  # the child gets a copy of the model's lock that nobody releases
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            same = bool((MODEL.logits(IDS) == expected).all() and (threaded.logits(IDS * 6) == by_kernels).all())
            try:
                next(text)
                same = False
            except fovea.Refused:
                pass
            del text
            gc.collect()
            os._exit(0 if same else 1)
        forked.set()
        busy.join()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len(list(text)), 3)


class Apart(unittest.TestCase):
    """Logits and heads taken apart, against the forward pass and NumPy's singular values."""

    def test_a_logit_is_what_its_writers_gave(self):
        w = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}
        run, position = forward(WEIGHTS, IDS), 11
        leaving = run['hidden'][LAYERS][position]
        gains = w['output_norm.weight'] / np.sqrt((leaving * leaving).mean() + EPSILON)
        for token in (None, 7):
            made = fovea.logit_writers(PATH, IDS, position, token, most=100_000)
            self.assertEqual(made['token'], run['logits'][position].argmax() if token is None else token)
            logits = run['logits'][position] - run['logits'][position].max()
            reads = gains * w['output.weight'][made['token']]  # the logit's gradient by the stream
            values, sources, neurons = {('token', None, None): w['token_embd.weight'][IDS[position]] @ reads}, {}, {}
            for n in range(LAYERS):
                out = w[f'blk.{n}.attn_output.weight'].T.reshape(HEADS, HEAD, WIDTH) @ reads
                for h in range(HEADS):
                    given = run['weights'][n, h, position] * (run['v'][n, h * KV_HEADS // HEADS] @ out[h])
                    values['head', n, h] = given.sum()
                    sources.update({(n, h, j): value for j, value in enumerate(given)})
                middle = run['hidden'][n][position] + (run['context'][n, :, position].reshape(-1) @ w[f'blk.{n}.attn_output.weight'].T)
                inside = norm(middle, w[f'blk.{n}.ffn_norm.weight'])
                gate = w[f'blk.{n}.ffn_gate.weight'] @ inside
                given = gate / (1 + np.exp(-gate)) * (w[f'blk.{n}.ffn_up.weight'] @ inside) * (reads @ w[f'blk.{n}.ffn_down.weight'])
                values['feed_forward', n, None] = given.sum()
                neurons.update({(n, j): value for j, value in enumerate(given)})
            writers = made['writers']
            got = {(one['kind'], one.get('layer'), one.get('head')): one['value'] for one in writers}
            self.assertEqual(got.keys(), values.keys())
            bound = 1e-5 * sum(map(abs, values.values()))
            for got, expected in (
                    (got, values), ({0: made['sum']}, {0: sum(values.values())}),
                    ({0: made['logit']}, {0: run['logits'][position][made['token']]}),
                    ({0: made['probability']}, {0: np.exp(logits)[made['token']] / np.exp(logits).sum()}),
                    ({(writers[one['writer']]['layer'], writers[one['writer']]['head'], one['source']): one['value']
                      for one in made['loadings']}, {place: value for place, value in sources.items() if place[2] <= position}),
                    ({(writers[one['writer']]['layer'], one['neuron']): one['value'] for one in made['neurons']}, neurons)):
                for place, value in expected.items():
                    self.assertAlmostEqual(got[place], value, delta=bound, msg=place)
            self.assertEqual(len(fovea.logit_writers(PATH, IDS, position, token, most=2)['neurons']), 2)

    def test_directions_are_the_singular_ones(self):
        w = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}
        for layer, head in ((0, 0), (2, 3)):
            gains, kv = w[f'blk.{layer}.attn_norm.weight'], head * KV_HEADS // HEADS
            q, k, v = (w[f'blk.{layer}.attn_{part}.weight'].reshape(-1, HEAD, WIDTH)[at] * gains
                       for part, at in (('q', head), ('k', kv), ('v', kv)))
            out = w[f'blk.{layer}.attn_output.weight'].reshape(WIDTH, HEADS, HEAD)[:, head]
            ends = w['output.weight'] * w['output_norm.weight']
            made = fovea.head_directions(PATH, layer, head, count=HEAD, most=3)
            # Both as what is read by what it leads to.
            for name, matrix, to_rows in (('qk', q.T @ k / np.sqrt(HEAD), w['token_embd.weight']), ('ov', (out @ v).T, ends)):
                left, sizes, right = np.linalg.svd(matrix)
                self.assertEqual(len(made[name]), HEAD)
                np.testing.assert_allclose([one['value'] for one in made[name]], sizes[:HEAD], rtol=1e-6)
                whole = sum(one['value'] * np.outer(one['from'], one['to']) for one in made[name])
                np.testing.assert_allclose(whole, matrix, atol=1e-6 * sizes[0])
                for one, of, to in zip(made[name], left.T, right):
                    sign = np.sign(of[np.abs(of).argmax()])
                    np.testing.assert_allclose(one['from'], of * sign, atol=1e-4)
                    np.testing.assert_allclose(one['to'], to * sign, atol=1e-4)
                    for end, rows in (('from', w['token_embd.weight']), ('to', to_rows)):
                        along = rows @ one[end]
                        order = np.argsort(along)
                        for side, ids in (('high', order[:-4:-1]), ('low', order[:3])):
                            listed = one[f'{end}_tokens'][side]
                            self.assertEqual([token['token'] for token in listed], ids.tolist())
                            np.testing.assert_allclose([token['value'] for token in listed], along[ids], rtol=1e-6)


class Documentation(unittest.TestCase):
    """The code of docs/guides/transformerlens.md and docs/guides/llama-cpp.md."""

    def test_a_user_of_llama_cpp(self):
        # [look into]
        import fovea

        m = fovea.model(PATH)                       # a GGUF file; its weights stay in it
        run = m.run('the cat', keep=['hidden', 'logits', 'weights:1.2'])
        run['hidden']                               # [layers + 1, tokens, width]
        run['weights:1.2']                          # layer 1, head 2: [query, key]
        for token in m.generate('the cat', 20, temperature=0.8, top_k=40, seed=1):
            print(token.text, end='', flush=True)
        # [end look into]
        self.assertEqual(run['weights:1.2'].shape, (2, 2))

    def test_a_user_of_transformerlens(self):
        # [run with cache]
        import fovea

        m = fovea.model(PATH)
        clean, corrupt = m.run(['the cat', 'the the'], keep=['hidden', 'context', 'logits'])
        clean['hidden'][1]                          # blocks.0.hook_resid_post
        # [end run with cache]
        self.assertEqual(clean['hidden'].shape[0], LAYERS + 1)
        # [run with hooks]
        off = m.logits('the cat', heads=[(1, 2), (0, 3)])                               # ablates two heads
        patched = m.logits('the cat', patches={(1, 2): corrupt['context'][1, 2]})       # patches one head
        resid = m.logits('the cat', patches={(1, 'hidden'): corrupt['hidden'][1]})      # blocks.1.hook_resid_pre

        def steer(layer, hidden):                   # hidden: [tokens, width], float32
            if layer == 1:
                hidden[-1] += 0.5
        steered = m.logits('the cat', hook=steer)
        # [end run with hooks]
        self.assertTrue((resid == corrupt.logits).all())
        for changed in (off, patched, steered):
            self.assertTrue((changed != clean.logits).any())


    def test_ablation(self):
        # [ablate]
        import fovea

        m = fovea.model('induction')                # or a folder of Hugging Face, or a GGUF file
        text = 'w i t h f o v e a f'
        for off in [], [(0, 0)], {(0, 0): 0.5}:     # as it is; head 0.0 off; half of what it adds
            logits = m.logits(text, heads=off)[-1]
            print(off, m.text([logits.argmax()]))   # the most likely next token
        # [end ablate]
        probability = [np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in (m.logits(text)[-1], m.logits(text, heads=[(0, 0)])[-1])]
        token, = m.tokens('o', special=False)
        self.assertEqual(m.logits(text)[-1].argmax(), token)
        self.assertLess(probability[1][token], probability[0][token] - 0.2)


class Texts(unittest.TestCase):
    def test_tokens_and_back(self):
        text = 'the cat, the thé \U0001f408'
        ids = MODEL.tokens(text)
        by_command = json.loads(command('model', str(PATH), '--text', text, '--json', '--no-scores'))
        self.assertEqual(ids, by_command['tokens'])
        self.assertEqual(ids[:2], [TOKENS.index('the'), TOKENS.index('Ġcat')])
        self.assertEqual(MODEL.text(ids), text)
        self.assertEqual(MODEL.text([END]), '')
        self.assertEqual(MODEL.text(ids[-1:]), '\ufffd')
        self.assertEqual((MODEL.tokens(''), MODEL.text([])), ([], ''))
        self.assertTrue((MODEL.logits(text) == MODEL.logits(ids)).all())

    def test_generation_is_that_of_the_command(self):
        for options, words in (({}, []), ({'temperature': 1.3, 'seed': 5}, ['--temperature', '1.3', '--seed', '5']),
                               ({'temperature': 3, 'top_k': 50, 'top_p': 0.95, 'min_p': 0.001, 'ignore_eos': True},
                                ['--temperature', '3', '--top-k', '50', '--top-p', '0.95', '--min-p', '0.001', '--ignore-eos'])):
            expected = json.loads(command('generate', str(PATH), '--text', 'the cat', '--count', '40', '--json', *words))
            text = MODEL.generate('the cat', 40, **options)
            made = list(text)
            self.assertEqual([token.id for token in made], expected['tokens'])
            shown = ''.join(token.text for token in made)
            # For bytes that are not UTF-8 the command's JSON and Python differ in how many times they write U+FFFD.
            self.assertEqual(re.sub('\ufffd+', '\ufffd', shown), re.sub('\ufffd+', '\ufffd', expected['text']))
            self.assertEqual(shown, MODEL.text(text.tokens[:-1] if text.ended else text.tokens))
            self.assertEqual((text.tokens, text.ended), (expected['tokens'], expected.get('ended', False)))

    def test_cache_costs_are_those_of_the_command(self):
        found = MODEL.cache_costs([[5, 3, 9, 3], [1, 2]], limit=0.01)
        self.assertEqual((found['texts'], found['tokens'], found['layers'], found['heads']), (2, 6, LAYERS, HEADS))
        self.assertEqual(len(found['plan']['types']), LAYERS * KV_HEADS)
        one = MODEL.cache_costs([5, 3, 9, 3])
        said = json.loads(command('model', str(PATH), '--cache-cost', '--tokens', '5,3,9,3', '--json'))
        self.assertEqual([(t['type'], t['rotated']) for t in one['types']], [(t['type'], t['rotated']) for t in said['types']])
        for a, b in zip(one['types'], said['types']):
            np.testing.assert_array_equal(a['divergence'].ravel(), b['divergence'])
            np.testing.assert_array_equal(a['context_change'].ravel(), b['context_change'])
            self.assertEqual(a['next_token_divergence'], b['next_token_divergence'])
        with self.assertRaisesRegex(fovea.Refused, 'limit is -1'):
            MODEL.cache_costs([1, 2], limit=-1)

    def test_a_text_streams_and_ends(self):
        first = MODEL.generate('a', 3, ignore_eos=True)
        token = next(first).id
        self.assertEqual((token, first.tokens), (MODEL.run('a', keep='logits:0')['logits:0'].argmax(), [token]))
        self.assertEqual(len(list(first)), 2)
        self.assertRaises(StopIteration, next, first)
        for seed in range(400):
            text = MODEL.generate('a', 60, temperature=20, seed=seed)
            made = list(text)
            if text.ended:
                break
        self.assertEqual((made[-1].id, END in text.tokens[:-1]), (END, False))
        self.assertEqual(len(list(MODEL.generate('a', 60, temperature=20, seed=seed, ignore_eos=True))), 60)


class Refusals(unittest.TestCase):
    def test_what_is_wrong_is_named(self):
        rows = np.zeros((len(IDS), WIDTH))
        for call, text in (
                (lambda: MODEL.run(IDS, heads=[(3, 0)]), 'heads has 3.0; the model has layers 0 to 2 and heads 0 to 3'),
                (lambda: MODEL.run(IDS, heads=[3]), r'heads has 3; each must be a \(layer, head\)'),
                (lambda: MODEL.run(IDS, heads={(0, 1): 'x'}), "heads is 'x'; it must be a number"),
                (lambda: MODEL.run(IDS, heads={(0, 1): float('inf')}), 'the scale of head 0.1 is not finite; it must be a finite value'),
                (lambda: MODEL.run(IDS, keep=['qq']), "keep has 'qq'; it must be hidden, q, k, v"),
                (lambda: MODEL.run(IDS, keep=['q,k']), "keep has 'q,k'; each must be one name"),
                (lambda: MODEL.run(IDS, keep=['k:0.2']), "keep has 'k:0.2', whose head is 2; it must be from 0 to 1"),
                (lambda: MODEL.run(IDS, keep='q')['k'], "'k' was not kept; the run kept q"),
                (lambda: MODEL.run(IDS, patches={(0, 1): rows}), 'a patch of layer 0 has 24 columns; it must have 6'),
                (lambda: MODEL.run(IDS, patches={(0, 'hidden'): rows[:3]}), r'must have the shape \[17, 24\]'),
                (lambda: MODEL.run(IDS, patches={(0, 'hidden'): 'x'}), r"the patch of \(0, 'hidden'\) is str; it must be an array"),
                (lambda: MODEL.run(IDS, patches={(0, 1): rows[0]}), r'the patch of \(0, 1\) has the shape \(24,\); it must be an array'),
                (lambda: MODEL.run(IDS, masked=[17]), 'a masked token is 17; the limit is 16'),
                (lambda: MODEL.run(IDS, hook=3), 'hook is 3; it must be callable'),
                (lambda: MODEL.run(IDS, hook=lambda layer, hidden: hidden * 2), 'hook returned a value; it must write into hidden'),
                (lambda: MODEL.run([]), 'tokens is empty; it must have at least one token'),
                (lambda: MODEL.run([99999]), '99999'),
                (lambda: MODEL.run(5), 'text is 5; it must be a str, token IDs'),
                (lambda: MODEL.tokens(5), 'text is 5; it must be a str'),
                (lambda: MODEL.generate('a', 0), 'count is 0; it must be 1 to'),
                (lambda: MODEL.generate('a', temperature=-1), 'temperature is -1; it must be from 0 to 1000'),
                (lambda: MODEL.generate('a', top_k=4), 'top_k needs a temperature above 0'),
                (lambda: fovea.model(PATH, 'no such device'), 'no such device'),
                (lambda: fovea.model(PATH, threads=0), 'threads is 0; it must be 1 to')):
            with self.assertRaisesRegex(fovea.Refused, text):
                call()
        with self.assertRaisesRegex(fovea.FoveaError, '/no/such.gguf'):
            fovea.model('/no/such.gguf')


if __name__ == '__main__':
    sys.exit(unittest.main(verbosity=1))
