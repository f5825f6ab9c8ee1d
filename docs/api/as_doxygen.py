#!/usr/bin/env python3
"""Doxygen's input filter: the public headers carry plain comments, which are their manual. This makes them Doxygen's: the
one at the head of a file documents the file, without which Doxygen leaves out its functions; a comment before a
declaration documents it, one after a member or enumerator documents that, and if one declaration names several
things the comment documents each."""
import re
import sys


def head_and_rest(text):
    """Returns the comment that a file begins with (before or after #pragma once), and the rest of the file."""
    match = re.match(r'(?:#pragma once\n)?(/\* .*?\*/\n|(?://[^\n]*\n)+)', text, re.DOTALL)
    return (match[1], text[match.end():]) if match else ('', text)


def about_file(head):
    """The head as Doxygen's comment on the file, its lines kept as they are. At the end of the file, where it moves no
    line."""
    plain = [re.sub(r'^(?:/\*| \*/?|//) ?', '', line) for line in head.rstrip().removesuffix('*/').split('\n')]
    while plain and (not plain[0] or 'SPDX' in plain[0]):
        del plain[0]
    return '/** @file\n' + plain[0] + '\n@verbatim\n' + '\n'.join(plain).rstrip() + '\n@endverbatim */\n'


def filtered(text):
    out, lines, inside = [], text.split('\n'), False
    for number, line in enumerate(lines):
        stripped = line.strip()
        if inside:
            inside = '*/' not in line
        elif stripped.startswith('/*') and not stripped.startswith(('/**', '/* --', '/* [')):
            line = line.replace('/*', '/**', 1)
            inside = '*/' not in line
        elif head := re.match(r'(\s*)(.*\b(?:struct|class|enum|union)\b[^;/]*\{)\s*(?:/\* (.*) \*/|// (.*))$', line):
            line = f'{head[1]}/** {head[3] or head[4]} */ {head[2]}'
        elif re.search(r'[;,{)0-9A-Za-z]\s*/\* ', line) and not stripped.startswith(('#', '*')):
            line = re.sub(r'/\* ', '/**< ', line, count=1)
            inside = '*/' not in line
        elif stripped.startswith('//') and not stripped.startswith('///') and not stripped.startswith('// --'):
            line = line.replace('//', '///', 1)
        elif re.search(r'[;,{)]\s*// ', line):
            line = re.sub(r'([;,{)]\s*)// ', r'\1///< ', line, count=1)
        out.append(re.sub(r'(?<!\\)\\(?=[a-z])', r'\\\\', line) if '//' in line else line)
    return '\n'.join(out)


def main(path):
    text = open(path, encoding='utf-8').read()
    if path.endswith('.dox'):
        return text
    head, rest = head_and_rest(text)
    return text.removesuffix(rest) + filtered(rest) + (about_file(head) if head else '')


if __name__ == '__main__':
    sys.stdout.write(main(sys.argv[1]))
