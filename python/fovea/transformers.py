"""Models of Hugging Face's transformers (4.48 and newer) with Fovea's attention, and a look into chosen layers in O(N).

    import fovea.transformers
    kept = fovea.transformers.register(layers=[0, 5])
    model = AutoModel.from_pretrained(name, attn_implementation="fovea").eval()
    with torch.no_grad():
        model(**tokenizer(text, return_tensors="pt"))
    kept[5].inspect().top(5, head=3)          # the layer's weights, without the matrix
    kept[5].inspect().map()

or, of a model that is not there yet, in one step:

    read = fovea.transformers.read(name, "The cat sat on the mat", layers=[5])
    read.tokens, read.layers[5].o

For inference: calls that autograd would have to follow are rejected."""
from __future__ import annotations

import os
from typing import Any, Collection, Iterator, Mapping, NamedTuple

import numpy as np

from ._arrays import as_array, like, widened
from ._attention import attention
from ._inspection import Inspection, inspect
from ._library import Refused, whole


class Kept(NamedTuple):
    """One layer's call: O(N), because it does not store a matrix."""
    q: np.ndarray  #: [B, Hq, Lq, D] over the model's own memory, after rotary positions, before the scale
    k: np.ndarray  #: [B, Hkv, Lkv, D], likewise
    v: np.ndarray  #: [B, Hkv, Lkv, Dv], likewise
    o: np.ndarray  #: [B, Hq, Lq, Dv]: what the heads gave, before the output projection
    lse: np.ndarray  #: float32 [B, Hq, Lq]
    options: dict[str, Any]  #: further options: causal, align, window, ...

    def inspect(self, device: Any = 'auto') -> Inspection:
        """The layer's weights, without the matrix."""
        return inspect(self.q, self.k, lse=self.lse, device=device, **self.options)


class NotKept(KeyError):
    """A layer that a Capture does not have; says why."""

    def __str__(self) -> str:
        return str(self.args[0])


class Capture(Mapping[int, Kept]):
    """The last call of each chosen layer, by the layer's number."""

    def __init__(self, layers: Collection[int] | None) -> None:
        if layers is not None and (isinstance(layers, str) or not isinstance(layers, Collection)):
            raise Refused(f'layers is {layers!r}; it must be a list of layer numbers, such as [{layers}], or None for all', 'layers')
        for layer in layers or ():
            whole('layers', layer, 0, 2**31 - 1)
        self._wanted, self._kept = layers, dict[int, Kept]()
        self.calls = 0       #: attention calls since clear(), of whichever layer
        self.repeated = set[int]()  #: layers that ran more than once since then, as those of encoder and decoder do

    def wants(self, layer: int) -> bool:
        return self._wanted is None or layer in self._wanted

    def keep(self, layer: int, kept: Kept) -> None:
        if layer in self._kept:
            self.repeated.add(layer)
        self._kept[layer] = kept

    def clear(self) -> None:
        self._kept.clear()
        self.calls = 0
        self.repeated.clear()

    def __getitem__(self, layer: int) -> Kept:
        if layer in self._kept:
            return self._kept[layer]
        raise NotKept(f'layer {layer!r} was not kept: {self._says()}')

    def __repr__(self) -> str:
        return f'<fovea.transformers.Capture: {self._says()}>'

    def _says(self) -> str:
        if self.calls:
            return f'kept are {sorted(self._kept)}'
        return ("no attention call came: the model has not run with this attention implementation, or computes attention without "
                "transformers' interface of it")

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._kept))

    def __len__(self) -> int:
        return len(self._kept)


