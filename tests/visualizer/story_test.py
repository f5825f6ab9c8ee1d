#!/usr/bin/env python3
"""Every walk of the levels and of the learned tasks from its first step to its last, using only the keyboard.

    story_test.py DRIVER_SCRIPT PROGRAM STORIES_JSON [--short]     --short: every third level and the first task

No step counts as done before it is; then its own keys do it, or the palette where the step is about a control.
"""

import json
import sys
from pathlib import Path

from window_test import Program, end, quit_in_order, with_display

# The page's controls that steps name, as the keys of session files that the palette takes.
CONTROLS = {"text": "text", "temperature": "temp", "seed": "seed", "route": "route", "mask": "mask", "dropSeed": "dseed",
            "variant": "rng", "p": "p", "heads": "heads", "kv": "kv", "compare-with": "cmp", "alibi": "alibi", "length": "len"}
KEYS = {"ArrowUp": "Up", "ArrowDown": "Down", "ArrowLeft": "Left", "ArrowRight": "Right", "PageUp": "Prior",
        "PageDown": "Next", "Space": "space", "]": "bracketright", "[": "bracketleft"}


def value_of(step):
    """Returns the value for the step's control."""
    if "type" in step:
        return step["type"]
    key = CONTROLS[step["on"]]
    for kind in ("is", "least", "most"):
        if key in step["done"].get(kind, {}):
            value = step["done"][kind][key]
            return str(int(value)) if isinstance(value, bool) else str(value)
    raise AssertionError(f"no value for {step}")


def perform(program, step):
    on = step.get("on")
    if not on:
        return program.input("key", *[KEYS.get(key, key) for key in step["keys"]])
    if on == "head-off":
        return program.input("key", "shift+Delete")
    command = f"{CONTROLS[on]} {value_of(step)}"
    program.input("key", "ctrl+p")
    program.wait("the palette", lambda text: "commands, typed: \u201c\u201d" in text)
    program.input("type", "--delay", "5", command)
    program.wait(command, lambda text: f"commands, typed: \u201c{command}\u201d" in text)
    program.input("key", "Return")


def walk(program, name, steps):
    for number, step in enumerate(steps, 1):
        where = f"walk, step {number} of {len(steps)}: "
        program.input("key", "F3")
        # Until the words are projected a key would act on the matrix before.
        program.wait(f"{name}, {where}to do",
                     lambda text: where in text and "; to do: " in text and "\nprojecting the tokens\n" not in text)
        perform(program, step)
        program.wait(f"{name}, {where}done", lambda text: where in text and "; done: " in text)
    program.input("key", "F3")
    program.wait(f"the end of {name}", lambda text: "walk, step" not in text)


def walks(display, folder):
    driver, visualizer, table = sys.argv[1:4]
    is_short = "--short" in sys.argv
    stories = json.loads(Path(table).read_text())
    options = ["--validation", "--device", "cpu", "--size", "1100x700", "--preset", "1"]
    program = Program([driver, visualizer], display, folder, options=options)
    levels = [walked for walked in enumerate(stories["levels"], 1) if not is_short or walked[0] % 3 == 1]
    tasks = list(stories["tasks"].items())[:1 if is_short else None]
    count = 0
    try:
        program.wait("the first picture", lambda text: "level 1" in text)
        program.input("mousemove", 2, 2)
        for level, steps in levels:
            program.input("key", f"alt+{level}")
            program.wait(f"level {level}", lambda text: f"\nlevel {level}, " in text)
            walk(program, f"level {level}", steps)
            count += len(steps)
        for task, steps in tasks:
            program.input("key", "alt+0")
            program.wait(task, lambda text: f"\n{task}, L" in text)
            walk(program, task, steps)
            count += len(steps)
        quit_in_order(program)
        print(f"{count} steps of {len(levels) + len(tasks)} walks done by the keyboard")
    finally:
        end(program)


if __name__ == "__main__":
    with_display(walks)
