#!/usr/bin/env python3
"""Do the documents say what the programs, the build and the tests say?

    doc_facts.py BUILD     exit 1 and a line for each contradiction

Commands and options that a document names must be in `--help` of BUILD's programs. Levels have the names of the one table.
Components and file formats are those that are installed and fuzzed, recommended features those that the code asks for. The page's
sizes are the budgets that its tests assert. The reference has each result code and each environment variable that code reads.
"""
import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOKS = 'docs/lab/'  # commands as they were run on that day
DOCUMENTS = ('README.md', 'CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs/**/*.md', 'python/README.md', 'web/npm/README.md')
COMMAND = re.compile(r'(?:\./dev |\b|`)fovea ([a-z]+)\b(?=[ `\n]|$)([^`\n]*)')
WINDOW = re.compile(r'(?:\./dev visualizer|\bfovea-visualizer)\b([^`\n]*)')
OPTION = re.compile(r'(?<![\w-])--[a-z][a-z-]*\b')
FORMATS = {'safetensors': 'safetensors', 'gguf': 'GGUF', 'npy': 'npy', 'npz': 'npz', 'csv': 'csv', 'png': 'png'}


def read(name):
    return (ROOT / name).read_text(encoding='utf-8')


def documents():
    return {str(path.relative_to(ROOT)): path.read_text(encoding='utf-8') for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))
            if NOTEBOOKS not in path.as_posix()}


@functools.cache
def help_of(program, command=''):
    """None if there is no such command."""
    told = subprocess.run([program, *([command] if command else []), '--help'], capture_output=True, text=True)
    return told.stdout if told.returncode == 0 else None


def wrong_commands(build, texts):
    cli, window = build / 'bin/fovea', build / 'bin/fovea-visualizer'
    for name, text in texts.items():
        for number, line in enumerate(text.split('\n'), 1):
            is_code = line.startswith('    ')
            for found in COMMAND.finditer(line) if cli.exists() else ():
                quoted = is_code or line[:found.start()].count('`') % 2 == 1 or found.group().startswith('`')
                command, options = found.group(1), OPTION.findall(re.split(r'  |\b(?:and|or) `', found.group(2))[0])
                if not quoted or command in ('help', 'slices'):  # slices: the name of a label
                    continue
                told = help_of(cli, command)
                if told is None:
                    yield f'{name}:{number}: fovea has no command {command}'
                    continue
                yield from (f'{name}:{number}: fovea {command} has no option {option}' for option in options
                            if not re.search(re.escape(option) + r'\b(?!-)', told))
            for found in WINDOW.finditer(line) if window.exists() and 'python3' not in line else ():
                options = OPTION.findall(re.split('  ', found.group(1).lstrip())[0])
                yield from (f'{name}:{number}: the visualizer has no option {option}' for option in options
                            if not re.search(re.escape(option) + r'\b(?!-)', help_of(window)))


def wrong_levels():
    texts, options = read('apps/visualizer/texts/texts.hpp'), re.sub(r'"\s*\n\s*"', '', read('apps/visualizer/options.cpp'))
    for number, level in enumerate(json.loads(read('lens/model/tables/levels.json')), 1):
        if f'"level {number}: {level["term"]}"' not in texts:
            yield f'texts.hpp of the visualizer does not call level {number} {level["term"]!r}'
        called = re.search(rf'[:,;] {number} ([A-Za-z ]+?)(?: \(|,|;)', options)
        if not called or called.group(1) not in level['term']:
            yield f'--preset of the visualizer does not call level {number} {level["term"]!r}'


def wrong_components():
    made = set(re.findall(r'^_fovea_install_component\((\w+)', read('cmake/FoveaInstall.cmake'), re.MULTILINE))
    table = read('docs/start/cpp.md').split('| component, target |', 1)[1].split('\n\n', 1)[0]
    listed = set(re.findall(r'^\| `(\w+)`', table, re.MULTILINE))
    yield from (f'docs/start/cpp.md lacks the component {name}' for name in sorted(made - listed))
    yield from (f'docs/start/cpp.md has a component {name}, which is not installed' for name in sorted(listed - made))


def wrong_formats():
    places = {'SECURITY.md': read('SECURITY.md'), 'lens/include/fovea/files.hpp': read('lens/include/fovea/files.hpp').split('promises', 1)[0],
              'docs/start/cpp.md': next(line for line in read('docs/start/cpp.md').split('\n') if line.startswith('| `files`'))}
    for target, word in FORMATS.items():
        if not (ROOT / f'tests/fuzz/{target}_fuzz.cpp').exists():
            yield f'{word} has no fuzzer'
        yield from (f'{name} does not list {word}' for name, text in places.items() if not re.search(rf'\b{word}\b', text))


