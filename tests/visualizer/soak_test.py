#!/usr/bin/env python3
"""Random keys, clicks, drags, wheels, text, sizes, files and devices on the visualizer's window under validation.

    soak_test.py DRIVER_SCRIPT PROGRAM CORPUS [--seed N] [--batches N]

CORPUS is the folder of the malformed files. The program has to live through all of it, to say nothing under the validation
layer, and to end in order. A failure prints the last events and the command that replays it; the events of a seed are the
same each time, the frames that they fall into are not. Nothing is saved or exported: the keys and the button of both are
left out.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import window_test

EVENTS_A_BATCH = 12
SETTLE_S = 8  # a busy machine draws few frames, and Dear ImGui takes some of the events with each
WIDTH, HEIGHT = 1500, 940
# Without quit, export, save and full screen (there is no window manager).
KEYS = ["Prior", "Next", "bracketleft", "bracketright", "braceleft", "braceright", "Left", "Right", "Up", "Down", "Return",
        "Escape", "j", "Delete", "space", "d", "s", "e", "w", "l", "c", "n", "r", "f", "i", "o", "m", "v", "b", "k", "q", "h",
        "g", "y", "p", "u", "a", "x", "t", "F2", "F6", "F7", "F8", "F9", "Tab", "question", "shift+a", "shift+h", "shift+Left",
        "shift+Down", "shift+F2", "ctrl+l", "ctrl+w", "ctrl+z", "ctrl+shift+z", "ctrl+equal", "ctrl+minus", "ctrl+0",
        "ctrl+shift+0", "ctrl+m", "ctrl+g", "ctrl+f"] + [f"alt+{level}" for level in range(1, 8)]
TEXTS = ["one two three", "3, 1", "journey, step", "naive attention is all", "", "0.5", "99999999", "1, -1", "a"]
SIZES = [(1500, 940), (1000, 620), (640, 400), (420, 300), (1590, 990)]


class Soak:
    def __init__(self, program, seed):
        self.program, self.random, self.log = program, random.Random(seed), []
        self.width, self.height = WIDTH, HEIGHT
        self.shown = set()  # descriptions of the window, which say that something comes of the events
        self.window = subprocess.run(["xdotool", "search", "--name", "^Fovea$"], env=program.environment, check=True,
                                     capture_output=True, text=True).stdout.split()[0]

    def send(self, words):
        self.log = self.log[-5:] + [" ".join(map(str, words))]
        self.program.input(*words)

    def place(self):
        """Not on the buttons of Open and Export."""
        return self.random.randint(200, max(self.width, 201)), self.random.randint(0, self.height)

    def left_panel(self):
        return self.random.randint(1, 290), self.random.randint(60, self.height)

    def some_event(self):
        pick, move = self.random.random(), ["mousemove", *(self.place() if self.random.random() < 0.8 else self.left_panel())]
        if pick < 0.4:
            return ["key", self.random.choice(KEYS)]
        if pick < 0.65:
            return [*move, "click", self.random.choice([1, 1, 1, 3])]
        if pick < 0.75:
            return [*move, "click", "--repeat", self.random.randint(1, 4), "--delay", 5, self.random.choice([4, 5])]
        if pick < 0.9:
            button = self.random.choice([1, 1, 3])
            return [*move, "mousedown", button, "mousemove", *self.place(), "mousemove", *self.place(), "mouseup", button]
        if pick < 0.95:
            return [*move, "click", "--repeat", 2, "--delay", 5, 1]
        return [*move, "keydown", "shift", "click", 1, "keyup", "shift"]

    def special(self):
        """Actions that random keys would seldom reach."""
        pick = self.random.randrange(5)
        if pick == 0:  # a size
            self.width, self.height = self.random.choice(SIZES)
            self.send(["windowsize", self.window, self.width, self.height])
        elif pick == 1:  # text, into the text's box or whatever has the focus
            self.send(["mousemove", 150, 106, "click", 1, "key", "ctrl+a", "type", "--delay", 2, self.random.choice(TEXTS) + " "])
            self.send(["key", "Return"])
        elif pick == 2:  # a file of the list
            self.send(["key", "Escape", "key", "Escape", "key", "ctrl+o"])
            time.sleep(0.2)
            middle = self.width // 2
            self.send(["mousemove", middle - self.random.randint(0, 150), self.random.randint(150, max(self.height - 150, 151)),
                       "click", "--repeat", 2, "--delay", 20, 1])
        elif pick == 3:  # device or precision, at the right of the top bar
            self.send(["mousemove", self.random.randint(self.width // 2, self.width), 22, "click", 1])
            time.sleep(0.1)
            self.send(["mousemove", self.random.randint(self.width // 2, self.width), self.random.randint(40, 140), "click", 1])
        else:  # a chosen command of the palette
            self.send(["key", "Escape", "key", "ctrl+p", "type", "--delay", 2,
                       self.random.choice(["causal", "fit", "layers", "dark", "roof", "map", "compare", "level 7"])])
            self.send(["key", "Return"])

    def settle(self, before):
        """The window has drawn what came of the events, or computes for longer."""
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end and self.stamp() == before:
            time.sleep(0.02)
            self.alive()

    def stamp(self):
        return self.program.follow.stat().st_mtime_ns

    def alive(self):
        if self.program.process.poll() is None:
            return
        raise SystemExit("the program ended with %s: %s" % (self.program.process.returncode, self.program.process.stderr.read()))

    def run(self, batches):
        self.send(["windowsize", self.window, WIDTH, HEIGHT])
        for batch in range(batches):
            words, before = ["key", "Escape"], self.stamp()  # the dialog before
            for _ in range(EVENTS_A_BATCH):
                words += self.some_event()
            self.send(words)
            if batch % 3 == 2:
                self.special()
            self.settle(before)
            self.shown.add(self.program.text().partition("\n")[2])  # without the times of frames
        # An open dialog or text box takes a key each.
        for _ in range(4):
            self.send(["key", "Escape"])
        self.send(["mousemove", self.width // 2, self.height // 2])


def files(folder, corpus):
    """Good and bad ones, where the program's list of files begins."""
    for path in sorted(Path(corpus).glob("*/*")):
        if path.suffix:
            shutil.copy(path, folder / f"{path.parent.name}_{path.name}")
    subprocess.run([sys.executable, str(Path(__file__).parent / "made_model.py"), str(folder / "a_model.safetensors")], check=True,
                   stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("program")
    parser.add_argument("corpus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=60)
    options = parser.parse_args()
    command = [str(Path(word).resolve()) for word in (options.driver, options.program)]
    corpus = Path(options.corpus).resolve()

    def soak(display, folder):
        here = Path(folder) / "files"
        here.mkdir()
        files(here, corpus)
        os.chdir(here)
        program = window_test.Program(command, display, folder, more={"HOME": str(here)},
                                      options=["--validation", "--preset", "5"])
        events = None
        try:
            program.wait("the first picture", lambda text: text)
            events = Soak(program, options.seed)
            events.run(options.batches)
            window_test.quit_in_order(program)
        except BaseException:
            for line in events.log if events else []:
                print("events:", line)
            print("window:", program.text())
            print("replay:", sys.executable, Path(__file__).resolve(), *command, corpus, "--seed", options.seed, "--batches",
                  options.batches)
            raise
        finally:
            window_test.end(program)
            os.chdir("/")
        print(f"seed {options.seed}: {options.batches} batches of {EVENTS_A_BATCH} events, {len(events.shown)} different "
              "descriptions of the window, nothing to report")
        assert len(events.shown) > options.batches / 8, "hardly anything came of the events"

    window_test.with_display(soak)


if __name__ == "__main__":
    main()
