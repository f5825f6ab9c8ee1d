#!/usr/bin/env python3
"""What a call from Python costs:  ./dev python python/tools/bench.py

Six tokens with a kept plan and without, beside numpy's own formula; and large calls, Python's time over that of the library's own
clock for the same call (foveaRun's report), and of calls that Ctrl+C can end over ones that it cannot. By turns, the best of many."""
from __future__ import annotations

import ctypes
import time

import fovea
import numpy as np
from fovea import _declarations as c
from fovea import _run
from fovea._library import check, lib, new_diag


def best_of(calls, rounds, repeats):
    """The least seconds of one call of each, taken by turns."""
    best = [float('inf')] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            best[n] = min(best[n], (time.perf_counter() - start) / repeats)
    return best


def numpys(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v


def main():
    generator = np.random.default_rng(0)
    q, k, v = (generator.standard_normal((1, 1, 6, 4), dtype=np.float32) for _ in range(3))
    plan = fovea.plan(q, k, v, device='cpu')
    names = ('six tokens, plan kept', 'six tokens, without', "six tokens, numpy's formula")
    calls = (lambda: plan(q, k, v), lambda: fovea.attention(q, k, v, device='cpu'), lambda: numpys(q, k, v))
    for name, seconds in zip(names, best_of(calls, 60, 100)):
        print(f'{name:32} {seconds * 1e6:8.1f} us')
    for heads, tokens in ((8, 1024), (8, 2048), (8, 4096)):
        q, k, v = (generator.standard_normal((1, heads, tokens, 64), dtype=np.float32) for _ in range(3))
        plan = fovea.plan(q, k, v, device='cpu')
        inner, diag = plan._plan, new_diag()
        report = c.FoveaRunReport(struct_size=ctypes.sizeof(c.FoveaRunReport))
        reported = []

        o = np.empty_like(q)

        def without():
            plan._call.bindings[c.FOVEA_BIND_O].data = o.ctypes.data
            run = c.FoveaRun.from_buffer_copy(inner._run)
            run.host = ctypes.addressof(plan._call.bindings)
            check(lib.foveaRun(inner.engine.handle, inner.handle, ctypes.byref(run), ctypes.byref(report), ctypes.byref(diag)), diag)
            reported.append(report.seconds)
        plan(q, k, v)
        python, _ = best_of((lambda: plan(q, k, v), without), 15, 1)
        print(f'{heads} heads, {tokens} tokens: library {min(reported) * 1e3:.2f} ms, Python {python / min(reported):.3f} of it '
              f'({"interruptible" if inner._is_long else "in one piece"}, {inner.info.slice_count} slices)')


if __name__ == '__main__':
    main()
