#pragma once

// Small networks for the tests of this folder.

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

}  // namespace fourpiles
