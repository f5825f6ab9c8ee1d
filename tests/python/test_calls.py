"""fovea.attention against numpy's float64: its arrays, its errors, and the state after many calls and Ctrl+C."""
from __future__ import annotations

import contextlib
import ctypes
import gc
import inspect
import io
import os
import pathlib
import pickle
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import fovea
import numpy as np
from fovea import _arrays

import oracle
import test_model

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'python' / 'tools'))
import bench  # noqa: E402

SEED = int(os.environ.get('FOVEA_TEST_SEED', '20261122'))
COMMAND = os.environ['FOVEA_COMMAND']  # the command line's program


def tensors(*shape, kind=np.float32, seed=1):
    generator = np.random.default_rng(seed)
    return tuple(generator.standard_normal(shape).astype(kind) for _ in range(3))


class Numbers(unittest.TestCase):
    def test_300_random_calls_agree_with_numpys_float64(self):
        rng = random.Random(SEED)
        for number in range(300):
            q, k, v, options = oracle.random_call(rng)
            expected, expected_lse, size = oracle.attention(q, k, v, **options)
            o, lse = fovea.attention(q, k, v, return_lse=True, device='cpu', **options)
            said = f'call {number} of FOVEA_TEST_SEED={SEED}: q {q.shape} k {k.shape} v {v.shape} {q.dtype} {options}'
            self.assertEqual(o.dtype, q.dtype, said)
            # A logit is off by its own last bits, and its weight by as much in relation; the result is rounded to its type.
            unit = 2.0**-22 * (8 + size)
            allowed = unit[..., None] * np.abs(v.astype(np.float64)).max()
            if q.dtype == np.float16:
                allowed = allowed + 2.0**-11 * (np.abs(expected) + 2.0**-14)
            error = np.abs(o - expected)
            self.assertTrue((error <= allowed).all(), f'{error.max()} {said}')
            empty = np.isneginf(expected_lse)
            self.assertTrue((np.isneginf(lse) == empty).all(), said)
            self.assertTrue((np.abs(lse[~empty] - expected_lse[~empty]) <= unit[~empty]).all(), said)

    def test_the_bits_are_those_of_fovea_attend(self):
        q, k, v = tensors(2, 4, 33, 24, seed=7)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            write_safetensors(path / 'in.safetensors', {'q': q, 'k': k, 'v': v})
            for options, arguments in (({}, []), ({'causal': True}, ['--causal', 'top-left']),
                                       ({'causal': True, 'align': 'bottom-right', 'softcap': 4, 'window': (8, 2)},
                                        ['--causal', 'bottom-right', '--softcap', '4', '--window', '8,2']),
                                       ({'dropout_p': 0.3, 'seed': 5}, ['--dropout', '0.3', '--seed', '5'])):
                subprocess.run([COMMAND, 'attend', str(path / 'in.safetensors'), '--out', str(path / 'out.safetensors'), '--backend',
                                'cpu', '--outputs', 'o,lse', *arguments], check=True, capture_output=True)
                expected = read_safetensors(path / 'out.safetensors')
                o, lse = fovea.attention(q, k, v, return_lse=True, device='cpu', **options)
                self.assertEqual(o.tobytes(), expected['o'].tobytes(), options)
                self.assertEqual(lse.tobytes(), expected['lse'].tobytes(), options)

    def test_gradients_agree_with_differences_of_float64(self):
        q, k, v = tensors(1, 2, 5, 4, seed=3)
        do = tensors(1, 2, 5, 4, seed=4)[0]
        bias = tensors(1, 2, 5, 5, seed=5)[0]
        made = fovea.gradients(q, k, v, do, causal=True, bias=bias, wrt=('q', 'k', 'v', 'bias'))
        values = {'q': q, 'k': k, 'v': v, 'bias': bias}
        for name, gradient in zip(('q', 'k', 'v', 'bias'), made):
            given = values[name].astype(np.float64)
            for at in list(np.ndindex(given.shape))[::7]:
                side = []
                for step in (1e-4, -1e-4):
                    moved = dict(values, **{name: given.copy()})
                    moved[name][at] += step
                    q2, k2, v2 = moved['q'], moved['k'], moved['v']
                    side.append((oracle.attention(q2, k2, v2, causal=True, bias=moved['bias'])[0] * do).sum())
                self.assertAlmostEqual(gradient[at], (side[0] - side[1]) / 2e-4, delta=2e-4, msg=f'd{name}{at}')
        self.assertIsNone(made.dalibi)

    def test_merged_parts_are_the_whole_call(self):
        q, k, v = tensors(2, 3, 6, 8)
        whole, lse = fovea.attention(q, k, v, return_lse=True)
        parts = [fovea.attention(q, k[:, :, a:b], v[:, :, a:b], return_lse=True) for a, b in ((0, 1), (1, 4), (4, 6))]
        nothing = (np.zeros_like(whole), np.full_like(lse, -np.inf))
        o, merged = fovea.merge([parts[0], nothing, *parts[1:]])
        self.assertLess(np.abs(o - whole).max(), 1e-6)
        self.assertLess(np.abs(merged - lse).max(), 1e-6)
        o, merged = fovea.merge([nothing, nothing])
        self.assertTrue((o == 0).all() and np.isneginf(merged).all())


