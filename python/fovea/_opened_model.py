"""An open model: run with any head changed, looked into, and generating."""
from __future__ import annotations

import codecs
import contextlib
import ctypes
import json
import os
import weakref
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence, Union

import numpy as np

from . import _declarations as c
from ._library import Refused, c_text, check, engine_options, lib, new_diag, whole
from ._text import made_bytes

_U32, _U64 = 2**32 - 1, 2**64 - 1
_Hook = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
Text = Union[str, Sequence[int]]
Heads = Union[Sequence['tuple[int, int]'], Mapping['tuple[int, int]', float]]


class Token(NamedTuple):
    """A generated token."""
    id: int
    text: str  #: the characters that it adds to the text; a character of several tokens comes with the last of them


class Run:
    """The tensors that a run of a model kept. run['q'] is a read-only float32 view into it; the view keeps the run alive."""

    def __init__(self, handle: ctypes.c_void_p, tokens: list[int], keep: Sequence[str]) -> None:
        self._handle = handle
        weakref.finalize(self, lib.foveaDestroyModelRun, handle).atexit = False
        self.tokens = tokens  #: the token IDs that were run
        self.kept = tuple(keep)

    def __repr__(self) -> str:
        return f'<fovea.Run of {len(self.tokens)} tokens: {", ".join(self.kept) or "nothing"} kept>'

    def __getitem__(self, name: str) -> np.ndarray:
        if not isinstance(name, str):
            raise Refused(f"name is {name!r}; it must be a name of keep, such as 'hidden'", 'name')
        tensor, diag = c.FoveaModelTensor(struct_size=ctypes.sizeof(c.FoveaModelTensor)), new_diag()
        check(lib.foveaRunTensor(self._handle, c_text('name', name), ctypes.byref(tensor), ctypes.byref(diag)), diag)
        return np.asarray(_Memory(self, tensor))

    def __contains__(self, name: object) -> bool:
        return name in self.kept

    @property
    def logits(self) -> np.ndarray:
        """float32 [tokens, vocabulary], where keep has 'logits'."""
        return self['logits']


class _Memory:
    """A tensor as NumPy reads it: the base of the array, which holds the run."""

    def __init__(self, run: Run, tensor: c.FoveaModelTensor) -> None:
        self.run = run
        self.__array_interface__ = {'version': 3, 'typestr': '<f4', 'shape': tuple(tensor.shape[:tensor.rank]),
                                    'data': (tensor.data, True)}


class Generation(Iterator[Token]):
    """A text that goes on: an iterator of Token. Made by Model.generate."""

    def __init__(self, model: Model, handle: ctypes.c_void_p) -> None:
        self._model, self._handle = model, handle
        weakref.finalize(self, _end, lib.foveaDestroyGeneration, handle, os.getpid()).atexit = False
        self._pid, self._shown, self._bytes = os.getpid(), 0, codecs.getincrementaldecoder('utf-8')('replace')
        self._state = c.FOVEA_GENERATION_GOES_ON
        self.tokens: list[int] = []  #: the token IDs so far, with an end token

    @property
    def ended(self) -> bool:
        """True once the model has ended its text."""
        return self._state == c.FOVEA_GENERATION_ENDED

    def __next__(self) -> Token:
        if self._state != c.FOVEA_GENERATION_GOES_ON:
            raise StopIteration
        if os.getpid() != self._pid:
            raise Refused('this generation was started before the process forked; start it again in the child', 'generation')
        token, state, diag = ctypes.c_uint32(), ctypes.c_int32(), new_diag()
        check(lib.foveaNextToken(self._handle, ctypes.byref(token), ctypes.byref(state), ctypes.byref(diag)), diag)
        self.tokens.append(token.value)
        self._state = state.value
        return Token(token.value, self._added())

    def _added(self) -> str:
        if not self._model.has_tokenizer:
            return ''
        last = self._state != c.FOVEA_GENERATION_GOES_ON
        made = self._model._bytes(self.tokens[:-1] if self.ended else self.tokens)
        added, self._shown = made[self._shown:], len(made)
        return self._bytes.decode(added, last)


