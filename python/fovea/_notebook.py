"""What shows itself in a notebook: the worked lessons, and the page itself as one offline file."""
from __future__ import annotations

import base64
import ctypes
import html
import json
import os
from typing import Any, NamedTuple, Sequence
from urllib.parse import quote_plus

import numpy as np

from . import _declarations as c
from ._arrays import as_array, is_bfloat16, widened
from ._call import as_four
from ._library import FoveaError, Refused, lib
from ._text import JSON, PLAIN, made_text


class LessonTable(NamedTuple):
    """A table as the tutorial prints it, and as it was computed."""
    label: str
    tensor: str       #: the stage that it shows
    formula: str
    shape: tuple[int, ...]
    theirs: list[str]  #: the elements, row by row, as the tutorial has them
    ours: list[str]
    exact: bool        #: digit for digit


class Lesson:
    """A worked example of the attention tutorials, computed in strict float32. In a notebook it shows its tables."""

    def __init__(self, name: str | int, seed: int | None = None) -> None:
        number = None
        if seed is not None:
            if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
                raise Refused(f'seed is {seed!r}; it must be from 0 to 2^64 - 1', 'seed')
            number = ctypes.byref(ctypes.c_uint64(int(seed)))
        text = str(name).encode()
        told = json.loads(made_text(lib.foveaRunLesson, text, number, JSON))
        self._printed = made_text(lib.foveaRunLesson, text, number, PLAIN)
        self.name: str = told['name']
        self.title: str = told['title']
        self.tutorial: str = told['tutorial']
        self.about: str = told['about']
        self.notes: list[str] = told['notes']
        self.seed: int | None = int(told['seed']) if told['seed'] >= 0 else None
        self.tables = [LessonTable(t['label'], t['tensor'], t['formula'], tuple(int(n) for n in t['shape']), t['theirs'], t['ours'],
                                   t['exact']) for t in told['list']]

    def __str__(self) -> str:
        return self._printed

    def __repr__(self) -> str:
        return f'<fovea.Lesson {self.name}: {self.title}>'

    def _repr_html_(self) -> str:
        parts = [f'<h3>{html.escape(self.title)}</h3><p>{html.escape(self.about)}</p>']
        for table in self.tables:
            verdict = 'digit for digit' if table.exact else 'other digits than the tutorial'
            parts.append(f'<p><b>{html.escape(table.label)}</b> <code>{html.escape(table.formula)}</code>: {verdict}</p>')
            columns = table.shape[-1] if table.shape else 1
            rows = [table.ours[i:i + columns] for i in range(0, len(table.ours), columns)] if columns else []
            cells = ''.join('<tr>' + ''.join(f'<td style="font-family:monospace;text-align:right">{html.escape(e)}</td>' for e in row) + '</tr>'
                            for row in rows)
            parts.append(f'<table>{cells}</table>')
        return ''.join(parts)


def lesson(name: str | int, seed: int | None = None) -> Lesson:
    """A worked example: its full name ("t1-08-causal-weights"), the short one ("t1-08"), or a level, 1 to 7."""
    return Lesson(name, seed)


def lessons() -> list[dict[str, Any]]:
    """All of them: name, title, tutorial, level, and how many printed tables each has."""
    made: list[dict[str, Any]] = json.loads(made_text(lib.foveaListLessons))
    return made


# ---- the page ----

_FOLDER = os.path.dirname(__file__)
_MARK = '@engine@'  # where engine.wasm stands in page.html, in base64 (python/tools/split_page.py)


