#!/usr/bin/env python3
"""Checks the rules of this repository that a compiler cannot: lengths, forbidden words and calls, paths, links.

    house_rules.py [ROOT]      prints one line for each violation and exits 1 when there is any
    house_rules.py --record    the same, and lowers the totals in style_counts.txt that have fallen
    house_rules.py --self-test shows on a made-up tree that every rule finds its violation

The words and lengths of documents, comments and messages are checked by style_words.py, by the rules in style_checks.txt.
"""
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile

import comments
import style_words

SOURCES = {'.cpp', '.hpp', '.h', '.c', '.comp', '.glsl', '.def', '.ts', '.mjs', '.py', '.sh', '.cmake', '.txt', '.md', '.json', '.html', '.css', '.yml', '.toml', ''}
CODE = {'.cpp', '.hpp', '.h'}
SHADERS = {'.comp', '.glsl'}
MANUAL = re.compile(r'(engine|lens)/include/fovea/\w+\.h')  # public C headers, whose comments are the reference
GENERATED = {'package-lock.json'}  # written by a tool, not by hand
MAX_FILE_LINES = 1000
MAX_SHADER_LINES = 250
MAX_KERNEL_LINES = 350  # for kernels of the CPU
MAX_MANUAL_LINES = 2000
MAX_FUNCTION_LINES = 150
MAX_COLUMNS = 110
MAX_SUBJECT = 72  # characters of the last commit's first line
PANELS = 'apps/visualizer/panels/'
TWO_WORDS = re.compile(r'[A-Za-z]{2,}[,.:;]? +[A-Za-z]{2,}')
HOST_FOLDERS = tuple(f'engine/{name}/' for name in ('problem', 'plan', 'reference', 'cpu', 'vulkan', 'api'))

# Forbidden in a library inside somebody else's program. Matched after comments and strings are blanked.
HOST_FORBIDDEN = [
    (r'\bthrow\b|\btry\s*\{', 'exceptions'),
    (r'\bgetenv\b', 'the environment'),
    (r'\bstd::(thread|jthread|async|mutex|condition_variable)\b', 'threads or locks'),
    (r'\bstd::(vector|string|map|unordered_map|deque|function|unique_ptr|shared_ptr|make_unique|make_shared)\b',
     'memory that does not come from the host allocator'),
    (r'\b(malloc|calloc|realloc|free)\s*\(', 'memory that does not come from the host allocator'),
    (r'(?<![\w:])new\s+[A-Za-z_]', 'memory that does not come from the host allocator'),
    (r'\b(printf|fprintf|puts|fputs|putchar)\s*\(|\bstd::(cout|cerr|clog|print)\b|<iostream>', 'printing'),
    (r'\b(exit|_Exit|abort|quick_exit|terminate)\s*\(', 'ending the program'),
    (r'\b(dynamic_cast|typeid)\b', 'run-time type information'),
]
# The one place where host libraries may meet the C library's heap: the allocator used when the host gives none.
HOST_ALLOWED = {'engine/problem/host_memory.cpp': 'memory that does not come from the host allocator'}
# One dialect in every folder (docs/contributing/style.md).
DIALECT = [
    (r'\bstd::(u?int(8|16|32|64)|size|ptrdiff)_t\b', 'integer types of C are written without std::'),
    (r"(?<![\w.'])(\d[\d']*\.[\d']*|\.\d+|\d+)(e[+-]?\d+)?F\b", 'suffixes of numbers are small letters (1.0f)'),
    (r"(?<![\w.'])(0x[\da-fA-F']+|\d[\d']*)U\b", 'suffixes of numbers are small letters (1u)'),
]
# Forbidden in any text, not only in documents and comments: keys that a causal mask hides come after the query.
WRONG_WORDS = [
    (CODE | {'.md', '.py', '.ts', '.json', '.html'},
     re.compile(r'\bkeys? (?:that are )?behi' + r'nd\b|\bbehi' + r'nd (?:the|a|its) (?:query|position|softmax)\b', re.IGNORECASE),
     'what a causal mask hides is after the query'),
]
# Folders whose folders include each other in one direction only. C++ includes between them start with the folder's name,
# imports of TypeScript are relative to the file.
LAYERED = ('engine', 'lens', 'apps/visualizer', 'web/src')
# Folders whose code uses the folders after the arrow through their public headers, <fovea/...>, and the files that need more.
PUBLIC_ONLY = {'lens': ('engine',), 'apps': ('engine', 'lens'), 'web': ('engine', 'lens'), 'python': ('engine', 'lens'),
               'samples': ('engine', 'lens')}
