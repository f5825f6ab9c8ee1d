#!/usr/bin/env python3
"""Runs a program over the session files of this folder and compares what it prints.

    run.py PROGRAM ARGUMENTS...                 each call is PROGRAM ARGUMENTS FILE --stage S --head N
    run.py --digits 6 PROGRAM ...               numbers equal to 6 digits; without it the same letters
    run.py --same-as "PROGRAM ARGUMENTS" ...    compared with another program in place of expected/: the same letters everywhere
    run.py --resident PROGRAM ...               the program stays: a line of JSON in for each call, [word, ...], and one out,
                                                {"code": 0, "out": "...", "err": "..."}
    run.py --more "--device cpu --print" ...    words after the file
    run.py --only NAME                          files whose name begins so
    run.py --reference                          expected/ against reference.py, in float64; runs no program
    run.py --write PROGRAM ...                  writes expected/

Level 7 and the model of texts are computed by the engine's kernels, whose last bits differ between instruction sets: their
expected numbers count to 6 digits. A refusal must exit with 2 (any code but 0 with --any-code), say why on standard error and
print nothing."""
import argparse
import concurrent.futures
import json
import math
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def cases(only):
    """(file, stage, head, why it is refused or None)"""
    for line in (FOLDER / "cases.txt").read_text().splitlines():
        if not line or line.startswith("#") or not line.startswith(only):
            continue
        name, kind, rest = (line.split(" ", 2) + [""])[:3]
        if kind == "refused":
            yield name, "weights", "0", rest
        elif kind == "refused-stage":
            stage, why = rest.split(" ", 1)
            yield name, stage, "0", why
        elif kind == "refused-head":
            head, why = rest.split(" ", 1)
            yield name, "weights", head, why
        else:
            yield name, kind, rest, None


def expected_path(name, stage, head):
    return FOLDER / "expected" / f"{name}.{stage}.{head}.txt"


def rows(text):
    return [[float(word) for word in line.split(" ")] for line in text.splitlines()]


def is_near(a, b, digits):
    """Equal to so many digits of the largest number of the matrix, NaN equal to NaN."""
    try:
        left, right = rows(a), rows(b)
    except ValueError:
        return False
    if [len(row) for row in left] != [len(row) for row in right]:
        return False
    pairs = [(x, y) for one, other in zip(left, right) for x, y in zip(one, other)]
    largest = max((abs(y) for _, y in pairs if math.isfinite(y)), default=0.0)
    limit = 0.5 * 10.0 ** (1 - digits) * max(largest, 1e-30)
    return all(
        (math.isnan(x) and math.isnan(y)) or x == y or (math.isfinite(x) and math.isfinite(y) and abs(x - y) <= limit)
        for x, y in pairs
    )


def uses_engine(name):
    state = json.loads((FOLDER / f"{name}.fovea").read_text())["state"]
    return state.get("level") == 7 or state.get("task") == "text"


def run(command, name, stage, head, more):
    words = [str(FOLDER / f"{name}.fovea"), "--stage", stage, "--head", head, *more]
    if isinstance(command, subprocess.Popen):
        command.stdin.write(json.dumps(words) + "\n")
        command.stdin.flush()
        answer = json.loads(command.stdout.readline())
        return subprocess.CompletedProcess(words, answer["code"], answer["out"].encode(), answer["err"].encode())
    return subprocess.run([*command, *words], capture_output=True, timeout=300, check=False)


def judge_refusal(options, done, why):
    told = done.stderr.decode(errors="replace")
    if done.returncode == 0 or (done.returncode != 2 and not options.any_code):
        return f"exit code {done.returncode}, a refusal was expected"
    if done.stdout:
        return "a refusal, and yet it printed something"
    return None if why in told else f"it says '{told.strip()}'; expected: {why}"


def judge(options, case):
    name, stage, head, why = case
    done = run(options.command, name, stage, head, options.more.split())
    if why is not None:
        return judge_refusal(options, done, why)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.decode(errors='replace').strip()}"
    text = done.stdout.decode()
    if options.write:
        expected_path(name, stage, head).write_text(text)
        return None
    if options.same_as:
        expected = run(options.same_as.split(), name, stage, head, []).stdout.decode()
    else:
        expected = expected_path(name, stage, head).read_text()
    digits = options.digits or (6 if not options.same_as and uses_engine(name) else 0)
    if text == expected or (digits and is_near(text, expected, digits)):
        return None
    for number, (one, other) in enumerate(zip(text.splitlines(), expected.splitlines())):
        if one != other:
            return f"row {number}: '{one[:100]}', expected '{other[:100]}'"
    return f"{len(text.splitlines())} rows, expected {len(expected.splitlines())}"


def judge_by_reference(case):
    import reference

    name, stage, head, why = case
    if why is not None:
        return None
    made = reference.stage(json.loads((FOLDER / f"{name}.fovea").read_text()), stage, int(head))
    if made is None:
        return None
    text = "".join(" ".join(repr(x) for x in row) + "\n" for row in made)
    expected = expected_path(name, stage, head).read_text()
    return None if is_near(expected, text, 6) else f"the reference has {text.splitlines()[0][:100]}, expected/ {expected.splitlines()[0][:100]}"


def main():
    parser = argparse.ArgumentParser(add_help=True)
    parser.add_argument("--digits", type=int, default=0)
    parser.add_argument("--same-as", default="")
    parser.add_argument("--more", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--any-code", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    sys.path.insert(0, str(FOLDER))
    todo = list(cases(options.only))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        if options.resident:
            with subprocess.Popen(options.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
                options.command = program
                verdicts = [judge(options, case) for case in todo]
        elif options.reference:
            verdicts = [judge_by_reference(case) for case in todo]
        else:
            verdicts = list(pool.map(lambda case: judge(options, case), todo))
    failed = 0
    for (name, stage, head, _), verdict in zip(todo, verdicts):
        if verdict:
            failed += 1
            print(f"{name}.fovea --stage {stage} --head {head}: {verdict}")
    print(f"{len(todo) - failed} of {len(todo)} as expected")
    return 1 if failed or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