class View:
    """The page with a session inside it: one offline file. In a notebook it shows itself in a frame; no server, no network and no
    kernel is needed to look at it again."""

    def __init__(self, session: str, height: int = 720) -> None:
        self.session = session  #: the text of a .fovea file
        self.height = height

    def stage(self, name: str = '', head: int = 0) -> str:
        """One stage of what the page shows, as text: 'scores', 'weights', ...; '': the one that it shows first."""
        return made_text(lib.foveaSessionStage, self.session.encode(), name.encode(), head)

    def page(self) -> str:
        """The file."""
        try:
            with open(os.path.join(_FOLDER, 'page.html'), encoding='utf-8') as file, open(os.path.join(_FOLDER, 'engine.wasm'), 'rb') as engine:
                page = file.read().replace(_MARK, base64.b64encode(engine.read()).decode())
        except FileNotFoundError as error:
            raise FoveaError('page.html: this installation was built without the page: build it (./dev build web) before the wheel',
                             c.FOVEA_IO_ERROR, 'page.html') from error
        # In a script element only its end tag and comments mean something; JSON may write < as an escape.
        data = self.session.replace('<', '\\u003c')
        before, head, after = page.partition('</head>')
        if not head:
            raise FoveaError('the page that came with this installation has no head', c.FOVEA_IO_ERROR, 'page.html')
        return f'{before}<script type="application/json" id="session">{data}</script></head>{after}'

    def save(self, path: str | os.PathLike[str]) -> None:
        """To a file: .html is the page, .fovea the session alone."""
        name = os.fspath(path)
        kind = os.path.splitext(name)[1].lower()
        if kind not in ('.html', '.fovea'):
            raise Refused(f'path is {name!r}; it must end in .html or .fovea', 'path')
        content = self.page() if kind == '.html' else self.session
        with open(name, 'w', encoding='utf-8') as file:
            file.write(content)

    def _repr_html_(self) -> str:
        return (f'<iframe style="width:100%;height:{self.height}px;border:0" sandbox="allow-scripts allow-same-origin allow-downloads" '
                f'srcdoc="{html.escape(self.page())}"></iframe>')

    def __repr__(self) -> str:
        return f'<fovea.View of a session of {len(self.session)} bytes>'


def _session_tensor(name: str, value: Any, layout: str, batch: int, keep: list[np.ndarray]) -> Any:
    view = as_four(name, as_array(name, value), layout)
    if not 0 <= batch < view.shape[0]:
        raise Refused(f'batch is {batch}; {name} has {view.shape[0]}', 'batch')
    if view.dtype.kind != 'f' and not is_bfloat16(view):
        raise Refused(f'{name} is {view.dtype}; it must be of floating-point numbers', name)
    array = np.ascontiguousarray(widened(view[batch]))
    keep.append(array)
    tensor = c.FoveaSessionTensor(array.ctypes.data, *array.shape)
    return ctypes.byref(tensor)


def view(q: Any = None, k: Any = None, v: Any = None, *, text: str | None = None, level: int | None = None, causal: bool = False,
         layout: str = 'bhsd', batch: int = 0, height: int = 720, **keys: Any) -> View:
    """The page of this project on q, k and v of your own, or, with `text`, on a sentence: any weight, its derivation, every stage.

    q, k, v  [B, H, L, D] as in fovea.attention (one batch entry is shown), float32, float16 or bfloat16; v may be left out
    level    1 to 7, of the page's; None: 3 where causal, else the page's own
    keys     of a session, as docs/files.md lists them: head=1, i=3, j=2, stage='scores', mask='causal', ..."""
    if (q is None) != (k is None) or q is None and v is not None:
        raise Refused('q and k stand together, with or without v', 'k' if k is None else 'q')
    if q is not None and text is not None:
        raise Refused('text and q are both given; a session shows one of them', 'text')
    fields: dict[str, Any] = {'v': 1}
    if level is None and causal:
        level = 3  # the one whose own mask is causal, so that the page has nothing to remark on it
    if level is not None:
        fields['level'] = level
    if causal:
        fields['mask'] = 'causal'
    if text is not None:
        fields['text'] = text
    fields.update(keys)
    address = '&'.join(f'{quote_plus(str(key))}={quote_plus(_written(value))}' for key, value in fields.items())
    keep: list[np.ndarray] = []
    tensors = [None if value is None else _session_tensor(name, value, layout, batch, keep)
               for name, value in (('q', q), ('k', k), ('v', v))]
    return View(made_text(lib.foveaWriteSession, address.encode(), *tensors), height)


def _written(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
