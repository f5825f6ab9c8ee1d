#!/usr/bin/env python3
"""Doxygen's input filter: the public headers carry plain comments, which are their manual. This makes them Doxygen's:
a comment before a declaration documents it, one behind a member or enumerator documents that, and where one declaration
names several things the comment is given to each."""
import re
import sys


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


if __name__ == '__main__':
    sys.stdout.write(filtered(open(sys.argv[1], encoding='utf-8').read()))
