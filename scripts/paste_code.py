#!/usr/bin/env python3
"""Keeps the code in docs/**/*.md equal to the sources that it is taken from, which the tests build and run.

    paste_code.py          writes each marked region into its block
    paste_code.py --check  changes nothing; names each block that differs, and each C or C++ block, fenced or indented, without a
                           source; exit 1

A block is taken from a file's region when this comment is before it:   <!-- code: apps/embed/minimal.c [record] -->
The region goes from the line after the one with [record] to the line before the one with [end record]; text after
[record] on its line is its first comment and belongs to it.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'(?:<!-- code: (?P<file>\S+) \[(?P<name>[a-z ]+)\] -->\n)?```(?P<language>[a-z+]*)\n(?P<code>.*?)```\n',
                   re.DOTALL)
INDENTED = re.compile(r'^    .*\);( *//.*)?$', re.MULTILINE)


def region(file, name):
    lines = (ROOT / file).read_text(encoding='utf-8').split('\n')
    begin = [n for n, line in enumerate(lines) if f'[{name}]' in line]
    end = [n for n, line in enumerate(lines) if f'[end {name}]' in line]
    if len(begin) != 1 or len(end) != 1 or begin[0] >= end[0]:
        sys.exit(f'{file}: no one region [{name}]')
    taken = lines[begin[0] + 1:end[0]]
    first = lines[begin[0]].replace(f'[{name}] ', '')
    if first != lines[begin[0]]:
        taken.insert(0, first)
    return textwrap.dedent('\n'.join(taken)).strip('\n') + '\n'


def main(arguments):
    check = arguments == ['--check']
    errors, blocks = [], 0
    for page in sorted((ROOT / 'docs').rglob('*.md')):
        text = page.read_text(encoding='utf-8')

        def pasted(match):
            nonlocal blocks
            line = text[:match.start()].count('\n') + 1
            if not match['file']:
                if match['language'] in ('c', 'cpp', 'c++'):
                    errors.append(f'{page.name}:{line}: code that no test builds: take it from a source')
                return match[0]
            blocks += 1
            code = region(match['file'], match['name'])
            if check and code != match['code']:
                errors.append(f'{page.name}:{line}: not what {match["file"]} [{match["name"]}] says; run scripts/paste_code.py')
            return f'<!-- code: {match["file"]} [{match["name"]}] -->\n```{match["language"]}\n{code}```\n'

        new = BLOCK.sub(pasted, text)
        unfenced = BLOCK.sub(lambda match: '\n' * match[0].count('\n'), text)
        errors += [f'{page.name}:{unfenced[:line.start()].count(chr(10)) + 1}: code that no test builds: take it from a source'
                   for line in INDENTED.finditer(unfenced)]
        if not check and new != text:
            page.write_text(new, encoding='utf-8')
    print('\n'.join(errors) or f'{blocks} blocks of code as in their sources')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
