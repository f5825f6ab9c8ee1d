"""fovea.attention, its plans and its gradients."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Sequence

import numpy as np

from . import _declarations as c
from ._arrays import address, as_array, like, native, readable, type_name
from ._call import FLOATS, Bindings, Call, as_four, check_words, empty_like_call, lse_of, strides_of, type_number
from ._library import Engine, Refused, engine_for, lib, put
from ._run import EnginePlan, plan_attention


class Plan:
    """A call that is kept: made once, run often on arrays of the same shapes, strides and types.

    `plan(q, k, v)` gives what fovea.attention gives. Masks, lengths and the other arrays are those that the plan was made with:
    do not change them while the plan is in use: some are read in place, others were copied."""

    def __init__(self, q: Any, k: Any, v: Any, *, return_lse: bool = False, device: str | int | Engine = 'auto',
                 **options: Any) -> None:
        engine = engine_for(device)
        self._call = call = Call(q, k, v, **options)
        self._return_lse = return_lse
        if return_lse:
            call.desc.outputs = c.FOVEA_OUTPUT_O | c.FOVEA_OUTPUT_LSE
        self._shape = (*call.q.shape[:3], call.v.shape[3])
        self._dtype = native(q.dtype) if isinstance(q, np.ndarray) else call.q.dtype
        sample, view = empty_like_call(self._shape, self._dtype, call.layout, call.ndim)
        self._o_shape = sample.shape
        call.desc.o_strides = strides_of(view)
        self._plan = plan_attention(engine, call)
        # The properties that an array must have to be bound without further checks: shape, strides and type.
        self._expected = tuple((a.shape, a.strides, a.dtype) if call.borrowed[n] else None for n, a in enumerate((q, k, v)))

    @property
    def info(self) -> c.FoveaPlanInfo:
        """The plan in numbers: FoveaPlanInfo of fovea.h."""
        return self._plan.info

    def explain(self) -> str:
        """Describes the plan: device, kernel, reasons, tiles, slices, workspace, the call as it was read."""
        engine = self._plan.engine
        return f'{engine.device.name}: {engine.reason}\n{self._plan.explain()}'

    def _bind(self, number: int, name: str, value: Any) -> np.ndarray:
        expected = self._expected[number]
        if type(value) is np.ndarray and expected is not None and value.shape == expected[0] \
                and value.strides == expected[1] and value.dtype == expected[2]:
            at = value.__array_interface__['data'][0]
            if at % value.itemsize == 0:
                self._call.bindings[number].data = at
                return value
        call = self._call
        view = readable(as_four(name, as_array(name, value, call.words), call.layout), name)
        of_plan = getattr(call, name)
        if view.shape != of_plan.shape or view.dtype != of_plan.dtype:
            raise Refused(f'{name} is {type_name(view)} {view.shape}, and the plan was made for {type_name(of_plan)} '
                          f'{of_plan.shape}', name)
        if bytes(strides_of(view)) != bytes(strides_of(of_plan)):
            raise Refused(f'{name} has other strides than the array that the plan was made with; make a plan for it', name)
        call.bindings[number].data = address(view)
        return view

    def __call__(self, q: Any, k: Any, v: Any) -> Any:
        return self._plan.exclusively(self._attend, q, k, v)  # the bindings are the plan's own

    def _attend(self, q: Any, k: Any, v: Any) -> Any:
        bind, bindings = self._bind, self._call.bindings
        alive = (bind(0, 'q', q), bind(1, 'k', k), bind(2, 'v', v))
        o = np.empty(self._o_shape, self._dtype)
        buffer = bindings[c.FOVEA_BIND_O]
        buffer.data, buffer.size_bytes = o.__array_interface__['data'][0], o.nbytes
        if not self._return_lse:
            self._plan.run_bound(bindings)
            del alive
            return o if type(q) is np.ndarray else like(q, o)
        lse = np.empty(self._shape[:3], np.float32)
        buffer = bindings[c.FOVEA_BIND_LSE]
        buffer.data, buffer.size_bytes = address(lse), lse.nbytes
        self._plan.run_bound(bindings)
        return like(q, o), like(q, shaped_lse(lse, self._call.ndim))


def shaped_lse(lse: np.ndarray, ndim: int) -> np.ndarray:
    """[batch, heads, queries] without the axes that the call has not."""
    return lse[(0,) * (4 - ndim)]


def plan(q: Any, k: Any, v: Any, **options: Any) -> Plan:
    """Keeps the plan of fovea.attention(q, k, v, **options) for arrays like these. See Plan."""
    return Plan(q, k, v, **options)


def attention(q: Any, k: Any, v: Any, *, causal: bool = False, align: str | int | None = None, scale: float | None = None,
              mask: Any = None, bias: Any = None, window: tuple[int | None, int | None] | None = None, softcap: float = 0,
              sinks: Any = None, alibi: Any = None, kv_lengths: Any = None, dropout_p: float = 0, seed: int = 0,
              layout: str = 'bhsd', dtype: str | None = None, return_lse: bool = False,
              device: str | int | Engine = 'auto') -> Any:
    """softmax(scale q k^T + bias, masked) v, on the GPU where there is one, else on the CPU.

    q           [B, Hq, Lq, D], float32, float16 or bfloat16 (PyTorch's, JAX's, ml_dtypes'); without B, or without B and Hq.
                layout='bshd': [B, L, H, D]. Strides are honoured: views cost nothing. Sums are float32 whatever the type.
    k, v        [B, Hkv, Lkv, D] and [B, Hkv, Lkv, Dv]; Hq is a multiple of Hkv, query head h reads head h // (Hq // Hkv).
    causal      masks the keys after a query's position.
    align       where query 0 is among the keys, for causal, window and alibi: 'bottom-right' (the last query at the last key, as
                for new tokens after a KV cache), 'top-left' (query 0 at key 0, as PyTorch's is_causal), or a key's number, which
                may be negative. Must be given where q has other rows than k.
    scale       None: 1 / sqrt(D).
    mask        bool or uint8 [B or 1, Hq or 1, Lq or 1, Lkv], or the last three or two of these; True is seen.
    bias        float32, float16 or bfloat16 of such a shape, added to the scaled scores; -inf hides.
    window      (left, right): only keys from `left` before to `right` after the query's position are visible; None: no limit on that side.
                Hugging Face's sliding_window=W is (W - 1, 0).
    softcap     scores become softcap * tanh(score / softcap); 0: none.
    sinks       float32 [Hq]: one more logit for each row, which carries no value.
    alibi       float32 [Hq]: slopes; adds slope * (key - position).
    kv_lengths  integers [B]: keys at or past it do not exist.
    dropout_p   drops weights by a counter of `seed`, the same on every device; 0: none.
    dtype       'bfloat16': arrays of uint16 hold bfloat16, for numpy without ml_dtypes; the result is then uint16 too.
    return_lse  also returns the log-sum-exp of each row, float32 [B, Hq, Lq], from which any weight can be had again.
    device      'auto', 'cpu', 'vulkan', 'reference' (float64), a number of fovea.devices(), or a part of a name.

    Returns o [B, Hq, Lq, Dv] as the kind of array that q is, in q's layout; a row that sees no key is 0. A call that cannot be is a
    ValueError whose line names the argument, and has written nothing."""
    return Plan(q, k, v, causal=causal, align=align, scale=scale, mask=mask, bias=bias, window=window, softcap=softcap,
                sinks=sinks, alibi=alibi, kv_lengths=kv_lengths, dropout_p=dropout_p, seed=seed, layout=layout, dtype=dtype,
                return_lse=return_lse, device=device)(q, k, v)


def explain(q: Any, k: Any, v: Any, **options: Any) -> str:
    """Describes how fovea.attention(q, k, v, **options) would be computed: device, kernel, reasons, slices, memory."""
    return Plan(q, k, v, **options).explain()


class Gradients(NamedTuple):
    """The result of gradients(): each has its input's shape (dq of q's, ...), and is None if it was not asked for."""
    dq: Any
    dk: Any
    dv: Any
    dbias: Any  #: float32 [batch, heads, queries, keys] of the bias's own extents
    dalibi: Any  #: float32 [Hq]
    dsinks: Any  #: float32 [Hq]


_WRT = {'q': c.FOVEA_GRAD_Q, 'k': c.FOVEA_GRAD_K, 'v': c.FOVEA_GRAD_V, 'bias': c.FOVEA_GRAD_BIAS, 'alibi': c.FOVEA_GRAD_ALIBI,
        'sinks': c.FOVEA_GRAD_SINKS}


def gradients(q: Any, k: Any, v: Any, do: Any, *, o: Any = None, lse: Any = None, dlse: Any = None,
              wrt: Sequence[str] = ('q', 'k', 'v'), device: str | int | Engine = 'auto', **options: Any) -> Gradients:
    """Gradients of fovea.attention(q, k, v, **options), given `do`, the gradient of its result (of o's shape).

    o and lse are results of the forward call (return_lse=True); without them it is run again. dlse [B, Hq, Lq] is the gradient
    of lse, None: zero. wrt names what is wanted: 'q', 'k', 'v', 'bias', 'alibi', 'sinks'. Nothing of the size Lq x Lkv is kept,
    and the same call gives the same bits."""
    engine = engine_for(device)
    if o is None or lse is None:
        o, lse = attention(q, k, v, return_lse=True, device=engine, **options)
    call = Call(q, k, v, **options)
    unknown = [name for name in wrt if name not in _WRT]
    if unknown:
        raise Refused(f"wrt has {unknown[0]!r}; it takes {', '.join(_WRT)}", 'wrt')
    absent = [name for name in ('bias', 'alibi', 'sinks') if name in wrt and options.get(name) is None]
    if absent:
        raise Refused(f"wrt has {absent[0]!r}, but the call has no {absent[0]}; leave it out", 'wrt')
    if not wrt:
        raise Refused('wrt is empty; it must have at least one gradient', 'wrt')
    backward = c.FoveaAttentionBackwardDesc(struct_size=ctypes.sizeof(c.FoveaAttentionBackwardDesc))
    for name in wrt:
        backward.gradients |= _WRT[name]
    batch, heads, rows, _ = call.q.shape
    expected = (batch, heads, rows, call.v.shape[3])
    for name, value, binding in (('o', o, c.FOVEA_BIND_O), ('do', do, c.FOVEA_BIND_DO)):
        view = readable(as_four(name, as_array(name, value, call.words), call.layout), name)
        if view.shape != expected:
            raise Refused(f'{name} has shape {view.shape}; it must be that of the result, {expected}', name)
        setattr(call.desc if name == 'o' else backward, f'{name}_type', type_number(name, view, FLOATS))
        setattr(call.desc if name == 'o' else backward, f'{name}_strides', strides_of(view))
        call.bind(binding, view)
    backward.has_lse_gradient = int(dlse is not None)
    for name, value, binding in (('lse', lse, c.FOVEA_BIND_LSE), ('dlse', dlse, c.FOVEA_BIND_DLSE)):
        if value is not None:
            call.bind(binding, lse_of(call, name, value))
    made: dict[str, Any] = {}
    for name, source, binding in (('q', call.q, c.FOVEA_BIND_DQ), ('k', call.k, c.FOVEA_BIND_DK), ('v', call.v, c.FOVEA_BIND_DV)):
        if name in wrt:
            array, view = empty_like_call(source.shape, source.dtype, call.layout, call.ndim)
            setattr(backward, f'd{name}_type', type_number(f'd{name}', view, FLOATS))
            setattr(backward, f'd{name}_strides', strides_of(view))
            call.bind(binding, view)
            made[name] = like({'q': q, 'k': k, 'v': v}[name], array)
    plan = EnginePlan(engine, lib.foveaPlanAttentionBackward, call.desc, backward)
    for name, binding, shape in (('bias', c.FOVEA_BIND_DBIAS, _extents(call.desc.bias)), ('alibi', c.FOVEA_BIND_DALIBI, (heads,)),
                                 ('sinks', c.FOVEA_BIND_DSINKS, (heads,))):
        if name in wrt:
            made[name] = np.empty(shape, np.float32)
            call.bind(binding, made[name])
    plan.run(call.bindings)
    return Gradients(*(made.get(name) for name in _WRT))


def _extents(matrix: c.FoveaMatrixDesc) -> tuple[int, ...]:
    return (matrix.batch, matrix.heads, matrix.rows, matrix.keys)


def merge(parts: Sequence[tuple[Any, Any]], *, dtype: str | None = None, device: str | int | Engine = 'auto') -> tuple[Any, Any]:
    """One result of several over different keys: parts are (o, lse) as return_lse=True gives them, o [B, H, L, Dv] and lse [B, H, L]
    (layout 'bhsd'; without B, or without B and H, as there; dtype as there). A part whose lse is -inf adds nothing. One fixed tree, neighbours
    first, so that the same parts give the same bits, whoever computed them. Only one part may
    have the sink."""
    if not parts:
        raise Refused('parts is empty; it must have at least one part', 'parts')
    for number, part in enumerate(parts):
        if not isinstance(part, (tuple, list)) or len(part) != 2:
            raise Refused(f'part {number} of parts is a {type(part).__name__}; it must be (o, lse)', 'parts')
    arrays = [(as_array('parts', o, dtype is not None), as_array('parts', lse)) for o, lse in parts]
    o, lse = arrays[0]
    check_words(dtype, o)
    desc = c.FoveaMergeDesc(struct_size=ctypes.sizeof(c.FoveaMergeDesc), parts=len(parts))
    desc.x_type = desc.y_type = type_number('parts', o, FLOATS)
    type_number('parts', lse, ('f4',))
    for number, (other, other_lse) in enumerate(arrays):
        if other.shape != o.shape or other.dtype != o.dtype or other_lse.shape != o.shape[:-1] or other_lse.dtype != lse.dtype:
            raise Refused(f'part {number} of parts is {type_name(other)} {other.shape} with lse {other_lse.shape}; it must be {type_name(o)} '
                          f'{o.shape} with lse {o.shape[:-1]}', 'parts')
    for field, count in zip(('batch', 'heads', 'len', 'dim'), as_four('parts', o, 'bhsd').shape):
        put(desc, field, count)
    x, part_lse = np.stack([part for part, _ in arrays]), np.stack([part for _, part in arrays])
    merged, merged_lse = np.empty(o.shape, o.dtype), np.empty(lse.shape, lse.dtype)
    plan = EnginePlan(engine_for(device), lib.foveaPlanMerge, desc)
    bindings = Bindings()
    for binding, array in ((c.FOVEA_BIND_X, x), (c.FOVEA_BIND_PART_LSE, part_lse), (c.FOVEA_BIND_Y, merged),
                           (c.FOVEA_BIND_LSE, merged_lse)):
        bindings[binding] = c.FoveaHostBuffer(address(array), array.nbytes)
    plan.run(bindings)
    return like(parts[0][0], merged), like(parts[0][1], merged_lse)