class Arrays(unittest.TestCase):
    def test_a_row_sees_the_mean_of_what_causal_leaves_it(self):
        ones = np.ones((4, 2), np.float32)
        v = np.array([[0, 0], [1, 0], [2, 0], [3, 0]], np.float32)
        self.assertEqual(fovea.attention(ones, ones, v, causal=True)[:, 0].tolist(), [0, 0.5, 1, 1.5])

    def test_the_readmes_example_prints_what_it_says(self):
        readme = pathlib.Path(__file__).resolve().parent.parent.parent / 'README.md'
        block = readme.read_text(encoding='utf-8').split('```python\n')[1].split('```')[0]
        printed = subprocess.run([sys.executable, '-c', block], check=True, capture_output=True, text=True).stdout
        self.assertTrue(printed.startswith('[0.  0.5 1.  1.5]\n'), printed)
        self.assertIn('flash: ', printed)

    def test_the_documents_code_runs_as_it_stands(self):
        docs = pathlib.Path(__file__).resolve().parents[2] / 'docs'
        before, ran = os.getcwd(), 0
        for page in sorted(docs.rglob('*.md')):
            q, k, v = tensors(1, 4, 300, 8)[0], *tensors(1, 2, 300, 8, seed=2)[:2]
            lse = fovea.attention(q, k, v, causal=True, return_lse=True)[1]
            names = {'fovea': fovea, 'np': np, 'q': q, 'k': k, 'v': v, 'lse': lse}
            names |= {'next_q': q[:, :, -1:], 'next_k': k[:, :, -1:], 'next_v': v[:, :, -1:]}
            with self.subTest(page=page.name), tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                os.chdir(folder)
                names['PATH'] = pathlib.Path(folder) / 'model.gguf'
                test_model.make_model(names['PATH'], 1)
                try:
                    for block in page.read_text(encoding='utf-8').split('```python\n')[1:]:
                        code = block.split('```')[0]
                        if not re.search('torch|transformers', code):  # those need PyTorch; the next test has the one for autograd
                            exec(code, names)
                            ran += 1
                finally:
                    os.chdir(before)
        self.assertGreater(ran, 2)

    def test_the_references_autograd_function_gives_the_gradients(self):
        page = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'reference' / 'python.md'
        code = re.search(r'```python\n((?:(?!```).)*autograd\.Function.*?)```', page.read_text(encoding='utf-8'), re.DOTALL)[1]
        names, torch = {}, types.SimpleNamespace(autograd=types.SimpleNamespace(Function=object))
        with mock.patch.dict(sys.modules, {'torch': torch}):
            exec(code, names)
        q, k, v = tensors(1, 2, 9, 8)
        context = types.SimpleNamespace(save_for_backward=lambda *kept: setattr(context, 'saved_tensors', kept))
        o = names['Attention'].forward(context, q, k, v, {'causal': True})
        self.assertEqual(o.tobytes(), fovea.attention(q, k, v, causal=True).tobytes())
        *got, rest = names['Attention'].backward(context, v)
        self.assertIsNone(rest)
        self.assertEqual([one.tobytes() for one in got], [one.tobytes() for one in fovea.gradients(q, k, v, v, causal=True)[:3]])

    def test_the_reference_has_every_public_name_with_its_arguments(self):
        page = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'reference' / 'python.md'
        sections = dict(re.findall(r'^### (?:class )?fovea\.(\w+)\n(.*?)(?=^#{2,3} |\Z)', page.read_text(encoding='utf-8'),
                                   re.MULTILINE | re.DOTALL))
        self.assertEqual(sorted(sections), sorted(fovea.__all__))
        for name, text in sections.items():
            value = getattr(fovea, name)
            if not isinstance(value, type):
                expected = [p.name for p in inspect.signature(value).parameters.values() if p.kind != p.VAR_KEYWORD]
                if name in ('plan', 'explain', 'merge'):
                    expected = [argument for argument in expected if argument not in ('return_lse', 'device')]
            elif issubclass(value, tuple):
                expected = value._fields
            else:
                expected = [member for member in vars(value) if not member.startswith('_') and member not in ('handle', 'abandon')]
            with self.subTest(name=name):
                self.assertEqual([word for word in expected if not re.search(rf'\b{word}\b', text)], [])

    def test_views_and_layouts_give_the_same_bits_and_are_not_copied(self):
        q, k, v = tensors(2, 3, 9, 8)
        expected = fovea.attention(q, k, v, causal=True)
        tokens_first = [np.ascontiguousarray(a.transpose(0, 2, 1, 3)) for a in (q, k, v)]
        self.assertEqual(fovea.attention(*(a.transpose(0, 2, 1, 3) for a in tokens_first), causal=True).tobytes(), expected.tobytes())
        of_layout = fovea.attention(*tokens_first, causal=True, layout='bshd')
        self.assertEqual(of_layout.transpose(0, 2, 1, 3).tobytes(), expected.tobytes())
        fused = np.concatenate(tokens_first, axis=-1)  # [B, L, H, 3 D]: rows with gaps
        parts = [fused[..., 8 * n:8 * n + 8] for n in range(3)]
        for part in parts:
            self.assertIs(_arrays.readable(part, 'q'), part)
        self.assertEqual(fovea.attention(*parts, causal=True, layout='bshd').tobytes(), of_layout.tobytes())
        shared = np.broadcast_to(k[:, :1], k.shape)
        self.assertEqual(fovea.attention(q, shared, v).tobytes(), fovea.attention(q, np.ascontiguousarray(shared), v).tobytes())
        self.assertEqual(fovea.attention(q[..., ::-1], k[..., ::-1], v).shape, q.shape)  # negative steps are copied

    def test_fewer_dimensions_leave_out_batch_and_heads(self):
        q, k, v = tensors(1, 3, 5, 4)
        o, lse = fovea.attention(q, k, v, return_lse=True)
        o3, lse3 = fovea.attention(q[0], k[0], v[0], return_lse=True)
        o2, lse2 = fovea.attention(q[0, 1], k[0, 1], v[0, 1], return_lse=True)
        self.assertEqual((o3.shape, lse3.shape, o2.shape, lse2.shape), ((3, 5, 4), (3, 5), (5, 4), (5,)))
        self.assertTrue((o[0] == o3).all() and (o[0, 1] == o2).all() and (lse[0, 1] == lse2).all())

    def test_foreign_byte_orders_give_the_machines_own_numbers(self):
        q, k, v = tensors(2, 3, 9, 8)
        sinks, do = q[0, :, 0, 0].copy(), tensors(2, 3, 9, 8, seed=5)[0]
        o, lse = fovea.attention(q, k, v, sinks=sinks, return_lse=True)
        swapped = [array.astype(array.dtype.newbyteorder('S')) for array in (q, k, v)]
        turned = [array.astype(array.dtype.newbyteorder('S')) for array in (o, lse, do, sinks)]
        kept = fovea.plan(*swapped, sinks=turned[3], return_lse=True)
        for got in (fovea.attention(*swapped, sinks=turned[3], return_lse=True), kept(*swapped), kept(q, k, v),
                    fovea.merge([tuple(turned[:2])])):
            self.assertTrue(np.array_equal(got[0], o) and np.array_equal(got[1], lse))
        expected = fovea.gradients(q, k, v, do, sinks=sinks, dlse=lse, wrt=('q', 'k', 'v', 'sinks'))
        made = fovea.gradients(*swapped, turned[2], o=turned[0], lse=turned[1], dlse=turned[1], sinks=turned[3], wrt=('q', 'k', 'v', 'sinks'))
        for name in ('dq', 'dk', 'dv', 'dsinks'):
            self.assertTrue(np.array_equal(getattr(made, name), getattr(expected, name)), name)
        looks = (fovea.inspect(q, k, lse=lse), fovea.inspect(*swapped[:2], lse=turned[1]))
        self.assertTrue(np.array_equal(*(look.weights(head=1) for look in looks)))
        words = [(t.view(np.uint32) >> 16).astype(np.uint16) for t in (q, k, v)]
        their = fovea.attention(*(w.astype(w.dtype.newbyteorder('S')) for w in words), dtype='bfloat16')
        self.assertTrue(np.array_equal(their, fovea.attention(*words, dtype='bfloat16')))

    def test_arrays_may_begin_anywhere(self):
        def moved(array, by=1):
            memory = np.zeros(array.nbytes + by, np.uint8)
            there = memory[by:].view(array.dtype).reshape(array.shape)
            there[...] = array
            return there
        q, k, v = tensors(2, 3, 8, 8)
        sinks, do = q[0, :, 0, 0].copy(), tensors(2, 3, 8, 8, seed=5)[0]
        wide = np.random.default_rng(3).random((8, 11)) < 0.7
        mask, bias = wide[:, 3:], q[0, 0].astype(np.float16)
        o, lse = fovea.attention(q, k, v, sinks=sinks, mask=mask.copy(), bias=bias, return_lse=True)
        options = {'sinks': moved(sinks), 'mask': mask, 'bias': moved(bias, 2)}
        for arrays in ((moved(q), moved(k), moved(v)), (q, k, v)):
            kept = fovea.plan(*arrays, return_lse=True, **options)
            for got in (fovea.attention(*arrays, return_lse=True, **options), kept(*arrays), kept(moved(q, 3), k, v)):
                self.assertTrue(np.array_equal(got[0], o) and np.array_equal(got[1], lse))
            made = fovea.gradients(*arrays, moved(do), o=moved(o), lse=moved(lse), **dict(options, mask=moved(mask), bias=moved(bias)))
            self.assertTrue(np.array_equal(made.dq, fovea.gradients(q, k, v, do, sinks=sinks, mask=mask.copy(), bias=bias).dq))

    def test_memory_of_others_goes_in_without_a_copy_and_lives_as_long_as_it_is_read(self):
        for kind in (np.float32, np.float16, np.int32):
            given = (tensors(2, 3, 4)[0] * 9).astype(kind)
            array = _arrays.as_array('q', Foreign(given))
            self.assertEqual(array.__array_interface__['data'][0], given.__array_interface__['data'][0])
            self.assertTrue((array == given).all() and array.dtype == given.dtype)
        q, k, v = tensors(1, 2, 7, 4)
        o = fovea.attention(Foreign(q), Foreign(k), Foreign(v))
        self.assertEqual(o.tobytes(), fovea.attention(q, k, v).tobytes())
        with self.assertRaisesRegex(ValueError, '^k is on a device'):
            fovea.attention(q, Foreign(k, device=2), v)

    def test_a_tensors_negative_bit_is_applied_and_one_that_autograd_follows_is_refused(self):
        q, k, v = tensors(1, 2, 7, 4)
        expected = fovea.attention(q, -k, v).tobytes()
        self.assertEqual(fovea.attention(q, Foreign(k, negative=True), v).tobytes(), expected)
        self.assertEqual(fovea.plan(q, k, v)(q, Foreign(k, negative=True), v).tobytes(), expected)
        for call in (fovea.attention, fovea.inspect, fovea.map):
            with self.assertRaisesRegex(fovea.Refused, r'^k requires grad.* k\.detach\(\)'):
                call(q, Foreign(k, requires_grad=True), v)

    def test_bfloat16_is_read_where_it_lies_and_written_as_it_came(self):
        words = [(t.view(np.uint32) >> 16).astype(np.uint16) for t in tensors(2, 3, 17, 8)]
        wide = [(w.astype(np.uint32) << 16).view(np.float32) for w in words]
        array = _arrays.as_array('q', Foreign(words[0], code=4))
        self.assertEqual(array.__array_interface__['data'][0], words[0].__array_interface__['data'][0])
        self.assertTrue((_arrays.widened(array) == wide[0]).all())
        exact, lse = fovea.attention(*wide, causal=True, return_lse=True)
        o, its_lse = fovea.attention(*words, causal=True, return_lse=True, dtype='bfloat16')
        self.assertEqual(o.dtype, np.uint16)
        self.assertTrue(np.array_equal(lse, its_lse))
        near = (o.astype(np.uint32) << 16).view(np.float32)
        self.assertLessEqual(float((abs(near - exact) / abs(exact)).max()), 2**-8)
        self.assertEqual(fovea.attention(*(Foreign(w, code=4) for w in words), causal=True).tobytes(), o.tobytes())
        self.assertEqual(fovea.plan(*words, causal=True, dtype='bfloat16')(*words).tobytes(), o.tobytes())
        halves = [fovea.attention(words[0], words[1][:, :, part], words[2][:, :, part], return_lse=True, dtype='bfloat16')
                  for part in (slice(0, 9), slice(9, 17))]
        merged, _ = fovea.merge(halves, dtype='bfloat16')
        whole = fovea.attention(*wide)
        self.assertEqual(merged.dtype, np.uint16)
        self.assertLess(float(abs((merged.astype(np.uint32) << 16).view(np.float32) - whole).max()), 2**-6)
        dq = fovea.gradients(*words, o, dtype='bfloat16', causal=True).dq
        wide_dq = fovea.gradients(*wide, near, causal=True).dq
        self.assertEqual(dq.dtype, np.uint16)
        self.assertLess(float(abs((dq.astype(np.uint32) << 16).view(np.float32) - wide_dq).max()), 0.03 * float(abs(wide_dq).max()))
        with self.assertRaisesRegex(ValueError, "^q is uint16; it must be float32, float16 or bfloat16; words of bfloat16 need dtype"):
            fovea.attention(*words)
        with self.assertRaisesRegex(ValueError, "^dtype is 'bf16'; it must be 'bfloat16'"):
            fovea.attention(*words, dtype='bf16')

    def test_kept_plans_read_new_arrays_and_refuse_other_shapes(self):
        q, k, v = tensors(2, 2, 6, 8)
        keep = fovea.plan(q, k, v, causal=True, return_lse=True)
        q2, k2, v2 = tensors(2, 2, 6, 8, seed=9)
        for a, b in zip(keep(q2, k2, v2), fovea.attention(q2, k2, v2, causal=True, return_lse=True)):
            self.assertEqual(a.tobytes(), b.tobytes())
        with self.assertRaisesRegex(ValueError, '^k is float32'):
            keep(q, k[:, :, :5], v)
        with self.assertRaisesRegex(ValueError, '^v has other strides'):
            keep(q, k, np.concatenate([v, v], axis=3)[..., :8])
        self.assertIn('pairs of query and key computed: 84 of 144', keep.explain())  # causal: 21 of 36, four heads
        self.assertGreater(keep.info.flops, 0)

    def test_threads_may_call_at_once(self):
        own, wrong = [tensors(2, 2, 64, 16, seed=seed) for seed in range(4)], []
        shared = fovea.plan(*own[0])

        def work(arrays, expected):
            for _ in range(200):
                if shared(*arrays).tobytes() != expected or fovea.attention(*arrays).tobytes() != expected:
                    wrong.append(1)
        threads = [threading.Thread(target=work, args=(arrays, fovea.attention(*arrays).tobytes())) for arrays in own]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(wrong)

    def test_a_forked_child_opens_a_device_of_its_own_for_calls_and_for_what_its_parent_kept(self):
        q, k, v = tensors(1, 2, 256, 16)
        engine = fovea.open_engine('cpu', threads=2)
        kept, look = fovea.plan(q, k, v, device=engine), fovea.inspect(q, k, device=engine)
        calls = (lambda: fovea.attention(q, k, v, device='cpu'), lambda: kept(q, k, v), lambda: look.weights(3))
        expected = [call().tobytes() for call in calls]
        for call, bits in zip(calls, expected):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(0 if call().tobytes() == bits and call().tobytes() == bits else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(call().tobytes(), bits)

    def test_a_call_within_a_call_of_the_same_thread_is_refused(self):
        q, k, v = tensors(1, 2, 4, 8)
        kept = fovea.plan(q, k, v, device='cpu')
        for within in (lambda: kept(q, k, v), lambda: fovea.attention(q, k, v, device='cpu')):  # as a signal handler may do
            with self.assertRaisesRegex(fovea.Refused, '^device is in the middle of a call'):
                kept._plan.exclusively(within)
        self.assertEqual(kept(q, k, v).tobytes(), fovea.attention(q, k, v, device='cpu').tobytes())

    def test_errors_come_back_from_a_worker_process(self):
        for error in (fovea.Refused('q is wrong', 'q'), fovea.FoveaError('no device', 7, 'device')):
            back = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(back), str(back), vars(back)), (type(error), str(error), vars(error)))


