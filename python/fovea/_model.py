"""Models in their files."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Sequence

from . import _declarations as c
from ._library import Refused, c_text, lib, whole
from ._text import JSON, made_text


def score_writers(path: str | os.PathLike[str], tokens: Sequence[int], layer: int, head: int, query: int, key: int,
                  most: int = 10) -> dict[str, Any]:
    """Splits a score by the earlier heads and other parts that wrote its query and its key.

    `path` is a Hugging Face folder or a GGUF file. Of the entries the `most` largest are listed. The keys are those of
    foveaScoreWriters in fovea_inspect.h."""
    ids = [whole('tokens', token, 0, 2**32 - 1) for token in tokens]
    if not ids:
        raise Refused('tokens is empty; it must have at least one token', 'tokens')
    cell = c.FoveaCell(struct_size=ctypes.sizeof(c.FoveaCell), head=whole('head', head, 0, 2**32 - 1),
                       query=whole('query', query, 0, 2**64 - 1), key=whole('key', key, 0, 2**64 - 1))
    made: dict[str, Any] = json.loads(made_text(
        lib.foveaScoreWriters, c_text('path', os.fspath(path)), (ctypes.c_uint32 * len(ids))(*ids), len(ids),
        whole('layer', layer, 0, 2**32 - 1), ctypes.byref(cell), whole('most', most, 0, 2**64 - 1), JSON))
    return made
