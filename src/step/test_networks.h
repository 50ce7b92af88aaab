#pragma once

// Networks that tests play.

#include <memory>

#include "model/network.h"

namespace fourpiles {

struct SmallSizes {
  std::int64_t hidden_size = 64;
  std::int64_t heads = 4;
  std::int64_t key_value_heads = 2;
  std::int64_t intermediate_size = 160;
  std::int64_t layers = 3;
  std::int64_t vocab_size = 100;
  bool tied = false;
};

// Grouped attention, a gated feed-forward part, RMS norms before both, and the loss.
Network SmallLlama(const SmallSizes& sizes);

// An embedding of 100 × 8, seven layers x + out(silu(in(x))) of 8 and 32, an output layer of 100.
std::shared_ptr<const Network> SevenLayers();

// A layer of Llama-3.1-8B three times: hidden 4096, 32 heads of 128, 8 of keys and values, 14,336
// in the feed-forward (meta-llama/Llama-3.1-8B, config.json); between an embedding and an output
// layer of 16 tokens.
std::shared_ptr<const Network> Llama31Layers();

}  // namespace fourpiles
