#!/usr/bin/env python3
"""The visualizer's window on a virtual display, driven by real input events.

    window_test.py DRIVER_SCRIPT PROGRAM [--only-cells]

Picks cells with the mouse and with keys and compares what the window says it shows (--follow) with attention computed
here in double precision; resizes, idles, quits. Without --only-cells also the tour, models that learned and what is
remembered from run to run, which no driver does differently. Any validation message makes the program end with an error.
"""

import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOKENS = ["Your", "journey", "starts", "with", "one", "step"]
INPUTS = [[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64], [0.22, 0.58, 0.33], [0.77, 0.25, 0.10],
          [0.05, 0.80, 0.55]]
COMMAND = sys.argv[1:3]
PATIENCE_S = 120  # for a busy machine: nothing that goes well waits so long


def reference_weight(query, key, causal=False):
    scores = [sum(a * b for a, b in zip(INPUTS[query], other)) for other in INPUTS]
    seen = range(query + 1) if causal else range(len(INPUTS))
    if key not in seen:
        return 0.0
    return math.exp(scores[key]) / sum(math.exp(scores[j]) for j in seen)


class Program:
    def __init__(self, command, display, folder, more=None, options=None, tour=False):
        self.follow = Path(folder) / "follow.txt"
        self.environment = dict(os.environ, DISPLAY=display, XDG_STATE_HOME=str(folder))
        self.begin = time.monotonic()
        # A file that cannot be read is a problem to be told, not an end.
        broken = Path(folder) / "broken.npy"
        broken.write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
        self.environment.update(more or {})
        # The tour was ended in a run before, unless a test is about it.
        (Path(folder) / "fovea").mkdir(exist_ok=True)
        if not tour:
            (Path(folder) / "fovea" / "tour").write_text("ended\n")
        self.follow.unlink(missing_ok=True)
        options = options or ["--validation", "--preset", "1", str(broken)]
        self.process = subprocess.Popen([*command, *options, "--follow", str(self.follow)],
                                        env=self.environment, stderr=subprocess.PIPE, text=True)

    def input(self, *words):
        subprocess.run(["xdotool", *map(str, words)], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def text(self):
        return self.follow.read_text() if self.follow.exists() else ""

    def wait(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"the program ended while waiting for {what}: {self.process.stderr.read()}")
            found = condition(self.text())
            if found:
                return found
            time.sleep(0.02)
        raise SystemExit(f"waited {PATIENCE_S} s for {what}; the window shows:\n{self.text()}")

    def picked(self, text):
        found = re.search(r"query (\d+) '(\w+)' against key (\d+) '(\w+)'", text)
        return (int(found[1]), int(found[3])) if found else None

    def processor_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_cell(program, cell=None, causal=False):
    """The cell that the window says is picked, which is `cell` if one is given, has the right numbers."""
    text = program.text()
    query, key = cell or program.picked(text)
    assert f"query {query} '{TOKENS[query]}' against key {key} '{TOKENS[key]}'" in text, text
    expected = f"{reference_weight(query, key, causal):.4f}"
    shown = re.search(r"^weight\s+(\S+)", text, re.MULTILINE)[1]
    assert shown == expected, f"cell {cell}: the inspector says {shown}, double precision {expected}\n{text}"
    dot = f"{sum(a * b for a, b in zip(INPUTS[query], INPUTS[key])):.4f}"
    assert re.search(r"^dot\s+(\S+)", text, re.MULTILINE)[1] == dot, text


def cells_under_the_mouse(program):
    """Goes over the middle of the window; the matrix of six tokens is about half as wide and high: each step of the
    mouse is over another cell."""
    cells = [program.picked(program.text())]
    for step in range(4):
        program.input("mousemove", 660 + 95 * step, 280 + 95 * step)
        cells.append(program.wait(f"another cell than {cells[-1]}",
                                  lambda text: program.picked(text) != cells[-1] and program.picked(text)))
        check_cell(program, cells[-1])
    return cells[1:]


def walk_with_keys(program):
    program.input("mousemove", 5, 5)
    program.input("key", "Up", "Up", "Up", "Up", "Up", "Up", "Left", "Left", "Left", "Left", "Left", "Left")
    program.wait("cell 0, 0", lambda text: program.picked(text) == (0, 0))
    path = [("Right", (0, 1)), ("Down", (1, 1)), ("Down", (2, 1)), ("Right", (2, 2)), ("Left", (2, 1)),
            ("Up", (1, 1))]
    for key, cell in path:
        program.input("key", key)
        program.wait(f"{key} to cell {cell}", lambda text: program.picked(text) == cell)
        check_cell(program, cell)
    program.input("key", "space")
    masked, full = (f"{reference_weight(1, 1, causal):.4f}" for causal in (True, False))
    program.wait("the causal mask", lambda text: re.search(rf"^weight\s+{masked}", text, re.MULTILINE))
    check_cell(program, (1, 1), causal=True)
    program.input("key", "ctrl+z")
    program.wait("undo", lambda text: re.search(rf"^weight\s+{full}", text, re.MULTILINE))
    check_cell(program, (1, 1))


def change_sizes(program):
    window = subprocess.run(["xdotool", "search", "--name", "^Fovea$"], env=program.environment, check=True,
                            capture_output=True, text=True).stdout.split()[0]
    for width, height in [(1200, 800), (700, 420), (1500, 900)]:
        program.input("windowsize", window, width, height)
        program.wait(f"{width} x {height}", lambda text: text.startswith(f"window {width} x {height},"))
    program.input("windowunmap", window)
    time.sleep(0.3)
    program.input("windowmap", window)
    program.input("mousemove", 500, 300)


def idle(program):
    """Without an event the last frames come to an end, on a busy machine later."""
    end = time.monotonic() + PATIENCE_S
    while True:
        before = program.processor_seconds()
        time.sleep(2)
        used = program.processor_seconds() - before
        if used <= 0.04:
            return used
        assert time.monotonic() < end, f"{used:.2f} s of processor time in 2 s, long after the last event"


def first_tour(display, folder):
    """A first run shows the tour, in nobody's way; once ended it stays off."""
    program = Program(COMMAND, display, folder, tour=True)
    try:
        program.wait("the tour", lambda text: "tour, step 1 of 5" in text)
        check_cell(program, (1, 1))
        program.input("key", "Left")
        program.wait("a picked cell beside the tour", lambda text: program.picked(text) == (1, 0))
        program.input("key", "F2")
        program.wait("its second step", lambda text: "tour, step 2 of 5" in text)
        program.input("key", "shift+F2")
        program.wait("its end", lambda text: "tour, step" not in text)
        quit_in_order(program)
        assert (Path(folder) / "fovea" / "tour").exists(), "that the tour was ended is not kept"
    finally:
        end(program)


def learned_heads(display, folder):
    """Without an option the window shows heads that learned; layers, tasks, levels and a head that is off are keys away."""
    program = Program(COMMAND, display, folder, options=["--validation"])
    try:
        program.wait("the induction head", lambda text: "\ninduction, L1H1 induction; 20 tokens: <start> w i t h" in text)
        program.wait("its number", lambda text: re.search(r"^weight\s+0\.9996", text, re.MULTILINE))
        for key, shown in [("bracketleft", "L1H0 induction;"), ("braceleft", "L0H0 previous token;"),
                           ("shift+Delete", "L0H0 previous token, off;"), ("braceright", "L1H0 induction;")]:
            program.input("key", key)
            program.wait(shown, lambda text: "\ninduction, " + shown in text)
        # The induction head needs the head that is off.
        program.wait("another number", lambda text: re.search(r"^weight\s+0\.[0-4]", text, re.MULTILINE))
        program.input("key", "alt+3")
        program.wait("a level", lambda text: "\nlevel 3, Causal mask; 6 tokens: Your journey" in text)
        for task in ["induction", "recall", "reverse", "sort"]:
            program.input("key", "alt+0")
            program.wait(task, lambda text: f"\n{task}, L" in text)
        quit_in_order(program)
    finally:
        end(program)


def keys_beside_tab(program):
    """While ImGui walks over the panels, begun with Tab, the program's own keys still do what they do."""
    program.input("mousemove", 700, 22, "click", 1, "key", "Tab", "Down", "Tab")
    time.sleep(0.5)
    program.wait("the dark theme", lambda text: "dark theme" in text)
    program.input("key", "t")
    program.wait("the light theme", lambda text: "light theme" in text)
    program.input("key", "t")
    program.wait("the dark theme again", lambda text: "dark theme" in text)
    # The walk is not ended: quitting has to work from here.


FRAMES_SO_FAR = re.compile(r"last (\d+) frames")


def types(display, folder):
    """A typed sentence is there after a few frames, not after some for each letter."""
    program = Program(COMMAND, display, folder, options=["--validation", "--preset", "2", "--text", "one two"])
    try:
        program.wait("the first result", lambda text: "; 2 tokens: one two" in text and "\nweight" in text)
        program.wait("the device's kernels", lambda text: "until the device's kernels" not in text)
        sentence = "the quick brown fox jumps over a lazy dog"
        program.input("mousemove", 150, 106, "click", 1)
        time.sleep(0.5)  # the field takes the keyboard with a frame after the click
        program.input("key", "ctrl+a")
        time.sleep(0.5)
        before = int(FRAMES_SO_FAR.search(program.text())[1])
        program.input("type", "--delay", "2", sentence)
        program.wait("the sentence", lambda text: f"9 tokens: {sentence}\n" in text)
        frames = int(FRAMES_SO_FAR.search(program.text())[1]) - before
        assert frames < len(sentence) + 20, f"{frames} frames for {len(sentence)} letters"
        program.input("key", "ctrl+p")
        program.wait("the palette over the text field", lambda text: "commands, typed" in text)
        program.input("key", "Escape")
        program.wait("no palette", lambda text: "commands, typed" not in text)
        quit_in_order(program)
        return frames
    finally:
        end(program)


def types_into_a_model(display, folder):
    """A published model without a tokenizer takes token IDs; every head of both layers follows the keys."""
    model = Path(__file__).resolve().parents[1] / "model" / "families" / "gpt2"
    program = Program(COMMAND, display, folder, options=["--validation", str(model)])
    try:
        program.wait("every head", lambda text: "\nheads of 2 of 2 layers\n" in text and "\nweight" in text)
        program.input("mousemove", 150, 106, "click", 1)
        time.sleep(0.5)
        program.input("key", "ctrl+a")
        time.sleep(0.5)
        program.input("type", "--delay", "2", "3 1 4 1 5")
        program.wait("the numbers' heads", lambda text: "; 5 tokens: 3 1 4 1 5\nheads of 2 of 2 layers\n" in text)
        quit_in_order(program)
    finally:
        end(program)


def sheet_of_a_file(display, folder):
    """A file is dropped on the program's command line with the sheet that says how it is read: Enter is its Done."""
    values = [((7 * n) % 13 - 6) / 8 for n in range(4 * 6)]
    data = struct.pack(f"<{3 * len(values)}f", *(values * 3))
    part = len(data) // 3
    header = json.dumps({name: {"dtype": "F32", "shape": [1, 4, 6], "data_offsets": [n * part, (n + 1) * part]}
                         for n, name in enumerate("qkv")}).encode()
    path = Path(folder) / "qkv.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    program = Program(COMMAND, display, folder, options=["--validation", "--show", "import", str(path)])
    try:
        program.wait("the sheet", lambda text: "dialog: How the file is read" in text and "4 x 4" in text)
        program.input("key", "Return")
        program.wait("its end by Enter", lambda text: "dialog: " not in text and "4 x 4" in text)
        program.input("key", "ctrl+o")
        program.wait("the dialog", lambda text: "dialog: Open a file" in text)
        program.input("type", "--delay", "20", folder)
        program.input("key", "Return")
        time.sleep(0.5)
        assert "dialog: Open a file" in program.text() and "problem: " not in program.text(), program.text()
        program.input("key", "Escape")
        program.wait("no dialog", lambda text: "dialog: " not in text)
        quit_in_order(program)
    finally:
        end(program)


def quit_in_order(program):
    program.input("key", "ctrl+q")
    _, errors = program.process.communicate(timeout=PATIENCE_S)
    assert program.process.returncode == 0, errors


def remembers(display, folder):
    """Panels, theme and size come again with the next run; a damaged file is told of, replaced, and stops nothing."""
    at_first, changed = "dark theme, sides as at first\n", "light theme, sides swapped, hidden: text and pipeline\n"
    kept = Path(folder) / "fovea" / "window"
    kept.unlink(missing_ok=True)
    steps = [(at_first, ["F6", "F9", "t"], changed, None), (changed, ["ctrl+shift+0", "t"], at_first, None),
             (at_first, ["t"], "light theme", "left 3000\n")]
    for shown, keys, then, damage in steps:
        if damage:
            kept.write_text(kept.read_text() + damage)
        program = Program(COMMAND, display, folder)
        try:
            program.wait(f"the window as kept: {shown}", lambda text: shown in text)
            assert ("notice: The window's settings" in program.text()) == bool(damage), program.text()
            for key in keys:
                program.input("key", key)
            program.wait(f"the window changed: {then}", lambda text: then in text)
            quit_in_order(program)
        finally:
            end(program)
        assert kept.read_text().startswith("fovea window 1\n"), kept.read_text()
    assert "theme light" in kept.read_text() and "left 300\n" in kept.read_text(), kept.read_text()


def offers_what_was_not_ended(display, folder):
    """The session of a program that was killed is offered by the next start, once; that of one that was ended is not."""
    options = ["--validation", "--preset", "3"]
    kept = Path(folder) / "fovea" / "autosave.fovea"
    program = Program(COMMAND, display, folder, options=options)
    try:
        program.wait("the first picture", lambda text: "level 3" in text and "\nweight" in text)
        assert "offered: " not in program.text(), program.text()
        program.input("key", "alt+5")
        program.wait("another level", lambda text: "level 5" in text)
        end_of_patience = time.monotonic() + PATIENCE_S
        while not (kept.exists() and '"level": 5' in kept.read_text()):
            assert time.monotonic() < end_of_patience, "the session was not kept aside"
            time.sleep(0.1)
    finally:
        end(program)  # kill -9
    # Signals that end a desktop session end the program in order: the next start offers nothing.
    for offered, sent in [(True, None), (False, signal.SIGTERM), (False, signal.SIGINT), (False, signal.SIGHUP), (False, None)]:
        program = Program(COMMAND, display, folder, options=options)
        try:
            program.wait("the first picture", lambda text: "level 3" in text and "\nweight" in text)
            assert ("offered: Restore last session" in program.text()) == offered, program.text()
            if sent:
                program.process.send_signal(sent)
                assert program.process.wait(PATIENCE_S) == 0, f"{sent.name}: {program.process.stderr.read()}"
            else:
                quit_in_order(program)
        finally:
            end(program)


def with_display(use):
    """Calls use(":n", folder) with a virtual display, which ends with it."""
    if not shutil.which("Xvfb") or not shutil.which("xdotool"):
        print("SKIPPED: no Xvfb or xdotool (scripts/setup-debian.sh installs them)")
        return
    read_end, write_end = os.pipe()
    display = subprocess.Popen(["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1600x1000x24", "-noreset", "-nolisten", "tcp",
                                "-ardelay", "1000000"],  # a key is held for long where its release comes late
                               pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        number = os.read(read_end, 16).decode().strip()
        with tempfile.TemporaryDirectory(prefix="fovea_window_") as folder:
            use(f":{number}", folder)
    finally:
        display.terminate()
        display.wait()


def end(program):
    if program.process.poll() is None:
        program.process.kill()
        program.process.wait()


def walk(display, folder):
    only_cells = "--only-cells" in sys.argv[3:]
    if not only_cells:
        first_tour(display, folder)
        learned_heads(display, folder)
        sheet_of_a_file(display, folder)
        types_into_a_model(display, folder)
        offers_what_was_not_ended(display, folder)
        print(f"{types(display, folder)} frames for a sentence of 41 letters")
    program = Program(COMMAND, display, folder)
    try:
        program.wait("the first picture", lambda text: program.picked(text) == (1, 1))
        started = time.monotonic() - program.begin
        check_cell(program, (1, 1))
        assert "problem: " in program.text() and "broken.npy" in program.text(), program.text()
        cells = cells_under_the_mouse(program)
        walk_with_keys(program)
        change_sizes(program)
        program.wait("the device's kernels", lambda text: text and "until the device's kernels" not in text)
        check_cell(program)
        used = idle(program)
        kept = Path(folder) / "fovea" / "autosave.fovea"
        assert kept.exists(), "the session was not kept aside"
        if not only_cells:
            keys_beside_tab(program)
        quit_in_order(program)
        assert not kept.exists(), "the kept session outlived the end in order"
        print(f"first description after {started:.2f} s, {len(cells)} cells under the mouse, "
              f"{used:.2f} s of processor time in 2 s of idling")
    finally:
        end(program)
    if not only_cells:
        remembers(display, folder)


if __name__ == "__main__":
    with_display(walk)