class Model:
    """A model of a file. Made by fovea.model.

    Calls on it may come from any thread and take turns. Its weights stay in their file."""

    def __init__(self, path: str, options: c.FoveaEngineOptions) -> None:
        self._path, self._options = c_text('path', path), options
        handle, diag = self._open(), new_diag()
        info = c.FoveaModelInfo(struct_size=ctypes.sizeof(c.FoveaModelInfo))
        check(lib.foveaGetModelInfo(handle, ctypes.byref(info), ctypes.byref(diag)), diag)
        self.path, self.family, self.device = path, (info.family or b'').decode(), (info.device or b'').decode()
        self.layers, self.width, self.heads, self.kv_heads = info.layers, info.width, info.heads, info.kv_heads
        self.head_width, self.vocabulary, self.context = info.head_width, info.vocabulary, info.context
        self.has_tokenizer, self.has_logits = bool(info.has_tokenizer), bool(info.has_logits)
        ends = ctypes.cast(info.end_tokens, ctypes.POINTER(ctypes.c_uint32))
        self.end_tokens = tuple(ends[i] for i in range(info.end_token_count))  #: token IDs that end a text

    def __repr__(self) -> str:
        return (f'<fovea.Model {self.path!r}: {self.family}, {self.layers} layers of {self.heads} heads, width {self.width}, '
                f'{self.vocabulary} tokens, on {self.device}>')

    def _open(self) -> ctypes.c_void_p:
        handle, diag = ctypes.c_void_p(), new_diag()
        check(lib.foveaOpenModel(self._path, ctypes.byref(self._options), ctypes.byref(handle), ctypes.byref(diag)), diag)
        weakref.finalize(self, _end, lib.foveaCloseModel, handle, os.getpid()).atexit = False
        self._handle, self._pid = handle, os.getpid()
        return handle

    @property
    def _opened(self) -> ctypes.c_void_p:
        """The model in the library. A forked child, which has none of its threads, opens it anew."""
        return self._handle if self._pid == os.getpid() else self._open()

    def tokens(self, text: str, special: bool = True) -> list[int]:
        """The token IDs of a text; with `special` those that the model's inputs begin or end with are added."""
        if not isinstance(text, str):
            raise Refused(f'text is {text!r}; it must be a str', 'text')
        data, count, diag = text.encode('utf-8', 'surrogatepass'), ctypes.c_size_t(), new_diag()
        room = len(data) + 8
        while True:
            ids = (ctypes.c_uint32 * room)()
            check(lib.foveaModelTokens(self._opened, data, len(data), int(special), ids, room, ctypes.byref(count), ctypes.byref(diag)),
                  diag)
            if count.value <= room:
                return list(ids[:count.value])
            room = count.value

    def _bytes(self, ids: Sequence[int]) -> bytes:
        return made_bytes(lib.foveaModelText, self._opened, (ctypes.c_uint32 * len(ids))(*ids), len(ids))

    def text(self, tokens: Sequence[int]) -> str:
        """The text of token IDs. Special tokens give nothing, an incomplete character U+FFFD."""
        return self._bytes(_ids(tokens)).decode(errors='replace')

    def _ids_of(self, text: Text) -> list[int]:
        return self.tokens(text) if isinstance(text, str) else _ids(text)

    def run(self, text: Text | Sequence[Text], *, heads: Heads = (), keep: Sequence[str] | str = (),
            patches: Mapping[tuple[int, int | str], Any] | None = None, masked: Sequence[int] = (),
            hook: Callable[[int, np.ndarray], None] | None = None) -> Any:
        """Runs the model on a text or token IDs, and returns a Run. A list of them gives a list of Runs.

        `heads` switches heads off, [(layer, head), ...], or multiplies them, {(layer, head): number}. Keys counted in `masked` are
        seen by no query. The hook is called with a layer and [tokens, width] before each layer, and once after the last. The run goes on
        with the values that it writes there; it must return None. An exception in it stops the run and is raised here. docs/reference/python.md has the names
        that `keep` takes, and the patches."""
        keep = [keep] if isinstance(keep, str) else list(keep)
        for name in keep:
            if not isinstance(name, str) or ',' in name:
                raise Refused(f"keep has {name!r}; each must be one name, such as 'hidden' or 'weights:3.1'", 'keep')
        texts, is_batch = _batch(text)
        every = [self._ids_of(one) for one in texts]  # all are checked before any is run
        changes = _Changes(heads, patches, masked, hook)
        runs = [self._run(ids, keep, changes) for ids in every]
        return runs if is_batch else runs[0]

    def _run(self, ids: list[int], keep: list[str], changes: _Changes) -> Run:
        handle, diag = ctypes.c_void_p(), new_diag()
        code = lib.foveaRunModel(self._opened, (ctypes.c_uint32 * len(ids))(*ids), len(ids), c_text('keep', ','.join(keep)),
                                 ctypes.byref(changes.struct), ctypes.byref(handle), ctypes.byref(diag))
        changes.raise_what_was_raised()
        check(code, diag)
        return Run(handle, ids, keep)

    def logits(self, text: Text | Sequence[Text], **changes: Any) -> Any:
        """float32 [tokens, vocabulary]: the logits after each token. A list of texts gives a list of arrays. `changes` as for run()."""
        runs = self.run(text, keep=['logits'], **changes)
        return [run.logits for run in runs] if isinstance(runs, list) else runs.logits

    def cache_costs(self, text: Text | Sequence[Text], *, limit: float | None = None) -> dict[str, Any]:
        """Returns the cost of each KV cache type, plain and rotated, on a text, or on a list of them, head by head.

        The result is {'texts', 'tokens', 'layers', 'heads', 'kv_heads', 'types', ...}. Each of `types` is {'type', 'rotated', 'bytes_per_token',
        'next_token_divergence', 'divergence', 'context_change'}; the last two are [layers, heads] arrays. Divergences are in nats. With a
        `limit` of a head's divergence there is 'plan', with a type for each key/value head. As `fovea model --cache-cost`."""
        every = [self._ids_of(one) for one in _batch(text)[0]]
        ids, counts = [i for one in every for i in one], [len(one) for one in every]
        most = None if limit is None else ctypes.byref(ctypes.c_double(_number('limit', limit)))
        made = json.loads(made_bytes(lib.foveaModelCacheCosts, self._opened, (ctypes.c_uint32 * len(ids))(*ids),
                                     (ctypes.c_size_t * len(counts))(*counts), len(counts), most))
        for one in made['types']:
            for name in ('divergence', 'context_change'):
                one[name] = np.array(one[name], np.float64).reshape(self.layers, self.heads)
        return made

    def generate(self, text: Text, count: int = 32, *, temperature: float = 0, top_k: int = 0, top_p: float = 1, min_p: float = 0,
                 seed: int = 0, ignore_eos: bool = False) -> Generation:
        """Goes on with a text or token IDs: an iterator of Token, which computes each as it is asked for. The options, and the tokens,
        are those of `fovea generate`: greedy without a temperature."""
        ids = self._ids_of(text)
        desc = c.FoveaGenerationDesc(
            struct_size=ctypes.sizeof(c.FoveaGenerationDesc), ignore_eos=int(bool(ignore_eos)), count=whole('count', count, 1, _U64),
            top_k=whole('top_k', top_k, 0, _U64), seed=whole('seed', seed, 0, _U64), temperature=_number('temperature', temperature),
            top_p=_number('top_p', top_p), min_p=_number('min_p', min_p))
        handle, diag = ctypes.c_void_p(), new_diag()
        check(lib.foveaStartGeneration(self._opened, (ctypes.c_uint32 * len(ids))(*ids), len(ids), ctypes.byref(desc),
                                       ctypes.byref(handle), ctypes.byref(diag)), diag)
        return Generation(self, handle)


