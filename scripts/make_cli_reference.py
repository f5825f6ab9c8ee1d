#!/usr/bin/env python3
"""Writes docs/reference/cli.md from the help texts of the programs.

    make_cli_reference.py BUILD            writes the page; BUILD has bin/fovea and bin/fovea-visualizer
    make_cli_reference.py BUILD --check    changes nothing; exit 1 where the page is not what the programs say
"""
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs/reference/cli.md'
WIDTH = 118
TERMS = ('plan', 'slice', 'workspace', 'mass', 'lse', 'session', 'stage')
SHARED = 3  # an option that as many commands have with the same text is explained once
OPTION = (re.compile(r'  (--[\w-]+(?: \S+)?) {2,}(\S.*)'), re.compile(r'  (--[\w-]+ \S+) (\S.*)'))
HEAD = '''# Command line

For everyone who runs the programs from a shell: every command with its options. In a checkout, `./dev fovea` and
`./dev visualizer` build and run them. `scripts/make_cli_reference.py` writes this page from the programs' help texts.
'''


def help_of(program, *words):
    return subprocess.run([program, *words, '--help'], check=True, capture_output=True, text=True).stdout.rstrip('\n').split('\n')


def escaped(text):
    """For Markdown: words with letters that it reads become code where they are names, and are escaped elsewhere."""
    parts = re.split(r'(`[^`]*`)', text)
    return ''.join(part if part.startswith('`') else re.sub(r'([*<\[\]|])', r'\\\1', re.sub(r'(?<![\w-])(--[a-z][\w-]*)', r'`\1`', part))
                   for part in parts)


def wrapped(text, indent=''):
    return textwrap.fill(text, WIDTH, initial_indent=indent[:-2] + '- ' if indent else '', subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def cell_wrapped(line):
    """A line of a table, its last column wrapped."""
    column = re.match(r' *(?:\S.*?\S {2,})?', line).end()
    return textwrap.fill(line[column:], WIDTH, initial_indent=line[:column], subsequent_indent=' ' * column, break_on_hyphens=False)


def parsed(lines):
    """(usage, parts, options): parts are ('text', words) or ('table', lines) in their order; options are (name, text)."""
    usage, parts, options = [], [], []
    place = 'usage'
    for line in lines:
        option = next((match for pattern in OPTION if (match := pattern.fullmatch(line))), None)
        if option:
            options.append([option[1], option[2]])
            place = 'options'
        elif place == 'options' and line.startswith('      '):
            options[-1][1] += ' ' + line.strip()
        elif place == 'usage' and line.strip():
            usage.append(line.removeprefix('usage: ').strip())
        elif not line.strip():
            place = 'text'
        else:
            kind = 'table' if line.startswith(' ') else 'text'
            if place != 'parts' or not parts or parts[-1][0] != kind:
                parts.append((kind, []))
            parts[-1][1].append(line)
            place = 'parts'
    return usage, parts, [tuple(option) for option in options]


def part_text(kind, lines):
    if kind == 'text':
        return wrapped(escaped(' '.join(lines))) + '\n'
    depth = min(len(line) - len(line.lstrip()) for line in lines)
    return '```text\n' + '\n'.join(cell_wrapped(line[depth:].rstrip()) for line in lines) + '\n```\n'


def section(title, lines, shared=()):
    usage, parts, options = parsed(lines)
    # A table is of the sentence before it, and one after the options is of the options.
    text = f'## {title}\n\n```text\n' + '\n'.join(usage) + '\n```\n\n' + '\n'.join(part_text(*part) for part in parts)
    own = [option for option in options if option not in shared and option[0] != '--help']
    if own:
        text += '\n' + '\n'.join(wrapped(f'`{name}`: {escaped(about)}', '  ') for name, about in own) + '\n'
    if others := [f'`{name.split()[0]}`' for name, about in options if (name, about) in shared]:
        text += '\n' + wrapped(f'Also {", ".join(others)}: see [options of several commands](#options-of-several-commands).') + '\n'
    return text


def linked(text):
    """The first use of each project term, outside of code, links and headings, with a link to the glossary."""
    for term in TERMS:
        for match in re.finditer(rf'```.*?```|`[^`]*`|\[[^\]]*\]\([^)]*\)|^#[^\n]*$|\b({term}s?)\b(?!-)', text, re.DOTALL | re.MULTILINE):
            if match[1]:
                text = f'{text[:match.start()]}[{match[1]}](glossary.md#{term}){text[match.end():]}'
                break
    return '\n'.join(textwrap.fill(line, WIDTH, subsequent_indent='  ' if line.startswith('- ') else '', break_long_words=False,
                                   break_on_hyphens=False) if len(line) > WIDTH and '](glossary.md#' in line else line
                     for line in text.split('\n'))


def page(build):
    cli, window = build / 'bin/fovea', build / 'bin/fovea-visualizer'
    overview = help_of(cli)
    commands = [match[1] for line in overview if (match := re.match(r'  ([a-z]+) {2,}\S', line))]
    helps = {command: help_of(cli, command) for command in commands}
    counts = {}
    for lines in helps.values():
        for option in parsed(lines)[2]:
            counts[option] = counts.get(option, 0) + 1
    shared = [option for option, count in counts.items() if count >= SHARED and option[0] != '--help']
    codes = next(line for line in overview if line.startswith('Exit codes'))
    about = {match[1]: match[2] for line in overview if (match := re.match(r'  ([a-z]+) {2,}(\S.*)', line))}
    lines = [wrapped(f'[`fovea {command}`](#fovea-{command}): {escaped(about[command])}', '  ') for command in commands]
    lines.append(wrapped('[`fovea-visualizer`](#fovea-visualizer): the window, and pictures without one', '  '))
    return linked('\n'.join([
        HEAD, *lines, '', wrapped(f'{codes} `--help` prints the text of a command.'), '',
        *(section(f'fovea {command}', text, shared) for command, text in helps.items()),
        '## Options of several commands\n',
        *(wrapped(f'`{name}`: {escaped(text)}', '  ') for name, text in shared), '',
        section('fovea-visualizer', help_of(window))]))


def main(build, check):
    lacking = [name for name in ('fovea', 'fovea-visualizer') if not (build / 'bin' / name).exists()]
    if lacking:
        print(f'fovea: SKIPPED: not in this build: {", ".join(lacking)}')
        return 0 if check else 2
    text = page(build)
    if check:
        is_same = PAGE.exists() and PAGE.read_text(encoding='utf-8') == text
        print('docs/reference/cli.md is what the programs say' if is_same else
              f'docs/reference/cli.md is not what the programs say: run scripts/make_cli_reference.py {build}')
        return 0 if is_same else 1
    PAGE.write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ['--check']):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] == ['--check']))