class Foreign:
    """An array of another library, as far as DLPack tells: its capsule is made here by hand."""

    def __init__(self, array, code=None, device=1, negative=False, requires_grad=False):
        self.array, self.code, self.device, self.negative, self.requires_grad = array, code, device, negative, requires_grad

    # As PyTorch has it: a bit says that the memory's numbers are of the other sign.
    def is_neg(self):
        return self.negative

    def resolve_neg(self):
        self.resolved = Foreign(-self.array)  # its capsule does not own it, unlike PyTorch's
        return self.resolved

    @property
    def shape(self):
        return self.array.shape

    def __dlpack__(self):
        array = self.array
        tensor = _arrays._DLTensor()
        tensor.data, tensor.device_type, tensor.ndim = array.__array_interface__['data'][0], self.device, array.ndim
        tensor.code = {'f': 2, 'i': 0, 'u': 1}[array.dtype.kind] if self.code is None else self.code
        tensor.bits, tensor.lanes = array.itemsize * 8, 1
        tensor.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        tensor.strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.tensor = tensor
        return make(ctypes.addressof(tensor), b'dltensor', None)


def refused_calls():
    """(the field's name, options or tensors that are wrong): each must be a ValueError that names it."""
    q, k, v = tensors(2, 4, 6, 8)
    wrong_kind, bits = q.astype(np.float64), np.ones((6, 6), bool)
    yield from (('q', {'q': wrong_kind}), ('k', {'k': wrong_kind}), ('v', {'v': wrong_kind}), ('q', {'q': q.astype(np.int32)}),
                ('q', {'q': q[0, 0, 0]}), ('q', {'q': q[np.newaxis]}), ('k', {'k': k[0, 0, 0]}), ('v', {'v': v[None]}),
                ('k', {'k': k[:1]}), ('v', {'v': v[:1]}), ('v', {'v': v[:, :2]}), ('v', {'v': v[:, :, :5]}), ('k', {'k': k[..., :7]}),
                ('q', {'q': object()}), ('k', {'k': 'keys'}), ('v', {'v': None}), ('k', {'k': [[1.0, 2.0]]}),
                ('heads_q', {'q': q[:, :3], 'k': k[:, :2], 'v': v[:, :2]}), ('dim_qk', {'q': q[..., :0], 'k': k[..., :0]}),
                ('dim_v', {'v': v[..., :0]}), ('batch', {'q': q[:0], 'k': k[:0], 'v': v[:0]}), ('heads_q', {'q': q[:, :0]}))
    yield from (('layout', {'layout': 'sbhd'}), ('layout', {'layout': None}), ('align', {'align': 'left'}), ('align', {'align': 1.5}),
                ('align', {'align': 2**64}), ('align', {'align': -2**63 - 1}), ('window_left', {'window': (2**64 + 1, 0)}),
                ('window_right', {'window': (0, 2**63)}), ('seed', {'seed': 2**64 + 5}), ('device', {'device': 2**32}),
                ('device', {'device': 'cpu\0x'}), ('scale', {'scale': 1e39}), ('scale', {'scale': 1e-50}), ('scale', {'scale': 10**400}),
                ('softcap', {'softcap': 1e-50}), ('dtype', {'dtype': 'bfloat16'}),
                ('batch', {name: np.broadcast_to(a[:1], (2**32 + 1, *a.shape[1:])) for name, a in (('q', q), ('k', k), ('v', v))}),
                ('mask', {'mask': np.ones((2, 6), bool)}), ('mask', {'mask': np.ones((2, 6, 6), bool)}),
                ('mask', {'mask': np.ones((2, 6), np.int64)}), ('q', {'q': np.ma.masked_array(q, q > 0)}),
                ('causal', {'causal': 'none'}), ('causal', {'causal': 'bottom-right'}), ('causal', {'causal': 0.5}),
                ('align', {'align': True}), ('q_offset', {'align': 2**31}), ('scale', {'scale': 0}), ('scale', {'scale': 'x'}),
                ('scale', {'scale': np.nan}), ('scale', {'scale': np.inf}), ('softcap', {'softcap': -1}), ('softcap', {'softcap': np.nan}),
                ('softcap', {'softcap': None}), ('window', {'window': 3}), ('window', {'window': (1, 2, 3)}),
                ('window', {'window': (1.5, 0)}), ('window_left', {'window': (-2, 0)}), ('window_right', {'window': (0, -7)}),
                ('dropout_p', {'dropout_p': 1}), ('dropout_p', {'dropout_p': -0.1}), ('dropout_p', {'dropout_p': np.nan}),
                ('dropout_p', {'dropout_p': '0'}), ('seed', {'seed': -1}), ('seed', {'seed': 2**64}), ('seed', {'seed': 0.5}))
    yield from (('mask', {'mask': bits.astype(np.float32)}), ('mask', {'mask': bits[0]}), ('mask', {'mask': bits[:, :0]}),
                ('mask', {'mask': bits[:, :1]}), ('bias', {'bias': q[0, 0, :, :5]}),
                ('mask.keys', {'mask': np.ones((6, 9), bool)}), ('mask.rows', {'mask': bits[:4]}),
                ('mask.batch', {'mask': np.ones((3, 1, 6, 6), bool)}), ('mask.heads', {'mask': np.ones((3, 6, 6), bool)}),
                ('bias', {'bias': bits}), ('bias', {'bias': np.zeros((6, 6))}), ('bias.rows', {'bias': np.zeros((5, 6), np.float32)}),
                ('sinks', {'sinks': np.zeros(3, np.float32)}), ('sinks', {'sinks': np.zeros(4)}), ('alibi', {'alibi': np.zeros((4, 1), np.float32)}),
                ('alibi', {'alibi': 0.5}), ('kv_lengths', {'kv_lengths': [7, 1]}), ('kv_lengths', {'kv_lengths': [-1, 1]}),
                ('kv_lengths', {'kv_lengths': [1]}), ('kv_lengths', {'kv_lengths': [1.0, 2.0]}), ('device', {'device': 999}),
                ('device', {'device': -1}), ('device', {'device': 1.5}), ('device', {'device': 'no such device'}))