PRIVATE_USERS = {
    'lens/files/quantised.cpp': 'reads the bits of weights by the table that the kernels read them by',
    'lens/inspect/cache_cost.cpp': 'rotates the rows of a cache back as the engine does',
    'lens/inspect/derivation.cpp': 'reads one row of a call exactly as the reference implementation does',
    'lens/inspect/head_survey.cpp': 'sums up heads on the threads that run the kernels',
    'lens/inspect/inspect_api.cpp': 'is a C boundary with the checks of the engine\'s',
    'lens/model/host_rows.cpp': 'runs the row kernels on the threads of a generation step without a plan for each',
    'lens/model/host_rows.hpp': 'has their types',
    'lens/inspect/made_text.hpp': 'is a part of both C boundaries',
    'lens/inspect/model_api.cpp': 'is a C boundary with the checks of the engine\'s',
    'lens/mpi/sharded_map.cpp': 'cuts a tile\'s pixels as the engine does',
    'apps/fovea/bench/cases.cpp': 'counts the unmasked cells of a call',
    'apps/fovea/bench/peak.cpp': 'measures the peak with the kernels\' own multiply-add',
    'apps/fovea/heads_journal.cpp': 'hashes its records as the engine does a pipeline cache',
    'apps/fovea/heads_model.cpp': 'tells parts of characters as the tokenizer does',
    'apps/visualizer/data/session_file.cpp': 'names a file by the digest that lens\' own sessions use',
    'apps/visualizer/document/long_map.hpp': 'MapSource needs the runtime and is in no installed library',
    'web/engine/gpu_plan.cpp': 'hands the slices of a plan for WebGPU to the page',
}
INCLUDE = re.compile(r'\s*#\s*include "([^"]+)"')
IMPORT = re.compile(r'\b(?:from |import\()"(\.[^"]+)"')
# A barrier towards the host: no software driver shows the stale CPU cache that a missing HOST_READ allows.
HOST_STAGE = re.compile(r'\bVK_PIPELINE_STAGE(_2)?_HOST_BIT\b')
HOST_ACCESS = re.compile(r'\bVK_ACCESS(_2)?_HOST_(READ|WRITE)_BIT\b')
HOST_ACCESS_LINES = 6  # around the stage, where the barrier's accesses are
# Put together here so that this file does not violate its own rule.
UNFINISHED = re.compile(r'\b(' + '|'.join(['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK:']) + r')\b')
MACHINE_PATH = re.compile(r'(?<![\w.$}*])/(' + '|'.join(['ro' + 'ot', 'wo' + 'rk', 'ho' + 'me']) + r')/[\w.]')


# A recursive removal, and those of its arguments that name no file: it would remove whatever the variable holds. The folder
# that `mktemp -d` made may be removed; only own_folder empties a folder that a caller names, after looking for its marker.
REMOVAL = re.compile(r'\brm\s+((?:-\S+\s+)*-(?:\w*[rR]\w*|-recursive)\b[^;&|\n]*)')
VARIABLE = re.compile(r'\$(?:\{[^}]*\}|\([^)]*\)|\w+|[@*])')
REMOVER = 'scripts/tools/own-folder.sh'
SHELL = re.compile(r'^#!.*\b(ba)?sh\b|^# shellcheck shell=')
ACTION = re.compile(r'\buses:\s*(?!\S+@[0-9a-f]{40}\b)\S+')


