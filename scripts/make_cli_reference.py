#!/usr/bin/env python3
"""The reference of the command line, from the help texts of the programs.

    make_cli_reference.py BUILD            prints every option as Markdown; BUILD has bin/fovea and bin/fovea-visualizer
    make_cli_reference.py BUILD --write    writes docs/reference/cli-help.txt, the same as plain text
    make_cli_reference.py BUILD --check    exit 1 where that file, or the commands in docs/reference/cli.md, are not the programs'

docs/site/build.py puts the printed text into the page of the site.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs/reference/cli.md'
PLAIN = ROOT / 'docs/reference/cli-help.txt'
WIDTH = 118
SHARED = 3  # an option that as many commands have with the same text is explained once
OPTION = (re.compile(r'  (--[\w-]+(?: \S+)?) {2,}(\S.*)'), re.compile(r'  (--[\w-]+ \S+) (\S.*)'))

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


def commands_of(build):
    """The names of the commands that `fovea help` lists, and what it says of each."""
    return {match[1]: match[2] for line in help_of(build / 'bin/fovea') if (match := re.match(r'  ([a-z]+) {2,}(\S.*)', line))}


def lacking(build):
    return [name for name in ('fovea', 'fovea-visualizer') if not (build / 'bin' / name).exists()]


def options(build):
    """Sections of all commands, their shared options, and the visualizer, as Markdown."""
    helps = {command: help_of(build / 'bin/fovea', command) for command in commands_of(build)}
    counts = {}
    for lines in helps.values():
        for option in parsed(lines)[2]:
            counts[option] = counts.get(option, 0) + 1
    shared = [option for option, count in counts.items() if count >= SHARED and option[0] != '--help']
    return '\n'.join([
        *(section(f'fovea {command}', text, shared) for command, text in helps.items()),
        '## Options of several commands\n',
        *(wrapped(f'`{name}`: {escaped(text)}', '  ') for name, text in shared), '',
        section('fovea-visualizer', help_of(build / 'bin/fovea-visualizer'))])


def plain(build):
    """The help of all commands and of the visualizer, as they print it."""
    programs = [('fovea',), *(('fovea', command) for command in commands_of(build)), ('fovea-visualizer',)]
    return '\n\n'.join('\n'.join([f'$ {" ".join(words)} --help', *help_of(build / 'bin' / words[0], *words[1:])])
                       for words in programs) + '\n'


def differences(build):
    """A line for each command that only the page or only the program has, and for a command or program whose options are not read.
    One more if the plain text is not what the programs print."""
    listed = set(re.findall(r'^\| `fovea ([a-z]+)` \|', PAGE.read_text(encoding='utf-8'), re.MULTILINE))
    known = set(commands_of(build))
    yield from (f'docs/reference/cli.md lacks the command {name}' for name in sorted(known - listed))
    yield from (f'docs/reference/cli.md has a command {name}, which fovea does not have' for name in sorted(listed - known))
    helps = {f'fovea {name}': help_of(build / 'bin/fovea', name) for name in sorted(known)}
    helps['fovea-visualizer'] = help_of(build / 'bin/fovea-visualizer')
    yield from (f'no option was found in the help of {name}' for name, lines in helps.items() if not parsed(lines)[2])
    if not PLAIN.is_file() or PLAIN.read_text(encoding='utf-8') != plain(build):
        yield 'docs/reference/cli-help.txt is not what the programs print: scripts/make_cli_reference.py BUILD --write'


def main(build, action):
    if missing := lacking(build):
        print(f'fovea: SKIPPED: not in this build: {", ".join(missing)}')
        return 0 if action == '--check' else 2
    if action == '--write':
        PLAIN.write_text(plain(build), encoding='utf-8')
    if action != '--check':
        print(options(build) if not action else f'wrote {PLAIN.relative_to(ROOT)}')
        return 0
    wrong = list(differences(build))
    print('\n'.join(wrong) or 'docs/reference/cli.md and cli-help.txt say what the programs say')
    return 1 if wrong else 0


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ['--write'], ['--check']):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), ''.join(sys.argv[2:])))
