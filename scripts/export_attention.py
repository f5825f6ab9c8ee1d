#!/usr/bin/env python3
"""Saves what one attention layer of a Hugging Face model computed for a text, as one safetensors file.

    ./dev python scripts/export_attention.py gpt2 --layer 5 --text "The cat sat on the mat" --out cat.safetensors
    ./dev python scripts/export_attention.py gpt2 --layer all --text "The cat sat on the mat" --out cat.safetensors
    python3 scripts/export_attention.py --check cat.safetensors

The file (docs/reference/file-formats.md) holds q, k, v as the layer multiplies them (after rotary embedding), its output and log-sum-exp,
the tokens, with --weights the weights, and with --parameters the layer's projections and input. `fovea attend` and the
visualizer open it.

Needs the package fovea (docs/start/python.md), torch, transformers >= 4.53 and safetensors; --check needs nothing but Python.
The model runs in float32 on the CPU with Fovea's attention (fovea.transformers), so that a text of N tokens takes O(N);
only --weights takes N * N.
"""

import argparse
import json
import math
import struct
import sys
from pathlib import Path

FORMAT = "attention"
VERSION = "1"
SIZES = {"BOOL": 1, "U8": 1, "F16": 2, "F32": 4, "I32": 4, "I64": 8}


def fail(message):
    sys.exit(f"export_attention: error: {message}")


# ---- running the model ---------------------------------------------------------------------------------------------


def first_line(error):
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def attention_module(model, layer):
    """Path and module of a layer's attention: the innermost that has the layer's number and parameters."""
    found = [(path, module) for path, module in model.named_modules()
             if getattr(module, "layer_idx", None) == layer and next(module.parameters(), None) is not None]
    if not found:
        fail(f"the model has no attention layer {layer}")
    return found[-1]


def run_model(name, layer, text, with_input):
    """The model, what fovea.transformers.read keeps of its layers (one, or with `layer` None all), and the one's input."""
    import fovea.transformers

    hidden_states, hook = [], None

    def keep_input(_module, args, keyword_args):
        hidden_states.append(args[0] if args else keyword_args["hidden_states"])

    try:
        model, tokenizer = fovea.transformers.load(name)
        model = model.float()
    except (OSError, ValueError, KeyError, ImportError) as error:
        fail(f"{name}: {first_line(error)}")
    if with_input:
        hook = attention_module(model, layer)[1].register_forward_pre_hook(keep_input, with_kwargs=True)
    try:
        read = fovea.transformers.read(model, text, layers=None if layer is None else [layer], tokenizer=tokenizer)
    except (TypeError, ValueError) as error:
        fail(f"{name}: {first_line(error)}")
    if hook:
        hook.remove()
    if layer is not None and layer not in read.layers:
        layers = getattr(model.config, "num_hidden_layers", None) or getattr(model.config, "n_layer", 0)
        fail(f"no attention layer {layer} was run; the model has layers 0 to {layers - 1}")
    return model, read, hidden_states


# ---- from the call to tensors --------------------------------------------------------------------------------------


def visible_and_added(kept):
    """The parts of a layer's mask that the file has as tensors: (visible or None, added or None), bool and float [1,
    1 or H, L, L]."""
    import numpy as np

    visible, added = kept.options.get("mask"), kept.options.get("bias")
    if visible is not None:
        rows, columns = kept.q.shape[2], kept.k.shape[2]
        visible = np.ascontiguousarray(np.broadcast_to(visible, (*visible.shape[:2], rows, columns)))
        visible = None if visible.all() else visible
    if added is not None:
        hidden = added <= np.finfo(added.dtype).min / 2
        if hidden.any():
            visible = ~hidden if visible is None else visible & ~hidden
        added = np.where(hidden, 0, added).astype(np.float32)
        added = added if added.any() else None
    return visible, added


def collect(kept, read, model_name, layer, with_weights):
    """Tensors and metadata of one layer."""
    import numpy as np

    options, rows = kept.options, kept.q.shape[2]
    scale = options.get("scale")
    scale = 1.0 / math.sqrt(kept.q.shape[-1]) if scale is None else float(scale)
    tensors = {"q": kept.q, "k": kept.k, "v": kept.v, "o": kept.o, "lse": kept.lse, "tokens": read.ids}
    if with_weights:
        look = kept.inspect()
        tensors["weights"] = np.stack([look.weights(head=head) for head in range(kept.q.shape[1])])[np.newaxis]
    visible, added = visible_and_added(kept)
    if visible is not None:
        tensors["mask"] = visible
    if added is not None:
        tensors["bias"] = added
    if options.get("sinks") is not None:
        tensors["sinks"] = np.asarray(options["sinks"], np.float32)
    metadata = {"fovea": FORMAT, "version": VERSION, "model": model_name, "layer": str(layer), "layout": "bhld",
                "scale": repr(scale), "causal": "top-left" if options.get("causal") and rows > 1 else "none",
                "tokens": json.dumps(read.tokens, ensure_ascii=False)}
    if options.get("softcap"):
        metadata["softcap"] = repr(float(options["softcap"]))
    if options.get("window"):
        metadata["window"] = ",".join("-1" if side is None else str(side) for side in options["window"])
    return tensors, metadata


