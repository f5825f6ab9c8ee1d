#!/usr/bin/env python3
"""Makes Python's view of the C headers, so that no number and no field is written twice.

    declarations.py python LEARNED HEADER... > _declarations.py  ctypes structs, constants and function signatures; the tasks' names
                                                            of the table LEARNED (lens/model/tables/learned.json)
    declarations.py c HEADER... > sizes.c                   a program that prints what the C compiler says of the same structs:
                                                            `Struct size` and `Struct.field offset` lines

Every pointer is a c_void_p except `const char*`: what it points to is said by the header, and ctypes passes
arrays, byref() and addresses alike. The headers are laid out by clang-format; this parser rejects what it does not
understand."""
import json
import pathlib
import re
import sys

SCALARS = {
    'int32_t': 'ctypes.c_int32', 'uint32_t': 'ctypes.c_uint32', 'int64_t': 'ctypes.c_int64', 'uint64_t': 'ctypes.c_uint64',
    'size_t': 'ctypes.c_size_t', 'float': 'ctypes.c_float', 'double': 'ctypes.c_double', 'char': 'ctypes.c_char',
    'uint16_t': 'ctypes.c_uint16', 'uint8_t': 'ctypes.c_uint8', 'int': 'ctypes.c_int',
}


def without_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.DOTALL)


class Header:
    """The declarations of the headers, in their order."""

    def __init__(self, texts):
        self.constants = {}  # name: value
        self.structs = {}    # name: [(field, type, array length or None)]
        self.functions = {}  # name: (result, [argument types])
        self.types = dict(SCALARS)
        for text in texts:
            self.read(without_comments(text))

    def value(self, expression):
        expression = re.sub(r'\b(0x[0-9a-fA-F]+|\d+)(?:u|ull|ULL)\b', r'\1', expression)
        return eval(expression, {'__builtins__': {}}, dict(self.constants))  # from the project's own headers

    def read_enum(self, body):
        following = 0
        for item in filter(None, (part.strip() for part in body.split(','))):
            name, _, expression = (part.strip() for part in item.partition('='))
            self.constants[name] = following = self.value(expression) if expression else following
            following += 1

    def type_of(self, text):
        text = re.sub(r'\b(const|struct)\b', '', text).strip()
        if text.endswith('*'):
            return 'ctypes.c_char_p' if text.replace(' ', '') == 'char*' else 'ctypes.c_void_p'
        if text not in self.types:
            raise SystemExit(f'declarations.py: what is {text!r}?')
        return self.types[text]

    def read_struct(self, name, body):
        fields = []
        for member in filter(None, (part.strip() for part in body.split(';'))):
            pointer = re.fullmatch(r'[\w\s\*]+\(\s*\*\s*(\w+)\s*\)\s*\(.*\)', member, re.DOTALL)
            if pointer:
                fields.append((pointer[1], 'ctypes.c_void_p', None))
                continue
            first = re.fullmatch(r'((?:const\s+)?\w+(?:\s*\*)*)\s*(\w.*)', member, re.DOTALL)
            for declarator in first[2].split(','):
                found = re.fullmatch(r'\s*(\w+)\s*(?:\[(.*)\])?\s*', declarator)
                fields.append((found[1], self.type_of(first[1]), found[2] and self.value(found[2])))
        self.structs[name] = fields
        self.types[name] = name

    def read(self, text):
        for name, expression in re.findall(r'^#define (FOVEA_[A-Z_0-9]+) (.+)$', text, re.MULTILINE):
            if re.fullmatch(r'[-()0-9a-fA-FxuUlL./ ]+', expression.strip()) and expression.strip():
                self.constants[name] = self.value(expression)
        text = re.sub(r'^#.*(?:\\\n.*)*$', '', text, flags=re.MULTILINE)  # directives, with their continuation lines
        pieces = re.compile(
            r'typedef enum \w+ \{(?P<enum>[^}]*)\} (?P<enum_name>\w+);'
            r'|\benum \{(?P<nameless>[^}]*)\};'
            r'|typedef struct \w+ \{(?P<struct>[^}]*)\} (?P<struct_name>\w+);'
            r'|typedef struct \w+\* (?P<handle>\w+);'
            r'|typedef [^;{}]*\(\*(?P<callback>\w+)\)\([^;]*\);|typedef void \(\*(?P<task>\w+)\)'
            r'|FOVEA_API (?P<function>[^;{]*);', re.DOTALL)
        for found in pieces.finditer(text):
            if found['enum_name']:
                self.read_enum(found['enum'])
                self.types[found['enum_name']] = 'ctypes.c_int32'
            elif found['nameless'] is not None:
                self.read_enum(found['nameless'])
            elif found['struct_name']:
                self.read_struct(found['struct_name'], found['struct'])
            elif found['handle']:
                self.types[found['handle']] = 'ctypes.c_void_p'
            elif found['callback'] or found['task']:
                self.types[found['callback'] or found['task']] = 'ctypes.c_void_p'
            elif found['function']:
                self.read_function(' '.join(found['function'].split()))

    def read_function(self, text):
        result, name, arguments = re.fullmatch(r'(.*?)\b(fovea\w+)\((.*)\)', text).groups()
        given = []
        for argument in (part.strip() for part in arguments.split(',')):
            if argument != 'void':
                given.append(self.type_of(re.fullmatch(r'(.*?[\s\*])(\w+)', argument)[1]))
        result = result.strip()
        self.functions[name] = ('None' if result == 'void' else self.type_of(result), given)


def print_python(header, learned):
    print('"""Made by python/tools/declarations.py from the C headers; not edited by hand."""')
    print('from __future__ import annotations\n\nimport ctypes\nfrom typing import Any\n')
    for name, value in header.constants.items():
        print(f'{name} = {value!r}')
    print(f'TASKS = {tuple(row["task"] for row in json.loads(learned))!r}')
    for name, fields in header.structs.items():
        print(f'\n\nclass {name}(ctypes.Structure):')
        for field, kind, length in fields:
            python = name_of_value(kind) if length is None else 'Any'
            print(f'    {field}: {python}')
        print('    _fields_ = [')
        for field, kind, length in fields:
            print(f"        ('{field}', {kind if length is None else f'{kind} * {length}'}),")
        print('    ]')
    print('\n\n# name: (result, arguments)')
    print('FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {')
    for name, (result, arguments) in header.functions.items():
        print(f"    '{name}': ({result}, [{', '.join(arguments)}]),")
    print('}')


def name_of_value(kind):
    if kind in ('ctypes.c_float', 'ctypes.c_double'):
        return 'float'
    if kind == 'ctypes.c_char_p':
        return 'bytes | None'
    if kind == 'ctypes.c_void_p':
        return 'Any'
    return 'int' if kind.startswith('ctypes.') else kind


def print_c(header, names):
    print('/* Made by python/tools/declarations.py. */\n#include <stddef.h>\n#include <stdio.h>')
    for name in names:
        print(f'#include <fovea/{pathlib.Path(name).name}>')
    print('int main(void) {')
    for name, fields in header.structs.items():
        print(f'    printf("{name} %zu\\n", sizeof({name}));')
        for field, _, _ in fields:
            print(f'    printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    print('    return 0;\n}')


def main():
    kind, *names = sys.argv[1:]
    texts = [pathlib.Path(name).read_text(encoding='utf-8') for name in names]
    header = Header(texts[1:] if kind == 'python' else texts)
    if kind == 'python':
        print_python(header, texts[0])
    else:
        print_c(header, names)


if __name__ == '__main__':
    main()
