"""Finds the comments of a source file: C, C++, GLSL, TypeScript, JavaScript, CSS, Python, shell, CMake, YAML, TOML."""
import pathlib
import re

SLASHED = {'.h', '.hpp', '.cpp', '.c', '.comp', '.glsl', '.def', '.ts', '.mjs', '.js', '.css'}
HASHED = {'.py', '.sh', '.cmake', '.yml', '.toml', '.txt', ''}

# In order: comments, raw strings, strings, template literals, character literals, regular expressions of TypeScript.
_SLASHED = re.compile(
    r'(?P<line>//[^\n]*(?:\\\n[^\n]*)*)|(?P<block>/\*.*?\*/)|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"
    r'|(?:(?<=[=(,:!&|?;\[])|(?<=[=(,:!&|?;] )|(?<=return ))/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/', re.DOTALL)
_CSS = re.compile(r'(?P<block>/\*.*?\*/)|"[^"\n]*"|\'[^\'\n]*\'', re.DOTALL)
_HASHED = re.compile(r'(?P<doc>(?:(?<=\n)|^)[ ]*[rf]?(?:"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'))'
                     r'|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\''
                     r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?:(?<=\s)|^)(?P<line>#(?!!/)[^\n]*)', re.DOTALL)
_SHELL = re.compile(r'(?:(?<=\s)|^)(?P<line>#(?!!/)[^\n]*)|\\.|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)


def _plain(text):
    """The words of a comment, without its marks, with its line breaks."""
    if text.startswith('/*'):
        lines = text[2:-2].split('\n')
        return '\n'.join(re.sub(r'^\s*\*?[*!<]*\s?', '', line).rstrip() for line in lines)
    if text.startswith('//'):
        return '\n'.join(re.sub(r'^\s*/{2,}[!<]*\s?', '', line).rstrip('\\ ') for line in text.split('\n'))
    if text.startswith('#'):
        return re.sub(r'^#+[!:]?\s?', '', text)
    return re.sub(r'^\s*[rf]?("""|\'\'\')|("""|\'\'\')$', '', text)


def comments(name, text):
    """(line number, words) of each comment; line comments that follow each other are one. The words keep the line breaks."""
    return comments_and_literals(name, text)[0]


def comments_and_literals(name, text):
    """Returns the result of comments(), and (line number, text) of each string literal."""
    suffix = pathlib.Path(name).suffix
    if suffix == '.css':
        pattern = _CSS
    elif suffix in SLASHED:
        pattern = _SLASHED
    elif suffix in HASHED:
        pattern = _HASHED if suffix in ('.py', '.toml') else _SHELL
    else:
        return [], []
    found, literals, last_line, last_column, whole = [], [], -2, 0, False  # whole: the comment before began its line
    number, position = 1, 0
    for match in pattern.finditer(text):
        start = match.start()
        number += text.count('\n', position, start)
        position = start
        if match.lastgroup not in ('line', 'block', 'doc'):
            literals.append((number, match.group()))
            continue
        line_start = text.rfind('\n', 0, start) + 1
        column = start - line_start
        begins = not text[line_start:start].strip()
        words = _plain(match.group().strip('\n'))
        follows = match.lastgroup == 'line' and begins and number == last_line + 1 and (whole or column == last_column)
        if follows:
            found[-1] = (found[-1][0], found[-1][1] + '\n' + words)
        else:
            found.append((number, words))
            whole = begins
        if match.lastgroup == 'line':
            last_line, last_column = number + match.group().count('\n'), column
        else:
            last_line = -2
    return found, literals
