#!/usr/bin/env python3
"""Takes the engine out of the page that is one file, so that a wheel compresses it as the bytes that it is, a third of the size:

    split_page.py fovea.html page.html engine.wasm

page.html holds the page with fovea/_notebook.py's mark where the base64 text of engine.wasm stood."""
import base64
import pathlib
import re
import sys

MARK = '@engine@'
LEAST = 100000  # characters: nothing else in the page comes near


def main():
    page, out, engine = (pathlib.Path(name) for name in sys.argv[1:])
    text = page.read_text(encoding='utf-8')
    found = max(re.finditer(r'[A-Za-z0-9+/]{%d,}={0,2}' % LEAST, text), key=lambda match: len(match[0]), default=None)
    if found is None or MARK in text:
        raise SystemExit(f'split_page.py: {page} has no engine in it')
    data = base64.b64decode(found[0], validate=True)
    if data[:4] != b'\0asm' or base64.b64encode(data).decode() != found[0]:
        raise SystemExit(f'split_page.py: what {page} has in base64 is no engine')
    engine.write_bytes(data)
    out.write_text(text[:found.start()] + MARK + text[found.end():], encoding='utf-8')


if __name__ == '__main__':
    main()