def loose_removals(text):
    """(line number, argument) of each recursive removal of a path that is a variable and nothing else."""
    made = set(re.findall(r'\b(\w+)=\$\(mktemp -d', text))
    for number, line in enumerate(text.split('\n'), 1):
        for arguments in REMOVAL.findall(re.sub(r'(^|\s)#.*', '', line)):
            for argument in arguments.split():
                path = argument.strip('"\'')
                variables = VARIABLE.findall(path)
                if variables and not re.search(r'\w', VARIABLE.sub('', path)) and path.strip('${}') not in made:
                    yield number, argument


def tracked_files(root):
    if (root / '.git').exists():
        output = subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(root), 'ls-files', '-co', '--exclude-standard', '-z'],
                                check=True, capture_output=True, text=True).stdout
        names = [name for name in output.split('\0') if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob('*') if path.is_file()]
        names = [name for name in names if not re.match(r'build/|out/|(.*/)?node_modules/', name)]
    return sorted(name for name in names if (root / name).is_file())


def blank_comments_and_strings(text):
    """Keeps line numbers; what is inside comments, strings and character literals becomes spaces."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
    return pattern.sub(lambda match: re.sub(r'[^\n]', ' ', match.group()), text)


def functions(code):
    """(first line, length) of each function, judged by the layout that clang-format gives: a body ends with a brace
    in the column where its first line starts, which is column 0, or 4 inside a class. A table is none."""
    not_a_function = re.compile(r'\s*(namespace|class|struct|enum|union|extern|using|typedef|#|}|$)|.*\] = \{')
    start = {0: None, 4: None}
    lines = code.split('\n')
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if not line.strip() or indent not in start:
            continue
        if re.match(r'\s*}', line):
            if start[indent] is not None:
                yield start[indent], number - start[indent] + 1
            start[indent] = None
        elif not_a_function.match(line) or re.match(r'\s*\w+:$', line):
            start[indent] = None
        elif start[indent] is None or lines[number - 2].rstrip().endswith((';', '}')):
            start[indent] = number


def anchors(text):
    """The names that a reader's browser gives to headings of Markdown."""
    headings = re.findall(r'^#+ (.*)$', re.sub(r'```.*?```', '', text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-') for heading in headings}


def broken_links(root, name, text):
    """Links of a Markdown file to files and headings of this repository that are not there."""
    code = re.compile(r'```.*?```|`[^`\n]*`', re.DOTALL)
    blank = code.sub(lambda match: re.sub(r'[^\n]', ' ', match.group()), text)
    for number, line in enumerate(blank.split('\n'), 1):
        for link in re.findall(r'\]\(([^)\s]+)\)', line):
            target, _, anchor = link.partition('#')
            if '://' in link:
                continue
            path = root / pathlib.Path(name).parent / target if target else root / name
            if not path.exists():
                yield f'{name}:{number}: {link} leads nowhere'
            elif anchor and path.suffix == '.md' and anchor not in anchors(path.read_text(encoding='utf-8')):
                yield f'{name}:{number}: {link}: there is no such heading'


def lines_with(pattern, text):
    """(line number, match) of each line in which `pattern` is found. One search of the whole text settles most files."""
    if re.search(pattern, text):
        for number, line in enumerate(text.split('\n'), 1):
            if match := re.search(pattern, line):
                yield number, match


def check_file(root, name, text):
    suffix = pathlib.Path(name).suffix
    lines = text.split('\n')
    limit = MAX_FILE_LINES
    if suffix in SHADERS:
        limit = MAX_SHADER_LINES
    elif name.startswith('engine/cpu/') and name.endswith('_inl.hpp'):
        limit = MAX_KERNEL_LINES
    elif MANUAL.fullmatch(name):
        limit = MAX_MANUAL_LINES
    if len(lines) - 1 > limit and suffix in CODE | SHADERS | {'.ts', '.mjs', '.py', '.sh', '.cmake', ''} and name != 'LICENSE':
        yield f'{name}: {len(lines) - 1} lines; the limit is {limit}'
    for number, _ in lines_with(UNFINISHED, text):
        yield f'{name}:{number}: unfinished work is said in an issue, not in the source'
    for number, _ in lines_with(MACHINE_PATH, text):
        yield f'{name}:{number}: the path of one machine'
    for suffixes, pattern, what in WRONG_WORDS:
        for number, found in lines_with(pattern, text) if suffix in suffixes else ():
            yield f'{name}:{number}: "{found.group()}": {what}'
    for number, line in enumerate(lines, 1) if suffix in SHADERS else ():
        if len(line) > MAX_COLUMNS:
            yield f'{name}:{number}: {len(line)} columns; the limit is {MAX_COLUMNS}'
    for number, _ in lines_with(ACTION, text) if suffix == '.yml' else ():
        yield f'{name}:{number}: an action is pinned by the hash of its commit'
    if name != REMOVER and SHELL.search(text.split('\n', 1)[0]):
        for number, argument in loose_removals(text):
            yield f'{name}:{number}: rm -r {argument} removes whatever that holds: use own_folder ({REMOVER})'
    if suffix == '.md':
        yield from broken_links(root, name, text)
    if suffix not in CODE:
        return
    for number, literal in comments.comments_and_literals(name, text)[1] if name.startswith(PANELS) else ():
        if TWO_WORDS.search(literal):
            yield f'{name}:{number}: {literal} is a text of the window: keep it in apps/visualizer/texts/texts.hpp'
    code = blank_comments_and_strings(text)
    for start, length in functions(code):
        if length > MAX_FUNCTION_LINES:
            yield f'{name}:{start}: a function of {length} lines; the limit is {MAX_FUNCTION_LINES}'
    code_lines = code.split('\n')
    for number, _ in lines_with(HOST_STAGE, code):
        around = code_lines[max(0, number - 1 - HOST_ACCESS_LINES):number + HOST_ACCESS_LINES]
        if not any(HOST_ACCESS.search(near) for near in around):
            yield f'{name}:{number}: a barrier towards the host without VK_ACCESS_HOST_READ_BIT'
    for pattern, what in DIALECT:
        for number, _ in lines_with(pattern, code):
            yield f'{name}:{number}: {what}'
    for pattern, what in HOST_FORBIDDEN if name.startswith(HOST_FOLDERS) else ():
        for number, _ in lines_with(pattern, code):
            if HOST_ALLOWED.get(name) != what:
                yield f'{name}:{number}: {what} in a library that runs inside an application'


def folder_includes(root, names, parent):
    """For folders a and b of `parent`: the first include by which a uses b, as {a: {b: 'file:line: #include "..."'}}."""
    inside = {name[len(parent) + 1:] for name in names
              if name.startswith(parent + '/') and pathlib.Path(name).suffix in CODE | {'.ts'}}
    folder_of = lambda name: name.split('/')[0] if '/' in name else '.'
    folders = {folder_of(name) for name in inside}
    uses = {}
    for name in sorted(inside):
        here = folder_of(name)
        is_script = name.endswith('.ts')
        for number, line in enumerate((root / parent / name).read_text(encoding='utf-8').split('\n'), 1):
            include = (IMPORT.search if is_script else INCLUDE.match)(line)
            if not include:
                continue
            target = include.group(1)
            if is_script:
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            there = folder_of(target) if '/' in target or target in inside else here
            if there in folders and there != here:
                uses.setdefault(here, {}).setdefault(there, f'{parent}/{name}:{number}: {line.strip()}')
    return uses


def private_includes(files, names):
    """Includes by which a folder of PUBLIC_ONLY uses a private header of another."""
    known = set(names)
    for name, text in files.items():
        house = name.split('/')[0]
        if house not in PUBLIC_ONLY or name in PRIVATE_USERS or pathlib.Path(name).suffix not in CODE:
            continue
        for number, line in enumerate(text.split('\n'), 1):
            include = INCLUDE.match(line)
            for other in PUBLIC_ONLY[house] if include else ():
                own = {f'{house}/{include[1]}', posixpath.normpath(posixpath.join(posixpath.dirname(name), include[1]))}
                if f'{other}/{include[1]}' in known and not own & known:
                    yield f'{name}:{number}: {include[1]} is private to {other}/; use its headers <fovea/...>'


def folder_cycles(root, names, parent):
    uses = folder_includes(root, names, parent)

    def way(start, goal, seen):
        if start == goal:
            return [start]
        for after in sorted(uses.get(start, {})):
            if after not in seen:
                seen.add(after)
                if rest := way(after, goal, seen):
                    return [start] + rest
        return None

    for here in sorted(uses):
        for there, include in sorted(uses[here].items()):
            if back := way(there, here, {there}):
                yield f'{include} closes a circle of folders of {parent}: {" -> ".join([here] + back)}'


def bad_message(message, files):
    """Violations of a commit's message; `files` are those that it changes."""
    lines = message.rstrip().split('\n')
    if len(lines[0]) > MAX_SUBJECT:
        yield f'a subject of {len(lines[0])} characters; the limit is {MAX_SUBJECT}'
    if len(lines) > 1 and lines[1]:
        yield 'the second line of the message is not empty'
    if len(lines) < 3 and not all(name.endswith('.md') or name == style_words.COUNTS for name in files):
        yield 'the message has no body that says why'


def last_commit(root):
    if not (root / '.git').exists():
        return
    git = lambda *words: subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(root), *words], capture_output=True, text=True).stdout
    commit, _, message = git('log', '-1', '--no-merges', '--format=%h\n%B').partition('\n')
    files = git('diff-tree', '--no-commit-id', '--name-only', '-r', '--root', commit).split() if commit else []
    for violation in bad_message(message, files):
        yield f'commit {commit}: {violation}'


