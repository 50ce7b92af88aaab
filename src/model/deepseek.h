#pragma once

// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1).

#include <cstdint>
#include <optional>

#include "model/parts.h"
#include "model/record.h"

namespace fourpiles {

struct LatentAttention {
  std::int64_t hidden_size = 1;
  std::int64_t heads = 1;
  std::optional<std::int64_t> q_lora_rank = {};  // absent: queries come straight from the input
  std::int64_t kv_lora_rank = 1;
  std::int64_t qk_nope_head_dim = 1;
  std::int64_t qk_rope_head_dim = 1;
  std::int64_t v_head_dim = 1;
};

LatentAttention ReadLatentAttention(Record& config);
Parameters Attention(const LatentAttention& sizes);
// The latent, from which keys and values are made, is all that is kept.
Cache CacheOf(const LatentAttention& sizes);

}  // namespace fourpiles
