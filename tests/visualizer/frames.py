#!/usr/bin/env python3
"""Figures of the visualizer's window on a virtual display: start to the first complete frame, and frame times.

    frames.py DRIVER_SCRIPT PROGRAM [SECONDS]

SECONDS (5) is the time of each measurement of frames; all of it ends within a minute. Cold is a start with an empty
shader cache of the driver, warm the second one with the cache of the first. Frames are timed while the mouse moves over
level 2; while a head of 16,384 tokens is computed and dragged by real events; and while the map of 131,072 is dragged.
Both are measured with the tiles on the CPU and on the device.
"""

import re
import sys
import tempfile
import time
from pathlib import Path

from window_test import Program, end, with_display

FRAMES = re.compile(r"^window .*first complete frame after ([\d.]+) s and ([\d.]+) s of CPU time, "
                    r"last (\d+) frames: median ([\d.]+) ms, 95% below ([\d.]+) ms, 99% below ([\d.]+) ms", re.MULTILINE)

ENOUGH = 40  # frames of moving: with fewer, a figure is that of the start


def start(command, display, folder, options, cache):
    window = Program(command, display, folder,
                     {"MESA_SHADER_CACHE_DIR": str(cache), "XDG_CACHE_HOME": str(cache)}, options)
    window.wait("the first frame", lambda text: FRAMES.search(text) and float(FRAMES.search(text)[1]) > 0)
    return window


def stop(window):
    window.input("key", "ctrl+q")
    window.process.communicate(timeout=30)


def drag(window, seconds):
    """Drags the middle of the window about, about 60 moves a second."""
    until = time.monotonic() + seconds
    window.input("mousemove", 800, 450, "mousedown", 1)
    step = 0
    while time.monotonic() < until:
        moves = []
        for _ in range(15):
            step += 1
            moves += ["mousemove", 800 + 150 * ((step // 30) % 3 - 1) + 4 * (step % 30), 450 + 3 * (step % 40), "sleep",
                      "0.016"]
        window.input(*moves)
    window.input("mouseup", 1)
    time.sleep(1)


def hover(window, seconds):
    until = time.monotonic() + seconds
    step = 0
    while time.monotonic() < until:
        moves = []
        for _ in range(15):
            step += 1
            moves += ["mousemove", 500 + 5 * (step % 100), 250 + 3 * (step % 90), "sleep", "0.016"]
        window.input(*moves)
    time.sleep(1)


def measure(command, display, folder, name, options, act, seconds, cache):
    window = start(command, display, folder, options, cache)
    try:
        before = int(FRAMES.search(window.text())[3])
        for _ in range(6):
            act(window, seconds)
            found = FRAMES.search(window.text())
            if int(found[3]) - before >= ENOUGH:
                break
        else:
            print(f"{name}: only {int(found[3]) - before} frames: the machine is too busy for a figure", flush=True)
            return stop(window)
        state = re.search(r"(exact|sampled|computing); tiles on .*$", window.text(), re.MULTILINE)
        print(f"{name}: {found[3]} frames, median {found[4]} ms, 95% below {found[5]} ms, 99% below {found[6]} ms"
              + (f"; {state[0]}" if state else ""), flush=True)
        stop(window)
    finally:
        end(window)


def main(display, folder):
    command, seconds = sys.argv[1:3], float(sys.argv[3]) if len(sys.argv) > 3 else 5
    for name, options in [("level 2", ["--preset", "2"]), ("map of 131,072 tokens", ["--preset", "long-128k"])]:
        with tempfile.TemporaryDirectory(prefix="fovea_cache_") as cache:
            for how in ["cold", "warm"]:
                window = start(command, display, folder, options, cache)
                wall, processor = FRAMES.search(window.text()).groups()[:2]
                print(f"first complete frame, {name}, {how}: {wall} s, {processor} s of CPU time", flush=True)
                stop(window)
    cache = Path(folder) / "cache"
    measure(command, display, folder, "mouse over level 2", ["--preset", "2"], hover, seconds, cache)
    for place in ["cpu", "device"]:
        for length, title in [("16k", "16,384 tokens computing and dragged"), ("128k", "131,072 tokens dragged")]:
            measure(command, display, folder, f"{title}, tiles: {place}",
                    ["--preset", f"long-{length}", "--tiles", place], drag, seconds, cache)


if __name__ == "__main__":
    with_display(main)
