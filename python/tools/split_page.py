#!/usr/bin/env python3
"""Takes the engine and the weights out of the page that is one file, so that they are compressed as the bytes that they are, a third of the
size, and by LZMA, which needs a sixth less than what a wheel uses:

    split_page.py fovea.html page.html page.xz

page.xz has the bytes, one part after the other; page.html the page with '@data:OFFSET:SIZE@' in place of each
base64 text (fovea/_notebook.py puts them back)."""
import base64
import lzma
import pathlib
import re
import sys

PARTS = re.compile(r'[A-Za-z0-9+/]{8000,}={0,2}')  # characters: nothing else in the page is so long


def main():
    page, out, data = (pathlib.Path(name) for name in sys.argv[1:])
    text, parts = page.read_text(encoding='utf-8'), b''

    def take(found):
        nonlocal parts
        part = base64.b64decode(found[0], validate=True)
        if base64.b64encode(part).decode() != found[0]:
            raise SystemExit(f'split_page.py: {page} has {len(found[0])} characters in a row that are not base64')
        parts += part
        return f'@data:{len(parts) - len(part)}:{len(part)}@'

    if '@data:' in text:
        raise SystemExit(f'split_page.py: {page} has @data: in its text')
    text = PARTS.sub(take, text)
    if b'\0asm' not in parts:
        raise SystemExit(f'split_page.py: {page} has no engine in it')
    data.write_bytes(lzma.compress(parts, preset=9 | lzma.PRESET_EXTREME))
    out.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
