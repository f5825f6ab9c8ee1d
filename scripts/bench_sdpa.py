#!/usr/bin/env python3
"""Times PyTorch's scaled_dot_product_attention on the work of fovea_bench_vulkan, interleaved with it.

    python3 scripts/bench_sdpa.py --fovea build/default/bin/fovea_bench_vulkan --bench --suite prefill,decode --longest 8192
    python3 scripts/bench_sdpa.py --fovea PROGRAM --device cpu --backends math,flash --bench --suite fused --longest 512

Arguments after --bench go to fovea_bench_vulkan unchanged (--device, --suite, --longest, --seconds, --tuning,
--precision). Each round runs the command once and then every SDPA backend on each of its rows; medians over the
rounds are printed. On a CUDA device times are those of its own clock (events), on the CPU it is the CPU time of
all threads, as the command reports it for a software driver. A backend that cannot run a row says why. Rows under
a mask are left out. Ratios are Fovea's time over the backend's: below 1 Fovea is faster.

Needs torch >= 2.3.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

BACKENDS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}


def fail(message):
    sys.exit(f"bench_sdpa: error: {message}")


def fovea_rows(program, options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        done = subprocess.run([program, *options, "--json", str(file)], capture_output=True, text=True)
        if done.returncode != 0:
            fail(done.stderr.strip() or f"{program} ended with {done.returncode}")
        return json.loads(file.read_text())


class Sdpa:
    """One row's tensors on the device, timed with one backend at a time."""

    def __init__(self, torch, device, row, seconds):
        self.torch, self.device, self.row, self.seconds = torch, device, row, seconds
        kind = torch.float16 if row["type"] == "f16" else torch.float32
        torch.manual_seed(5)

        def tensor(heads, length):
            return torch.rand(1, heads, length, row["dim"], device=device, dtype=torch.float32).mul(2).sub(1).to(kind)

        self.q = tensor(row["heads_q"], row["len_q"])
        self.k = tensor(row["heads_kv"], row["len_kv"])
        self.v = tensor(row["heads_kv"], row["len_kv"])
        self.mask = None
        if row["window"] >= 0:
            i = torch.arange(row["len_q"], device=device)[:, None] + row["len_kv"] - row["len_q"]
            j = torch.arange(row["len_kv"], device=device)[None, :]
            self.mask = (j <= i) & (j >= i - row["window"])

    def call(self):
        functional = self.torch.nn.functional
        grouped = {"enable_gqa": True} if self.row["heads_q"] != self.row["heads_kv"] else {}
        causal = self.row["causal"] and self.mask is None
        return functional.scaled_dot_product_attention(
            self.q, self.k, self.v, attn_mask=self.mask, is_causal=causal, **grouped
        )

    def once(self):
        if self.device == "cpu":
            begin = time.process_time()
            self.call()
            return time.process_time() - begin
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def time(self, backend):
        """Median seconds, or why the backend cannot."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        kind = getattr(SDPBackend, BACKENDS[backend], None)
        if kind is None:
            return "this torch has no such backend"
        try:
            with warnings.catch_warnings(record=True) as told, self.torch.inference_mode(), sdpa_kernel(kind):
                warnings.simplefilter("always")
                self.call()
                times = [self.once() for _ in range(3)]
                end = time.monotonic() + self.seconds
                while time.monotonic() < end and len(times) < 1000:
                    times.append(self.once())
            return statistics.median(times)
        except (RuntimeError, TypeError) as error:
            reasons = [str(w.message).split("(Triggered")[0].strip() for w in told] or [str(error).split("\n")[0]]
            return reasons[-1]


def name_of(row):
    return (
        f"{row['suite']}: {row['heads_q']}/{row['heads_kv']} heads, {row['len_q']} x {row['len_kv']}, D {row['dim']}, "
        f"{row['type']}" + (", causal" if row["causal"] else "") + (f", window {row['window']}" if row["window"] >= 0 else "")
    )


def main():
    words = sys.argv[1:]
    cut = words.index("--bench") if "--bench" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", required=True, metavar="PROGRAM")
    parser.add_argument("--device", default="cuda", help="of torch: cuda or cpu (default: cuda)")
    parser.add_argument("--threads", type=int, help="of torch, on the CPU")
    parser.add_argument("--backends", default="flash,efficient,cudnn,math", help="by comma (default: all four)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each backend and row of a round")
    parser.add_argument("--json", metavar="FILE", help="also writes the medians there")
    options = parser.parse_args(words[:cut])
    backends = options.backends.split(",")
    for backend in backends:
        if backend not in BACKENDS:
            fail(f"--backends: '{backend}' is not one of {', '.join(BACKENDS)}")
    if options.device == "cpu":
        # Threads that spin while they wait, and those of a BLAS below them, would count as CPU time.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import torch
        import torch.nn.attention
    except ImportError as error:
        fail(f"torch >= 2.3 is needed: {error}")
    if options.device == "cuda" and not torch.cuda.is_available():
        fail("torch finds no CUDA device; --device cpu runs on the CPU")
    if options.threads:
        torch.set_num_threads(options.threads)

    ours, theirs, rows, about = {}, {}, [], {}
    for _ in range(options.rounds):
        about = fovea_rows(options.fovea, words[cut + 1 :])
        rows = [row for row in about["rows"] if not row["masked"]]
        for n, row in enumerate(rows):
            ours.setdefault(n, []).append(row["median_seconds"])
            sdpa = Sdpa(torch, options.device, row, options.seconds)
            for backend in backends:
                theirs.setdefault((n, backend), []).append(sdpa.time(backend))

    chip = torch.cuda.get_device_name() if options.device == "cuda" else f"the CPU, {torch.get_num_threads()} threads"
    print(f"Fovea: {about['device']}, {about['driver']}")
    print(f"PyTorch {torch.__version__} on {chip}; medians of {options.rounds} interleaved rounds")
    results = []
    for n, row in enumerate(rows):
        seconds = statistics.median(ours[n])
        print(f"{name_of(row)}\n    {'fovea ' + row['kernel']:<22} {seconds * 1e3:10.3f} ms")
        result = dict(row, median_seconds=seconds, sdpa={})
        for backend in backends:
            times = theirs[(n, backend)]
            if any(isinstance(t, str) for t in times):
                why = next(t for t in times if isinstance(t, str))
                print(f"    {'sdpa ' + backend:<22} cannot: {why}")
                result["sdpa"][backend] = why
                continue
            time_of = statistics.median(times)
            print(f"    {'sdpa ' + backend:<22} {time_of * 1e3:10.3f} ms   fovea / sdpa {seconds / time_of:8.2f}")
            result["sdpa"][backend] = time_of
        results.append(result)
    if options.json:
        Path(options.json).write_text(json.dumps({"device": about["device"], "torch": torch.__version__, "rows": results}))


if __name__ == "__main__":
    main()
