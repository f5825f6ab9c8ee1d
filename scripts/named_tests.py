#!/usr/bin/env python3
"""Does every test that tests/PROMISES.md names exist?

    named_tests.py BUILD     exit 1 and a line for each name that no test has

Names are in backticks in the second column of its tables; a * is any text. A name is a
test of ctest in BUILD, with or without "@DRIVER", or a GoogleTest Suite.Name in a source that a CMakeLists.txt lists.
A part that BUILD leaves out, as when a library is missing, has its tests only in the sources' CMakeLists.txt:
those count too.
"""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GTEST = re.compile(r'^TEST(?:_[FP])?\((\w+), (\w+)\)', re.MULTILINE)
REGISTERED = re.compile(r'(?:add_test\(NAME |fovea_add_(?:vulkan|embed)_test\(|fovea_add_consumer\()([\w.]+)')


def names_in_docs():
    promises = (ROOT / 'tests/PROMISES.md').read_text(encoding='utf-8')
    return sorted({name for line in promises.split('\n') if line.startswith('| ')
                   for name in re.findall(r'`([^` ]+)`', line.split('|')[2])})


def names_in_ctest(build):
    listing = subprocess.run(['ctest', '--test-dir', build, '--show-only=json-v1'], check=True, capture_output=True)
    return {test['name'] for test in json.loads(listing.stdout)['tests']}


def names_in_sources():
    names = set()
    for cmake in (ROOT / 'tests').glob('*/CMakeLists.txt'):
        listed = cmake.read_text(encoding='utf-8')
        for name in REGISTERED.findall(listed):
            names.add(f'consumer.{name}' if f'fovea_add_consumer({name}' in listed else name)
        for source in cmake.parent.glob('*.cpp'):
            if source.name in listed:
                names |= {'.'.join(found) for found in GTEST.findall(source.read_text(encoding='utf-8'))}
    return names


def main(build):
    known = names_in_ctest(build)
    known |= {name.split('@')[0] for name in known} | names_in_sources()
    wanted = names_in_docs()
    missing = [name for name in wanted if not fnmatch.filter(known, name)]
    for name in missing:
        print(f'tests/PROMISES.md names `{name}`; there is no such test')
    print(f'{len(wanted) - len(missing)} of {len(wanted)} named tests exist')
    return 1 if missing or not wanted else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