def model(path: str | os.PathLike[str], device: str | int = 'cpu', *, threads: int | None = None) -> Model:
    """Opens a model: a GGUF file, or a Hugging Face folder. Nothing is copied: its weights are read from the file as they are needed.
    Where no such path exists, 'induction', 'recall', 'reverse' and 'sort' are small models of the library.

    `device` is 'cpu', or another of fovea.open_engine; `threads` are those of the CPU, by default all."""
    return Model(os.fspath(path), engine_options(device, threads))


class _Changes:
    """The changes of a run as the library takes them. Holds what the struct points to."""

    def __init__(self, heads: Heads, patches: Mapping[tuple[int, int | str], Any] | None, masked: Sequence[int],
                 hook: Callable[[int, np.ndarray], None] | None) -> None:
        scales = heads.items() if isinstance(heads, Mapping) else [(head, 0.0) for head in heads]
        self._scales = [c.FoveaHeadScale(*_head('heads', head), _number('heads', factor)) for head, factor in scales]
        self._arrays = [(_head('patches', place, c.FOVEA_HIDDEN), _rows(place, array)) for place, array in (patches or {}).items()]
        self._patches = [c.FoveaModelPatch(layer=place[0], head=place[1], data=array.ctypes.data, rows=array.shape[0],
                                           columns=array.shape[1]) for place, array in self._arrays]
        self._masked = sorted({whole('masked', token, 0, _U32) for token in masked})
        if hook is not None and not callable(hook):
            raise Refused(f'hook is {hook!r}; it must be callable', 'hook')
        self._raised: BaseException | None = None

        def call(user: Any, layer: int, hidden: int, tokens: int, width: int) -> int:
            try:  # without a hook too: here Ctrl+C arrives between two layers
                if hook is not None:
                    # The hook's own copy: it may keep it, and the library's memory lives only during the call.
                    memory = (ctypes.c_float * (tokens * width)).from_address(hidden)
                    own = np.array(memory, np.float32).reshape(tokens, width)
                    if hook(layer, own) is not None:
                        raise Refused('hook returned a value; it must write into hidden, as in hidden[:] = new, and return None', 'hook')
                    ctypes.memmove(hidden, np.ascontiguousarray(own).ctypes.data, own.nbytes)
                return 1
            except BaseException as error:  # an exception cannot pass through the library
                self._raised = error
                return 0

        self._call = _Hook(call)
        self.struct = c.FoveaModelChanges(
            struct_size=ctypes.sizeof(c.FoveaModelChanges), head_count=len(self._scales), patch_count=len(self._patches),
            masked_count=len(self._masked), hook=ctypes.cast(self._call, ctypes.c_void_p))
        self._heads_table = (c.FoveaHeadScale * len(self._scales))(*self._scales)
        self._patches_table = (c.FoveaModelPatch * len(self._patches))(*self._patches)
        self._masked_table = (ctypes.c_uint32 * len(self._masked))(*self._masked)
        self.struct.heads = ctypes.addressof(self._heads_table)
        self.struct.patches = ctypes.addressof(self._patches_table)
        self.struct.masked_tokens = ctypes.addressof(self._masked_table)

    def raise_what_was_raised(self) -> None:
        error, self._raised = self._raised, None
        if error is not None:
            raise error


