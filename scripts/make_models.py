#!/usr/bin/env python3
"""Writes tests/model/families: a small random model of each family, and what it computes.

    python3 scripts/make_models.py [NAME...] [--out FOLDER]

Each is a folder as transformers saves it (config.json, model.safetensors) with `expected.safetensors`: `tokens`, and
`logits`, `hidden.N` and `layers.N.weights` as `fovea model --tokens --out` writes them, computed by transformers in
float64. Those with a GGUF form also have `model.gguf`, written here as llama.cpp's converter lays models out. Needs
transformers, torch and numpy; the committed files were made with transformers 5.12.1 and torch 2.14.1 (Debian sid).
"""

import argparse
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForMaskedLM

FAMILIES = Path(__file__).resolve().parent.parent / "tests" / "model" / "families"
SMALL = dict(vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=None)
GROUPED = SMALL | dict(num_key_value_heads=2)
LLAMA3 = dict(rope_type="llama3", rope_theta=50000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)
LONG = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.25], long_factor=[2.0, 6.0],
            original_max_position_embeddings=8)

# name: (model_type, configuration, storage, GGUF's architecture and type of matrices)
MODELS = {
    "gpt2": ("gpt2", dict(vocab_size=24, n_embd=16, n_layer=2, n_head=4, n_positions=32, bos_token_id=0, eos_token_id=1),
             torch.float32, ("gpt2", "F32")),
    "llama2": ("llama", SMALL | dict(num_key_value_heads=4, tie_word_embeddings=False), torch.float16, ("llama", "F16")),
    "llama3": ("llama", GROUPED | dict(rope_parameters=LLAMA3, tie_word_embeddings=True, attention_bias=True),
               torch.bfloat16, None),
    "llama_q8": ("llama", GROUPED | dict(hidden_size=32, intermediate_size=32, rope_parameters=LLAMA3,
                                         tie_word_embeddings=False), torch.float32, ("llama", "Q8_0")),
    "mistral": ("mistral", GROUPED | dict(sliding_window=4, tie_word_embeddings=False, head_dim=6), torch.bfloat16, None),
    "qwen2": ("qwen2", GROUPED | dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=5,
                                      max_window_layers=1), torch.bfloat16, None),
    "qwen2_gguf": ("qwen2", GROUPED | dict(tie_word_embeddings=False), torch.float16, ("qwen2", "F16")),
    "qwen3": ("qwen3", GROUPED | dict(head_dim=8, rope_parameters=YARN, tie_word_embeddings=False), torch.bfloat16,
              None),
    "qwen3_gguf": ("qwen3", GROUPED | dict(head_dim=8, tie_word_embeddings=True), torch.bfloat16, ("qwen3", "BF16")),
    "gemma": ("gemma", GROUPED | dict(head_dim=8, hidden_activation="gelu_pytorch_tanh"), torch.bfloat16, None),
    "gemma2": ("gemma2", GROUPED | dict(head_dim=8, sliding_window=4, query_pre_attn_scalar=8, attn_logit_softcapping=5.0,
                                        final_logit_softcapping=3.0), torch.float32, ("gemma2", "F32")),
    "gemma3": ("gemma3_text", GROUPED | dict(
        head_dim=8, num_hidden_layers=3, sliding_window=4, query_pre_attn_scalar=12,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                             sliding_attention=dict(rope_type="default", rope_theta=10000.0))), torch.bfloat16, None),
    "phi3": ("phi3", GROUPED | dict(sliding_window=6, rope_parameters=LONG, original_max_position_embeddings=8,
                                    tie_word_embeddings=False), torch.bfloat16, None),
    "phi3_gguf": ("phi3", GROUPED | dict(tie_word_embeddings=False, sliding_window=None), torch.float16, ("phi3", "F16")),
    "glm4": ("glm4", GROUPED | dict(head_dim=8, attention_bias=True, tie_word_embeddings=False, eos_token_id=[1, 2]),
             torch.float16, ("glm4", "F16")),
    "pythia": ("gpt_neox", SMALL | dict(num_attention_heads=2, rotary_pct=0.25, use_parallel_residual=True,
                                        tie_word_embeddings=False), torch.float16, ("gptneox", "F16")),
    "neox_serial": ("gpt_neox", SMALL | dict(num_attention_heads=2, rotary_pct=0.5, use_parallel_residual=False,
                                             tie_word_embeddings=False), torch.float16, None),
    "bert": ("bert", SMALL | dict(type_vocab_size=2), torch.float32, ("bert", "F32")),
    "roberta": ("roberta", SMALL | dict(type_vocab_size=1, pad_token_id=1), torch.float16,
                ("bert", "F16")),
    "vit": ("vit", dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, image_size=12,
                        patch_size=4, num_channels=3, num_labels=7), torch.float16, None),
    "modernbert": ("modernbert", SMALL | dict(num_hidden_layers=3, local_attention=6, pad_token_id=2), torch.float16,
                   None),
}


