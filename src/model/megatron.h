#pragma once

// Parts of Megatron-LM's decoders that have files of their own.

#include <optional>
#include <string_view>
#include <vector>

#include "model/flow.h"
#include "model/parts.h"
#include "model/record.h"

namespace fourpiles {

// Multi-head latent attention (core/transformer/multi_latent_attention.py): queries, and keys and
// values, come from small latents; one key for the positions is seen by all heads.
struct MegatronLatent {
  std::int64_t hidden_size = 1;
  std::int64_t heads = 1;
  std::optional<std::int64_t> q_lora_rank = {};
  std::int64_t kv_lora_rank = 1;
  std::int64_t qk_head_dim = 1;
  std::int64_t qk_pos_emb_head_dim = 1;
  std::int64_t v_head_dim = 1;
  bool dropout = false;
};

// Nothing without multi_latent_attention.
std::optional<MegatronLatent> ReadMegatronLatent(Record& config, const Heads& heads);
Parameters Attention(const MegatronLatent& of);
Cache CacheOf(const MegatronLatent& of);
Value Attend(Flow& flow, const MegatronLatent& of, Value x);

// Which of so many layers have experts: by a number, every so many from the first, or by lists such
// as "([0]*3+[1]*13)". Nothing: not understood, or of another number of layers.
std::optional<std::vector<bool>> ExpertLayers(std::string_view text, std::int64_t layers);

}  // namespace fourpiles
