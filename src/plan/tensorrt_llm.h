#pragma once

// What TensorRT-LLM allocates: a share of the memory that is free once the engine is loaded, as
// blocks. Source: cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp, calculateMaxNumBlocks;
// layers × heads of the rank × (key + value) × format, as plan/paged_cache.h.

#include <cstdint>

#include "base/checked.h"

namespace fourpiles {

struct TensorrtLlmPool {
  Checked free_bytes = 0;  // after the engine is loaded
  double free_fraction = 0.9;
  Checked token_bytes = 0;  // of one token in all layers, on one rank
  std::int64_t block_tokens = 64;
};
// fraction × free ÷ bytes of a block. 17.83 GiB × 0.9 in blocks of 2 MiB: 8,216.
Checked TensorrtLlmBlocks(const TensorrtLlmPool& pool);
Checked TensorrtLlmTokens(const TensorrtLlmPool& pool);

}  // namespace fourpiles