def call_options(module: Any, query: np.ndarray, key: np.ndarray, mask: np.ndarray | None, scaling: float | None = None,
                 is_causal: bool | None = None, sliding_window: int | None = None, softcap: float | None = None, s_aux: Any = None,
                 position_bias: Any = None, head_mask: Any = None) -> dict[str, Any]:
    """Turns a model's arguments for a call into those of fovea.attention."""
    if head_mask is not None:
        raise Refused("head_mask is given, which attention 'fovea' does not support: leave it out", 'head_mask')
    batch, keys = query.shape[0], key.shape[2]
    causal = getattr(module, 'is_causal', True) if is_causal is None else is_causal
    options: dict[str, Any] = {'scale': scaling, 'softcap': softcap or 0,
                               'sinks': None if s_aux is None else widened(as_array('s_aux', s_aux))}
    if position_bias is not None:
        options['bias'] = as_array('position_bias', position_bias)
    if mask is not None and mask.ndim == 4:  # made for another implementation: it says everything itself
        mask = mask[..., :keys]
        if mask.dtype == bool:
            options['mask'] = mask
        elif 'bias' in options:
            options['bias'] = options['bias'] + mask
        else:
            options['bias'] = mask
        return options
    if causal or sliding_window is not None:
        options['align'] = 'bottom-right'  # the last query is the last key's token, whether a cache came before it or not
    options['causal'] = bool(causal)
    if sliding_window is not None:
        options['window'] = (sliding_window - 1, None if causal else sliding_window - 1)
    if mask is not None:  # [B, Lkv]: 0 where the text was padded
        if mask.shape != (batch, keys):
            raise Refused(f'attention_mask has shape {mask.shape}; it must be [{batch}, {keys}]', 'attention_mask')
        options['mask'] = (mask != 0)[:, np.newaxis, np.newaxis, :]
    return options


def attention_function(capture: Capture, device: Any = 'auto') -> Any:
    """The function that transformers calls for each layer."""

    def forward(module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, scaling: float | None = None,
                dropout: float = 0.0, **given: Any) -> tuple[Any, None]:
        if dropout:
            raise Refused(f"dropout is {dropout}, but attention 'fovea' is only for inference; call model.eval()", 'dropout')
        q, k, v = as_array('query', query), as_array('key', key), as_array('value', value)
        mask = None if attention_mask is None else as_array('attention_mask', attention_mask)
        named = ('is_causal', 'sliding_window', 'softcap', 's_aux', 'position_bias', 'head_mask')
        options = call_options(module, q, k, mask, scaling, **{name: given[name] for name in named if name in given})
        layer = getattr(module, 'layer_idx', None)
        capture.calls += 1
        tokens_first = tuple(a.transpose(0, 2, 1, 3) for a in (q, k, v))
        if layer is None or not capture.wants(layer):
            return like(query, attention(*tokens_first, layout='bshd', device=device, **options)), None
        o, lse = attention(*tokens_first, layout='bshd', return_lse=True, device=device, **options)
        capture.keep(layer, Kept(q, k, v, as_array('o', o).transpose(0, 2, 1, 3), lse, options))
        return like(query, o), None

    return forward


def mask_function(masking: Any, supports: Any) -> Any:
    """The function that transformers asks for a call's mask, `masking` being its module of masks. Causal and a window, with the last
    query at the last key, are said by the call: the padding, [B, Lkv], is all of its mask. All else (packed sequences, pictures whose
    tokens see each other, chunks, a cache with empty rows) is a mask of Lq x Lkv. supports(config): the model computes attention
    through the interface; others get the mask that they would add by themselves."""
    both = masking.and_masks(masking.causal_mask_function).__code__
    window = masking.sliding_window_overlay(1).__code__
    packed = getattr(masking, 'packed_sequence_mask_function', lambda _: mask_function)(None).__code__
    whole_texts = [masking.causal_mask_function, getattr(masking, 'bidirectional_mask_function', None)]

    def is_said(rule: Any) -> bool:
        code = getattr(rule, '__code__', None)
        if code is both:
            return all(is_said(part) or is_neutral(part) for part in rule.__closure__[0].cell_contents)
        return rule in whole_texts

    def is_neutral(part: Any) -> bool:
        code = getattr(part, '__code__', None)
        if code is packed:  # until 4.57 of each text, packed or not
            sequences = part.__closure__[0].cell_contents
            return bool((sequences == sequences[:, :1]).all())
        return code is window

    def mask(batch_size: int, kv_length: int, kv_offset: int = 0, mask_function: Any = masking.causal_mask_function,
             **given: Any) -> Any:
        position = given.get('cache_position')  # until 4.57, then q_offset and q_length
        end = int(given['q_offset']) + given['q_length'] if position is None else int(position[-1]) + 1
        call = dict(given, batch_size=batch_size, kv_length=kv_length, kv_offset=kv_offset, mask_function=mask_function)
        if not supports(given.get('config')):
            return masking.eager_mask(**call)
        if is_said(mask_function) and end == kv_offset + kv_length:
            return masking.flash_attention_mask(**call)
        return masking.sdpa_mask(**dict(call, allow_is_causal_skip=False, allow_is_bidirectional_skip=False, allow_torch_fix=False))

    return mask


