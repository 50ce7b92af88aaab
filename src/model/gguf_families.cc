// What a GGUF tells of a family beyond the keys that all have. Each function puts the members that
// the family's function in architectures.h reads.
//
// Keys: ggml-org/llama.cpp, gguf-py/gguf/constants.py; what an absent one means:
// src/models/NAME.cpp, load_arch_hparams; how the converter fills them: conversion/NAME.py.

#include "model/gguf_families.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fourpiles {
namespace {

// A share of a head that is turned by its position, as a config.json writes it.
void PutRotatedShare(GgufSource& gguf, std::string_view key) {
  const auto rotated = gguf.OptionalCount("rope.dimension_count");
  const std::int64_t heads = gguf.OfAllLayers("attention.head_count").value_or(1);
  const std::int64_t head_dim =
      gguf.CountOr("attention.key_length", gguf.Count("embedding_length") / heads);
  if (rotated && *rotated <= head_dim) {
    gguf.Put(key, static_cast<double>(*rotated) / static_cast<double>(head_dim));
  }
}

}  // namespace

void PutBiases(GgufSource& gguf) {
  gguf.Put("attention_bias", gguf.HasTensor("blk.0.attn_q.bias"));
  gguf.Put("mlp_bias", gguf.HasTensor("blk.0.ffn_up.bias"));
}

void PutExpertCounts(GgufSource& gguf, std::string_view key) {
  gguf.Put(key, gguf.Count("expert_count", kExperts));
  gguf.PutIfKnown("num_experts_per_tok", gguf.OptionalCount("expert_used_count"));
  if (const auto normalized = gguf.OptionalFlag("expert_weights_norm")) {
    gguf.Put("norm_topk_prob", *normalized);
  }
}

void PutExpertWidth(GgufSource& gguf, std::string_view key) {
  auto width = gguf.OptionalCount("expert_feed_forward_length");
  gguf.PutIfKnown(key, width ? width : gguf.WidthOf("ffn_down_exps.weight"));
}

void PutSharedExpertWidth(GgufSource& gguf, std::string_view key) {
  auto width = gguf.OptionalCount("expert_shared_feed_forward_length");
  gguf.PutIfKnown(key, width ? width : gguf.WidthOf("ffn_down_shexp.weight"));
}

// The architecture "llama" is Llama's, Mistral's and Mixtral's. It has no windows (llama.cpp).
void ReadLlama(GgufSource& gguf) {
  PutBiases(gguf);
  if (gguf.CountOr("expert_count", 0, {0, kExperts.most}) > 0) {
    gguf.Put("model_type", "mixtral");
    PutExpertCounts(gguf, "num_local_experts");
  }
}

void ReadLlama4(GgufSource& gguf) {
  constexpr std::int64_t kChunk = 8192;  // src/models/llama4.cpp, n_swa: no key has it
  PutExpertCounts(gguf, "num_local_experts");
  gguf.PutIfKnown("intermediate_size_mlp", gguf.OfAllLayers("feed_forward_length"));
  PutExpertWidth(gguf, "intermediate_size");
  gguf.PutIfKnown("interleave_moe_layer_step", gguf.OptionalCount("interleave_moe_layer_step"));
  gguf.Put("attention_chunk_size", kChunk);
}

void ReadQwenExperts(GgufSource& gguf) {
  PutExpertCounts(gguf, "num_experts");
  PutExpertWidth(gguf, "moe_intermediate_size");
  PutSharedExpertWidth(gguf, "shared_expert_intermediate_size");
}

void ReadQwen3(GgufSource& gguf) {
  gguf.Put("attention_bias", gguf.HasTensor("blk.0.attn_q.bias"));
}

void ReadQwen3Experts(GgufSource& gguf) {
  ReadQwen3(gguf);
  ReadQwenExperts(gguf);
}

