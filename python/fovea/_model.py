"""Models in their files."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Sequence

from . import _declarations as c
from ._library import Refused, c_text, lib, whole
from ._text import JSON, made_text


def token_ids(tokens: Sequence[int]) -> ctypes.Array[ctypes.c_uint32]:
    ids = [whole('tokens', token, 0, 2**32 - 1) for token in tokens]
    if not ids:
        raise Refused('tokens is empty; it must have at least one token', 'tokens')
    return (ctypes.c_uint32 * len(ids))(*ids)


def score_writers(path: str | os.PathLike[str], tokens: Sequence[int], layer: int, head: int, query: int, key: int,
                  most: int = 10) -> dict[str, Any]:
    """Splits a score by the earlier heads and other parts that wrote its query and its key.

    `path` is a Hugging Face folder or a GGUF file. Of the entries and loadings the `most` largest are listed. The keys are those of
    foveaScoreWriters in fovea_inspect.h."""
    ids = token_ids(tokens)
    cell = c.FoveaCell(struct_size=ctypes.sizeof(c.FoveaCell), head=whole('head', head, 0, 2**32 - 1),
                       query=whole('query', query, 0, 2**64 - 1), key=whole('key', key, 0, 2**64 - 1))
    made: dict[str, Any] = json.loads(made_text(
        lib.foveaScoreWriters, c_text('path', os.fspath(path)), ids, len(ids),
        whole('layer', layer, 0, 2**32 - 1), ctypes.byref(cell), whole('most', most, 0, 2**64 - 1), JSON))
    return made


def logit_writers(path: str | os.PathLike[str], tokens: Sequence[int], position: int, token: int | None = None,
                  most: int = 10) -> dict[str, Any]:
    """Splits the logit of a token ID after a position by the parts of the model that wrote it.

    Without `token` it is the likeliest one. Of the loadings and neurons the `most` largest are listed. The keys are those of
    foveaLogitWriters in fovea_inspect.h."""
    ids = token_ids(tokens)
    token_id = None if token is None else ctypes.byref(ctypes.c_uint32(whole('token', token, 0, 2**32 - 1)))
    made: dict[str, Any] = json.loads(made_text(
        lib.foveaLogitWriters, c_text('path', os.fspath(path)), ids, len(ids), whole('position', position, 0, 2**64 - 1),
        token_id, whole('most', most, 0, 2**64 - 1), JSON))
    return made


def head_directions(path: str | os.PathLike[str], layer: int, head: int, count: int = 3, most: int = 10) -> dict[str, Any]:
    """Finds the `count` largest singular directions of a head's QK and OV matrices.

    Each comes with the `most` tokens at both ends that it reads and writes. The keys are those of foveaHeadDirections in
    fovea_inspect.h, which says what is left out."""
    made: dict[str, Any] = json.loads(made_text(
        lib.foveaHeadDirections, c_text('path', os.fspath(path)), whole('layer', layer, 0, 2**32 - 1),
        whole('head', head, 0, 2**32 - 1), whole('count', count, 0, 2**64 - 1), whole('most', most, 0, 2**64 - 1), JSON))
    return made