def randomise(model, rng, storage):
    """Weights of a size at which every part matters: what training starts from would hide most faults."""
    for name, p in model.named_parameters():
        values = rng.standard_normal(tuple(p.shape))
        if p.ndim == 1 and name.endswith("weight"):
            values = values * 0.2 + (0.0 if "gemma" in model.config.model_type else 1.0)
        elif p.ndim == 1:
            values = values * 0.1
        elif "emb" in name or "wte" in name or "wpe" in name:
            values = values * 0.4
        else:
            values = values * 1.2 / np.sqrt(p.shape[-1])
        p.data = torch.from_numpy(values).to(storage).to(torch.float64)


def blocks_of(model):
    for path in ("h", "layers", "encoder.layer"):
        at = model.base_model
        for part in path.split("."):
            at = getattr(at, part, None)
            if at is None:
                break
        if at is not None:
            return at
    raise SystemExit("no blocks")


def cut(pictures, side):
    """Patches [count, channels x side x side] of one picture [1, channels, rows, columns]."""
    channels, rows, columns = pictures.shape[1:]
    cut_up = pictures.reshape(channels, rows // side, side, columns // side, side)
    return cut_up.permute(1, 3, 0, 2, 4).reshape(-1, channels * side * side)


def run(model, tokens=None, picture=None):
    hidden = []
    blocks = blocks_of(model)
    hooks = [b.register_forward_pre_hook(lambda m, a, k: hidden.append((a[0] if a else k["hidden_states"]).clone()),
                                         with_kwargs=True) for b in blocks]
    last = []
    hooks.append(blocks[-1].register_forward_hook(lambda m, a, out: last.append(out[0] if isinstance(out, tuple) else out)))
    with torch.no_grad():
        out = (model(torch.tensor([tokens]), output_attentions=True) if picture is None
               else model(pixel_values=picture, output_attentions=True))
    for hook in hooks:
        hook.remove()
    hidden.append(last[0])
    if picture is None:
        made = {"logits": out.logits[0], "tokens": torch.tensor(tokens, dtype=torch.int32)}
    else:
        made = {"logits": out.logits, "patches": cut(picture, model.config.patch_size)}
        tokens = [0] * hidden[0].shape[-2]
    for n, h in enumerate(hidden):
        made[f"hidden.{n}"] = h.reshape(len(tokens), -1)
    for n, w in enumerate(out.attentions):
        made[f"layers.{n}.weights"] = w[0]
    return {k: (v if k == "tokens" else v.to(REAL_FLOAT)).contiguous() for k, v in made.items()}


# ---- GGUF ----------------------------------------------------------------------------------------------------------

TYPES = {"F32": 0, "F16": 1, "Q8_0": 8, "BF16": 30}


def text(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, value):
    if isinstance(value, bool):
        return text(name) + struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return text(name) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return text(name) + struct.pack("<If", 6, value)
    return text(name) + struct.pack("<I", 8) + text(value)


def q8_0(matrix):
    blocks = matrix.reshape(-1, 32).astype(np.float32)
    scale = (np.abs(blocks).max(1) / 127).astype(np.float16)
    q = np.rint(blocks / scale.astype(np.float32)[:, None]).astype(np.int8)
    raw = np.concatenate([scale.view(np.uint8).reshape(-1, 2), q.view(np.uint8)], axis=1)
    return raw.tobytes(), (q.astype(np.float32) * scale.astype(np.float32)[:, None]).reshape(matrix.shape)


def stored(matrix, kind):
    kind = kind if matrix.ndim == 2 else "F32"
    if kind == "Q8_0":
        return kind, q8_0(matrix)[0]
    if kind == "F16":
        return kind, matrix.astype(np.float16).tobytes()
    if kind == "BF16":
        return kind, (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return kind, matrix.astype(np.float32).tobytes()


def gguf_tensors(architecture, weights, c):
    """GGUF's name and layout of each weight, as llama.cpp's convert_hf_to_gguf.py has them."""
    names = {
        "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "embed_tokens": "token_embd",
        "norm": "output_norm", "lm_head": "output", "embed_in": "token_embd", "final_layer_norm": "output_norm",
        "embed_out": "output", "embeddings.word_embeddings": "token_embd",
        "embeddings.position_embeddings": "position_embd", "embeddings.token_type_embeddings": "token_types",
        "embeddings.LayerNorm": "token_embd_norm",
    }
    gemma = "gemma" in architecture
    parts = {
        "ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down", "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
        "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
        "post_attention_layernorm": "post_attention_norm" if gemma else "ffn_norm",
        "post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm",
        "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm", "mlp.up_proj": "ffn_up",
        "mlp.gate_proj": "ffn_gate", "mlp.down_proj": "ffn_down", "self_attn.qkv_proj": "attn_qkv",
        "mlp.gate_up_proj": "ffn_up", "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
        "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down", "attention.self.query": "attn_q",
        "attention.self.key": "attn_k", "attention.self.value": "attn_v", "attention.output.dense": "attn_output",
        "attention.output.LayerNorm": "attn_output_norm", "intermediate.dense": "ffn_up", "output.dense": "ffn_down",
        "output.LayerNorm": "layer_output_norm",
    }
    out = {}
    for name, w in weights.items():
        body, _, end = name.rpartition(".")
        if architecture == "bert" and body.startswith(("cls.", "lm_head.")):  # the format has no heads of encoders
            continue
        for root in ("transformer.", "model.", "gpt_neox.", "bert.", "roberta.", "encoder."):
            body = body.removeprefix(root)
        if body.startswith(("h.", "layers.", "layer.")):
            _, n, part = body.split(".", 2)
            new = f"blk.{n}.{parts[part]}"
        else:
            part, new = body, names[body]
        if architecture == "gpt2" and w.ndim == 2 and part.startswith(("attn.", "mlp.")):
            w = w.T
        if new == "position_embd" and c.model_type == "roberta":
            w = w[c.pad_token_id + 1:]
        if gemma and w.ndim == 1 and "norm" in new:
            w = w + 1
        if architecture == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
            heads = c.num_attention_heads if "q_proj" in part else c.num_key_value_heads
            w = w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)
        if part == "attention.query_key_value":
            w = w.reshape(c.num_attention_heads, 3, -1, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)
        out[f"{new}.{end}"] = np.ascontiguousarray(w)
    return out


def write_gguf(path, architecture, kind, weights, model):
    c = model.config
    a = architecture
    hidden = getattr(c, "intermediate_size", None) or 4 * c.hidden_size
    rope = getattr(c, "rope_parameters", None) or {}
    head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    keys = {"general.architecture": a, f"{a}.block_count": c.num_hidden_layers, f"{a}.embedding_length": c.hidden_size,
            f"{a}.context_length": c.max_position_embeddings - (2 if c.model_type == "roberta" else 0), f"{a}.feed_forward_length": hidden,
            f"{a}.attention.head_count": c.num_attention_heads}
    if hasattr(c, "num_key_value_heads"):
        keys[f"{a}.attention.head_count_kv"] = c.num_key_value_heads
    if a in ("qwen3", "gemma2", "glm4"):
        keys |= {f"{a}.attention.key_length": head, f"{a}.attention.value_length": head}
    if hasattr(c, "rms_norm_eps"):
        keys[f"{a}.attention.layer_norm_rms_epsilon"] = float(c.rms_norm_eps)
    else:
        keys[f"{a}.attention.layer_norm_epsilon"] = float(getattr(c, "layer_norm_epsilon", None) or c.layer_norm_eps)
    if rope:
        keys[f"{a}.rope.freq_base"] = float(rope["rope_theta"])
        keys[f"{a}.rope.dimension_count"] = int(head * rope.get("partial_rotary_factor", 1.0))
    if a == "gemma2":
        keys |= {f"{a}.attention.sliding_window": c.sliding_window, f"{a}.attn_logit_softcapping": c.attn_logit_softcapping,
                 f"{a}.final_logit_softcapping": c.final_logit_softcapping}
    if a == "bert":
        keys |= {"bert.attention.causal": False, "tokenizer.ggml.token_type_count": c.type_vocab_size}
    if a == "gptneox":
        keys[f"{a}.use_parallel_residual"] = c.use_parallel_residual
    tensors = gguf_tensors(a, weights, c)
    if rope.get("rope_type") == "llama3":
        inverse = 1 / rope["rope_theta"] ** (np.arange(0, head, 2) / head)
        tensors["rope_freqs.weight"] = (inverse / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)
    heads, data = [], b""
    for name, w in tensors.items():
        used, raw = stored(w, kind)
        heads.append(text(name) + struct.pack(f"<I{w.ndim}QIQ", w.ndim, *reversed(w.shape), TYPES[used], len(data)))
        data += raw + b"\0" * (-len(raw) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(heads), len(keys)) + b"".join(key(k, v) for k, v in keys.items()) + b"".join(heads)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)


