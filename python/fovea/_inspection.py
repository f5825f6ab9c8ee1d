"""Looking into a call: any weight, from q, k and lse, in tiles and never as the whole matrix."""
from __future__ import annotations

import ctypes
import json
from typing import Any, Iterator, NamedTuple

import numpy as np

from . import _declarations as c
from ._arrays import like, widened
from ._attention import shaped_lse
from ._call import Call, lse_of
from ._library import Engine, Refused, engine_for, lib, whole
from ._run import EnginePlan
from ._text import CSV, JSON, LATEX, PLAIN, PYTHON, made_text

# Cells of one tile that is computed at once, at four bytes each; and of what weights() gives in all.
_TILE_CELLS = 1 << 22
_MOST_CELLS = 1 << 28

Range = tuple[int, int]


class RowStats(NamedTuple):
    """Statistics of each row's weights before dropout; arrays [B, Hq, Lq] (without the axes that q does not have)."""
    max_weight: Any    #: float32: the largest weight; 0 in a row that sees no key
    entropy: Any       #: float32: -sum w ln w, in nats
    argmax_key: Any    #: int64: the first key with the largest weight; -1 in a row that sees none
    visible_keys: Any  #: int64


class Inspection:
    """One call, looked into. Made by fovea.inspect; holds q, k and lse, O(N) in all.

    Rows and keys are integers, slices or ranges without steps (None: all). weights(), top(), map() and the derivations show one head
    of one batch entry, the first of each unless `head` and `batch` choose another."""

    def __init__(self, q: Any, k: Any, v: Any = None, *, lse: Any = None, device: str | int | Engine = 'auto',
                 **options: Any) -> None:
        self._engine = engine_for(device)
        self._given, self._options = q, options
        # Weights depend only on q and k; the engine's description needs values of some width, so k is used.
        self._call = call = Call(q, k, k if v is None else v, **options)
        if lse is None:
            array = self._forward_lse()
        else:
            array = lse_of(call, 'lse', lse)
        self._lse = array.reshape(call.q.shape[:3])
        call.bind(c.FOVEA_BIND_LSE, self._lse)

    def __repr__(self) -> str:
        return (f'<fovea.Inspection of batch {self.batch}, {self.heads} heads, {self.rows} queries and {self.keys} keys: weights(), top() '
                'and map() show one head>')

    @property
    def batch(self) -> int:
        return self._call.q.shape[0]

    @property
    def heads(self) -> int:
        return self._call.q.shape[1]

    @property
    def rows(self) -> int:
        return self._call.q.shape[2]

    @property
    def keys(self) -> int:
        return self._call.k.shape[2]

    @property
    def lse(self) -> Any:
        """float32 [B, Hq, Lq]: the log-sum-exp of each row."""
        return like(self._given, shaped_lse(self._lse, self._call.ndim))

    def _forward(self, outputs: int, binding: int, array: np.ndarray) -> np.ndarray:
        call = self._call
        desc = c.FoveaAttentionDesc.from_buffer_copy(call.desc)
        desc.outputs = outputs
        bindings = type(call.bindings).from_buffer_copy(call.bindings)
        bindings[c.FOVEA_BIND_LSE] = c.FoveaHostBuffer()
        bindings[binding] = c.FoveaHostBuffer(array.__array_interface__['data'][0], array.nbytes)
        plan = EnginePlan(self._engine, lib.foveaPlanAttention, desc)
        if not plan.info.binding_mask >> c.FOVEA_BIND_V & 1:
            bindings[c.FOVEA_BIND_V] = c.FoveaHostBuffer()
        plan.run(bindings)
        return array

    def _forward_lse(self) -> np.ndarray:
        return self._forward(c.FOVEA_OUTPUT_LSE, c.FOVEA_BIND_LSE, np.empty(self._call.q.shape[:3], np.float32))

    def _range(self, name: str, given: Any, count: int) -> Range:
        if given is None:
            return 0, count
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            at = self._one(name, given, count)
            return at, at + 1
        if isinstance(given, slice):
            given = range(*given.indices(count))
        if not isinstance(given, range) or given.step != 1:
            raise Refused(f'{name} is {given!r}; it must be a number, a slice or a range without steps', name)
        if len(given) == 0 or given.start < 0 or given.stop > count:
            raise Refused(f'{name} is {given!r}; it must hold at least one of 0 to {count - 1}', name)
        return given.start, given.stop

    def _one(self, name: str, given: Any, count: int) -> int:
        at = whole(name, given, -count, count - 1)
        return at + count if at < 0 else at

    def _head(self, head: int, batch: int) -> tuple[int, int]:
        return self._one('head', head, self.heads), self._one('batch', batch, self.batch)

    def _tile(self, batch: int, heads: Range, rows: Range, keys: Range, size: tuple[int, int], outputs: int,
              sampled: bool = False) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Mass in units and the largest weights, [heads, height, width]."""
        tile = c.FoveaMapTileDesc(struct_size=ctypes.sizeof(c.FoveaMapTileDesc), batch=batch, first_head=heads[0],
                                  head_count=heads[1] - heads[0], first_row=rows[0], row_count=rows[1] - rows[0],
                                  first_key=keys[0], key_count=keys[1] - keys[0], height=size[0], width=size[1], outputs=outputs,
                                  sampled=int(sampled))
        call = self._call
        plan = EnginePlan(self._engine, lib.foveaPlanMapTile, call.desc, tile)
        shape = (heads[1] - heads[0], *size)
        mass = np.empty(shape, np.uint64) if outputs & c.FOVEA_TILE_MASS else None
        largest = np.empty(shape, np.float32) if outputs & c.FOVEA_TILE_MAX else None
        bindings = type(call.bindings).from_buffer_copy(call.bindings)
        for binding, array in ((c.FOVEA_BIND_TILE_MASS, mass), (c.FOVEA_BIND_TILE_MAX, largest)):
            if array is not None:
                bindings[binding] = c.FoveaHostBuffer(array.__array_interface__['data'][0], array.nbytes)
        plan.run(bindings)
        return mass, largest

    def weights(self, rows: Any = None, keys: Any = None, head: int = 0, batch: int = 0) -> np.ndarray:
        """float32 [rows, keys]: weights of one head, the first by default, as they multiply the values (after dropout, if there is any).
        Each is computed again from q, k and lse; its relative error is that of the kernels and |lse| * 2^-24."""
        head, batch = self._head(head, batch)
        row_range, key_range = self._range('rows', rows, self.rows), self._range('keys', keys, self.keys)
        out_rows, out_keys = row_range[1] - row_range[0], key_range[1] - key_range[0]
        if out_rows * out_keys > _MOST_CELLS:
            raise Refused(f'rows and keys are {out_rows} x {out_keys} weights; at most {_MOST_CELLS} are given at once: ask for a '
                          'part, or for a map', 'rows')
        out = np.empty((out_rows, out_keys), np.float32)
        for (r0, r1), (k0, k1) in _tiles(row_range, key_range):
            _, largest = self._tile(batch, (head, head + 1), (r0, r1), (k0, k1), (r1 - r0, k1 - k0), c.FOVEA_TILE_MAX)
            assert largest is not None
            out[r0 - row_range[0]:r1 - row_range[0], k0 - key_range[0]:k1 - key_range[0]] = largest[0]
        return out

    def key_mass(self, last: int | None = None, rows: Any = None) -> Any:
        """float64 [B, Hq, Lkv]: what each key receives from the last `last` queries (None: from all), or from `rows`: the score by
        which H2O (Zhang et al., 2023) and SnapKV (Li et al., 2024) choose what a cache keeps."""
        if last is not None:
            if rows is not None:
                raise Refused('last and rows are both given; give one of them', 'last')
            rows = range(self.rows - whole('last', last, 1, self.rows), self.rows)
        row_range = self._range('rows', rows, self.rows)
        out = np.empty((self.batch, self.heads, self.keys), np.float64)
        for batch in range(self.batch):
            for k0 in range(0, self.keys, c.FOVEA_TILE_MAX_SIDE):
                k1 = min(self.keys, k0 + c.FOVEA_TILE_MAX_SIDE)
                mass, _ = self._tile(batch, (0, self.heads), row_range, (k0, k1), (1, k1 - k0), c.FOVEA_TILE_MASS)
                assert mass is not None
                out[batch, :, k0:k1] = _mass_values(mass[:, 0])
        return like(self._given, shaped_lse(out, self._call.ndim))

    def row_stats(self) -> RowStats:
        """How sure each row is: its largest weight and where, its entropy, and how many keys it sees."""
        kind = np.dtype([('max_weight', np.float32), ('entropy', np.float32), ('argmax_key', np.uint32), ('visible_keys', np.uint32)])
        stats = self._forward(c.FOVEA_OUTPUT_ROW_STATS, c.FOVEA_BIND_ROW_STATS, np.empty(self._call.q.shape[:3], kind))
        where = stats['argmax_key'].astype(np.int64)
        where[where == 0xffffffff] = -1
        parts = (stats['max_weight'].copy(), stats['entropy'].copy(), where, stats['visible_keys'].astype(np.int64))
        return RowStats(*(like(self._given, shaped_lse(part, self._call.ndim)) for part in parts))

    def derive(self, row: int, key: int, head: int = 0, batch: int = 0) -> dict[str, Any]:
        """Every number between q, k and one weight, and what it adds to the row of o (where v was given): "q", "k", "products", "dot",
        "score", "masked", "rowMax", "exponential", "denominator", "weight", "hiddenBy", ... (fovea_inspect.h says all)."""
        made: dict[str, Any] = json.loads(self._derivation(row, key, head, batch, JSON))
        return made

    def derivation(self, row: int, key: int, head: int = 0, batch: int = 0, form: str = 'plain') -> str:
        """Returns the same as text: 'plain', 'csv', 'latex', or 'python', a script that computes the weight again
        without Fovea."""
        forms = {'plain': PLAIN, 'csv': CSV, 'latex': LATEX, 'python': PYTHON}
        if form not in forms:
            raise Refused(f"form is {form!r}; it must be one of {', '.join(forms)}", 'form')
        return self._derivation(row, key, head, batch, forms[form])

    def _derivation(self, row: int, key: int, head: int, batch: int, form: int) -> str:
        cell = c.FoveaCell(struct_size=ctypes.sizeof(c.FoveaCell))
        for name, field, given, count in (('row', 'query', row, self.rows), ('key', 'key', key, self.keys),
                                          ('head', 'head', head, self.heads), ('batch', 'batch', batch, self.batch)):
            setattr(cell, field, self._one(name, given, count))
        bindings = type(self._call.bindings).from_buffer_copy(self._call.bindings)
        bindings[c.FOVEA_BIND_LSE] = c.FoveaHostBuffer()
        return made_text(lib.foveaDeriveCell, ctypes.byref(self._call.desc), bindings, ctypes.byref(cell), form)

    def map(self, size: tuple[int, int] = (512, 512), **how: Any) -> Any:
        """fovea.map of this call: size (width, height), head, batch, rows, keys, reducer, colormap, color_scale."""
        from ._map import map_of
        return map_of(self, size, **how)

    def top(self, k: int, rows: Any = None, head: int = 0, batch: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """int64 and float32 [rows, k]: of each row the k keys with the largest weights, the largest first and of equal ones the
        first, and those weights. -1 and 0 where a row sees fewer keys."""
        first, end = self._range('rows', rows, self.rows)
        most = _MOST_CELLS // (end - first)
        whole('k', k, 1, most)
        found, values = np.full((end - first, k), -1, np.int64), np.zeros((end - first, k), np.float32)
        step = max(1, _TILE_CELLS // self.keys)
        for r0 in range(first, end, step):
            part = range(r0, min(end, r0 + step))
            weights = self.weights(part, None, head, batch)
            seen = weights > 0
            if (seen.sum(1) < k).any():  # weights may be too small for float32, or NaN
                seen = self._seen(part, batch, head)
            order = np.where(seen, -np.nan_to_num(weights, nan=0), 1)
            best = np.argsort(order, axis=1, kind='stable')[:, :k]
            at = slice(r0 - first, r0 - first + len(weights)), slice(0, best.shape[1])
            is_seen = np.take_along_axis(seen, best, 1)
            found[at] = np.where(is_seen, best, -1)
            values[at] = np.where(is_seen, np.take_along_axis(weights, best, 1), 0)
        return found, values

    def _seen(self, rows: range, batch: int, head: int) -> np.ndarray:
        """bool [rows, keys]: the weights of the call with all scores 0."""
        call, options = self._call, dict(self._options)
        for name in ('scale', 'softcap', 'alibi', 'sinks', 'dropout_p', 'layout', 'dtype'):
            options.pop(name, None)
        bias = call.keep.get(c.FOVEA_BIND_BIAS)
        if bias is not None:
            options['bias'] = np.where(np.isneginf(widened(bias)), np.float32(-np.inf), np.float32(0))
        q, k = (np.zeros((*array.shape[:3], 1), np.float32) for array in (call.q, call.k))
        equal = Inspection(q, k, lse=np.zeros(q.shape[:3], np.float32), device=self._engine, **options)
        return equal.weights(rows, None, head, batch) > 0


def _tiles(rows: Range, keys: Range) -> Iterator[tuple[Range, Range]]:
    width = min(keys[1] - keys[0], c.FOVEA_TILE_MAX_SIDE)
    height = min(c.FOVEA_TILE_MAX_SIDE, max(1, _TILE_CELLS // width))
    for r0 in range(rows[0], rows[1], height):
        for k0 in range(keys[0], keys[1], width):
            yield (r0, min(rows[1], r0 + height)), (k0, min(keys[1], k0 + width))


def _mass_values(units: np.ndarray) -> np.ndarray:
    """Converts sums of weights from integer units of 2^-40; NaN if a weight was not finite."""
    return np.where(units == np.uint64(c.FOVEA_TILE_INVALID), np.nan, units.astype(np.float64) * c.FOVEA_TILE_UNIT)


def inspect(q: Any, k: Any, v: Any = None, *, lse: Any = None, device: str | int | Engine = 'auto', **options: Any) -> Inspection:
    """Looks into fovea.attention(q, k, v, **options): its weights without the matrix. With lse, the result of that
    call (return_lse=True), nothing is computed yet; without it, only lse is computed. v is not needed."""
    return Inspection(q, k, v, lse=lse, device=device, **options)
