#!/usr/bin/env python3
"""Reads the public headers with Doxygen: HTML goes to build/docs/api, and XML for the site (docs/site/build.py) to
build/docs/xml. Says which names are documented by
nothing, and which functions of the C boundary are on no page (exit 1).

    build.py

Declarations that follow each other without an empty line share the comment at their head, as in `foveaPlanRope` under
`foveaPlanAttention`; a member is also documented by the comment of its type. Doxygen knows neither, so what it complains
of is looked up in the header: a name is undocumented if there is no comment on its line, none at the head of its
block, and, for a member, none at its type's."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WARNING = re.compile(r'^(?P<file>\S+):(?P<line>\d+): (?:warning|error): (?P<text>.*)$')
TYPE = re.compile(r'^\s*(typedef )?(struct|class|enum|template)\b')


def has_comment(line):
    return '/*' in line or '*/' in line or '//' in line


def documented(lines, number):
    """`number` counts from 1. Walks up to the head of the block; a statement that goes on over lines belongs to it."""
    n = number - 1
    if has_comment(lines[n]):
        return True
    end = n
    while end + 1 < len(lines) and not re.search(r'[;{}]', lines[end]):
        end += 1
    if has_comment(lines[end]):
        return True
    while n > 0 and lines[n - 1].strip():
        n -= 1
        if has_comment(lines[n]):
            return True
        if TYPE.match(lines[n]) and lines[n].rstrip().endswith('{'):
            return documented(lines, n + 1)  # a member in the first block of its type
    # Further up: the type that this is a member of.
    indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
    for up in range(n - 1, -1, -1):
        line = lines[up]
        if TYPE.match(line) and line.rstrip().endswith('{') and len(line) - len(line.lstrip()) < indent:
            return documented(lines, up + 1)
    return False


def main():
    (ROOT / 'build' / 'docs').mkdir(parents=True, exist_ok=True)
    for folder in ('api', 'xml'):
        shutil.rmtree(ROOT / 'build' / 'docs' / folder, ignore_errors=True)  # pages of names that are gone
    run = subprocess.run(['doxygen', 'docs/api/Doxyfile'], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        print(run.stderr)
        return run.returncode
    errors, covered = set(), 0
    for line in run.stderr.split('\n'):
        match = WARNING.match(line)
        if not match:
            continue
        text = match['text']
        name = pathlib.Path(match['file']).relative_to(ROOT)
        if not text.endswith('is not documented.'):
            errors.add(f'{name}:{match["line"]}: {text}')
        elif documented((ROOT / name).read_text(encoding='utf-8').split('\n'), int(match['line'])):
            covered += 1
        else:
            errors.add(f'{name}:{match["line"]}: {text}')
    pages = ''.join((ROOT / 'build' / 'docs' / 'api' / name).read_text(encoding='utf-8')
                    for name in ('fovea_8h.html', 'fovea__vulkan_8h.html', 'fovea__runtime_8h.html', 'fovea__inspect_8h.html',
                                 'fovea__model_8h.html'))
    shown = [line for folder in ('api', 'runtime')
             for line in (ROOT / 'engine' / folder / 'exported_symbols.txt').read_text(encoding='utf-8').splitlines()]
    for name in shown:
        if name.startswith('fovea') and not re.search(rf'memItemRight.*\b{name}\b', pages):
            errors.add(f'{name} is on no page')
    print('\n'.join(sorted(errors)) or f'build/docs/api/index.html: every public name is documented, {covered} of them by the comment of their block or type')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