# ---- all together --------------------------------------------------------------------------------------------------

REAL_FLOAT, REAL_METHOD = torch.float32, torch.Tensor.float


def in_float64(on):
    """transformers computes norms, softmax and angles in float32 whatever the model is in; here it shall not."""
    torch.set_default_dtype(torch.float64 if on else REAL_FLOAT)
    torch.float32 = torch.float64 if on else REAL_FLOAT
    torch.Tensor.float = torch.Tensor.double if on else REAL_METHOD


def make(name, folder):
    model_type, settings, storage, gguf = MODELS[name]
    rng = np.random.default_rng(list(name.encode()))
    if folder.exists() and folder.parent != FAMILIES:
        raise SystemExit(f"{folder} exists; name an --out that has no {name} yet")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = AutoConfig.for_model(model_type, **settings)
    config._attn_implementation = "eager"
    masked = model_type in ("bert", "roberta", "modernbert")
    in_float64(True)
    sees = model_type == "vit"
    kind = AutoModelForImageClassification if sees else AutoModelForMaskedLM if masked else AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager")
    model.eval()
    model.to(torch.float64)
    randomise(model, rng, storage)
    model.tie_weights()
    if gguf and gguf[1] == "Q8_0":  # the model is that of the rounded matrices
        for p in model.parameters():
            if p.ndim == 2:
                p.data = torch.from_numpy(q8_0(p.data.numpy())[1]).to(torch.float64)
    if sees:
        # As float32, which is what a file of patches holds.
        picture = rng.standard_normal((1, config.num_channels, config.image_size, config.image_size)).astype(np.float32)
        expected = run(model, picture=torch.from_numpy(picture).to(torch.float64))
    else:
        expected = run(model, [int(t) for t in rng.integers(3, 24, 12)])
    weights = {k: v.detach().numpy().copy() for k, v in model.state_dict().items()
               if not k.endswith((".attn.bias", "masked_bias", "inv_freq"))}
    if getattr(config, "tie_word_embeddings", False) or model_type.startswith("gemma"):
        weights.pop("lm_head.weight", None)
    if gguf:
        write_gguf(folder / "model.gguf", gguf[0], gguf[1], weights, model)
    in_float64(False)
    save_file(expected, folder / "expected.safetensors")
    if gguf and name.endswith(("_q8", "_gguf")):
        return
    model.to(storage).save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=FAMILIES)
    options = parser.parse_args()
    for name in options.names or MODELS:
        make(name, options.out / name)
        print(name, sum(f.stat().st_size for f in (options.out / name).iterdir()), "bytes")


main()
