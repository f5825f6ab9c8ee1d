#!/usr/bin/env python3
"""A device that is lost while the visualizer's window is open: the session goes on, undo and kept result included.

    lost_test.py LAYER_FOLDER DRIVER_SCRIPT PROGRAM

A layer says that the device is lost when a file appears. The first time the device is opened anew, the second time
the CPU continues, the third time the program ends and the session is kept for the next start.
"""

import re
import sys
from pathlib import Path

from window_test import PATIENCE_S, Program, check_cell, end, reference_weight, with_display


def kept_result(text):
    """Returns the line of the kept result without the device: after a loss that may be the CPU."""
    line = re.search(r"^A: kept.*$", text, re.MULTILINE)
    return line and re.sub(r"float32 on [^,]*", "float32", line[0])


def provoke(program, sign, step):
    # A thread that still has kernels compiled would lose its own device in the window's place.
    program.wait("the device's kernels", lambda text: text and "until the device's kernels" not in text)
    sign.write_text("")
    program.input("mousemove", 300 + 9 * step, 300)
    program.input("mousemove", 5, 5 + step)


def lose(display, folder):
    layers, driver, visualizer = sys.argv[1:]
    sign = Path(folder) / "lose"
    program = Program([driver, visualizer], display, folder,
                      {"XDG_DATA_HOME": layers, "FOVEA_LOSING_LAYER": "1", "FOVEA_LOSE_DEVICE": str(sign)})
    try:
        program.wait("the first picture", lambda text: program.picked(text) == (1, 1))
        program.input("mousemove", 5, 5)
        program.input("key", "a")
        program.wait("a kept result", lambda text: "A: kept" in text)
        program.input("key", "space")
        program.wait("the causal mask", lambda text: re.search(r"^weight +0\.[5-9]", text, re.MULTILINE))
        kept = kept_result(program.text())
        for losses, told in [(1, "is open again"), (2, "continues on the CPU")]:
            provoke(program, sign, losses)
            program.wait(f"loss {losses}", lambda text: "notice: The device was lost" in text and told in text)
            weight = f"{reference_weight(1, 1, True):.4f}"
            program.wait("the kept result", lambda text: kept_result(text) == kept and
                         re.search(rf"^weight +{weight}", text, re.MULTILINE))
            check_cell(program, (1, 1), causal=True)
        program.input("key", "ctrl+z")
        weight = f"{reference_weight(1, 1):.4f}"
        program.wait("undo over a loss", lambda text: re.search(rf"^weight +{weight}", text, re.MULTILINE))
        check_cell(program, (1, 1))
        provoke(program, sign, 3)
        _, errors = program.process.communicate(timeout=PATIENCE_S)
        assert program.process.returncode == 2 and "third time" in errors, errors
        assert (Path(folder) / "fovea" / "autosave.fovea").exists(), "the session was not kept"
        assert "validation" not in program.text(), program.text()
        print("two losses survived, the third one told")
    finally:
        end(program)


if __name__ == "__main__":
    with_display(lose)
