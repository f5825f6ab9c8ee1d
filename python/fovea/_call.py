"""One attention call: what the arguments of fovea.attention mean, as the engine's description and its bindings."""
from __future__ import annotations

import ctypes
import math
from ctypes import c_float
from typing import Any, Sequence

import numpy as np

from . import _declarations as c
from ._arrays import address, as_array, is_bfloat16, is_own, readable, span_bytes, type_name
from ._library import Refused, put

LAYOUTS = {  # axes of a four-dimensional array as [batch, heads, tokens, width]
    'bhsd': (0, 1, 2, 3),
    'bshd': (0, 2, 1, 3),
}
_TYPES = {'f4': c.FOVEA_F32, 'f2': c.FOVEA_F16, 'bf16': c.FOVEA_BF16, 'u1': c.FOVEA_U8, 'b1': c.FOVEA_U8, 'i4': c.FOVEA_I32}
FLOATS = ('f4', 'f2', 'bf16')
_ALIGNS = {'top-left': c.FOVEA_ALIGN_TOP_LEFT, 'bottom-right': c.FOVEA_ALIGN_BOTTOM_RIGHT}

Bindings = c.FoveaHostBuffer * c.FOVEA_BIND_COUNT


def type_number(name: str, array: np.ndarray, allowed: Sequence[str]) -> int:
    kind = 'bf16' if is_bfloat16(array) else array.dtype.str[1:]
    if kind not in allowed:
        names = {'f4': 'float32', 'f2': 'float16', 'bf16': 'bfloat16', 'u1': 'uint8', 'b1': 'bool', 'i4': 'int32'}
        taken = [names[a] for a in allowed]
        listed = ' or '.join(filter(None, (', '.join(taken[:-1]), taken[-1])))
        wanted = ''
        if kind == 'u2' and 'bf16' in allowed:
            wanted = "; words of bfloat16 need dtype='bfloat16'"
        elif name == 'mask':
            wanted = ': give attention_mask != 0' if kind[0] in 'iu' else ': numbers to add to the scores are bias='
        elif 'f4' in allowed and kind[0] in 'fiu':
            wanted = f': give {name}.astype(np.float32)'
        raise Refused(f'{name} is {type_name(array)}; it must be {listed}{wanted}', name)
    return _TYPES[kind]


def check_words(dtype: Any, *arrays: np.ndarray) -> None:
    """dtype says what arrays of uint16 hold, and changes no other type."""
    if dtype not in (None, 'bfloat16'):
        raise Refused(f"dtype is {dtype!r}; it must be 'bfloat16', which arrays of uint16 then hold, or None", 'dtype')
    if dtype and not any(map(is_bfloat16, arrays)):
        raise Refused(f"dtype is 'bfloat16', which arrays of uint16 hold, but the arrays are {type_name(arrays[0])}: leave dtype out",
                      'dtype')


def lse_of(call: Call, name: str, value: Any) -> np.ndarray:
    """lse or its gradient, packed: [batch, heads, queries], or without the axes that the call has not."""
    array = np.ascontiguousarray(as_array(name, value))
    type_number(name, array, ('f4',))
    shape = call.q.shape[:3]
    if array.shape not in (shape, shape[4 - call.ndim:]):
        raise Refused(f'{name} has shape {array.shape}; it must be {shape}: [batch, heads, queries]', name)
    return array.reshape(shape)


