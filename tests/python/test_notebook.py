"""Runs the code of samples/notebooks with only the package; each cell's text must equal that in the notebook. `--write`
replaces the texts."""
from __future__ import annotations

import ast
import contextlib
import io
import json
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(__file__).parents[2] / 'samples' / 'notebooks'


def text_of(source, names):
    """Returns the text below a cell: everything printed, and its last expression's value."""
    tree, out = ast.parse(source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, 'cell', 'exec'), names)
        value = eval(compile(ast.Expression(last.value), 'cell', 'eval'), names) if last else None
        if value is not None:
            print(repr(value))
    return out.getvalue()


def run(notebook):
    """The cells' outputs as the format has them."""
    names = {'__name__': '__main__'}
    for cell in notebook['cells']:
        if cell['cell_type'] != 'code':
            continue
        text = text_of(''.join(cell['source']), names)
        yield cell, [{'name': 'stdout', 'output_type': 'stream', 'text': text.splitlines(keepends=True)}] if text else []


class Notebooks(unittest.TestCase):
    def test_show_what_their_code_gives(self):
        files = sorted(FOLDER.glob('*.ipynb'))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.name):
                notebook = json.loads(path.read_text(encoding='utf-8'))
                self.assertEqual((notebook['nbformat'], notebook['nbformat_minor']), (4, 5))
                for number, (cell, outputs) in enumerate(run(notebook), 1):
                    self.assertEqual((cell['execution_count'], cell['outputs']), (number, outputs))


if __name__ == '__main__':
    if sys.argv[1:] == ['--write']:
        for path in FOLDER.glob('*.ipynb'):
            notebook = json.loads(path.read_text(encoding='utf-8'))
            for number, (cell, outputs) in enumerate(run(notebook), 1):
                cell['execution_count'], cell['outputs'] = number, outputs
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    else:
        unittest.main()