def check(root, record=False):
    """Violations, and notes about totals that have fallen."""
    names, files, violations = tracked_files(root), {}, []
    for name in names:
        path = root / name
        if path.suffix not in SOURCES or path.name in GENERATED:
            continue
        try:
            files[name] = path.read_text(encoding='utf-8')
        except UnicodeDecodeError:
            violations.append(f'{name}: is not UTF-8 text')
    violations += [violation for name, text in files.items() for violation in check_file(root, name, text)]
    violations += last_commit(root)
    violations += [violation for parent in LAYERED for violation in folder_cycles(root, names, parent)]
    violations += private_includes(files, names)
    style, notes = style_words.check(root, files, record)
    return violations + style, notes


def self_test():
    body = '\n'.join('    f();' for _ in range(MAX_FUNCTION_LINES))
    bad = {
        'engine/plan/long_file.cpp': 'int x;\n' * (MAX_FILE_LINES + 1),
        'shaders/long.comp': 'int x;\n' * (MAX_SHADER_LINES + 1),
        'engine/include/fovea/long.h': 'int x;\n' * (MAX_MANUAL_LINES + 1),
        'engine/cpu/long_inl.hpp': 'int x;\n' * (MAX_KERNEL_LINES + 1),
        'web/tests/long.mjs': 'f();\n' * (MAX_FILE_LINES + 1),
        'shaders/wide.glsl': '/' * (MAX_COLUMNS + 1) + '\n',
        'lens/files/function.cpp': 'void f(int a,\n       int b) {\n' + body + '\n}\n',
        'lens/files/method.cpp': 'class A {\n    void f() {\n' + body.replace('    f', '        f') + '\n    }\n};\n',
        'lens/files/note.hpp': '// TO' + 'DO later\n',
        'python/fovea/keys.py': '# masks keys behi' + 'nd the query\n',
        'docs/count.md': 'passed 3 of 4 tests\n',
        'docs/word.md': 'runs on a dri' + 'ver of software\n',
        'docs/day.md': 'measured on 20' + '26-01-02\n',
        'docs/total.md': 'It is stored besi' + 'de the key.\n',
        'docs/two_lines.md': 'All of them bu' + 't\nfor one.\n',
        'docs/sentence.md': 'This ' + 'very ' * 30 + 'long sentence never ends.\n',
        'docs/cell.md': '| a |\n|---|\n| ' + 'word ' * 26 + '|\n',
        'docs/wide.md': 'wide ' * 25 + '\n',
        'docs/term.md': 'It makes a pl' + 'an.\n',
        'lens/files/opening.cpp': 'int x;  // Of' + ' the row.\n',
        'lens/files/lines.cpp': '// It is stored be' + 'hind\n// the row.\n',
        'lens/files/sentence.cpp': '// This ' + 'very ' * 25 + 'long sentence never ends.\n',
        'lens/files/message.cpp': 'const char* s = "x is o' + 'f another model";\n',
        'web/src/page.ts': '/* The token num' + 'ber. */\n',
        'shaders/stands.comp': 'int x; // where it sta' + 'nds\n',
        'python/fovea/doc.py': 'def f():\n    """Whet' + 'her it works."""\n',
        'cmake/hash.cmake': '# It al' + 'one is built.\n',
        'docs/path.md': 'see /ro' + 'ot/x\n',
        'docs/link.md': '[there](ok.md) [gone](gone.md)\n',
        'docs/heading.md': '# A `b`, c\n[there](#a-b-c) [gone](ok.md#a-b-c)\n',
        'engine/cpu/a.cpp': 'void f() { throw 1; }\n',
        'engine/api/b.cpp': 'auto x = getenv("A");\n',
        'engine/vulkan/c.cpp': 'std::thread t;\n',
        'engine/plan/d.cpp': 'std::vector<int> v;\n',
        'engine/plan/e.cpp': 'auto p = new Plan;\n',
        'engine/plan/f.cpp': 'void f() { printf("x"); }\n',
        'engine/plan/g.cpp': 'void f() { std::abort(); }\n',
        'engine/plan/h.cpp': 'void* p = malloc(1);\n',
        'engine/upper/up.cpp': '#include "lower/low.hpp"\n',
        'engine/lower/low.hpp': '#include "middle/middle.hpp"\n',
        'engine/middle/middle.hpp': '#include "upper/up.hpp"\n',
        'lens/files/private.cpp': '#include "lower/low.hpp"\n',
        'web/src/up/up.ts': 'import { low } from "../low/low.ts";\n',
        'web/src/low/low.ts': 'import {\n    up,\n} from "../up/up.ts";\n',
        'apps/visualizer/panels/text.cpp': 'tooltip("Closes ' + 'this tab.");\n',
        'apps/a/i.cpp': 'std::uint32_t i;\n',
        'apps/a/j.cpp': 'float f = 1.0F;\n',
        'apps/a/k.cpp': 'unsigned u = 0xffU;\n',
        'apps/a/l.cpp': 'b.dstAccessMask = VK_ACCESS_SHADER_READ_BIT;\nbarrier(VK_PIPELINE_STAGE_HOST_BIT, b);\n',
        'scripts/a.sh': '#!/bin/bash\nrm -rf --one-file-system "$folder"\n',
        'scripts/b.sh': '#!/bin/sh\nrm -r "${1:?}/$2"\n',
        'scripts/c.sh': '#!/bin/bash\nrm -fR $(dirname "$1")\n',
        'scripts/d.sh': '#!/bin/bash\n[ -e x ] && rm --recursive "$folder"/* || exit\n',
        '.github/workflows/a.yml': '- uses: actions/checkout@v4\n',
    }
    good = {
        REMOVER: '# shellcheck shell=bash\nrm -rf "$1"\n',
        'scripts/ok.sh': '#!/bin/bash\nagain=$(mktemp -d)\ntrap \'rm -rf "$again"\' EXIT\n'
                         'rm -rf "$prefix/gpus" "${to:?}/lib" # rm -rf "$to"\nrm -f "$file"\nrm "$file" -x\n',
        '.github/workflows/ok.yml': '- uses: actions/checkout@' + 40 * 'a' + ' # v4\n',
        'docs/ok.md': '# Here\n[a](#here) [b](https://example.org/x) `[c](d)`\n',
        'docs/style.md': 'It makes a [pl' + 'an](reference/glossary.md#here). `besi' + 'de` is code.\n\n```\nbesi' + 'de it\n```\n'
                         '- ' + 'One. ' * 20 + '\n- ' + 'two ' * 20 + '\n- ' + 'three ' * 18 + '\n',
        'docs/reference/glossary.md': '# Here\nA plan.\n',
        'docs/lab/day.md': 'On 20' + '26-01-02 it was bu' + 't for one bes' + 'ide it.\n',
        'lens/files/style.cpp': '// There is no loader, and the row is no longer used. Not one word is wrong:\n'
                                '//   - a list\n// - of lines\nconst char* s = "besi' + 'de // besi' + 'de";\n',
        'engine/plan/ok.cpp': '// does not throw; std::vector is for others\nconst char* s = "printf(";\n'
                              'void f() { snprintf(a, 1, "x"); new (p) Plan; }\n',
        'apps/a/host.cpp': 'b.dstAccessMask = VK_ACCESS_HOST_READ_BIT;\nbarrier(VK_PIPELINE_STAGE_HOST_BIT, b);\n',
        'apps/visualizer/panels/ok.cpp': '// Closes this tab.\ntooltip("Ctrl+W", "%s: %s");\n',
        'apps/a/ok.cpp': 'uint32_t a = 0xFFu + 0x1F; float f = 1.0f; long long b = 1LL;\n',
        'engine/top/ok.cpp': '#include "files/ok.hpp"\n#include "lower/low.hpp"\n#include "top/ok.hpp"\n',
        'web/src/top/ok.ts': 'import { up } from "../up/up.ts";\nconst low = await import("../low/low.ts");\nimport "./ok.css";\n',
        'lens/files/table.cpp': 'const A kAll[] = {\n' + body.replace('f();', '{1, 2},') + '\n};\n',
        'lens/files/ok.cpp': 'std::vector<int> v;\n' + 'void f() {\n    g();\n}\n' * 200,
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**bad, **good}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        violations, _ = check(root)
    named = {re.split('[:]', violation)[0] for violation in violations}
    errors = [f'not found: {name}' for name in bad if name not in named]
    errors += [f'wrongly found: {violation}' for violation in violations if violation.split(':')[0] in good]
    messages = {'A subject\n\nA body\n': (['a.cpp'], 0), 'A subject\n': (['a.cpp', 'b.md'], 1), 'Only text\n': (['b.md'], 0),
                'A subject\nA body\n': (['b.md'], 1), 'x' * (MAX_SUBJECT + 1) + '\n\nA body\n': (['a.cpp'], 1)}
    errors += [f'message judged wrongly: {message!r}' for message, (files, count) in messages.items()
               if len(list(bad_message(message, files))) != count]
    errors += style_words.self_test()
    print('\n'.join(errors) or f'every one of {len(bad)} violations was found and no other')
    return 1 if errors else 0


def main(arguments):
    if arguments == ['--self-test']:
        return self_test()
    record = arguments[:1] == ['--record']
    arguments = arguments[record:]
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    violations, notes = check(root, record)
    print('\n'.join(violations) or 'house rules: nothing to complain about')
    if notes:
        print('style: fewer places than recorded: ' + ', '.join(notes) + ('' if record else ' (--record keeps these totals)'))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