def has_interface(config: Any) -> bool:
    """True if the model of this configuration says that it computes attention through transformers' interface."""
    from transformers import MODEL_MAPPING  # type: ignore
    try:
        model = MODEL_MAPPING[type(config)]
    except KeyError:
        return False
    return all(getattr(one, '_supports_attention_backend', False) for one in (model if isinstance(model, (tuple, list)) else (model,)))


def register(name: str = 'fovea', layers: Collection[int] | None = None, device: Any = 'auto') -> Capture:
    """Makes attn_implementation=`name` known to transformers, and returns what keeps q, k and lse of `layers` (None: of all; an
    empty list: of none)."""
    from transformers import AttentionInterface

    capture = Capture(layers)
    AttentionInterface.register(name, attention_function(capture, device))
    try:
        from transformers import AttentionMaskInterface, masking_utils
    except ImportError:  # before 4.53 masks are made by the model itself
        return capture
    AttentionMaskInterface.register(name, mask_function(masking_utils, has_interface))
    return capture


class Read(NamedTuple):
    """The results of a model's layers for a text."""
    model: Any               #: the transformers model
    ids: np.ndarray          #: int64 [L]
    tokens: list[str]        #: the text of each token ID
    layers: Capture


_READ = 'fovea-read'  # under this name, so that a register() of the user's stays as it is


def load(name: str | os.PathLike[str]) -> tuple[Any, Any]:
    """The model and the tokenizer of a name on the hub, of a folder, or of a file that ends in .gguf (which transformers reads
    where the package `gguf` is), in the type of their weights, ready for inference."""
    from transformers import AutoModel, AutoTokenizer

    where = os.fspath(name)
    given: dict[str, Any] = {}
    if where.lower().endswith('.gguf'):
        if not os.path.isfile(where):
            raise Refused(f'model is {where!r}, which does not exist', 'model')
        where, given['gguf_file'] = os.path.split(os.path.abspath(where))
    return AutoModel.from_pretrained(where, **given).eval(), AutoTokenizer.from_pretrained(where, **given)


def read(model: Any, text: str, *, layers: Collection[int] | None = None, tokenizer: Any = None, device: Any = 'auto') -> Read:
    """Runs a model on a text with Fovea's attention and keeps q, k, v, o and lse of `layers` (None: of all), without a matrix.

    model      what load() takes, or a transformers model, whose own attention is given back afterwards
    tokenizer  text to token IDs, as transformers' are; None: the one of the model's name

    Needs transformers 4.53 or newer; register() needs only 4.48."""
    import torch  # type: ignore

    if isinstance(model, (str, os.PathLike)):
        model, own = load(model)
        tokenizer = tokenizer or own
    elif tokenizer is None:
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(model.config.name_or_path)
    ids = tokenizer(text, return_tensors='pt')['input_ids']
    if ids.shape[1] == 0:
        raise Refused('text has no tokens; it must have at least one', 'text')
    capture = register(_READ, layers, device)
    before, training = model.config._attn_implementation, model.training
    model.set_attn_implementation(_READ)
    try:
        with torch.no_grad():
            model.eval()(input_ids=ids.to(model.device), use_cache=False)
    finally:
        model.set_attn_implementation(before)
        model.train(training)
    if not capture.calls:
        raise Refused("model does not compute attention through transformers' attention interface, which is needed", 'model')
    if capture.repeated:
        raise Refused(f'model runs layer {min(capture.repeated)} more than once, which is not supported (an encoder and a decoder?)',
                      'model')
    absent = [layer for layer in layers or () if layer not in capture]
    if absent:
        raise Refused(f'layers has {absent[0]}; the model has no attention layer of that number', 'layers')
    numbers = ids[0].cpu().numpy()
    return Read(model, numbers, [tokenizer.decode([number]) for number in numbers.tolist()], capture)