def _end(destroy: Callable[[ctypes.c_void_p], None], handle: ctypes.c_void_p, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has no threads to join or to release a lock
        destroy(handle)


def _number(name: str, value: Any) -> float:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, (str, bytes)):
            return float(value)
    raise Refused(f'{name} is {value!r}; it must be a number', name)


def _ids(tokens: Any) -> list[int]:
    if isinstance(tokens, np.ndarray) and tokens.ndim == 1 and tokens.dtype.kind in 'iu':
        tokens = tokens.tolist()
    if isinstance(tokens, (bytes, Mapping)) or not hasattr(tokens, '__iter__'):
        raise Refused(f'text is {tokens!r}; it must be a str, token IDs, or a list of these', 'text')
    return [whole('tokens', token, 0, _U32) for token in tokens]


def _batch(text: Any) -> tuple[list[Any], bool]:
    """The texts of a call, and whether there may be several."""
    if isinstance(text, np.ndarray):
        return (list(text), True) if text.ndim == 2 else ([text], False)
    if isinstance(text, (list, tuple)) and any(isinstance(one, (str, list, tuple, np.ndarray)) for one in text):
        return list(text), True
    return [text], False


def _head(name: str, place: Any, hidden: int | None = None) -> tuple[int, int]:
    if not isinstance(place, tuple) or len(place) != 2:
        raise Refused(f'{name} has {place!r}; each must be a (layer, head)' + (" or (layer, 'hidden')" if hidden else ''), name)
    layer, head = place
    if hidden is not None and head == 'hidden':
        return whole(name, layer, 0, _U32), hidden
    return whole(name, layer, 0, _U32), whole(name, head, 0, _U32 - 1)


def _rows(place: Any, array: Any) -> np.ndarray:
    with contextlib.suppress(TypeError, ValueError):
        rows = np.ascontiguousarray(array, np.float32)
        if rows.ndim == 2:
            return rows
    given = f'has the shape {array.shape}' if isinstance(array, np.ndarray) else f'is {type(array).__name__}'
    raise Refused(f'the patch of {place!r} {given}; it must be an array [tokens, columns] of numbers', 'patches')
