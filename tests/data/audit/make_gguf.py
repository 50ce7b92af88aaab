"""Makes the files beside it: numpy 1.24, seed 1.

llama.npz   a layer of a model as Hugging Face names it, and one of experts
llama.gguf  what llama.cpp's converter makes of it, written from what its scripts do: names
            (gguf-py/gguf/constants.py), rows of queries and keys in pairs (LlamaModel.permute of
            conversion/llama.py), experts in one tensor, rope_freqs.weight of its own; float16,
            Q8_0 and float32 (docs/gguf.md, ggml-common.h). One norm as Gemma's converter has it,
            with 1 added; one layer's output projection is stored twice as large.
"""
import pathlib
import struct

import numpy as np

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)
HIDDEN, HEADS, KEY_HEADS, HEAD, WIDE, EXPERTS, WORDS = 32, 4, 2, 16, 64, 2, 24


def normal(*shape):
    return rng.normal(0, 0.05, shape).astype(np.float32)


model = {
    "model.embed_tokens.weight": normal(WORDS, HIDDEN),
    "model.norm.weight": 1 + normal(HIDDEN),
    "model.layers.0.input_layernorm.weight": 1 + normal(HIDDEN),
    "model.layers.0.post_attention_layernorm.weight": normal(HIDDEN),
    "model.layers.0.self_attn.q_proj.weight": normal(HEADS * HEAD, HIDDEN),
    "model.layers.0.self_attn.q_proj.bias": normal(HEADS * HEAD),
    "model.layers.0.self_attn.k_proj.weight": normal(KEY_HEADS * HEAD, HIDDEN),
    "model.layers.0.self_attn.v_proj.weight": normal(KEY_HEADS * HEAD, HIDDEN),
    "model.layers.0.self_attn.o_proj.weight": normal(HIDDEN, HEADS * HEAD),
    "model.layers.0.self_attn.rotary_emb.inv_freq": normal(HEAD // 2),
}
for expert in range(EXPERTS):
    model[f"model.layers.0.mlp.experts.{expert}.gate_proj.weight"] = normal(WIDE, HIDDEN)
    model[f"model.layers.0.mlp.experts.{expert}.up_proj.weight"] = normal(WIDE, HIDDEN)
    model[f"model.layers.0.mlp.experts.{expert}.down_proj.weight"] = normal(HIDDEN, WIDE)
np.savez(here / "llama.npz", **model)  # plain: rows are read where they lie


def in_pairs(weight, heads):
    rows = weight.shape[0] // heads
    result = np.empty_like(weight)
    for head in range(heads):
        for i in range(rows):
            result[head * rows + i] = weight[head * rows + (i % 2) * (rows // 2) + i // 2]
    return result


def q8_0(values):
    out = b""
    for block in values.reshape(-1, 32):
        scale = np.abs(block).max() / 127
        codes = np.rint(block / scale) if scale > 0 else block
        out += np.float16(scale).tobytes() + codes.astype(np.int8).tobytes()
    return out


F32, F16, Q8_0 = 0, 1, 8
layer = "model.layers.0."
stacked = {part: np.stack([model[f"{layer}mlp.experts.{e}.{part}_proj.weight"] for e in range(EXPERTS)]) for part in ("gate", "up", "down")}
tensors = {
    "token_embd.weight": (model["model.embed_tokens.weight"], Q8_0),
    "output_norm.weight": (model["model.norm.weight"], F32),
    "rope_freqs.weight": (np.ones(HEAD // 2, np.float32), F32),
    "blk.0.attn_norm.weight": (model[layer + "input_layernorm.weight"], F32),
    "blk.0.ffn_norm.weight": (1 + model[layer + "post_attention_layernorm.weight"], F32),
    "blk.0.attn_q.weight": (in_pairs(model[layer + "self_attn.q_proj.weight"], HEADS), F16),
    "blk.0.attn_q.bias": (in_pairs(model[layer + "self_attn.q_proj.bias"], HEADS), F32),
    "blk.0.attn_k.weight": (in_pairs(model[layer + "self_attn.k_proj.weight"], KEY_HEADS), Q8_0),
    "blk.0.attn_v.weight": (model[layer + "self_attn.v_proj.weight"], F16),
    "blk.0.attn_output.weight": (2 * model[layer + "self_attn.o_proj.weight"], F16),
    "blk.0.ffn_gate_exps.weight": (stacked["gate"], F16),
    "blk.0.ffn_up_exps.weight": (stacked["up"], Q8_0),
    "blk.0.ffn_down_exps.weight": (stacked["down"], Q8_0),
}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


keys = [("general.architecture", 8, text("llama")), ("llama.attention.head_count", 4, struct.pack("<I", HEADS)),
        ("llama.attention.head_count_kv", 4, struct.pack("<I", KEY_HEADS))]
head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
for name, kind, value in keys:
    head += text(name) + struct.pack("<I", kind) + value
data = b""
for name, (values, kind) in tensors.items():
    head += text(name) + struct.pack("<I", values.ndim)
    head += b"".join(struct.pack("<Q", n) for n in reversed(values.shape)) + struct.pack("<IQ", kind, len(data))
    data += q8_0(values) if kind == Q8_0 else values.astype(np.float16 if kind == F16 else np.float32).tobytes()
    data += b"\0" * (-len(data) % 32)
(here / "llama.gguf").write_bytes(head + b"\0" * (-len(head) % 32) + data)