class Refusals(unittest.TestCase):
    def test_refused_calls_name_the_field(self):
        q, k, v = tensors(2, 4, 6, 8)
        count = 0
        for field, changes in refused_calls():
            options = dict({'q': q, 'k': k, 'v': v}, **changes)
            with self.assertRaises(ValueError, msg=f'{field} {changes}') as raised:
                fovea.attention(options.pop('q'), options.pop('k'), options.pop('v'), **options)
            line = str(raised.exception)
            self.assertIn(field.split('.')[-1], line, changes)
            self.assertEqual(len(line.splitlines()), 1, line)
            self.assertIn(field.split('.')[0], raised.exception.field + line, changes)
            count += 1
        self.assertGreaterEqual(count, 60)

    def test_refused_gradients_and_parts_name_the_field(self):
        q, k, v = tensors(1, 2, 3, 4)
        for field, call in (('wrt', lambda: fovea.gradients(q, k, v, q, wrt=('x',))), ('do', lambda: fovea.gradients(q, k, v, q[:, :1])),
                            ('wrt', lambda: fovea.gradients(q, k, v, q, wrt=('bias',))), ('parts', lambda: fovea.merge([])),
                            ('parts', lambda: fovea.merge([(q, q)])),
                            ('parts', lambda: fovea.merge([q, q])), ('wrt', lambda: fovea.gradients(q, k, v, q, wrt=())),
                            ('causal', lambda: fovea.view(q, k, v, causal='none')),
                            ('lse', lambda: fovea.gradients(q, k, v, q, o=q, lse=np.zeros((1, 3, 2), np.float32))),
                            ('dlse', lambda: fovea.gradients(q, k, v, q, dlse=np.zeros((3, 2), np.float32))),
                            ('lse', lambda: fovea.inspect(q, k, lse=np.zeros((1, 3, 2), np.float32))),
                            ('dtype', lambda: fovea.merge([(q, q[..., 0])], dtype='bfloat16')),
                            ('threads', lambda: fovea.open_engine('cpu', threads=2**32 + 1)),
                            ('threads', lambda: fovea.open_engine('cpu', threads=1.5)),
                            ('seed', lambda: fovea.lesson(2, seed=2**64)), ('name', lambda: fovea.lesson('t1-08\0x')),
                            ('colormap', lambda: fovea.map(q, k, colormap='viridis\0x')),
                            ('head', lambda: fovea.view(q, k, v).stage('weights', head=2**32))):
            with self.assertRaisesRegex(ValueError, field):
                call()

    def test_refusals_say_what_to_give_instead(self):
        q, k, v = tensors(2, 4, 6, 8)
        equal = tensors(6, 4, 6, 8)
        for advice, arrays, options in (
                ('q.astype(np.float32)', (q.astype(np.float64), k, v), {}),
                ('numbers to add to the scores are bias=', (q, k, v), {'mask': np.zeros((6, 6), np.float32)}),
                ('attention_mask != 0', (q, k, v), {'mask': np.ones((2, 6), np.int64)}),
                ('mask[:, None, None, :]', (q, k, v), {'mask': np.ones((2, 6), bool)}),
                ('mask[None] for the former, mask[:, None, None, :] for the latter', equal, {'mask': np.ones((6, 6), bool)}),
                ('mask[:, None]', (q, k, v), {'mask': np.ones((2, 6, 6), bool)}), ('q.filled(0)', (np.ma.masked_array(q), k, v), {}),
                ("leave dtype out", (q, k, v), {'dtype': 'bfloat16'})):
            with self.assertRaises(fovea.Refused) as raised:
                fovea.attention(*arrays, **options)
            self.assertIn(advice, str(raised.exception))


