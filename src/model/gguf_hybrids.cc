// What a GGUF tells of the families with state-space layers, and of those whose layers are of many
// sizes.
//
// Keys: ggml-org/llama.cpp, gguf-py/gguf/constants.py; what an absent one means:
// src/models/NAME.cpp, load_arch_hparams; how the converter fills them: conversion/NAME.py.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/gguf_families.h"

namespace fourpiles {
namespace {

// Mamba-2's sizes as Bamba and its descendants name them. The key of the step size's rank has the
// number of heads.
void PutMamba2(GgufSource& gguf) {
  gguf.Put("mamba_n_heads", gguf.Count("ssm.time_step_rank", kFactors));
  gguf.Put("mamba_d_ssm", gguf.Count("ssm.inner_size"));
  gguf.Put("mamba_n_groups", gguf.Count("ssm.group_count", kFactors));
  gguf.Put("mamba_d_state", gguf.Count("ssm.state_size", kFactors));
  gguf.Put("mamba_d_conv", gguf.Count("ssm.conv_kernel", kFactors));
  gguf.Put("mamba_conv_bias", gguf.WidthOf("ssm_conv1d.bias").has_value());
}

// Layers without key-value heads are no attention.
std::vector<bool> AttentionLayers(GgufSource& gguf) {
  std::vector<bool> attends;
  for (const std::int64_t heads : gguf.PerLayer("attention.head_count_kv")) {
    attends.push_back(heads > 0);
  }
  return attends;
}

}  // namespace

void ReadMamba(GgufSource& gguf) {
  gguf.Put("intermediate_size", gguf.Count("ssm.inner_size"));
  gguf.Put("state_size", gguf.Count("ssm.state_size", kFactors));
  gguf.Put("time_step_rank", gguf.Count("ssm.time_step_rank"));
  gguf.Put("conv_kernel", gguf.Count("ssm.conv_kernel", kFactors));
  gguf.Put("use_conv_bias", gguf.WidthOf("ssm_conv1d.bias").has_value());
}

void ReadMamba2(GgufSource& gguf) {
  const std::int64_t heads = gguf.Count("ssm.time_step_rank", kFactors);
  gguf.Put("num_heads", heads);
  gguf.Put("head_dim", gguf.Count("ssm.inner_size") / heads);
  gguf.Put("n_groups", gguf.Count("ssm.group_count", kFactors));
  gguf.Put("state_size", gguf.Count("ssm.state_size", kFactors));
  gguf.Put("conv_kernel", gguf.Count("ssm.conv_kernel", kFactors));
  gguf.Put("use_conv_bias", gguf.WidthOf("ssm_conv1d.bias").has_value());
}

void ReadFalconH1(GgufSource& gguf) {
  PutBiases(gguf);
  PutMamba2(gguf);
  gguf.Put("mamba_rms_norm", gguf.WidthOf("ssm_norm.weight").has_value());
}

// feed_forward_length is the width of an expert.
void ReadGraniteExperts(GgufSource& gguf) {
  PutBiases(gguf);
  PutExpertCounts(gguf, "num_local_experts");
  PutExpertWidth(gguf, "intermediate_size");
  PutSharedExpertWidth(gguf, "shared_intermediate_size");
}

// Without experts every token's part is a plain one in the file.
void ReadGraniteHybrid(GgufSource& gguf) {
  Json::Array types;
  for (const bool attends : AttentionLayers(gguf)) {
    types.emplace_back(attends ? "attention" : "mamba");
  }
  gguf.Put("layer_types", std::move(types));
  PutMamba2(gguf);
  gguf.Put("attention_bias", gguf.WidthOf("attn_q.bias").has_value());
  if (gguf.CountOr("expert_count", 0, {0, kExperts.most}) > 0) {
    PutExpertCounts(gguf, "num_local_experts");
    PutExpertWidth(gguf, "intermediate_size");
    PutSharedExpertWidth(gguf, "shared_intermediate_size");
  } else {
    const auto width = gguf.WidthOf("ffn_down.weight");
    gguf.Put("num_local_experts", 0);
    gguf.PutIfKnown("shared_intermediate_size",
                    width ? width : gguf.OfAllLayers("feed_forward_length"));
  }
}

namespace {

// The layers of a kind, if they come in a period, under Jamba's keys; refused if they do not.
void PutPeriod(GgufSource& gguf, const std::string& kind, const std::vector<bool>& layers,
               std::string_view key) {
  const auto first = std::ranges::find(layers, true);
  if (first == layers.end()) {
    return;
  }
  const auto second = std::find(first + 1, layers.end(), true);
  const auto offset = first - layers.begin();
  const auto period = std::max(second - first, offset + 1);
  for (std::int64_t layer = 0; layer < std::ssize(layers); ++layer) {
    if (layers[static_cast<std::size_t>(layer)] != (layer % period == offset)) {
      gguf.Refuse(key, {.found = fmt::format("layer {} breaks the period of {}", layer, period),
                        .expected = "expected layers in a period",
                        .hint = "give the folder with the model's config.json"});
      return;
    }
  }
  gguf.Put(kind + "_layer_period", period);
  gguf.Put(kind + "_layer_offset", offset);
}

}  // namespace

void ReadJamba(GgufSource& gguf) {
  gguf.Put("mamba_d_state", gguf.Count("ssm.state_size", kFactors));
  gguf.Put("mamba_dt_rank", gguf.Count("ssm.time_step_rank"));
  gguf.Put("mamba_d_conv", gguf.Count("ssm.conv_kernel", kFactors));
  gguf.Put("mamba_conv_bias", gguf.WidthOf("ssm_conv1d.bias").has_value());
  gguf.Put("mamba_expand", gguf.Count("ssm.inner_size") / gguf.Count("embedding_length"));
  PutPeriod(gguf, "attn", AttentionLayers(gguf), "attention.head_count_kv");
  std::vector<bool> routes;
  for (std::int64_t layer = 0; layer < gguf.Layers(); ++layer) {
    routes.push_back(gguf.LayerHas(layer, "ffn_gate_inp.weight"));
  }
  PutPeriod(gguf, "expert", routes, "expert_count");
  const bool routed = std::ranges::find(routes, true) != routes.end();
  gguf.Put("num_experts", routed ? gguf.Count("expert_count", kExperts) : 1);
}

namespace {

// One letter a layer, by the tensors that it has.
std::string NemotronPattern(const GgufSource& gguf) {
  std::string pattern;
  for (std::int64_t layer = 0; layer < gguf.Layers(); ++layer) {
    pattern += gguf.LayerHas(layer, "ssm_in.weight")         ? 'M'
               : gguf.LayerHas(layer, "attn_q.weight")       ? '*'
               : gguf.LayerHas(layer, "ffn_gate_inp.weight") ? 'E'
                                                             : '-';
  }
  return pattern;
}

}  // namespace

void ReadNemotronH(GgufSource& gguf) {
  const std::int64_t heads = gguf.Count("ssm.time_step_rank", kFactors);
  gguf.Put("hybrid_override_pattern", NemotronPattern(gguf));
  gguf.Put("mamba_num_heads", heads);
  gguf.Put("mamba_head_dim", gguf.Count("ssm.inner_size") / heads);
  gguf.Put("n_groups", gguf.Count("ssm.group_count", kFactors));
  gguf.Put("ssm_state_size", gguf.Count("ssm.state_size", kFactors));
  gguf.Put("conv_kernel", gguf.Count("ssm.conv_kernel", kFactors));
  gguf.Put("use_conv_bias", gguf.WidthOf("ssm_conv1d.bias").has_value());
  gguf.Put("attention_bias", gguf.WidthOf("attn_q.bias").has_value());
  gguf.Put("mlp_bias", gguf.WidthOf("ffn_up.bias").has_value());
  gguf.Put("num_nextn_predict_layers", gguf.PredictionLayers());
  if (gguf.CountOr("expert_count", 0, {0, kExperts.most}) > 0) {
    PutExpertCounts(gguf, "n_routed_experts");
    PutExpertWidth(gguf, "moe_intermediate_size");
    PutExpertWidth(gguf, "intermediate_size");  // of layers that it has none of
    gguf.PutIfKnown("n_shared_experts", gguf.OptionalCount("expert_shared_count"));
    PutSharedExpertWidth(gguf, "moe_shared_expert_intermediate_size");
    gguf.PutIfKnown("moe_latent_size", gguf.OptionalCount("moe_latent_size"));
  }
}

// feed_forward_length is the width after what the checkpoint's config.json leaves to be computed.
void ReadLfm2(GgufSource& gguf) {
  Json::Array types;
  for (const bool attends : AttentionLayers(gguf)) {
    types.emplace_back(attends ? "full_attention" : "conv");
  }
  gguf.Put("layer_types", std::move(types));
  gguf.Put("conv_L_cache", gguf.Count("shortconv.l_cache", kFactors));
  gguf.Put("conv_bias", gguf.WidthOf("shortconv.conv.bias").has_value());
  gguf.Put("block_auto_adjust_ff_dim", false);
}

// The heads of both kinds of attention are as many.
void ReadKimiLinear(GgufSource& gguf) {
  const std::int64_t key = gguf.Count("attention.key_length_mla", kFactors);
  PutLatentRanks(gguf, key);
  gguf.Put("v_head_dim", gguf.Count("attention.value_length_mla", kFactors));
  Json::Array attending;
  std::int64_t number = 0;
  for (const bool attends : AttentionLayers(gguf)) {
    ++number;
    if (attends) {
      attending.emplace_back(number);
    }
  }
  gguf.Put("linear_attn_config",
           Json::Object{{"num_heads", gguf.OfAllLayers("attention.head_count").value_or(1)},
                        {"head_dim", gguf.Count("kda.head_dim", kFactors)},
                        {"short_conv_kernel_size", gguf.Count("ssm.conv_kernel", kFactors)},
                        {"full_attn_layers", std::move(attending)}});
  PutExpertCounts(gguf, "num_experts");
  PutExpertWidth(gguf, "moe_intermediate_size");
  gguf.PutIfKnown("num_shared_experts", gguf.OptionalCount("expert_shared_count"));
  gguf.PutIfKnown("first_k_dense_replace", gguf.OptionalCount("leading_dense_block_count"));
}

namespace {

Json PartOfLayer(bool absent, std::string_view key, std::int64_t size) {
  return absent ? Json::Object{{"no_op", true}} : Json::Object{{std::string(key), size}};
}

}  // namespace

// Layers without heads have no attention; with heads but none for keys, one linear layer in its
// place (conversion/deci.py).
void ReadDeci(GgufSource& gguf) {
  const std::vector<std::int64_t> heads = gguf.PerLayer("attention.head_count");
  const std::vector<std::int64_t> key_value = gguf.PerLayer("attention.head_count_kv");
  const std::vector<std::int64_t> widths = gguf.PerLayer("feed_forward_length");
  const std::size_t layers = std::min({heads.size(), key_value.size(), widths.size()});
  Json::Array blocks;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const bool linear = heads[layer] > 0 && key_value[layer] == 0;
    const std::int64_t group = heads[layer] / std::max<std::int64_t>(1, key_value[layer]);
    blocks.emplace_back(Json::Object{
        {"attention", linear ? Json(Json::Object{{"replace_with_linear", true}})
                             : PartOfLayer(heads[layer] == 0, "n_heads_in_group", group)},
        {"ffn", PartOfLayer(widths[layer] == 0, "intermediate_size", widths[layer])}});
  }
  gguf.Put("block_configs", std::move(blocks));
  gguf.Put("attention_bias", gguf.WidthOf("attn_q.bias").has_value());
}

}  // namespace fourpiles
