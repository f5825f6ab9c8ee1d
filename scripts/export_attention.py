#!/usr/bin/env python3
"""Saves what one attention layer of a Hugging Face model computed for a text, as one safetensors file.

    python3 scripts/export_attention.py gpt2 --layer 5 --text "The cat sat on the mat" --out cat.safetensors
    python3 scripts/export_attention.py gpt2 --layer all --text "The cat sat on the mat" --out cat.safetensors
    python3 scripts/export_attention.py --check cat.safetensors

The file (docs/files.md) holds q, k, v as the layer multiplies them (after rotary embedding), its weights and output,
the tokens, and with --parameters the layer's projections and input. `fovea attend` and the visualizer open it.

Needs torch, transformers >= 4.53 and safetensors; --check needs nothing but Python. The model runs in float32 on the
CPU, through its own plain ("eager") attention code, so every model that has one works.
"""

import argparse
import json
import math
import struct
import sys
from pathlib import Path

FORMAT = "attention"
VERSION = "1"
ATTENTION_NAME = "fovea_export"
SIZES = {"BOOL": 1, "U8": 1, "F16": 2, "F32": 4, "I32": 4, "I64": 8}


def fail(message):
    sys.exit(f"export_attention: error: {message}")


# ---- running the model ---------------------------------------------------------------------------------------------


class Capture:
    """Stands in for the attention function of every layer and keeps what the wanted layer's call got and gave; those of
    all layers where `layer` is None."""

    def __init__(self, layer):
        self.layer = layer
        self.calls = []
        self.any_ran = False
        self.hidden_states = None

    def __call__(self, module, query, key, value, attention_mask, **options):
        # Each modeling file has its own eager function; it knows the model's soft cap, sinks and scale.
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        if eager is None:
            fail(f"{type(module).__name__} has no eager_attention_forward to run")
        self.any_ran = True
        output, weights = eager(module, query, key, value, attention_mask, **options)
        if self.layer is None or getattr(module, "layer_idx", None) == self.layer:
            self.calls.append((module, query, key, value, attention_mask, options, output, weights))
        return output, weights

    def keep_input(self, _module, args, keyword_args):
        self.hidden_states = args[0] if args else keyword_args["hidden_states"]

    def expect_any(self):
        if not self.any_ran:
            fail("the model computes attention by itself, not through the interface of transformers")

    def only_call(self, layers):
        self.expect_any()
        if not self.calls:
            fail(f"no attention layer {self.layer} was run; the model has layers 0 to {layers - 1}")
        if len(self.calls) > 1:
            fail(f"layer {self.layer} ran {len(self.calls)} times (encoder and decoder?): which is which cannot be told")
        return self.calls[0]

    def calls_by_layer(self):
        self.expect_any()
        calls = {}
        for call in self.calls:
            index = getattr(call[0], "layer_idx", None)
            if index is None or index in calls:
                fail("a layer ran twice or has no number (encoder and decoder?): which is which cannot be told")
            calls[index] = call
        return dict(sorted(calls.items()))


def first_line(error):
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def load_model(name, capture):
    from transformers import AttentionInterface, AttentionMaskInterface, AutoModel, AutoTokenizer
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(ATTENTION_NAME, capture)
    # Without a mask function of the same name the model would run without any mask.
    AttentionMaskInterface.register(ATTENTION_NAME, eager_mask)
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModel.from_pretrained(name, attn_implementation=ATTENTION_NAME)
    return tokenizer, model.float().eval()


