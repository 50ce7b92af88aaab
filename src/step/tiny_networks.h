#pragma once

// Tiny networks for tests of the profiles, written with Flow as a model's file is.

#include <cstdint>
#include <vector>

#include "model/network.h"

namespace fourpiles {

struct TinySizes {
  std::int64_t hidden_size = 64;
  std::int64_t heads = 4;
  std::int64_t key_value_heads = 4;
  std::int64_t ffn = 256;
  std::int64_t layers = 2;
  std::int64_t vocabulary = 100;
  std::int64_t context = 32;
  bool dropout = false;
  bool fused_qkv = true;          // of a Llama; GPT-2's is
  std::int64_t adapter_rank = 0;  // LoRA of queries and values, the rest frozen
};

// GPT-2: learned positions, layer norms, GELU, tied output layer.
Network TinyGpt(const TinySizes& sizes);
// Llama: rotary positions, RMS norms, SwiGLU, an output layer of its own.
Network TinyLlama(const TinySizes& sizes);

// A loss alone: of logits (batch, sequence, vocabulary) that are a parameter …
Network LossOfLogits(const std::vector<std::int64_t>& shape);
// … or of an output layer whose input is a parameter (batch, sequence, width).
Network LossOfHiddenStates(const std::vector<std::int64_t>& shape, std::int64_t vocabulary);

}  // namespace fourpiles
