"""Inspecting a call: weights, key masses, statistics, maps, derivations, lessons, sessions, and layers of a model."""
from __future__ import annotations

import base64
import contextlib
import html
import json
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zlib
from unittest import mock

import fovea
import fovea.transformers
import numpy as np

import oracle
from test_calls import Foreign, write_safetensors

COMMAND = os.environ['FOVEA_COMMAND']


def tensors(batch, heads, kv_heads, rows, keys, dim, seed=1):
    generator = np.random.default_rng(seed)
    return tuple(generator.standard_normal(shape).astype(np.float32)
                 for shape in ((batch, heads, rows, dim), (batch, kv_heads, keys, dim), (batch, kv_heads, keys, dim)))


class Weights(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = tensors(2, 4, 2, 40, 60, 16)
        self.options = {'causal': True, 'align': 'bottom-right', 'window': (30, None), 'softcap': 9.0,
                        'sinks': np.linspace(-1, 1, 4, dtype=np.float32)}
        self.expected = oracle.weights(self.q, self.k, **self.options)
        self.look = fovea.inspect(self.q, self.k, **self.options)

    def test_any_rectangle_is_that_of_the_whole_matrix(self):
        for rows, keys in ((None, None), (3, slice(10, 50)), (range(7, 20), 4), (slice(-5, None), slice(None, -3)), (-1, -1)):
            at = [slice(a, a + 1 or None) if isinstance(a, int) else slice(None) if a is None else slice(a.start, a.stop)
                  for a in (rows, keys)]
            for batch, head in ((0, 0), (1, 3)):
                np.testing.assert_allclose(self.look.weights(rows, keys, head, batch), self.expected[batch, head][at[0], at[1]], rtol=2e-5,
                                           atol=1e-9)

    def test_tiles_of_a_wide_context_meet_without_a_seam(self):
        q, k, _ = tensors(1, 1, 1, 3, 20000, 4)
        got = fovea.inspect(q, k).weights()
        scores = (q[0, 0].astype(np.float64) @ k[0, 0].T) / 2
        exact = np.exp(scores - scores.max(1, keepdims=True))
        np.testing.assert_allclose(got, exact / exact.sum(1, keepdims=True), rtol=2e-5)

    def test_key_mass_is_the_sum_of_the_last_rows(self):
        for last in (1, 32, 40, None):
            expected = self.expected[:, :, -(last or 40):].sum(2)
            np.testing.assert_allclose(self.look.key_mass(last), expected, rtol=2e-5, atol=1e-9)
        np.testing.assert_allclose(self.look.key_mass(rows=slice(3, 9)), self.expected[:, :, 3:9].sum(2), rtol=2e-5, atol=1e-9)

    def test_row_statistics_and_the_largest_weights(self):
        stats = self.look.row_stats()
        np.testing.assert_allclose(stats.max_weight, self.expected.max(-1), rtol=2e-5)
        self.assertTrue((stats.visible_keys == (self.expected > 0).sum(-1)).all())
        with np.errstate(divide='ignore', invalid='ignore'):
            entropy = -np.nansum(self.expected * np.log(self.expected), -1)
        np.testing.assert_allclose(stats.entropy, entropy, rtol=1e-4, atol=1e-6)
        found, values = self.look.top(5, head=2, batch=1)
        order = np.argsort(-self.expected[1, 2], axis=-1, kind='stable')[:, :5]
        self.assertTrue((found == order).all())
        self.assertTrue((found[:, 0] == stats.argmax_key[1, 2]).all())
        np.testing.assert_allclose(values, np.take_along_axis(self.expected[1, 2], order, 1), rtol=2e-5)

    def test_a_given_lse_and_a_row_that_sees_nothing(self):
        _, lse = fovea.attention(self.q, self.k, self.v, return_lse=True, **self.options)
        given = fovea.inspect(self.q, self.k, lse=lse, **self.options)
        self.assertEqual(given.weights(5).tobytes(), self.look.weights(5).tobytes())
        nothing = fovea.inspect(self.q, self.k, mask=np.zeros((1, 60), bool))
        self.assertEqual(nothing.weights(0).max(), 0)
        self.assertEqual(nothing.row_stats().argmax_key.max(), -1)
        self.assertEqual(nothing.top(2)[0].max(), -1)
        self.assertEqual(nothing.lse.max(), -np.inf)

    def test_top_lists_each_seen_key_however_small_its_weight(self):
        q, k = np.ones((1, 1), np.float32), np.float32([[0], [141], [-141]])
        found, values = fovea.inspect(q, k).top(5)
        self.assertEqual(found.tolist(), [[1, 0, 2, -1, -1]])
        np.testing.assert_allclose(values, [[1, 0, 0, 0, 0]], atol=1e-6)
        mask = np.array([[True, True, False]])
        found, _ = fovea.inspect(q, k, mask=mask, align='bottom-right', alibi=np.float32([1e4])).top(3)
        self.assertEqual(found.tolist(), [[1, 0, -1]])
        bias = np.float32([[-np.inf, -1e30, 0]])
        self.assertEqual(fovea.inspect(q, k, bias=bias, softcap=2, scale=4.0).top(3)[0].tolist(), [[2, 1, -1]])
        found, values = fovea.inspect(np.float32([[np.nan]]), k, causal=True, align=1).top(3)
        self.assertEqual(found.tolist(), [[0, 1, -1]])
        self.assertTrue(np.isnan(values[0, :2]).all())

    def test_an_inspection_says_what_it_is_of(self):
        self.assertRegex(repr(self.look), 'batch 2, 4 heads, 40 queries and 60 keys.* show one head')

    def test_a_derivation_ends_in_the_weight(self):
        steps = self.look.derive(12, 20, head=1, batch=1)
        self.assertAlmostEqual(steps['weight'], self.expected[1, 1, 12, 20], places=6)
        self.assertAlmostEqual(sum(steps['products']), steps['dot'], places=4)
        self.assertIn('causal', self.look.derive(0, 59)['hiddenBy'])
        script = self.look.derivation(12, 20, head=1, batch=1, form='python')
        printed = subprocess.run([sys.executable, '-I', '-c', script], check=True, capture_output=True, text=True).stdout
        self.assertIn(f"{steps['weight']:.4f}"[:6], printed)

    def test_refusals_name_the_field(self):
        for field, call in (('rows', lambda: self.look.weights(40)), ('keys', lambda: self.look.weights(0, 60)),
                            ('head', lambda: self.look.weights(head=4)), ('batch', lambda: self.look.weights(batch=2)),
                            ('rows', lambda: self.look.weights(slice(0, 9, 2))), ('rows', lambda: self.look.weights(slice(5, 5))),
                            ('last', lambda: self.look.key_mass(41)), ('last', lambda: self.look.key_mass(3, rows=2)),
                            ('k', lambda: self.look.top(0)), ('k', lambda: self.look.top(2**64)), ('head', lambda: self.look.weights(head=slice(0, 2))),
                            ('head', lambda: self.look.derive(0, 0, head=None)), ('lse', lambda: fovea.inspect(self.q, self.k, lse=np.zeros(3, np.float32))),
                            ('form', lambda: self.look.derivation(0, 0, form='prose')), ('key', lambda: self.look.derive(0, 60)),
                            ('size', lambda: self.look.map((0, 4))), ('reducer', lambda: self.look.map(reducer='mean')),
                            ('colormap', lambda: self.look.map(colormap='rainbow')), ('color_scale', lambda: self.look.map(color_scale='x')),
                            ('path', lambda: self.look.map().save('map.jpeg'))):
            with self.assertRaisesRegex(ValueError, field):
                call()


class Maps(unittest.TestCase):
    def test_the_picture_is_that_of_fovea_map(self):
        q, k, v = tensors(1, 2, 2, 300, 300, 8, seed=4)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            write_safetensors(path / 'in.safetensors', {'q': q, 'k': k, 'v': v})
            subprocess.run([COMMAND, 'map', str(path / 'in.safetensors'), '--causal', 'top-left', '--head', '1', '--size', '64x48',
                            '--backend', 'cpu', '--png', str(path / 'out.png')], check=True, capture_output=True)
            _, lse = fovea.attention(q, k, v, causal=True, return_lse=True, device='cpu')
            made = fovea.map(q, k, lse, size=(64, 48), head=1, causal=True, device='cpu')
            made.save(path / 'mine.png')
            self.assertTrue((png_pixels(path / 'out.png') == made.rgb).all())
            self.assertTrue((png_pixels(path / 'mine.png') == made.rgb).all())
            made.save(path / 'mine.svg')
            self.assertEqual((path / 'mine.svg').read_text().count('<rect '), 64 * 48)
        self.assertEqual(made.array.shape, (48, 64))
        expected = oracle.weights(q, k, causal=True)[0, 1]
        pixel = expected[25 * 300 // 48:26 * 300 // 48, 7 * 300 // 64:8 * 300 // 64]
        self.assertAlmostEqual(float(made.array[25, 7]), pixel.sum() / len(pixel), places=6)
        self.assertEqual(made._repr_png_()[:8], b'\x89PNG\r\n\x1a\n')

    def test_a_small_map_is_the_weights(self):
        q, k, _ = tensors(1, 1, 1, 6, 6, 4)
        look = fovea.inspect(q, k)
        small = look.map(reducer='max')
        self.assertEqual(small.array.tobytes(), look.weights().tobytes())
        with tempfile.TemporaryDirectory() as folder:
            shown = pathlib.Path(folder) / 'shown.png'
            shown.write_bytes(small._repr_png_())  # large enough to be seen: 42 x 42 dots for each weight
            self.assertTrue((png_pixels(shown) == small.rgb.repeat(42, 0).repeat(42, 1)).all())


def png_pixels(path):
    """uint8 [height, width, 3] of an RGB file (PNG, 2nd edition, section 9: filters)."""
    data, at, packed = path.read_bytes(), 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack('>I', data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b'IHDR':
            width, height = struct.unpack('>II', body[:8])
        packed += body if kind == b'IDAT' else b''
        at += 12 + size
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    out = np.zeros((height + 1, 3 * width + 3), np.int64)  # with a line above and a pixel to the left, both 0
    for y, line in enumerate(lines, 1):
        for x, byte in enumerate(line[1:], 3):
            a, b, c = out[y, x - 3], out[y - 1, x], out[y - 1, x - 3]
            nearest = min((a, b, c), key=lambda n: abs(a + b - c - n))
            out[y, x] = (int(byte) + (0, a, b, (a + b) // 2, nearest)[line[0]]) % 256
    return out[1:, 3:].reshape(height, width, 3)


class Notebook(unittest.TestCase):
    def test_a_lesson_comes_out_digit_for_digit(self):
        shown = fovea.lesson(3)
        self.assertTrue(shown.tables and all(table.exact for table in shown.tables))
        self.assertIn(html.escape(shown.tables[0].ours[0]), shown._repr_html_())
        self.assertEqual(fovea.lesson('t1-08').name, 't1-08-causal-weights')
        self.assertIn('tensor(', str(shown))
        seeded = fovea.lesson(2, seed=7)
        self.assertEqual(seeded.seed, 7)
        self.assertFalse(all(table.exact for table in seeded.tables))
        self.assertEqual(len(fovea.lessons()), 44)
        with self.assertRaisesRegex(ValueError, 'no such'):
            fovea.lesson('no such lesson')

    def test_a_view_holds_the_session_whose_numbers_are_the_calls(self):
        q, k, v = tensors(1, 2, 2, 6, 6, 4)
        view = fovea.view(q, k, v, causal=True, head=1)
        numbers = [float(n) for n in view.stage('weights', head=1).split()]
        expected = oracle.weights(q, k, causal=True)[0, 1]
        self.assertEqual(len(numbers), 36)
        np.testing.assert_allclose(numbers, expected.ravel(), atol=6e-5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'a.fovea'
            view.save(path)
            printed = subprocess.run([COMMAND, 'session', str(path), '--stage', 'weights', '--head', '1'], check=True, capture_output=True,
                                     text=True).stdout
            self.assertEqual(printed, view.stage('weights', head=1))
        self.assertIn('"level": 3', view.session)
        self.assertIn('cat', fovea.view(text='The cat sat', level=1).session)
        for field, call in (('k', lambda: fovea.view(q)), ('text', lambda: fovea.view(q, k, text='a')), ('v', lambda: fovea.view(v=v)),
                            ('color', lambda: fovea.view(text='a', color=3)), ('level', lambda: fovea.view(text='a', level=99))):
            with self.assertRaisesRegex(ValueError, field):
                call()

    def test_a_view_of_a_model_and_a_text_shows_a_task_or_a_layer_with_its_tokens(self):
        task = fovea.view('induction', 'with fovea fovea fovea', head=2)
        self.assertIn('"task": "induction"', task.session)
        for name in fovea._declarations.TASKS:  # from the table that all programs share
            self.assertIn(f'"task": "{name}"', fovea.view(name).session)
        self.assertIn('text', fovea._declarations.TASKS)
        rows = [[float(n) for n in line.split()] for line in task.stage('weights', head=2).splitlines()]
        np.testing.assert_allclose(np.sum(rows, 1), 1, atol=1e-5)
        q, k, v = tensors(1, 4, 2, 5, 5, 8, seed=3)
        options = {'causal': True, 'align': 'bottom-right', 'window': (2, None), 'scale': 0.3, 'softcap': 5.0, 'sinks': None}
        o, lse = fovea.attention(q, k, v, return_lse=True, **options)
        words = ['The', ' cat', ' "sat"', '</script>', ' Größe']
        kept = {3: fovea.transformers.Kept(q, k, v, o, lse, options)}
        read = fovea.transformers.Read(None, np.arange(5), words, kept)
        with mock.patch('fovea.transformers.read', return_value=read) as reading:
            view = fovea.view('some/folder', 'The cat', layer=3, head=1)
        self.assertEqual(reading.call_args.args, ('some/folder', 'The cat'))
        numbers = [float(n) for n in view.stage('weights', head=1).split()]
        np.testing.assert_allclose(numbers, oracle.weights(q, k, **options)[0, 1].ravel(), atol=1e-6)
        self.assertEqual(json.loads(view.session)['tensors']['tokens'], words)
        self.assertNotIn('</script>', view.session.replace('<', '\\u003c'))
        refused = dict(options, sinks=np.zeros(4, np.float32))
        for field, call in (('layer', lambda: fovea.view('some/folder', 'a', layer=1)),
                            ('layer', lambda: fovea.view('some/folder', 'a', layer=4)), ('text', lambda: fovea.view('some/folder')),
                            ('text', lambda: fovea.view('induction', 3)),
                            ('tokens', lambda: fovea.view(q, k, v, tokens=['a'])), ('tokens', lambda: fovea.view(text='a', tokens=['a'])),
                            ('model', lambda: fovea.view('no/such/folder', 'a'))):
            kept[4] = kept[3]._replace(options=refused)
            with self.assertRaisesRegex(ValueError, field), contextlib.ExitStack() as stack:
                if field == 'layer':
                    stack.enter_context(mock.patch('fovea.transformers.read', return_value=read))
                elif field == 'model':
                    stack.enter_context(mock.patch.dict(sys.modules, {'torch': None}))
                call()

    def test_the_session_stands_within_the_page_and_its_frame(self):
        view = fovea.view(text='</script><b>')
        with tempfile.TemporaryDirectory() as folder:
            parts = [b'\0asm' + bytes(range(256)) * 300, bytes(range(255, 0, -1)) * 40]
            whole = '<html><head><title>x</title></head><body>"{}" "{}"</body></html>'.format(
                *(base64.b64encode(part).decode() for part in parts))
            paths = [pathlib.Path(folder) / name for name in ('whole.html', 'page.html', 'page.xz')]
            paths[0].write_text(whole)
            split = pathlib.Path(__file__).resolve().parents[2] / 'python' / 'tools' / 'split_page.py'
            subprocess.run([sys.executable, str(split), *map(str, paths)], check=True)
            self.assertEqual(lzma.decompress(paths[2].read_bytes()), b''.join(parts))
            with mock.patch('fovea._notebook._FOLDER', folder):
                made, frame = view.page(), view._repr_html_()
        self.assertEqual(re.sub('(?s)<script.*</script>', '', made), whole)
        with mock.patch.dict(sys.modules, {'lzma': None}), self.assertRaisesRegex(fovea.FoveaError, 'without the module lzma'):
            view.page()
        inside = re.search('<script type="application/json" id="session">(.*?)</script></head>', made, re.DOTALL)
        self.assertNotIn('<', inside[1])
        self.assertEqual(inside[1].replace('\\u003c', '<'), view.session)
        self.assertIn(html.escape(made), frame)


class Model:
    """As much of a layer as transformers' interface looks at."""
    is_causal = True

    def __init__(self, layer):
        self.layer_idx = layer


class Masking:
    """The parts of transformers.masking_utils (4.53 to 5) that fovea.transformers uses, on numpy's arrays."""

    def and_masks(*parts):
        mask_functions = parts

        def and_mask(b, h, q, k):
            return np.logical_and.reduce(np.broadcast_arrays(*(part(b, h, q, k) for part in mask_functions)))
        return and_mask

    def causal_mask_function(b, h, q, k):
        return k <= q

    def bidirectional_mask_function(b, h, q, k):
        return q >= 0

    def sliding_window_overlay(window):
        def inner_mask(b, h, q, k):
            return k > q - window
        return inner_mask

    def packed_sequence_mask_function(packed_sequence_mask):
        def inner_mask(b, h, q, k):
            return packed_sequence_mask[b, q] == packed_sequence_mask[b, k]
        return inner_mask

    def flash_attention_mask(attention_mask=None, **given):
        return None if attention_mask is None or attention_mask.all() else attention_mask

    def sdpa_mask(batch_size, kv_length, mask_function, kv_offset=0, q_offset=0, q_length=0, cache_position=None, **given):
        assert not given['allow_is_causal_skip'] and not given['allow_torch_fix']
        rows = np.arange(q_length) + q_offset if cache_position is None else cache_position
        mask = np.broadcast_to(mask_function(0, 0, rows[:, None], np.arange(kv_length) + kv_offset), (len(rows), kv_length))
        return np.broadcast_to(mask, (batch_size, 1, *mask.shape))

    def eager_mask(dtype, **given):
        mask = Masking.sdpa_mask(**given, allow_is_causal_skip=False, allow_torch_fix=False)
        return np.where(mask, dtype(0), np.finfo(dtype).min)


class Transformers(unittest.TestCase):
    """transformers itself is not needed: its interface is a table of functions."""

    def setUp(self):
        self.registered = {}
        attention = types.SimpleNamespace(register=lambda name, function: self.registered.__setitem__(name, function))
        masks = types.SimpleNamespace(register=lambda name, function: self.registered.__setitem__(name + '-mask', function))
        stand_in = types.ModuleType('transformers')
        stand_in.AttentionInterface, stand_in.AttentionMaskInterface = attention, masks
        stand_in.masking_utils = Masking
        stand_in.MODEL_MAPPING = {dict: types.SimpleNamespace(_supports_attention_backend=True), list: types.SimpleNamespace()}
        patch = mock.patch.dict(sys.modules, {'transformers': stand_in})
        patch.start()
        self.addCleanup(patch.stop)
        self.kept = fovea.transformers.register(layers=[1])
        self.q, self.k, self.v = tensors(2, 4, 2, 9, 9, 8)

    def run_layer(self, layer=1, q=None, **given):
        output, weights = self.registered['fovea'](Model(layer), Foreign(self.q if q is None else q), Foreign(self.k), Foreign(self.v),
                                                   given.pop('mask', None), scaling=0.3, dropout=0.0, **given)
        self.assertIsNone(weights)
        return output.transpose(0, 2, 1, 3)  # the interface wants [B, L, H, D]

    def test_causal_layers_windows_and_caches(self):
        self.assertIn('fovea-mask', self.registered)
        for given, options in (({}, {}), ({'sliding_window': 3}, {'window': (2, None)}), ({'softcap': 4.0}, {'softcap': 4.0}),
                               ({'s_aux': np.arange(4, dtype=np.float32)}, {'sinks': np.arange(4, dtype=np.float32)})):
            expected = oracle.attention(self.q, self.k, self.v, causal=True, scale=0.3, **options)[0]
            np.testing.assert_allclose(self.run_layer(**given), expected, atol=2e-6)
        last = self.q[:, :, -2:]
        expected = oracle.attention(last, self.k, self.v, causal=True, align='bottom-right', scale=0.3)[0]
        np.testing.assert_allclose(self.run_layer(q=np.ascontiguousarray(last)), expected, atol=2e-6)

    def test_padding_and_masks_of_the_model(self):
        padding = np.ones((2, 9), np.int64)
        padding[1, :4] = 0
        expected = oracle.attention(self.q, self.k, self.v, causal=True, scale=0.3, mask=padding[:, None, None, :] != 0)[0]
        np.testing.assert_allclose(self.run_layer(mask=padding), expected, atol=2e-6)
        added = np.where(np.tri(9, dtype=bool), 0, -np.inf).astype(np.float32)[None, None]
        expected = oracle.attention(self.q, self.k, self.v, causal=True, scale=0.3)[0]
        np.testing.assert_allclose(self.run_layer(mask=added), expected, atol=2e-6)

    def test_masks_that_the_call_does_not_say_are_made_in_full(self):
        ask, causal = self.registered['fovea-mask'], Masking.causal_mask_function
        window = Masking.and_masks(Masking.sliding_window_overlay(3), causal)
        packed = Masking.and_masks(causal, Masking.packed_sequence_mask_function(np.arange(9)[None] >= 4))
        one_text = Masking.and_masks(causal, Masking.packed_sequence_mask_function(np.zeros((2, 9), int)))
        pictures = lambda b, h, q, k: causal(b, h, q, k) | (q < 3) & (k < 3)  # noqa: E731
        padding = np.ones((2, 9), bool)
        said = dict(batch_size=2, kv_length=9, kv_offset=0, config={}, dtype=np.float32)
        new, old = dict(q_offset=0, q_length=9), dict(cache_position=np.arange(9))
        for where in (new, old, dict(q_offset=8, q_length=1)):
            for rule in (causal, window, one_text, Masking.bidirectional_mask_function):
                self.assertIsNone(ask(mask_function=rule, attention_mask=padding, **where, **said))
        rows, keys = np.arange(9)[:, None], np.arange(9)
        for rule in (packed, pictures, Masking.and_masks(window, packed)):
            mask = ask(mask_function=rule, attention_mask=None, **new, **said)
            self.assertTrue((mask == rule(0, 0, rows, keys)).all())
            expected = oracle.attention(self.q, self.k, self.v, scale=0.3, mask=mask)[0]
            np.testing.assert_allclose(self.run_layer(mask=Foreign(mask.astype(np.float32) * 1e30 - 1e30)), expected, atol=2e-6)
        # A cache of 9 rows, 5 of them filled: the last query is at key 4.
        for where in (dict(q_offset=0, q_length=5), dict(cache_position=np.arange(5)), dict(q_offset=4, q_length=1)):
            mask = ask(mask_function=causal, attention_mask=None, **where, **said)
            self.assertEqual(mask[0, 0].sum(1).tolist(), [1, 2, 3, 4, 5][-mask.shape[2]:])
        # A model that does not use the interface adds its mask by itself.
        added = ask(mask_function=causal, attention_mask=None, **new, **dict(said, config=[]))
        self.assertEqual((added.dtype, added[0, 0, 0, 1] < -1e30, added[0, 0, 1, 0]), (np.float32, True, 0))
        with self.assertRaisesRegex(ValueError, '^head_mask'):
            self.run_layer(head_mask=np.ones(4))

    def test_layers_that_were_not_kept_say_so(self):
        self.assertIn('no attention call came', repr(self.kept))
        with self.assertRaisesRegex(KeyError, 'layer 5 was not kept: no attention call came'):
            self.kept[5]
        self.run_layer(layer=1)
        with self.assertRaisesRegex(KeyError, r'layer 5 was not kept: kept are \[1\]'):
            self.kept[5]
        for layers in (2, 'all', [-1], [1.5], [True]):
            with self.assertRaisesRegex(fovea.Refused, '^layers'):
                fovea.transformers.register(layers=layers)

    def test_a_read_of_layers_that_the_model_does_not_have_is_refused(self):
        class Whole:
            config, training, device = types.SimpleNamespace(_attn_implementation='eager'), False, 'cpu'
            set_attn_implementation = train = lambda self, given: None

            def eval(model):
                return lambda **given: self.registered['fovea-read'](Model(1), Foreign(self.q), Foreign(self.k), Foreign(self.v))

        torch = types.ModuleType('torch')
        torch.no_grad, torch.is_grad_enabled, torch.Tensor = contextlib.nullcontext, lambda: False, Whole

        class Ids(np.ndarray):
            to = cpu = lambda self, *given: self
            numpy = lambda self: np.asarray(self)  # noqa: E731

        read = mock.Mock(side_effect=lambda text, return_tensors: {'input_ids': np.arange(9)[None].view(Ids)}, decode=str)
        with mock.patch.dict(sys.modules, {'torch': torch}):
            self.assertEqual(list(fovea.transformers.read(Whole(), 'a', layers=[1], tokenizer=read).layers), [1])
            with self.assertRaisesRegex(fovea.Refused, '^layers has 99'):
                fovea.transformers.read(Whole(), 'a', layers=[1, 99], tokenizer=read)

    def test_chosen_layers_are_kept_without_a_matrix(self):
        self.run_layer(layer=0)
        self.assertEqual(list(self.kept), [])
        self.run_layer(layer=1)
        self.assertEqual(list(self.kept), [1])
        kept = self.kept[1]
        self.assertEqual(kept.q.__array_interface__['data'][0], self.q.__array_interface__['data'][0])
        np.testing.assert_allclose(kept.inspect().weights(head=3, batch=1), oracle.weights(self.q, self.k, causal=True, scale=0.3)[1, 3],
                                   rtol=2e-5)
        with self.assertRaisesRegex(ValueError, 'dropout'):
            self.registered['fovea'](Model(1), self.q, self.k, self.v, None, dropout=0.1)


class Locales(unittest.TestCase):
    def test_a_host_programs_decimal_comma_changes_no_number(self):
        with tempfile.TemporaryDirectory() as folder:
            made = shutil.which('localedef') and subprocess.run(
                ['localedef', '-i', 'de_DE', '-f', 'UTF-8', f'{folder}/de_DE.UTF-8'], capture_output=True)
            if not made or made.returncode:
                self.skipTest('no localedef here, or no sources of the locale de_DE (Debian: locales)')
            script = """
import locale, sys
import fovea, numpy as np
if sys.argv[1]:
    locale.setlocale(locale.LC_ALL, sys.argv[1])
    assert locale.localeconv()['decimal_point'] == ','
q = np.random.default_rng(0).standard_normal((2, 5, 4), np.float32)
look = fovea.inspect(q, q, q, causal=True, softcap=1.5, dropout_p=.25)
print(look.derive(row=3, key=1, head=1), *(look.derivation(row=3, key=1, form=f) for f in ('plain', 'csv', 'latex', 'python')))
shown = fovea.view(text='a b c', level=3, scale=1.5, p=.25, edits='inputs 1 2 0.9')
print(shown.session, shown.stage('weights'), shown.stage('scores'), fovea.view(q, q, q, cap=2.5).session, fovea.lesson(4))
print(fovea.lesson('t4-01')._repr_html_(), fovea.view('recall').stage('weights'))
print(fovea.explain(q.repeat(300, 1), q.repeat(300, 1), q.repeat(300, 1), causal=True))
try:
    fovea.attention(q, q, q, softcap=-1.5)
except ValueError as error:
    print(error)
for wrong in ('1,5', '1.5,2', '0x1'):
    try:
        fovea.view(text='a b c', level=3, scale=wrong)
    except ValueError as error:
        print(error)
"""
            said = [subprocess.run([sys.executable, '-c', script, name], capture_output=True, text=True,
                                   env=dict(os.environ, LOCPATH=folder)) for name in ('', 'de_DE.UTF-8')]
        self.assertEqual(said[0].returncode, 0, said[0].stderr)
        self.assertEqual(said[1].stderr, '')
        self.assertEqual(said[1].stdout, said[0].stdout)
        self.assertEqual(said[0].stdout.count('must be auto, none or a number above 0'), 3, said[0].stdout[-600:])


if __name__ == '__main__':
    sys.exit(unittest.main(verbosity=1))