def run_model(name, layer, text, with_input):
    """The model, its calls by layer (one, or with `layer` None all), ids, tokens, and the one layer's input."""
    import torch

    capture = Capture(layer)
    try:
        tokenizer, model = load_model(name, capture)
    except (OSError, ValueError, KeyError, ImportError) as error:
        fail(f"{name}: {first_line(error)}")
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    if ids.shape[1] == 0:
        fail("the text has no tokens")
    layers = getattr(model.config, "num_hidden_layers", None) or getattr(model.config, "n_layer", 0)
    with torch.no_grad():
        try:
            model(input_ids=ids, use_cache=False)
        except (TypeError, ValueError) as error:
            fail(f"{name} does not run on a text alone: {first_line(error)}")
        calls = capture.calls_by_layer() if layer is None else {layer: capture.only_call(layers)}
        if with_input:
            # Only now it is known which module is the layer; its input comes from a second run.
            hook = calls[layer][0].register_forward_pre_hook(capture.keep_input, with_kwargs=True)
            model(input_ids=ids, use_cache=False)
            hook.remove()
    tokens = [tokenizer.decode([token]) for token in ids[0].tolist()]
    return model, calls, ids[0], tokens, capture.hidden_states


# ---- from the call to tensors --------------------------------------------------------------------------------------


def split_mask(mask, rows, columns):
    """A mask of the model as (visible or None, added or None), bool and float [B or 1, H or 1, rows, columns]."""
    import torch

    if mask is None:
        return None, None
    mask = mask[..., :rows, :columns]
    if mask.dtype == torch.bool:
        return mask, None
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    added = mask.masked_fill(hidden, 0.0)
    return ~hidden, (added if bool((added != 0).any()) else None)


def recomputed_weights(query, key, scale, softcap, visible, added, sinks):
    """The layer's weights once more, in float64: shows that the file says all there is to say."""
    import torch

    key = key.double().repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = scale * (query.double() @ key.transpose(-1, -2))
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if added is not None:
        scores = scores + added.double()
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    if sinks is not None:
        column = sinks.double().reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], dim=-1)
    return torch.nan_to_num(torch.softmax(scores, dim=-1))[..., : key.shape[2]]


def collect(call, ids, tokens, model_name, layer):
    """Tensors and metadata of the file, without the optional parts."""
    import torch

    module, query, key, value, mask, options, output, weights = call
    rows, columns = query.shape[2], key.shape[2]
    scale = options.get("scaling")
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    softcap = options.get("softcap") or 0.0
    sinks = options.get("s_aux")
    sinks = None if sinks is None else sinks.detach()  # a parameter of the model
    visible, added = split_mask(mask, rows, columns)

    below = torch.ones(rows, columns, dtype=torch.bool).tril()
    causal = rows == columns and rows > 1 and bool((weights.masked_fill(below, 0.0) == 0).all())
    seen = below if visible is None and causal else visible
    error = float((recomputed_weights(query, key, scale, softcap, seen, added, sinks) - weights).abs().max())
    if error > 1e-4:
        print(f"export_attention: warning: the layer's weights differ by {error:.3g} from softmax(scale q k + mask): it "
              "does more than this file can say; q, k, v and weights are the layer's own", file=sys.stderr)

    # The model's output is [B, L, H, D]; everything in the file is [B, H, L, D].
    tensors = {"q": query, "k": key, "v": value, "o": output.transpose(1, 2), "weights": weights, "tokens": ids}
    if visible is not None and not (causal and bool(visible[..., below].all())):
        tensors["mask"] = visible
    if added is not None:
        tensors["bias"] = added
    if sinks is not None:
        tensors["sinks"] = sinks
    metadata = {"fovea": FORMAT, "version": VERSION, "model": model_name, "layer": str(layer), "layout": "bhld",
                "scale": repr(scale), "causal": "top-left" if causal else "none", "weights_error": f"{error:.3g}",
                "tokens": json.dumps(tokens, ensure_ascii=False)}
    if softcap:
        metadata["softcap"] = repr(float(softcap))
    return tensors, metadata


def collect_all(calls, ids, tokens, model_name):
    """The layers' tensors as layers.N.q and so on; what the metadata says must be so in every layer."""
    tensors, metadata, errors = {"tokens": ids}, None, []
    for layer, call in calls.items():
        of_layer, said = collect(call, ids, tokens, model_name, layer)
        errors.append(float(said.pop("weights_error")))
        said["layer"] = "all"
        if metadata not in (None, said):
            fail(f"layer {layer} has another scale, soft cap or kind of mask than the ones before: export it alone")
        metadata = said
        del of_layer["tokens"]
        tensors.update({f"layers.{layer}.{name}": tensor for name, tensor in of_layer.items()})
    metadata["weights_error"] = f"{max(errors):.3g}"
    return tensors, metadata