// Linear attention stands under the keys of state-space layers (src/models/qwen3next.cpp).
void ReadQwenLinear(GgufSource& gguf) {
  const std::int64_t value_heads = gguf.Count("ssm.time_step_rank", kFactors);
  const std::int64_t key_dim = gguf.Count("ssm.state_size", kFactors);
  gguf.Put("linear_num_key_heads", gguf.Count("ssm.group_count", kFactors));
  gguf.Put("linear_num_value_heads", value_heads);
  gguf.Put("linear_key_head_dim", key_dim);
  gguf.Put("linear_value_head_dim", gguf.Count("ssm.inner_size") / value_heads);
  gguf.Put("linear_conv_kernel_dim", gguf.Count("ssm.conv_kernel", kFactors));
  gguf.PutIfKnown("full_attention_interval", gguf.OptionalCount("full_attention_interval"));
  gguf.Put("mtp_num_hidden_layers", gguf.PredictionLayers());
}

void ReadQwenLinearExperts(GgufSource& gguf) {
  ReadQwenLinear(gguf);
  ReadQwenExperts(gguf);
}

// OLMo 3 is OLMo 2 with windows (src/models/olmo2.cpp).
void ReadOlmo2(GgufSource& gguf) {
  if (gguf.Has("attention.sliding_window")) {
    gguf.Put("model_type", "olmo3");
  }
}

void ReadCohere(GgufSource& gguf) {
  gguf.Put("use_qk_norm", gguf.HasTensor("blk.0.attn_q_norm.weight"));
}

void ReadRotatedShare(GgufSource& gguf) {
  PutRotatedShare(gguf, "partial_rotary_factor");
}

// GLM-4 and Nemotron-4.
void ReadGlm4(GgufSource& gguf) {
  PutBiases(gguf);
  ReadRotatedShare(gguf);
}

void ReadPhi2(GgufSource& gguf) {
  gguf.Put("qk_layernorm", gguf.HasTensor("blk.0.attn_q_norm.weight"));
  ReadRotatedShare(gguf);
}

void ReadGpt2(GgufSource& gguf) {
  gguf.Put("n_embd", gguf.Count("embedding_length"));
  gguf.Put("n_layer", gguf.Layers());
  gguf.PutIfKnown("n_head", gguf.OfAllLayers("attention.head_count"));
  gguf.PutIfKnown("n_inner", gguf.OfAllLayers("feed_forward_length"));
  const FileTensor* positions = gguf.Tensor("position_embd.weight");
  gguf.Put("n_positions", positions != nullptr && !positions->shape.empty()
                              ? positions->shape.front()
                              : gguf.Count("context_length"));
}

void ReadStarcoder(GgufSource& gguf) {
  ReadGpt2(gguf);
  gguf.Put("multi_query", gguf.OfAllLayers("attention.head_count_kv") == 1);
}

void ReadStarcoder2(GgufSource& gguf) {
  gguf.Put("use_bias", gguf.HasTensor("blk.0.attn_q.bias"));
}

void ReadStableLm(GgufSource& gguf) {
  gguf.Put("use_qkv_bias", gguf.HasTensor("blk.0.attn_q.bias"));
  gguf.Put("qk_layernorm", gguf.HasTensor("blk.0.attn_q_norm.weight"));
  gguf.Put("use_parallel_residual", gguf.OptionalFlag("use_parallel_residual").value_or(false));
}

void ReadSeedOss(GgufSource& gguf) {
  PutBiases(gguf);
  gguf.Put("attention_out_bias", gguf.HasTensor("blk.0.attn_output.bias"));
}

void ReadGptNeox(GgufSource& gguf) {
  PutRotatedShare(gguf, "rotary_pct");
  gguf.Put("use_parallel_residual", gguf.OptionalFlag("use_parallel_residual").value_or(true));
}

void ReadBloom(GgufSource& gguf) {
  gguf.Put("n_layer", gguf.Layers());
}

// Falcon-7B has one key-value head and one norm a layer, Falcon-40B several heads and two norms,
// Falcon-11B several heads and one norm.
void ReadFalcon(GgufSource& gguf) {
  const std::int64_t heads = gguf.OfAllLayers("attention.head_count").value_or(1);
  const std::int64_t key_value = gguf.OfAllLayers("attention.head_count_kv").value_or(heads);
  const bool two_norms = gguf.HasTensor("blk.0.attn_norm_2.weight");
  gguf.Put("multi_query", key_value == 1);
  gguf.Put("new_decoder_architecture", two_norms || key_value > 1);
  gguf.Put("num_ln_in_parallel_attn", two_norms ? 2 : 1);
  gguf.Put("num_kv_heads", key_value);
  gguf.Put("bias", gguf.HasTensor("blk.0.attn_qkv.bias"));
  gguf.PutIfKnown("ffn_hidden_size", gguf.OfAllLayers("feed_forward_length"));
}

