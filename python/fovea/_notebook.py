"""Objects that a notebook displays: the worked lessons, and the page as one offline file."""
from __future__ import annotations

import base64
import ctypes
import html
import json
import os
import re
from typing import Any, NamedTuple, Sequence
from urllib.parse import quote_plus

import numpy as np

from . import _declarations as c
from ._arrays import as_array, is_bfloat16, widened
from ._call import as_four, truth
from ._library import FoveaError, Refused, c_text, lib, whole
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
            number = ctypes.byref(ctypes.c_uint64(whole('seed', seed, 0, 2**64 - 1)))
        text = c_text('name', str(name))
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
_MARK = re.compile('@data:([0-9]+):([0-9]+)@')  # a part of page.xz, see python/tools/split_page.py


class View:
    """The page with a session inside it: one offline file. In a notebook it shows itself in a frame; no server, no network and no
    kernel is needed to look at it again."""

    def __init__(self, session: str, height: int = 720) -> None:
        self.session = session  #: the text of a .fovea file
        self.height = height

    def stage(self, name: str = '', head: int = 0) -> str:
        """One stage of what the page shows, as text: 'scores', 'weights', ...; '': the one that it shows first."""
        return made_text(lib.foveaSessionStage, c_text('session', self.session), c_text('stage', name),
                         whole('head', head, 0, 2**32 - 1))

    def page(self) -> str:
        """The file."""
        try:
            import lzma
        except ImportError as error:
            raise FoveaError('this Python was built without the module lzma, which unpacks page.xz', c.FOVEA_IO_ERROR,
                             'page.xz') from error
        try:
            with open(os.path.join(_FOLDER, 'page.html'), encoding='utf-8') as file, lzma.open(os.path.join(_FOLDER, 'page.xz')) as parts:
                data = parts.read()
                page = _MARK.sub(lambda m: base64.b64encode(data[int(m[1]):int(m[1]) + int(m[2])]).decode(), file.read())
        except FileNotFoundError as error:
            raise FoveaError('this installation was built without the page; run ./dev build web before the wheel is built',
                             c.FOVEA_IO_ERROR, 'page.html') from error
        # In a script element only its end tag and comments mean something; JSON may write < as an escape.
        session = self.session.replace('<', '\\u003c')
        before, head, after = page.partition('</head>')
        if not head:
            raise FoveaError('the page that came with this installation has no head', c.FOVEA_IO_ERROR, 'page.html')
        return f'{before}<script type="application/json" id="session">{session}</script></head>{after}'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: .html is the page, .fovea only the session."""
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
    whole('batch', batch, 0, view.shape[0] - 1)
    if view.dtype.kind != 'f' and not is_bfloat16(view):
        raise Refused(f'{name} is {view.dtype}; it must be a floating-point type', name)
    array = np.ascontiguousarray(widened(view[batch]))
    keep.append(array)
    tensor = c.FoveaSessionTensor(array.ctypes.data, *array.shape)
    return ctypes.byref(tensor)


def view(q: Any = None, k: Any = None, v: Any = None, *, text: str | None = None, tokens: Sequence[str] | None = None, layer: int = 0,
         tokenizer: Any = None, level: int | None = None, causal: bool = False, layout: str = 'bhsd', batch: int = 0, height: int = 720,
         **keys: Any) -> View:
    """The page of this project on q, k and v of your own, on a layer of a model (`view(model, text)`), or, with only
    `text`, on a sentence: any weight, its derivation, every stage.

    q, k, v  [B, Hq, L, D], [B, Hkv, L, D], [B, Hkv, L, Dv] as in fovea.attention (one batch entry is shown), float32, float16 or
             bfloat16; v may be left out
    tokens   labels of queries and keys, as many texts as there are of each
    q, k     or in their place `model, text`. A model is the name of a small one that learned a task ("induction", "recall",
             "reverse", "sort", "text": a sequence of its tokens, None its own example), and the page shows all of it; or
             what fovea.transformers.read takes: a folder, a .gguf file, a name or a transformers model, of which `layer` is shown
    level    1 to 7, of the page's; None: 3 where causal, else the page's own
    keys     of a session, as docs/reference/sessions.md lists them: head=1, i=3, j=2, stage='scores', mask='causal', ..."""
    fields: dict[str, Any] = {}
    if isinstance(q, (str, os.PathLike)) or hasattr(q, 'config'):
        if v is not None or text is not None and k is not None:
            if v is None:
                raise Refused('text is given twice; call view(model, text)', 'text')
            raise Refused('view(model, text) takes no v; to show tensors, call view(q, k, v) without text', 'v')
        text = k if text is None else text
        if text is not None and not isinstance(text, str):
            raise Refused(f'text is {type(text).__name__}; it must be a str', 'text')
        if isinstance(q, str) and q in c.TASKS:
            fields['task'], q, k = q, None, None
        else:
            if text is None:
                raise Refused('text is missing; call view(model, text)', 'text')
            q, k, v, tokens, rules = _layer_of(q, text, layer, tokenizer)
            causal, text, layout, batch = rules.get('mask') == 'causal', None, 'bhsd', 0
            fields.update(rules)
    if (q is None) != (k is None) or q is None and v is not None:
        raise Refused('q and k must be given together, with or without v', 'k' if k is None else 'q')
    if q is not None and text is not None:
        raise Refused('text and q are both given; give one of them', 'text')
    if tokens is not None and q is None:
        raise Refused('tokens name the rows of q and k, which are missing; give q and k', 'tokens')
    causal = truth('causal', causal)
    if level is None and causal:
        level = 3  # the one whose own mask is causal, so that the page has nothing to remark on it
    if level is not None:
        fields['level'] = level
    if causal:
        fields['mask'] = 'causal'
    if text is not None:
        fields['text'] = text
    fields.update(keys)
    address = '&'.join(f'{quote_plus(str(key))}={quote_plus(_written(value))}' for key, value in {'v': 1, **fields}.items())
    keep: list[np.ndarray] = []
    tensors = [None if value is None else _session_tensor(name, value, layout, batch, keep)
               for name, value in (('q', q), ('k', k), ('v', v))]
    session = made_text(lib.foveaWriteSession, address.encode(), *tensors)
    if tokens is not None:
        tokens, rows, count = [str(token) for token in tokens], keep[0].shape[1], keep[1].shape[1]
        if not len(tokens) == rows == count:
            raise Refused(f'tokens has {len(tokens)} texts; there are {rows} queries and {count} keys, and both must be as many', 'tokens')
        file = json.loads(session)
        file['tensors']['tokens'] = tokens
        checked = json.loads(made_text(lib.foveaReadSession, json.dumps(file).encode()))['session']
        session = json.dumps(checked, ensure_ascii=False) + '\n'
    return View(session, height)


def _layer_of(model: Any, text: str, layer: int, tokenizer: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str], dict[str, Any]]:
    """A layer's q, k, v, the text's tokens, and the rules of its attention as keys of a session."""
    try:
        from . import transformers
        read = transformers.read(model, text, layers=[layer], tokenizer=tokenizer)
    except ImportError as error:
        raise Refused(f'a model needs torch and transformers (4.53 or newer): {error}', 'model') from error
    if layer not in read.layers:
        raise Refused(f'layer is {layer}; the model has no attention layer of that number', 'layer')
    kept = read.layers[layer]
    said = dict(kept.options)
    for name in ('mask', 'bias', 'sinks'):
        if said.get(name) is not None and not (name == 'mask' and said[name].all()):
            raise Refused(f'layer {layer} of this model has {name}, which a session does not support; use fovea.inspect', 'layer')
    width, scale = kept.q.shape[-1], said.get('scale')
    rules: dict[str, Any] = {'scale': 'auto'}
    if scale is not None and abs(scale * width**0.5 - 1) > 1e-6:
        rules['scale'] = repr(1 / scale)  # a session's is what scores are divided by
    if said.get('softcap'):
        rules['cap'] = said['softcap']
    if said.get('causal'):
        rules['mask'] = 'causal'
    if said.get('window'):
        before, after = said['window']
        if not said.get('causal') or after not in (None, 0):
            raise Refused(f'layer {layer} of this model has a window on both sides, which a session does not support; use fovea.inspect', 'layer')
        rules.update(mask='window', win=before)
    return kept.q, kept.k, kept.v, read.tokens, rules


def _written(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
