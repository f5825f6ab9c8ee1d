"""The same on a Vulkan device: calls, weights, parts, and Ctrl+C between two slices."""
from __future__ import annotations

import random
import signal
import sys
import unittest

import fovea
import numpy as np

import oracle
from test_calls import SEED, tensors


class Vulkan(unittest.TestCase):
    def test_the_device_is_one_of_those_listed(self):
        named = [device for device in fovea.devices() if device.number > 0]
        self.assertTrue(named and all(device.usable for device in named), named)
        text = fovea.explain(*tensors(1, 1, 4, 4), device=named[0].name)
        self.assertIn(named[0].name, text)

    def test_random_calls_agree_with_numpys_float64(self):
        rng = random.Random(SEED + 1)
        for number in range(2):  # the driver compiles for seconds at each new one
            q, k, v, options = oracle.random_call(rng)
            expected, _, size = oracle.attention(q, k, v, **options)
            o = fovea.attention(q, k, v, device='vulkan', **options)
            allowed = 2.0**-21 * (8 + size)[..., None] * np.abs(v.astype(np.float64)).max()
            if q.dtype == np.float16:
                allowed = allowed + 2.0**-11 * (np.abs(expected) + 2.0**-14)
            self.assertTrue((np.abs(o - expected) <= allowed).all(), f'call {number} of FOVEA_TEST_SEED={SEED}: {options}')

    def test_weights_and_merged_parts_are_right(self):
        q, k, v = tensors(1, 2, 20, 8)
        look = fovea.inspect(q, k, causal=True, device='vulkan')
        np.testing.assert_allclose(look.weights(head=1), oracle.weights(q, k, causal=True)[0, 1], rtol=5e-5, atol=1e-9)
        np.testing.assert_allclose(look.key_mass(4), oracle.weights(q, k, causal=True)[:, :, -4:].sum(2), rtol=5e-5, atol=1e-9)
        parts = [fovea.attention(q, k[:, :, a:b], v[:, :, a:b], return_lse=True, device='vulkan') for a, b in ((0, 7), (7, 20))]
        np.testing.assert_allclose(fovea.merge(parts, device='vulkan')[0], oracle.attention(q, k, v)[0], atol=2e-6)

    def test_ctrl_c_ends_a_call_between_two_slices(self):
        q, k, v = tensors(1, 4, 1600, 64)
        plan = fovea.plan(q, k, v, device='vulkan')
        self.assertGreater(plan.info.slice_count, 1)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                plan(q, k, v)
        small = fovea.attention(q[:, :, :4], k[:, :, :4], v[:, :, :4], device='vulkan')
        self.assertTrue(np.isfinite(small).all())


if __name__ == '__main__':
    sys.exit(unittest.main(verbosity=1))