void ReadGptOss(GgufSource& gguf) {
  PutExpertCounts(gguf, "num_local_experts");
  PutExpertWidth(gguf, "intermediate_size");
}

void ReadMinimaxM2(GgufSource& gguf) {
  ReadGptOss(gguf);
  gguf.PutIfKnown("rotary_dim", gguf.OptionalCount("rope.dimension_count"));
}

void PutLatentRanks(GgufSource& gguf, std::int64_t key) {
  const std::int64_t rotated = gguf.Count("rope.dimension_count", kFactors);
  if (rotated >= key) {
    gguf.Refuse("rope.dimension_count", {.found = std::to_string(rotated),
                                         .expected = fmt::format("expected less than {}", key)});
  }
  gguf.PutIfKnown("q_lora_rank", gguf.OptionalCount("attention.q_lora_rank"));
  gguf.Put("kv_lora_rank", gguf.Count("attention.kv_lora_rank"));
  gguf.Put("qk_rope_head_dim", rotated);
  gguf.Put("qk_nope_head_dim", key - rotated);
}

// Latent attention. Files made for absorbed weights have the sizes of the latent under key_length
// and value_length, and those of a head under keys of their own (src/models/deepseek2.cpp).
void ReadDeepseek(GgufSource& gguf) {
  constexpr std::int64_t kSigmoid = 2;  // llama_expert_gating_func_type
  const std::int64_t key = gguf.Has("attention.key_length_mla")
                               ? gguf.Count("attention.key_length_mla", kFactors)
                               : gguf.Count("attention.key_length", kFactors);
  PutLatentRanks(gguf, key);
  gguf.Put("v_head_dim", gguf.Has("attention.value_length_mla")
                             ? gguf.Count("attention.value_length_mla", kFactors)
                             : gguf.Count("attention.value_length", kFactors));
  PutExpertCounts(gguf, "n_routed_experts");
  PutExpertWidth(gguf, "moe_intermediate_size");
  gguf.PutIfKnown("n_shared_experts", gguf.OptionalCount("expert_shared_count"));
  gguf.PutIfKnown("first_k_dense_replace", gguf.OptionalCount("leading_dense_block_count"));
  gguf.Put("num_nextn_predict_layers", gguf.PredictionLayers());
  const bool corrected = gguf.WidthOf("exp_probs_b.bias").has_value();
  const bool v3 = corrected || gguf.OptionalCount("expert_gating_func") == kSigmoid;
  gguf.Put("topk_method", corrected ? "noaux_tc" : "greedy");
  if (gguf.Architecture() == "deepseek2") {
    gguf.Put("model_type", v3 ? "deepseek_v3" : "deepseek_v2");
  }
}

void ReadDeepseekIndexed(GgufSource& gguf) {
  ReadDeepseek(gguf);
  gguf.Put("index_n_heads", gguf.Count("attention.indexer.head_count"));
  gguf.Put("index_head_dim", gguf.Count("attention.indexer.key_length"));
}

namespace {

// For each layer 1 where it sees only a window.
std::vector<std::int64_t> WindowPattern(GgufSource& gguf) {
  std::vector<std::int64_t> pattern = gguf.PerLayer("attention.sliding_window_pattern");
  pattern.resize(static_cast<std::size_t>(gguf.Layers()));
  return pattern;
}

// The value of the first layer whose pattern is so.
std::optional<std::int64_t> WhereWindowIs(const std::vector<std::int64_t>& pattern,
                                          std::int64_t windowed,
                                          const std::vector<std::int64_t>& values) {
  for (std::size_t layer = 0; layer < std::min(pattern.size(), values.size()); ++layer) {
    if (pattern[layer] == windowed && values[layer] > 0) {
      return values[layer];
    }
  }
  return std::nullopt;
}

}  // namespace

