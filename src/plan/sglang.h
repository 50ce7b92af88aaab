#pragma once

// What SGLang allocates: of the memory that is left once the weights are loaded, all but a share of
// the whole is a pool of token slots. Source: sglang/srt/model_executor/model_runner.py,
// profile_max_num_token, set_num_token_hybrid; mem_cache/memory_pool.py.

#include <cstdint>

#include "base/checked.h"

namespace fourpiles {

struct SglangMemory {
  Checked available_before_load = 0;
  Checked available_after_load = 0;
  double memory_fraction_static = 0.9;
};
// Left to activations and graphs: before × (1 − fraction).
Checked SglangReservedBytes(const SglangMemory& memory);
// For the cache: after − what is reserved; 0 where nothing is left.
Checked SglangCacheBytes(const SglangMemory& memory);
// A multiple of the page.
Checked SglangMaxTotalTokens(Checked cache_bytes, Checked cell_bytes, std::int64_t page_tokens);

// Bytes of the pool: it has a page more than it gives out, for padded requests.
Checked SglangPoolBytes(Checked tokens, std::int64_t page_tokens, Checked cell_bytes);

// A model of layers with and without a window splits its tokens between two pools.
struct SglangSplit {
  std::int64_t full_cell = 0;    // bytes of a token in the layers without a window
  std::int64_t window_cell = 0;  // and in those with one
  double ratio = 0.8;            // swa_full_tokens_ratio
  std::int64_t page_tokens = 1;
};
struct SglangPools {
  Checked full_tokens = 0;
  Checked window_tokens = 0;
};
// full × full_cell + ratio × full × window_cell = tokens × both.
SglangPools SglangSplitTokens(Checked tokens, const SglangSplit& split);

// ratio × the tokens of the full layers, a multiple of the page: 0.8 of 70,656 is 56,320 in pages
// of 256.
Checked SglangWindowTokens(Checked full_tokens, double ratio, std::int64_t page_tokens);

}  // namespace fourpiles
