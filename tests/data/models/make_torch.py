#!/usr/bin/env python3
"""Writes tiny_llama_torch/ (two shards of PyTorch and their index, in float32, of the tensors of
tiny_llama/) and buffers.pt (a state dict with buffers of whole numbers and truth values). Needs
torch; the files here are of 1.13.1."""

import json
import os
import struct

import torch

here = os.path.dirname(os.path.abspath(__file__))
folder = os.path.join(here, "tiny_llama_torch")
os.makedirs(folder, exist_ok=True)

with open(os.path.join(here, "tiny_llama", "model.safetensors"), "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
shapes = {name: each["shape"] for name, each in header.items() if name != "__metadata__"}

shards = [{}, {}]
for name, shape in shapes.items():
    shards[1 if name.startswith("model.layers.1.") else 0][name] = torch.zeros(shape)
weight_map = {}
for number, shard in enumerate(shards, 1):
    file = f"pytorch_model-{number:05d}-of-00002.bin"
    torch.save(shard, os.path.join(folder, file))
    weight_map.update({name: file for name in shard})
with open(os.path.join(here, "tiny_llama", "config.json"), encoding="utf-8") as file:
    config = file.read()
with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
    file.write(config)
with open(os.path.join(folder, "pytorch_model.bin.index.json"), "w", encoding="utf-8") as file:
    total = sum(4 * tensor.numel() for shard in shards for tensor in shard.values())
    json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, file, indent=1)
    file.write("\n")

network = torch.nn.Sequential(torch.nn.Linear(4, 8, bias=False), torch.nn.BatchNorm1d(8))
network.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool))
torch.save(network.state_dict(), os.path.join(here, "buffers.pt"))