class Lasting(unittest.TestCase):
    def test_10000_calls_leave_no_memory_behind(self):
        q, k, v = tensors(1, 2, 6, 8)
        mask = np.ones((6, 6), bool)

        def calls(count):
            for _ in range(count // 2):
                fovea.attention(q, k, v, mask=mask, return_lse=True, device='cpu')
                try:
                    fovea.attention(q, k, v, softcap=-1, device='cpu')
                except ValueError:
                    pass
            gc.collect()
            return resident_bytes()
        before = calls(1000)
        after = calls(10000)
        self.assertLess(after - before, 2 << 20)  # a leak of one small object a call is more

    def test_ctrl_c_ends_a_long_call_and_leaves_the_process_usable(self):
        q, k, v = tensors(1, 8, 6000, 64)
        fovea.attention(q[:, :, :8], k, v, device='cpu')
        handler = signal.getsignal(signal.SIGINT)
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        plan = fovea.plan(q, k, v, device='cpu')
        start = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:  # on a fast machine the call may be over before
                plan(q, k, v)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIs(signal.getsignal(signal.SIGINT), handler)
        small = fovea.attention(q[:, :, :8], k, v, device='cpu')
        self.assertTrue(np.isfinite(small).all())


class Costs(unittest.TestCase):
    """Each limit is tried until it is met, many times, because a loaded machine makes single calls slow, but none fast."""

    def test_six_tokens_cost_at_most_25_us_with_a_kept_plan_and_130_without(self):
        for kept, without, _ in bench.six_tokens(400):
            if kept <= 25e-6 and without <= 130e-6:
                break
        self.assertLessEqual(kept, 25e-6)
        self.assertLessEqual(without, 130e-6)

    def test_large_calls_cost_within_2_percent_of_the_c_function(self):
        for tokens, is_long in ((1024, False), (1536, True)):  # the second looks for Ctrl+C between its slices
            ratio = 2.0
            for _ in range(4):  # in other memory, as a machine may be slow for seconds
                if ratio > 1.02:
                    call = bench.LargeCall(8, tokens)
                    self.assertEqual(call.plan._plan._is_long, is_long)
                    for number, (__, ratio) in enumerate(call.ratios(40)):
                        if number >= 4 and ratio <= 1.02:
                            break
            self.assertLessEqual(ratio, 1.02, tokens)


def resident_bytes():
    pages = pathlib.Path('/proc/self/statm')
    if pages.exists():
        return int(pages.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- safetensors, as far as these tests need it ----


def write_safetensors(path, arrays):
    import json
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {'dtype': 'F32', 'shape': list(array.shape), 'data_offsets': [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + b''.join(a.tobytes() for a in arrays.values()))


def read_safetensors(path):
    import json
    data = path.read_bytes()
    size = struct.unpack('<Q', data[:8])[0]
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    header.pop('__metadata__', None)
    return {name: np.frombuffer(body[slice(*entry['data_offsets'])], np.float32).reshape(entry['shape']) for name, entry in header.items()}


if __name__ == '__main__':
    sys.exit(unittest.main(verbosity=1))