def wrong_sizes():
    budgets = re.findall(r'<= (\d+)_000\b', read('web/tests/page.test.mjs').split('"sizes stay within their budgets"', 1)[1].split('\n    });', 1)[0])
    figures = read('docs/guides/host-the-page.md').split('## What readers download', 1)[1]
    yield from (f'docs/guides/host-the-page.md does not have the budget of {budget} KB' for budget in sorted(set(budgets), key=int)
                if not re.search(rf'\b{budget} KB\b', figures))


def wrong_errors():
    """docs/reference/errors.md against FoveaResult."""
    codes = dict(re.findall(r'^    (FOVEA_\w+) = (\d+)', read('engine/include/fovea/fovea.h').split('typedef enum FoveaResult', 1)[1].split('}', 1)[0],
                            re.MULTILINE))
    listed = dict(re.findall(r'^\| `(FOVEA_\w+)` \| (\d+) \|', read('docs/reference/errors.md'), re.MULTILINE))
    yield from (f'docs/reference/errors.md: {name} is {listed.get(name)}, in fovea.h {codes.get(name)}'
                for name in sorted(codes | listed) if codes.get(name) != listed.get(name))


VARIABLE = '[A-Z][A-Z_0-9]+'
VARIABLES_READ = (  # how code of each kind names the variables that it reads
    (('.c', '.cpp', '.hpp'), re.compile(rf'getenv\("({VARIABLE})"\)')),
    (('.py',), re.compile(rf"os\.environ(?:\.get\(|\.setdefault\(|\[)['\"]({VARIABLE})['\"]")),
    (('.ts', '.mjs'), re.compile(rf'process\.env\.({VARIABLE})')),
    (('.cmake', 'CMakeLists.txt'), re.compile(rf'\$ENV\{{({VARIABLE})\}}')),
    (('.sh', 'dev', 'setup-debian'), re.compile(rf'\$\{{({VARIABLE}):?-')),
)
# Variables of the shell, the system or a script's own steps.
OTHER_VARIABLES = {'ID', 'VERSION_ID', 'VERSION_CODENAME', 'BASH_SOURCE', 'LD_LIBRARY_PATH', 'GPU_DAY_BEHIND'}


def wrong_variables():
    """docs/reference/environment.md against what code reads. Where a variable's name is itself a variable, it is one of a list in braces or
    the argument of environment()."""
    found = {}
    for folder in ('engine', 'lens', 'apps', 'python', 'web', 'scripts', 'tests', 'cmake', 'tools', 'dev', 'CMakeLists.txt'):
        for path in [ROOT / folder] if (ROOT / folder).is_file() else sorted((ROOT / folder).rglob('*')):
            name = str(path.relative_to(ROOT))
            for suffixes, pattern in VARIABLES_READ if 'node_modules/' not in name and path.is_file() else ():
                if name.endswith(suffixes):
                    text = path.read_text(encoding='utf-8')
                    if suffixes[0] == '.c' and re.search(r'getenv\([a-z]', text):
                        found |= {variable: name for variable in re.findall(rf'(?:{{|\benvironment\()"({VARIABLE})"', text)}
                    found |= {variable: name for variable in pattern.findall(text) if variable not in OTHER_VARIABLES}
    rows = re.findall(r'^- (`[^:]*):', read('docs/reference/environment.md'), re.MULTILINE)
    listed = set(re.findall(VARIABLE, ' '.join(rows)))
    yield from (f'docs/reference/environment.md lacks {variable}, which {found[variable]} reads' for variable in sorted(set(found) - listed))
    yield from (f'docs/reference/environment.md has {variable}, which no code reads' for variable in sorted(listed - set(found)))


def wrong_features():
    """docs/reference/devices.md against the features and extensions that Fovea recommends."""
    listed = read('docs/reference/devices.md').split('## Recommended features', 1)[1].split('\n## ', 1)[0]
    source = read('engine/vulkan/recommended_features.cpp')
    features = {name for name in re.findall(r'"([a-z]\w+)"', source) if re.search(r'[A-Z0-9]', name)}
    extensions = {re.sub('_([0-9])$', r'\1', f'VK_{maker}_{name.lower()}') for maker, name in re.findall(r'\bVK_(KHR|EXT|NV)_(\w+)_EXTENSION_NAME\b', source)}
    core = {'VK_KHR_shader_float16_int8', 'VK_EXT_subgroup_size_control', 'VK_KHR_vulkan_memory_model'}  # found by their features
    yield from (f'docs/reference/devices.md does not recommend {name}' for name in sorted(features | extensions - core)
                if not re.search(rf'`{name}`', listed))


def main(build):
    wrong = [*wrong_commands(build, documents()), *wrong_levels(), *wrong_components(), *wrong_formats(), *wrong_sizes(), *wrong_errors(),
             *wrong_variables(), *wrong_features()]
    print('\n'.join(wrong) or 'the documents agree with the programs, the build and the tests')
    return 1 if wrong else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