def window_as_mask(tensors, metadata):
    """Says a layer's window by the tensor `mask`, where a file has layers with and without one."""
    import numpy as np

    before, after = (int(side) for side in metadata.pop("window").split(","))
    count = tensors["q"].shape[2]
    behind = np.arange(count)[:, None] - np.arange(count)
    seen = (behind <= (before if before >= 0 else count)) & (-behind <= (after if after >= 0 else count))
    tensors["mask"] = tensors["mask"] & seen if "mask" in tensors else seen[np.newaxis, np.newaxis]


def collect_all(read, model_name, with_weights):
    """The layers' tensors as layers.N.q and so on; what the metadata says must be so in every layer."""
    layers = {layer: collect(kept, read, model_name, "all", with_weights) for layer, kept in read.layers.items()}
    if len({metadata.get("window") for _, metadata in layers.values()}) > 1:
        for of_layer, metadata in layers.values():
            if "window" in metadata:
                window_as_mask(of_layer, metadata)
    tensors, said = {"tokens": read.ids}, None
    for layer, (of_layer, metadata) in layers.items():
        if said not in (None, metadata):
            fail(f"layer {layer} has another scale, soft cap or kind of mask than the ones before: export it alone")
        said = metadata
        del of_layer["tokens"]
        tensors.update({f"layers.{layer}.{name}": tensor for name, tensor in of_layer.items()})
    return tensors, said


def add_parameters(model, layer, hidden_states, tensors, metadata):
    """The layer's projections under their usual names, and the numbers that the weights do not tell."""
    path, module = attention_module(model, layer)
    for name, parameter in module.named_parameters():
        tensors[f"{path}.{name}"] = parameter.detach().numpy()
    tensors["hidden_states"] = hidden_states[-1].detach().numpy()
    config = model.config
    for key in ("n_head", "num_attention_heads", "num_key_value_heads", "head_dim", "rope_theta"):
        value = getattr(config, key, None)
        if value is None and key == "rope_theta":
            value = (getattr(config, "rope_parameters", None) or {}).get("rope_theta")
        if value is not None:
            metadata[key] = str(value)


def save(path, tensors, metadata, half):
    import numpy as np
    from safetensors.numpy import save_file

    stored = {}
    for name, tensor in tensors.items():
        if half and tensor.dtype.kind == "f" and name.split(".")[-1] != "lse":
            tensor = tensor.astype(np.float16)
        stored[name] = np.array(tensor, order="C")  # a copy: two layers may share memory
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
                "o": [batch, heads, rows, value_dim], "weights": [batch, heads, rows, columns], "lse": [batch, heads, rows], "sinks": [heads]}
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
    """Raises AssertionError with the broken rule of docs/reference/file-formats.md; returns a line about the file."""
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
    parser.add_argument("--weights", action="store_true", help="add the weights (they grow with L * L)")
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
        parser.error("--layer must be an integer or all")
    layer = None if args.layer == "all" else int(args.layer)
    if layer is None and args.parameters:
        parser.error("--parameters needs --layer N, one layer")
    if not args.out.resolve().parent.is_dir() or args.out.is_dir():
        fail(f"--out {args.out}: no file can be written there")
    try:
        import fovea, safetensors.numpy, torch, transformers  # noqa: F401
    except ImportError as error:
        fail(f"fovea, torch, transformers 4.53 or newer and safetensors are needed: {error}")
    model, read, hidden_states = run_model(args.model, layer, text, args.parameters)
    if layer is None:
        tensors, metadata = collect_all(read, args.model, args.weights)
    else:
        tensors, metadata = collect(read.layers[layer], read, args.model, layer, args.weights)
    if args.parameters:
        add_parameters(model, layer, hidden_states, tensors, metadata)
    save(args.out, tensors, metadata, args.half)
    print(check(args.out))
    if layer is None:
        print(f"fovea-visualizer {args.out} --show layers")
        return
    print(f"fovea attend {args.out} --out out.safetensors --outputs o,weights")


if __name__ == "__main__":
    main()
