"""The wheel itself: what is in it, how large it is, what it needs of a system, and that its structs are the C compiler's."""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import fovea
import test_model
from fovea import _declarations as c

WHEEL = next(pathlib.Path(os.environ['FOVEA_WHEELS']).glob('fovea-*.whl'))
# With every Vulkan kernel, rotated caches, generation from model files and tokenizers with Unicode tables; the page where it was built.
LARGEST_BYTES, LARGEST_PAGE_BYTES = 4_000_000, 470_000  # GCC 14 writes 5% more than GCC 12
PAGE = ('fovea/page.html', 'fovea/page.xz')
LIBRARIES = {'libc.so.6', 'libm.so.6', 'libgcc_s.so.1', 'libpthread.so.0', 'libdl.so.2', 'librt.so.1', 'ld-linux-x86-64.so.2',
             'ld-linux-aarch64.so.1'}


class Wheel(unittest.TestCase):
    def test_it_is_one_for_every_python_small_and_whole(self):
        self.assertRegex(WHEEL.name, r'^fovea-[0-9.]+-py3-none-\w+\.whl$')
        wheel = zipfile.ZipFile(WHEEL)
        names = wheel.namelist()
        page = sum(wheel.getinfo(name).compress_size for name in PAGE if name in names)
        self.assertLessEqual(WHEEL.stat().st_size - page, LARGEST_BYTES)
        self.assertLessEqual(page, LARGEST_PAGE_BYTES)
        for name in ('__init__.py', '_declarations.py', 'libfovea_runtime.so', 'py.typed'):
            self.assertIn(f'fovea/{name}', names)
        self.assertFalse([name for name in names if 'test' in name or name.endswith(('.cmake', '.a', '.h'))])
        self.assertIn(fovea.__version__, WHEEL.name)

    def test_from_an_empty_environment_to_hidden_states_without_a_compiler_and_pytorch(self):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            model, python = pathlib.Path(folder) / 'm.gguf', f'{folder}/venv/bin/python'
            test_model.make_model(model, 1)
            run = functools.partial(subprocess.run, check=True, capture_output=True, text=True)
            run([sys.executable, '-m', 'venv', '--system-site-packages', '--without-pip', f'{folder}/venv'])
            run([sys.executable, '-m', 'pip', '--python', python, 'install', '--quiet', '--no-index', str(WHEEL)])
            script = (f'import fovea, sys; run = fovea.model({str(model)!r}).run("the cat", keep="hidden"); '
                      'print(run["hidden"].shape, "torch" in sys.modules, fovea.__file__)')
            out = run([python, '-c', script], env={'PATH': ''}).stdout
        self.assertTrue(out.startswith('(4, 2, 24) False ' + folder), out)
        self.assertLess(time.monotonic() - begin, 120)

    def test_what_runs_is_the_installed_one(self):
        self.assertIn(str(pathlib.Path(sys.prefix)), fovea.__file__)

    def test_structs_are_as_the_c_compiler_lays_them_out(self):
        text = subprocess.run([os.environ['FOVEA_SIZES']], check=True, capture_output=True, text=True).stdout
        checked = 0
        for line in text.splitlines():
            name, number = line.split()
            struct, _, field = name.partition('.')
            kind = getattr(c, struct)
            self.assertEqual(getattr(kind, field).offset if field else ctypes.sizeof(kind), int(number), name)
            checked += 1
        self.assertGreater(checked, 200)

    @unittest.skipUnless(sys.platform == 'linux', 'ELF')
    def test_it_needs_no_library_but_those_of_every_system(self):
        path = pathlib.Path(fovea.__file__).parent / 'libfovea_runtime.so'
        needed = subprocess.run(['objdump', '-p', str(path)], check=True, capture_output=True, text=True).stdout
        self.assertLessEqual(set(re.findall(r'NEEDED +(\S+)', needed)), LIBRARIES)
        symbols = subprocess.run(['objdump', '-T', str(path)], check=True, capture_output=True, text=True).stdout
        versions = {tuple(map(int, v.split('.'))) for v in re.findall(r'GLIBC_([0-9.]+)', symbols)}
        self.assertFalse('GLIBCXX' in symbols or 'CXXABI' in symbols)
        here = tuple(map(int, platform.libc_ver()[1].split('.')))
        # engine/runtime/glibc_floor.c knows what glibc renamed up to that of Debian 12, whose wheels are the ones to give away.
        floor = (2, 31) if platform.machine() == 'x86_64' and here <= (2, 36) else here
        self.assertLessEqual(max(versions), floor, sorted(versions)[-3:])


if __name__ == '__main__':
    sys.exit(unittest.main(verbosity=1))