def truth(name: str, value: Any, otherwise: str = '') -> bool:
    """A text is none: 'none' and 'bottom-right' would both be true."""
    if not isinstance(value, (bool, np.bool_)) and (isinstance(value, float) or value not in (0, 1)):
        raise Refused(f'{name} is {value!r}; it must be True or False{otherwise}', name)
    return bool(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise Refused(f'{name} is {value!r}; it must be a number', name)
    rounded = c_float(float(value)).value if -2**128 < value < 2**128 or value != value else math.inf
    if math.isinf(rounded) or rounded == 0 != value:
        raise Refused(f'{name} is {value}; it must be a number that float32 holds', name)
    return rounded


def as_four(name: str, array: np.ndarray, layout: str) -> np.ndarray:
    """A view as [batch, heads, tokens, width]. Three dimensions have no batch, two neither batch nor heads."""
    if array.ndim == 4:
        return array.transpose(LAYOUTS[layout])
    if array.ndim == 3:
        return (array if layout == 'bhsd' else array.transpose(1, 0, 2))[np.newaxis]
    if array.ndim == 2:
        return array[np.newaxis, np.newaxis]
    raise Refused(f'{name} has {array.ndim} dimensions; it must have 4 ({layout}), 3 (without batch) or 2 (one head)', name)


def empty_like_call(shape: tuple[int, ...], dtype: Any, layout: str, ndim: int) -> tuple[np.ndarray, np.ndarray]:
    """A new array of the caller's layout, and its view as [batch, heads, tokens, width]."""
    batch, heads, tokens, width = shape
    of_layout = {'bhsd': (batch, heads, tokens, width), 'bshd': (batch, tokens, heads, width)}[layout]
    array = np.empty(of_layout[4 - ndim:] if ndim != 2 else (tokens, width), dtype)
    return array, as_four('o', array, layout)


def strides_of(view: np.ndarray) -> c.FoveaStrides:
    """Distances in elements; where an axis repeats one and the same memory, FOVEA_BROADCAST."""
    if view.size == 0:
        return c.FoveaStrides()
    steps = [0 if n == 1 else c.FOVEA_BROADCAST if s == 0 else s // view.itemsize
             for n, s in zip(view.shape[:3], view.strides[:3])]
    return c.FoveaStrides(*steps)


def whole_words(view: np.ndarray) -> np.ndarray:
    """Kernels read masks and biases in 32-bit words: where the first one would begin within a word or the last one reach after the
    array, a packed copy."""
    if span_bytes(view) % 4 == 0 and address(view) % 4 == 0:
        return view
    room = np.zeros((view.nbytes + 3) // 4 * 4, np.uint8)
    copy = room[:view.nbytes].view(view.dtype).reshape(view.shape)
    copy[...] = view
    return copy


class Call:
    """The description, and memory for its inputs. `keep` holds every array that a binding points into."""

    def __init__(self, q: Any, k: Any, v: Any, *, causal: bool = False, align: str | int | None = None,
                 scale: float | None = None, mask: Any = None, bias: Any = None,
                 window: tuple[int | None, int | None] | None = None, softcap: float = 0, sinks: Any = None,
                 alibi: Any = None, kv_lengths: Any = None, dropout_p: float = 0, seed: int = 0,
                 layout: str = 'bhsd', dtype: str | None = None) -> None:
        if layout not in LAYOUTS:
            raise Refused(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}", 'layout')
        self.layout = layout
        self.words = dtype is not None
        self.desc = desc = c.FoveaAttentionDesc(struct_size=ctypes.sizeof(c.FoveaAttentionDesc))
        self.bindings = Bindings()
        self.keep: dict[int, np.ndarray] = {}
        self._take_tensors(q, k, v)
        check_words(dtype, self.q, self.k, self.v)
        if truth('causal', causal, ', and align says where query 0 stands'):
            desc.flags |= c.FOVEA_FLAG_CAUSAL
        if align is None:
            pass  # the library rejects it if it matters
        elif isinstance(align, str):
            if align not in _ALIGNS:
                raise Refused(f"align is {align!r}; it must be {', '.join(_ALIGNS)} or the position of query 0",
                              'align')
            desc.align = _ALIGNS[align]
        else:
            desc.align = c.FOVEA_ALIGN_OFFSET
            put(desc, 'q_offset', align, 'align')
        if scale is not None:
            desc.scale = _number('scale', scale)
            if desc.scale == 0:
                raise Refused('scale is 0, which would make all weights of a row the same; None means 1 / sqrt(width of q)', 'scale')
        desc.softcap = _number('softcap', softcap)
        if window is not None:
            if not isinstance(window, (tuple, list)) or len(window) != 2:
                raise Refused(f'window is {window!r}; it must be (left, right), None for all of a side', 'window')
            desc.flags |= c.FOVEA_FLAG_WINDOW
            for side, count in zip(('window_left', 'window_right'), window):
                put(desc, side, -1 if count is None else count)
        desc.dropout_p = _number('dropout_p', dropout_p)
        put(desc, 'dropout_seed', seed, 'seed')
        self._take_matrix('mask', desc.mask, mask, c.FOVEA_BIND_MASK, ('b1', 'u1'))
        self._take_matrix('bias', desc.bias, bias, c.FOVEA_BIND_BIAS, FLOATS)
        self._take_vector('sinks', sinks, c.FOVEA_FLAG_SINKS, c.FOVEA_BIND_SINKS)
        self._take_vector('alibi', alibi, c.FOVEA_FLAG_ALIBI, c.FOVEA_BIND_ALIBI)
        if kv_lengths is not None:
            self._take_lengths(kv_lengths)

    def bind(self, binding: int, array: np.ndarray) -> None:
        self.keep[binding] = array
        buffer = self.bindings[binding]
        buffer.data, buffer.size_bytes = address(array), span_bytes(array)

    def _take_tensors(self, q: Any, k: Any, v: Any) -> None:
        desc, views = self.desc, []
        self.borrowed = [False] * 3  # by binding: true if the caller's memory is read in place
        for name, value, binding in (('q', q, c.FOVEA_BIND_Q), ('k', k, c.FOVEA_BIND_K), ('v', v, c.FOVEA_BIND_V)):
            view = as_four(name, as_array(name, value, self.words), self.layout)
            setattr(desc, f'{name}_type', type_number(name, view, FLOATS))
            usable = readable(view, name)
            self.borrowed[binding] = usable is view and isinstance(value, np.ndarray) and is_own(value)
            setattr(desc, f'{name}_strides', strides_of(usable))
            self.bind(binding, usable)
            views.append(usable)
        self.ndim = len(q.shape) if hasattr(q, 'shape') else np.ndim(q)
        self.q, self.k, self.v = views
        batch, heads, rows, dim = self.q.shape
        for name, view in (('k', self.k), ('v', self.v)):
            if view.shape[0] != batch:
                raise Refused(f'{name} has a batch of {view.shape[0]} and q has {batch}; the two must be equal', name)
        if self.k.shape[1:3] != self.v.shape[1:3]:
            raise Refused(f'v has {self.v.shape[1]} heads of {self.v.shape[2]} tokens, and k {self.k.shape[1]} of '
                          f'{self.k.shape[2]}; both must be equal', 'v')
        if self.k.shape[3] != dim:
            raise Refused(f'k has a head size of {self.k.shape[3]} and q has {dim}; the two must be equal', 'k')
        for field, count in (('batch', batch), ('heads_q', heads), ('heads_kv', self.k.shape[1]), ('dim_qk', dim),
                             ('dim_v', self.v.shape[3]), ('len_q', rows), ('len_kv', self.k.shape[2])):
            put(desc, field, count)
        desc.o_type = desc.q_type

    def _take_matrix(self, name: str, desc: c.FoveaMatrixDesc, value: Any, binding: int, allowed: Sequence[str]) -> None:
        if value is None:
            return
        array = as_array(name, value, self.words)
        kind = type_number(name, array, allowed)
        if not 2 <= array.ndim <= 4:
            raise Refused(f'{name} has {array.ndim} dimensions; it must have 2 to 4: [batch, heads, queries, keys] or the last '
                          'of them', name)
        view = array[(np.newaxis,) * (4 - array.ndim)]
        batch, extents = self.desc.batch, (self.desc.batch, self.desc.heads_q, self.desc.len_q)
        by_batch = array.ndim < 4 and array.shape[0] == batch > 1
        of_batch = f'{name}[:, None, None, :]' if array.ndim == 2 else f'{name}[:, None]'
        if by_batch and batch == extents[4 - array.ndim]:
            raise Refused(f'{name} has shape {array.shape}, whose first axis may be {("heads", "queries")[3 - array.ndim]} or the batch: '
                          f'give {name}[None] for the former, {of_batch} for the latter', name)
        for axis, extent, whole in zip(('batch', 'heads', 'rows'), view.shape, extents):
            if extent not in (1, whole):
                hint = f'; if its first axis is the batch, give {of_batch}' if by_batch else ''
                raise Refused(f'{name}.{axis} is {extent}; it must be 1 or {whole}{hint}', name)
        once = tuple(slice(0, 1) if s == 0 and n > 1 else slice(None) for n, s in zip(view.shape[:3], view.strides[:3]))
        view = readable(view[once], name)
        keys = view.shape[3]
        if keys < self.desc.len_kv:  # the library would hide the rest, where others broadcast a single one
            raise Refused(f'{name} has {keys} columns; it must have one for each key, {self.desc.len_kv}', name)
        desc.present, desc.type = 1, kind
        for field, count in zip(('batch', 'heads', 'rows', 'keys'), view.shape):
            put(desc, field, count)
        view = whole_words(view)
        desc.strides = strides_of(view)
        self.bind(binding, view)
        self.bindings[binding].size_bytes += -span_bytes(view) % 4

    def _take_vector(self, name: str, value: Any, flag: int, binding: int) -> None:
        if value is None:
            return
        array = as_array(name, value)
        type_number(name, array, ('f4',))
        if array.shape != (self.desc.heads_q,):
            raise Refused(f'{name} has shape {array.shape}; it must be [{self.desc.heads_q}], one for each query head', name)
        self.desc.flags |= flag
        self.bind(binding, np.ascontiguousarray(array))

    def _take_lengths(self, value: Any) -> None:
        array = as_array('kv_lengths', value)
        desc = self.desc
        if array.dtype.kind not in 'iu' or array.shape != (desc.batch,):
            raise Refused(f'kv_lengths is {array.dtype} {array.shape}; it must be integers [{desc.batch}], one for each batch '
                          'entry', 'kv_lengths')
        if array.size and (array.min() < 0 or array.max() > desc.len_kv):
            raise Refused(f'kv_lengths has {array.min()} to {array.max()}; each must be 0 to {desc.len_kv}', 'kv_lengths')
        table = np.zeros((desc.batch, 4), np.int32)  # FoveaSequence
        table[:, 1], table[:, 3] = desc.len_q, array
        desc.flags |= c.FOVEA_FLAG_VARLEN
        self.bind(c.FOVEA_BIND_SEQUENCES, table)