void ReadGemma4(GgufSource& gguf) {
  const std::vector<std::int64_t> pattern = WindowPattern(gguf);
  const std::vector<std::int64_t> heads = gguf.PerLayer("attention.head_count_kv");
  const std::vector<std::int64_t> widths = gguf.PerLayer("feed_forward_length");
  Json::Array types;
  bool keys_are_values = false;
  for (std::size_t layer = 0; layer < pattern.size(); ++layer) {
    const auto number = static_cast<std::int64_t>(layer);
    types.emplace_back(pattern[layer] == 1 ? "sliding_attention" : "full_attention");
    keys_are_values = keys_are_values || (gguf.LayerHas(number, "attn_k.weight") &&
                                          !gguf.LayerHas(number, "attn_v.weight"));
  }
  gguf.Put("layer_types", std::move(types));
  gguf.Put("head_dim", gguf.Count("attention.key_length_swa"));
  gguf.Put("global_head_dim", gguf.Count("attention.key_length"));
  gguf.PutIfKnown("num_key_value_heads", WhereWindowIs(pattern, 1, heads));
  gguf.PutIfKnown("num_global_key_value_heads", WhereWindowIs(pattern, 0, heads));
  gguf.Put("attention_k_eq_v", keys_are_values);
  if (!widths.empty()) {
    const auto [least, most] = std::ranges::minmax(widths);
    gguf.Put("intermediate_size", least);
    gguf.Put("use_double_wide_mlp", most > least);
  }
  gguf.PutIfKnown("num_kv_shared_layers", gguf.OptionalCount("attention.shared_kv_layers"));
  gguf.PutIfKnown("hidden_size_per_layer_input",
                  gguf.OptionalCount("embedding_length_per_layer_input"));
  const FileTensor* words = gguf.Tensor("per_layer_token_embd.weight");
  if (words != nullptr && !words->shape.empty()) {
    gguf.Put("vocab_size_per_layer_input", words->shape.front());
  }
  if (gguf.CountOr("expert_count", 0, {0, kExperts.most}) > 0) {
    PutExpertCounts(gguf, "num_experts");
    PutExpertWidth(gguf, "moe_intermediate_size");
    gguf.Put("enable_moe_block", true);
  }
}

void ReadMimo2(GgufSource& gguf) {
  const std::vector<std::int64_t> pattern = WindowPattern(gguf);
  const std::vector<std::int64_t> heads = gguf.PerLayer("attention.head_count_kv");
  const auto windowed_heads = WhereWindowIs(pattern, 1, heads);
  const auto global = WhereWindowIs(pattern, 0, heads);
  const auto local = windowed_heads ? windowed_heads : global;
  Json::Array slides;
  Json::Array sparse;
  bool sinks[2] = {false, false};  // by windowed
  for (std::size_t layer = 0; layer < pattern.size(); ++layer) {
    const auto number = static_cast<std::int64_t>(layer);
    const bool windowed = pattern[layer] == 1;
    slides.emplace_back(windowed ? 1 : 0);
    sparse.emplace_back(gguf.LayerHas(number, "ffn_gate_inp.weight") ? 1 : 0);
    sinks[windowed] = sinks[windowed] || gguf.LayerHas(number, "attn_sinks.weight");
  }
  gguf.Put("hybrid_layer_pattern", std::move(slides));
  gguf.Put("moe_layer_freq", std::move(sparse));
  gguf.Put("add_full_attention_sink_bias", sinks[0]);
  gguf.Put("add_swa_attention_sink_bias", sinks[1]);
  const std::int64_t key = gguf.Count("attention.key_length");
  const std::int64_t value = gguf.Count("attention.value_length");
  for (const std::string_view prefix : {"", "swa_"}) {
    const auto put = [&](std::string_view name, std::optional<std::int64_t> count) {
      gguf.PutIfKnown(fmt::format("{}{}", prefix, name), count);
    };
    put("num_attention_heads", gguf.OfAllLayers("attention.head_count"));
    put("num_key_value_heads", prefix.empty() && global ? global : local);
    put("head_dim", key);
    put("v_head_dim", value);
  }
  PutExpertCounts(gguf, "n_routed_experts");
  PutExpertWidth(gguf, "moe_intermediate_size");
}

// The file has neither the pooler nor a head (conversion of BertModel).
void ReadBert(GgufSource& gguf) {
  gguf.Put("architectures", Json::Array{"BertModel"});
  const FileTensor* types = gguf.Tensor("token_types.weight");
  if (types != nullptr && !types->shape.empty()) {
    gguf.Put("type_vocab_size", types->shape.front());
  }
}

}  // namespace fourpiles
