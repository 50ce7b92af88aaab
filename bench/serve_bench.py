#!/usr/bin/env python3
"""Times `fourpiles serve` as a whole process on a GGUF file and on a Hugging Face folder.

    bench/serve_bench.py build/release/cli/fourpiles [FOLDER]

Makes both in FOLDER (a temporary one by default), of Llama-3.1-8B's sizes: sparse, so that they take
no space, but with the whole vocabulary of 128,256 words in the GGUF file. Prints the processor time,
the median of several runs, and how many times that of `fourpiles --version` it is.
"""

import json
import os
import statistics
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
from inspect_bench import processor_seconds, write_safetensors

LAYERS, HIDDEN, MIDDLE, KV, WORDS = 32, 4096, 14336, 1024, 128256
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
F32, BF16 = 0, 30

OF_A_LAYER = [  # GGUF, Hugging Face, shape
    ("attn_norm", "input_layernorm", [HIDDEN]),
    ("attn_q", "self_attn.q_proj", [HIDDEN, HIDDEN]),
    ("attn_k", "self_attn.k_proj", [KV, HIDDEN]),
    ("attn_v", "self_attn.v_proj", [KV, HIDDEN]),
    ("attn_output", "self_attn.o_proj", [HIDDEN, HIDDEN]),
    ("ffn_norm", "post_attention_layernorm", [HIDDEN]),
    ("ffn_gate", "mlp.gate_proj", [MIDDLE, HIDDEN]),
    ("ffn_up", "mlp.up_proj", [MIDDLE, HIDDEN]),
    ("ffn_down", "mlp.down_proj", [HIDDEN, MIDDLE]),
]
BESIDE = [
    ("token_embd", "model.embed_tokens", [WORDS, HIDDEN]),
    ("output_norm", "model.norm", [HIDDEN]),
    ("output", "lm_head", [WORDS, HIDDEN]),
]


def elements(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def metadata():
    """Keys of llama.cpp's llama, and the vocabulary."""
    numbers = {"block_count": LAYERS, "context_length": 131072, "embedding_length": HIDDEN,
               "feed_forward_length": MIDDLE, "attention.head_count": 32,
               "attention.head_count_kv": 8, "rope.dimension_count": 128, "vocab_size": WORDS}
    entries = [string("general.architecture") + struct.pack("<I", STRING) + string("llama"),
               string("llama.attention.layer_norm_rms_epsilon")
               + struct.pack("<If", FLOAT32, 1e-5)]
    entries += [string("llama." + key) + struct.pack("<II", UINT32, value)
                for key, value in numbers.items()]
    words = b"".join(string("word%d" % i) for i in range(WORDS))
    entries.append(string("tokenizer.ggml.tokens")
                   + struct.pack("<IIQ", ARRAY, STRING, WORDS) + words)
    return entries


def write_gguf(path):
    tensors = [("blk.%d.%s.weight" % (layer, name), shape)
               for layer in range(LAYERS) for name, _, shape in OF_A_LAYER]
    tensors += [(name + ".weight", shape) for name, _, shape in BESIDE]
    infos, offset = [], 0
    for name, shape in tensors:
        vector = len(shape) == 1
        infos.append(string(name) + struct.pack("<I", len(shape))
                     + b"".join(struct.pack("<Q", size) for size in reversed(shape))
                     + struct.pack("<IQ", F32 if vector else BF16, offset))
        offset += elements(shape) * (4 if vector else 2)
    entries = metadata()
    header = (b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries)
              + b"".join(infos))
    start = (len(header) + 31) // 32 * 32
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(start + offset)


def write_folder(folder):
    os.mkdir(folder)
    tensors = [("model.layers.%d.%s.weight" % (layer, name), "BF16", shape)
               for layer in range(LAYERS) for _, name, shape in OF_A_LAYER]
    tensors += [(name + ".weight", "BF16", shape) for _, name, shape in BESIDE]
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    with open(os.path.join(folder, "config.json"), "w") as config:
        json.dump({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                   "num_hidden_layers": LAYERS, "hidden_size": HIDDEN,
                   "intermediate_size": MIDDLE, "num_attention_heads": 32,
                   "num_key_value_heads": 8, "vocab_size": WORDS, "rms_norm_eps": 1e-5,
                   "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
                   "tie_word_embeddings": False}, config)


def median_seconds(command, repeats=21):
    return statistics.median(processor_seconds(command) for _ in range(repeats))


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        gguf, checkpoint = os.path.join(folder, "model.gguf"), os.path.join(folder, "checkpoint")
        write_gguf(gguf)
        write_folder(checkpoint)
        beside = ["--device", "h100-sxm-80gb", "--context-length", "8192"]
        start = median_seconds([program, "--version"])
        for what, arguments in [
                ("GGUF, llama.cpp", [gguf, "--engine", "llama.cpp"]),
                ("folder, vllm", [checkpoint, "--engine", "vllm"]),
                ("folder, vllm, solved", [checkpoint, "--engine", "vllm", "--solve", "concurrency"]),
                ("folder, all engines",
                 [checkpoint, "--engine", "all", "--weights-format", "bf16"]),
                ("catalogue, all engines", ["llama-3.1-8b", "--engine", "all"])]:
            seconds = median_seconds([program, "serve"] + arguments + beside)
            print("%-24s %6.1f ms   %4.1f × --version" % (what, seconds * 1e3, seconds / start))


if __name__ == "__main__":
    main()