def add_parameters(model, module, hidden_states, tensors, metadata):
    """The layer's projections under their usual names, and the numbers that the weights do not tell."""
    path = next(name for name, candidate in model.named_modules() if candidate is module)
    for name, parameter in module.named_parameters():
        tensors[f"{path}.{name}"] = parameter
    tensors["hidden_states"] = hidden_states
    config = model.config
    for key in ("n_head", "num_attention_heads", "num_key_value_heads", "head_dim", "rope_theta"):
        value = getattr(config, key, None)
        if value is None and key == "rope_theta":
            value = (getattr(config, "rope_parameters", None) or {}).get("rope_theta")
        if value is not None:
            metadata[key] = str(value)


def save(path, tensors, metadata, half):
    import torch
    from safetensors.torch import save_file

    stored = {}
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu()
        if half and tensor.is_floating_point():
            tensor = tensor.to(torch.float16)
        stored[name] = tensor.contiguous().clone()
    save_file(stored, str(path), metadata=metadata)


# ---- checking a file, with nothing but Python ----------------------------------------------------------------------


def read_header(path):
    data = Path(path).read_bytes()
    assert len(data) >= 10, f"{len(data)} bytes are too few for a safetensors file"
    length = struct.unpack("<Q", data[:8])[0]
    assert length <= len(data) - 8, f"header length {length} is more than the bytes that follow, {len(data) - 8}"
    header = json.loads(data[8 : 8 + length])
    assert isinstance(header, dict), "the header is no JSON object"
    return header.pop("__metadata__", {}), header, data[8 + length :]


def floats(entry, data):
    begin, end = entry["data_offsets"]
    letter = {"F32": "f", "F16": "e"}[entry["dtype"]]
    return struct.unpack(f"<{(end - begin) // SIZES[entry['dtype']]}{letter}", data[begin:end])


def check_layer(prefix, metadata, tensors, data):
    for name in ("q", "k", "v"):
        assert prefix + name in tensors, f"tensor '{prefix}{name}' is missing"
        entry = tensors[prefix + name]
        assert entry["dtype"] in ("F32", "F16"), f"tensor '{prefix}{name}' is neither F32 nor F16"
        assert len(entry["shape"]) == 4, f"tensor '{prefix}{name}' has not four dimensions"
    batch, heads, rows, dim = tensors[prefix + "q"]["shape"]
    _, kv_heads, columns, _ = tensors[prefix + "k"]["shape"]
    value_dim = tensors[prefix + "v"]["shape"][3]
    assert heads % kv_heads == 0, "the heads of q are no multiple of those of k"
    expected = {"k": [batch, kv_heads, columns, dim], "v": [batch, kv_heads, columns, value_dim],
                "o": [batch, heads, rows, value_dim], "weights": [batch, heads, rows, columns], "sinks": [heads]}
    expected = {prefix + name: shape for name, shape in expected.items()}
    expected["tokens"] = [columns]
    for name, shape in expected.items():
        if name in tensors:
            assert tensors[name]["shape"] == shape, f"tensor '{name}' has shape {tensors[name]['shape']}, not {shape}"
    if "tokens" in metadata:
        tokens = json.loads(metadata["tokens"])
        assert len(tokens) == columns, f"{len(tokens)} tokens in the metadata for {columns} keys"
        assert all(isinstance(token, str) for token in tokens), "a token is not text"
    if prefix + "weights" in tensors and prefix + "sinks" not in tensors:
        values = floats(tensors[prefix + "weights"], data)
        for at in range(0, len(values), columns):
            total = math.fsum(values[at : at + columns])
            assert total == 0 or abs(total - 1) < 0.01, f"row {at // columns} of weights sums to {total}"


