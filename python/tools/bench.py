#!/usr/bin/env python3
"""Measures a call from Python:  ./dev python python/tools/bench.py

Six tokens with a kept plan and without, compared with numpy; and large calls compared with the C function for the
same plan. Runs are interleaved, so that other load on the machine affects all alike. tests/python/test_calls.py
holds the figures to their limits."""
from __future__ import annotations

import ctypes
import statistics
import time
from typing import Any, Callable, Iterator

import fovea
import numpy as np
from fovea import _declarations as c
from fovea._library import check, lib, new_diag


def best_so_far(calls: list[Callable[[], Any]], rounds: int, repeats: int) -> Iterator[list[float]]:
    """After each round the least seconds of one call of each: what it costs where nothing else disturbs it."""
    best = [float('inf')] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            best[n] = min(best[n], (time.perf_counter() - start) / repeats)
        yield best


def numpys(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    s = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v


def random_tensors(heads: int, tokens: int, dim: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal((1, heads, tokens, dim), dtype=np.float32) for _ in range(3)]


def six_tokens(rounds: int) -> Iterator[list[float]]:
    """Seconds of a call: with a kept plan, without one, numpy's own formula."""
    q, k, v = random_tensors(1, 6, 4)
    plan = fovea.plan(q, k, v, device='cpu')
    return best_so_far([lambda: plan(q, k, v), lambda: fovea.attention(q, k, v, device='cpu'), lambda: numpys(q, k, v)], rounds, 100)


class LargeCall:
    """One plan, run from Python (with the new array for the result and, where the call is long, Ctrl+C looked for) and by the bare C
    function into memory that is there already."""

    def __init__(self, heads: int, tokens: int) -> None:
        self.arrays = random_tensors(heads, tokens, 64)
        self.plan = fovea.plan(*self.arrays, device='cpu')
        self.python()
        self._diag, self._o = new_diag(), np.empty_like(self.arrays[0])

    def python(self) -> None:
        self.plan(*self.arrays)

    def bare(self) -> None:
        inner, bindings = self.plan._plan, self.plan._call.bindings
        bindings[c.FOVEA_BIND_O].data = self._o.ctypes.data
        run = c.FoveaRun.from_buffer_copy(inner._run)
        run.host = ctypes.addressof(bindings)
        check(lib.foveaRun(inner.engine.handle, inner.handle, ctypes.byref(run), None, ctypes.byref(self._diag)), self._diag)

    def ratios(self, rounds: int) -> Iterator[tuple[float, float]]:
        """Returns medians after each round: (CPU seconds of the C function, Python's time over them). CPU time of all
        threads, because wall time on a busy machine depends on other programs."""
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds):
            for which in (0, 1) if number % 2 else (1, 0):
                start = time.process_time()
                (self.bare if which else self.python)()
                seconds[which].append(time.process_time() - start)
            python, bare = map(statistics.median, seconds)
            yield bare, python / bare


def main() -> None:
    for least in six_tokens(60):
        pass
    for name, seconds in zip(('plan kept', 'without', "numpy's formula"), least):
        print(f'six tokens, {name:16} {seconds * 1e6:8.1f} us')
    for heads, tokens in ((8, 1024), (8, 2048), (8, 4096)):
        call = LargeCall(heads, tokens)
        for bare, ratio in call.ratios(16):
            pass
        inner = call.plan._plan
        print(f'{heads} heads, {tokens} tokens: the C function {bare * 1e3:.2f} ms of processors, Python {ratio:.3f} of it '
              f'({"interruptible" if inner._is_long else "in one piece"}, {inner.info.slice_count} slices)')


if __name__ == '__main__':
    main()