def check(path):
    """Raises AssertionError with the broken rule of docs/files.md; returns a line about the file."""
    metadata, tensors, data = read_header(path)
    assert metadata.get("fovea") == FORMAT, "metadata 'fovea' is not 'attention'"
    assert metadata.get("version") == VERSION, "metadata 'version' is not '1'"
    assert metadata.get("layout") == "bhld", "metadata 'layout' is not 'bhld'"
    assert metadata.get("causal") in ("top-left", "none"), "metadata 'causal' is neither 'top-left' nor 'none'"
    assert float(metadata.get("scale", 0)) > 0, "metadata 'scale' is missing or not positive"
    for name, entry in tensors.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] not in SIZES or end - begin == SIZES[entry["dtype"]] * math.prod(entry["shape"]), (
            f"tensor '{name}' has {end - begin} bytes")
    prefixes = [""]
    if metadata.get("layer") == "all":
        prefixes = sorted({name[: name.index(".", 7) + 1] for name in tensors if name.startswith("layers.")})
        assert prefixes, "there is no tensor of a layer"
    for prefix in prefixes:
        check_layer(prefix, metadata, tensors, data)
    shape = tensors[prefixes[0] + "q"]["shape"]
    return f"{path}: {metadata.get('model', 'no model')}, layer {metadata.get('layer', '?')}, q {shape}"


# ---- command line --------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", help="name or folder, as AutoModel.from_pretrained takes it")
    parser.add_argument("--layer", default="0", help="its number, from 0 on, or all")
    parser.add_argument("--text", help="what the model reads")
    parser.add_argument("--text-file", type=Path, help="the same from a file")
    parser.add_argument("--out", type=Path, help="the safetensors file to write")
    parser.add_argument("--half", action="store_true", help="store floats as float16")
    parser.add_argument("--no-weights", action="store_true", help="leave the weights out (they grow with L * L)")
    parser.add_argument("--parameters", action="store_true", help="add the layer's projections and input")
    parser.add_argument("--check", type=Path, metavar="FILE", help="only check a file against the format")
    args = parser.parse_args()
    if args.check:
        try:
            print(check(args.check))
        except OSError as error:
            fail(f"{args.check}: {error.strerror}")
        except (AssertionError, KeyError, TypeError, ValueError, struct.error) as error:
            fail(f"{args.check}: {error}")
        return
    try:
        text = args.text_file.read_text(encoding="utf-8") if args.text_file else args.text
    except (OSError, ValueError) as error:
        fail(f"--text-file {args.text_file}: {error}")
    if not args.model or text is None or not args.out:
        parser.error("MODEL, --text (or --text-file) and --out are needed")

    if args.layer != "all" and not args.layer.isdigit():
        parser.error("--layer is a number or all")
    layer = None if args.layer == "all" else int(args.layer)
    if layer is None and args.parameters:
        parser.error("--parameters goes with one layer")
    if not args.out.resolve().parent.is_dir() or args.out.is_dir():
        fail(f"--out {args.out}: no file can be written there")
    try:
        import safetensors.torch, torch, transformers  # noqa: F401
    except ImportError as error:
        fail(f"torch, transformers 4.53 or newer and safetensors are needed: {error}")
    model, calls, ids, tokens, hidden_states = run_model(args.model, layer, text, args.parameters)
    if layer is None:
        tensors, metadata = collect_all(calls, ids, tokens, args.model)
    else:
        tensors, metadata = collect(calls[layer], ids, tokens, args.model, layer)
    if args.no_weights:
        tensors = {name: tensor for name, tensor in tensors.items() if name.split(".")[-1] != "weights"}
    if args.parameters:
        add_parameters(model, calls[layer][0], hidden_states, tensors, metadata)
    save(args.out, tensors, metadata, args.half)
    print(check(args.out))
    if layer is None:
        print(f"fovea-visualizer {args.out} --show layers")
        return
    print(f"fovea attend {args.out} --out out.safetensors --causal {metadata['causal']} --scale {metadata['scale']}"
          + (f" --softcap {metadata['softcap']}" if "softcap" in metadata else "") + " --outputs o,weights")


if __name__ == "__main__":
    main()
