// Names: ggml-org/llama.cpp, gguf-py/gguf/constants.py (TENSOR_NAMES) and tensor_mapping.py, which
// names the other side; what a converter fuses, splits or drops: conversion/NAME.py.

#include "model/gguf_names.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace fourpiles {
namespace {

// A row without an ending stands for the name with each: "attn_q" for "attn_q.weight" and
// "attn_q.bias". Rows with one come first where both could stand for a name.
struct Row {
  std::string_view gguf;
  std::string_view checkpoint;
};

using Rows = std::span<const Row>;

constexpr Row kLlama[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_sinks.weight", "self_attn.sinks"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_exps", "mlp.experts.{}.gate_proj"},
    {"ffn_up_exps", "mlp.experts.{}.up_proj"},
    {"ffn_down_exps", "mlp.experts.{}.down_proj"},
    {"ffn_gate_up_exps", "mlp.experts.{}.gate_up_proj"},
};

constexpr Row kMixtral[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias"},
    {"ffn_gate_exps", "block_sparse_moe.experts.{}.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.{}.w3"},
    {"ffn_down_exps", "block_sparse_moe.experts.{}.w2"},
};

// Both norms of Gemma 2 and 3 stand around a part.
constexpr Row kGemma[] = {{"ffn_norm", "pre_feedforward_layernorm"}};

constexpr Row kGemma4[] = {
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"ffn_gate_inp.weight", "router.proj.weight"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"ffn_gate_up_exps.weight", "experts.gate_up_proj"},
    {"ffn_gate_exps.weight", "experts.gate_up_proj"},
    {"ffn_up_exps.weight", "experts.gate_up_proj"},
    {"ffn_down_exps.weight", "experts.down_proj"},
    {"layer_output_scale.weight", "layer_scalar"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
};

constexpr Row kGlm4[] = {
    {"post_attention_norm", "post_self_attn_layernorm"},
    {"post_ffw_norm", "post_mlp_layernorm"},
    {"ffn_up", "mlp.gate_up_proj"},
};

constexpr Row kPhi3[] = {{"ffn_up", "mlp.gate_up_proj"}};

constexpr Row kPhi[] = {
    {"attn_output", "self_attn.dense"},
    {"attn_q_norm", "self_attn.q_layernorm"},
    {"attn_k_norm", "self_attn.k_layernorm"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
};

constexpr Row kDeepseek[] = {
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attn_kv_b", "self_attn.kv_b_proj"},
    {"attn_k_b", "self_attn.kv_b_proj"},
    {"attn_v_b", "self_attn.kv_b_proj"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    {"indexer.attn_q_b", "self_attn.indexer.wq_b"},
    {"indexer.attn_k", "self_attn.indexer.wk"},
    {"indexer.k_norm", "self_attn.indexer.k_norm"},
    {"indexer.proj", "self_attn.indexer.weights_proj"},
};

constexpr Row kQwenMoe[] = {
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
};

constexpr Row kStackedExperts[] = {
    {"ffn_gate_exps.weight", "mlp.experts.gate_up_proj"},
    {"ffn_up_exps.weight", "mlp.experts.gate_up_proj"},
    {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
    {"ffn_down_exps.weight", "mlp.experts.down_proj"},
};

constexpr Row kGptOss[] = {
    {"ffn_gate_inp", "mlp.router"},
    {"ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias"},
    {"ffn_up_exps.bias", "mlp.experts.gate_up_proj_bias"},
    {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"},
};

constexpr Row kLlama4[] = {
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
    {"ffn_gate_inp", "feed_forward.router"},
    {"ffn_gate_exps.weight", "feed_forward.experts.gate_up_proj"},
    {"ffn_up_exps.weight", "feed_forward.experts.gate_up_proj"},
    {"ffn_down_exps.weight", "feed_forward.experts.down_proj"},
    {"ffn_gate_shexp", "feed_forward.shared_expert.gate_proj"},
    {"ffn_up_shexp", "feed_forward.shared_expert.up_proj"},
    {"ffn_down_shexp", "feed_forward.shared_expert.down_proj"},
};

// Linear attention under the names of state-space layers.
constexpr Row kLinear[] = {
    {"ssm_conv1d", "linear_attn.conv1d"}, {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"ssm_a", "linear_attn.A_log"},       {"ssm_norm", "linear_attn.norm"},
    {"ssm_out", "linear_attn.out_proj"},
};

constexpr Row kQwen3Next[] = {
    {"ssm_in", "linear_attn.in_proj_qkvz"},
    {"attn_qkv", "linear_attn.in_proj_qkvz"},
    {"attn_gate", "linear_attn.in_proj_qkvz"},
    {"ssm_ba", "linear_attn.in_proj_ba"},
};

constexpr Row kQwen35[] = {
    {"attn_qkv", "linear_attn.in_proj_qkv"},
    {"attn_gate", "linear_attn.in_proj_z"},
    {"ssm_beta", "linear_attn.in_proj_b"},
    {"ssm_alpha", "linear_attn.in_proj_a"},
};

constexpr Row kMimo[] = {{"attn_sinks.weight", "self_attn.attention_sink_bias"}};

constexpr Row kNemotronH[] = {
    {"attn_norm", "norm"},
    {"attn_q", "mixer.q_proj"},
    {"attn_k", "mixer.k_proj"},
    {"attn_v", "mixer.v_proj"},
    {"attn_output", "mixer.o_proj"},
    {"ffn_up", "mixer.up_proj"},
    {"ffn_down", "mixer.down_proj"},
    {"ffn_gate_inp", "mixer.gate"},
    {"exp_probs_b.bias", "mixer.gate.e_score_correction_bias"},
    {"ffn_up_exps", "mixer.experts.{}.up_proj"},
    {"ffn_down_exps", "mixer.experts.{}.down_proj"},
    {"ffn_up_shexp", "mixer.shared_experts.up_proj"},
    {"ffn_down_shexp", "mixer.shared_experts.down_proj"},
    {"ffn_latent_down", "mixer.fc1_latent_proj"},
    {"ffn_latent_up", "mixer.fc2_latent_proj"},
    {"ssm_in", "mixer.in_proj"},
    {"ssm_conv1d", "mixer.conv1d"},
    {"ssm_dt.bias", "mixer.dt_bias"},
    {"ssm_a", "mixer.A_log"},
    {"ssm_d", "mixer.D"},
    {"ssm_norm", "mixer.norm"},
    {"ssm_out", "mixer.out_proj"},
};

// Beside those of Nemotron-H.
constexpr Row kMamba[] = {{"ssm_x", "mixer.x_proj"}, {"ssm_dt", "mixer.dt_proj"}};

// Mamba-2 beside attention. Files of Falcon-H1 have a norm without ".weight".
constexpr Row kMambaPart[] = {
    {"ssm_in", "mamba.in_proj"},
    {"ssm_conv1d", "mamba.conv1d"},
    {"ssm_dt.bias", "mamba.dt_bias"},
    {"ssm_a", "mamba.A_log"},
    {"ssm_d", "mamba.D"},
    {"ssm_norm", "mamba.norm"},
    {"ssm_out", "mamba.out_proj"},
    {"ffn_norm.weight", "pre_ff_layernorm.weight"},
    {"ffn_norm", "pre_ff_layernorm.weight"},
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
};

constexpr Row kJamba[] = {
    {"ssm_x", "mamba.x_proj"},
    {"ssm_dt", "mamba.dt_proj"},
    {"ssm_dt_norm", "mamba.dt_layernorm"},
    {"ssm_b_norm", "mamba.b_layernorm"},
    {"ssm_c_norm", "mamba.c_layernorm"},
    {"ffn_gate_inp", "feed_forward.router"},
    {"ffn_gate_exps", "feed_forward.experts.{}.gate_proj"},
    {"ffn_up_exps", "feed_forward.experts.{}.up_proj"},
    {"ffn_down_exps", "feed_forward.experts.{}.down_proj"},
};

// What every token takes stands as a shared expert, or where there are no others as the plain part.
constexpr Row kGranite[] = {
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "block_sparse_moe.router.layer"},
    {"ffn_gate_exps", "block_sparse_moe.input_linear"},
    {"ffn_up_exps", "block_sparse_moe.input_linear"},
    {"ffn_down_exps", "block_sparse_moe.output_linear"},
    {"ffn_gate_shexp", "shared_mlp.input_linear"},
    {"ffn_up_shexp", "shared_mlp.input_linear"},
    {"ffn_down_shexp", "shared_mlp.output_linear"},
    {"ffn_gate", "shared_mlp.input_linear"},
    {"ffn_up", "shared_mlp.input_linear"},
    {"ffn_down", "shared_mlp.output_linear"},
};

constexpr Row kLfm2[] = {
    {"attn_norm", "operator_norm"},           {"attn_output", "self_attn.out_proj"},
    {"attn_q_norm", "self_attn.q_layernorm"}, {"attn_k_norm", "self_attn.k_layernorm"},
    {"shortconv.conv", "conv.conv"},          {"shortconv.in_proj", "conv.in_proj"},
    {"shortconv.out_proj", "conv.out_proj"},  {"ffn_norm", "ffn_norm"},
    {"ffn_gate", "feed_forward.w1"},          {"ffn_up", "feed_forward.w3"},
    {"ffn_down", "feed_forward.w2"},
};

// Delta attention under the names of state-space layers, beside DeepSeek's latent attention.
constexpr Row kKimiLinear[] = {
    {"ssm_conv1d_q", "self_attn.q_conv1d"},
    {"ssm_conv1d_k", "self_attn.k_conv1d"},
    {"ssm_conv1d_v", "self_attn.v_conv1d"},
    {"ssm_f_a", "self_attn.f_a_proj"},
    {"ssm_f_b", "self_attn.f_b_proj"},
    {"ssm_g_a", "self_attn.g_a_proj"},
    {"ssm_g_b", "self_attn.g_b_proj"},
    {"ssm_beta", "self_attn.b_proj"},
    {"ssm_dt.bias", "self_attn.dt_bias"},
    {"ssm_a", "self_attn.A_log"},
    {"ssm_norm", "self_attn.o_norm"},
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"exp_probs_b.bias", "block_sparse_moe.gate.e_score_correction_bias"},
    {"ffn_gate_exps", "block_sparse_moe.experts.{}.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.{}.w3"},
    {"ffn_down_exps", "block_sparse_moe.experts.{}.w2"},
    {"ffn_gate_shexp", "block_sparse_moe.shared_experts.gate_proj"},
    {"ffn_up_shexp", "block_sparse_moe.shared_experts.up_proj"},
    {"ffn_down_shexp", "block_sparse_moe.shared_experts.down_proj"},
};

constexpr Row kHunyuan[] = {
    {"attn_q_norm", "self_attn.query_layernorm"},
    {"attn_k_norm", "self_attn.key_layernorm"},
};

constexpr Row kStarcoder2[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};

constexpr Row kStableLm[] = {
    {"attn_q_norm", "self_attn.q_layernorm.norms.{}"},
    {"attn_k_norm", "self_attn.k_layernorm.norms.{}"},
};

constexpr Row kGpt2[] = {
    {"attn_norm", "ln_1"}, {"attn_qkv", "attn.c_attn"}, {"attn_output", "attn.c_proj"},
    {"ffn_norm", "ln_2"},  {"ffn_up", "mlp.c_fc"},      {"ffn_down", "mlp.c_proj"},
};

constexpr Row kQwen[] = {
    {"attn_norm", "ln_1"},      {"attn_qkv", "attn.c_attn"}, {"attn_output", "attn.c_proj"},
    {"ffn_norm", "ln_2"},       {"ffn_gate", "mlp.w2"},      {"ffn_up", "mlp.w1"},
    {"ffn_down", "mlp.c_proj"},
};

constexpr Row kNeox[] = {
    {"attn_qkv", "attention.query_key_value"},
    {"attn_output", "attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
};

// Falcon-40B's norms: the first of a layer is the one of the feed-forward part.
constexpr Row kFalcon[] = {
    {"attn_qkv", "self_attention.query_key_value"},
    {"attn_output", "self_attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
    {"attn_norm_2", "ln_attn"},
};

constexpr Row kBert[] = {
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
};

// What stands once.
constexpr Row kModelFrame[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
};
constexpr Row kPhiFrame[] = {{"output_norm", "model.final_layernorm"}};
constexpr Row kGpt2Frame[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
};
constexpr Row kBloomFrame[] = {
    {"token_embd", "transformer.word_embeddings"},
    {"token_embd_norm", "transformer.word_embeddings_layernorm"},
    {"output_norm", "transformer.ln_f"},
};
constexpr Row kNeoxFrame[] = {
    {"token_embd", "gpt_neox.embed_in"},
    {"output_norm", "gpt_neox.final_layer_norm"},
    {"output", "embed_out"},
};
constexpr Row kNemotronFrame[] = {
    {"token_embd", "backbone.embeddings"},
    {"output_norm", "backbone.norm_f"},
};
constexpr Row kLfm2Frame[] = {
    // the second in older files
    {"output_norm", "model.embedding_norm"},
    {"token_embd_norm", "model.embedding_norm"},
};
constexpr Row kBertFrame[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
};

// The rows of a model_type, before those of Llama; a second table where two families share one.
struct Family {
  std::string_view model_type;
  Rows layer = {};
  Rows more = {};
  std::string_view layers = "model.layers";
  Rows frame = {};
};

constexpr std::string_view kTransformer = "transformer.h";

constexpr Family kFamilies[] = {
    {"bamba", kMambaPart, {}, "model.layers", kPhiFrame},
    {"bert", kBert, {}, "encoder.layer", kBertFrame},
    {"bloom", kFalcon, {}, kTransformer, kBloomFrame},
    {"deepseek_v2", kDeepseek},
    {"deepseek_v3", kDeepseek},
    {"deepseek_v32", kDeepseek},
    {"falcon", kFalcon, {}, kTransformer, kBloomFrame},
    {"falcon_h1", kMambaPart, {}, "model.layers", kPhiFrame},
    {"falcon_mamba", kMamba, kNemotronH, "backbone.layers", kNemotronFrame},
    {"gemma2", kGemma},
    {"gemma3_text", kGemma},
    {"gemma4_text", kGemma4},
    {"glm4", kGlm4},
    {"glm_moe_dsa", kDeepseek},
    {"gpt2", kGpt2, {}, kTransformer, kGpt2Frame},
    {"gpt_bigcode", kGpt2, {}, kTransformer, kGpt2Frame},
    {"gpt_neox", kNeox, {}, "gpt_neox.layers", kNeoxFrame},
    {"gpt_oss", kGptOss, kStackedExperts},
    {"granitemoe", kGranite},
    {"granitemoehybrid", kGranite, kMambaPart},
    {"granitemoeshared", kGranite},
    {"hunyuan_v1_dense", kHunyuan},
    {"jamba", kJamba, kMambaPart, "model.layers", kPhiFrame},
    {"kimi_linear", kKimiLinear, kDeepseek},
    {"lfm2", kLfm2, {}, "model.layers", kLfm2Frame},
    {"llama4_text", kLlama4},
    {"mamba", kMamba, kNemotronH, "backbone.layers", kNemotronFrame},
    {"mamba2", kNemotronH, {}, "backbone.layers", kNemotronFrame},
    {"mimo_v2_flash", kMimo},
    {"minimax_m2", kMixtral},
    {"mixtral", kMixtral},
    {"nemotron_h", kNemotronH, {}, "backbone.layers", kNemotronFrame},
    {"phi", kPhi, {}, "model.layers", kPhiFrame},
    {"phi3", kPhi3},
    {"qwen", kQwen, {}, kTransformer, kGpt2Frame},
    {"qwen2_moe", kQwenMoe},
    {"qwen3_5_moe_text", kQwen35, kStackedExperts},
    {"qwen3_5_text", kQwen35},
    {"qwen3_next", kQwen3Next},
    {"qwen3_vl_moe_text", kStackedExperts},
    {"stablelm", kStableLm},
    {"starcoder2", kStarcoder2},
};

constexpr Family kLlamaFamily = {"llama"};

const Family& FamilyOf(std::string_view model_type) {
  const auto* family = std::ranges::find(kFamilies, model_type, &Family::model_type);
  return family == std::end(kFamilies) ? kLlamaFamily : *family;
}

std::optional<std::string> Find(Rows rows, std::string_view name) {
  if (const auto row = std::ranges::find(rows, name, &Row::gguf); row != rows.end()) {
    return std::string(row->checkpoint);
  }
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return std::nullopt;
  }
  const auto row = std::ranges::find(rows, name.substr(0, dot), &Row::gguf);
  return row == rows.end() ? std::nullopt
                           : std::optional(fmt::format("{}{}", row->checkpoint, name.substr(dot)));
}

std::optional<std::string> FindInFirst(std::initializer_list<Rows> tables, std::string_view name) {
  for (const Rows rows : tables) {
    if (auto found = Find(rows, name)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<std::string> LayerTensor(const Family& family, std::string_view name) {
  const bool linear = family.model_type.starts_with("qwen3_5") || family.model_type == "qwen3_next";
  return FindInFirst({family.layer, family.more, linear ? Rows(kLinear) : Rows(),
                      linear ? Rows(kQwenMoe) : Rows(), Rows(kLlama)},
                     name);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Files from before April 2024 have a tensor for each expert: "ffn_up.7.weight".
std::optional<std::string> OneExpert(const Family& family, std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t second = name.find('.', first + 1);
  if (second == std::string_view::npos || !IsNumber(name.substr(first + 1, second - first - 1))) {
    return std::nullopt;
  }
  auto found =
      LayerTensor(family, fmt::format("{}_exps{}", name.substr(0, first), name.substr(second)));
  const std::size_t place = found ? found->find("{}") : std::string::npos;
  if (place != std::string::npos) {
    found->replace(place, 2, name.substr(first + 1, second - first - 1));
  }
  return found;
}

}  // namespace

std::optional<std::string> CheckpointName(std::string_view gguf_name, std::string_view model_type) {
  constexpr std::string_view kBlock = "blk.";
  const Family& family = FamilyOf(model_type);
  if (!gguf_name.starts_with(kBlock)) {
    return FindInFirst({family.frame, Rows(kModelFrame)}, gguf_name);
  }
  const std::string_view name = gguf_name.substr(kBlock.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || !IsNumber(name.substr(0, dot))) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(dot + 1);
  auto found = LayerTensor(family, rest);
  if (!found) {
    found = OneExpert(family, rest);
  }
  return found ? std::optional(fmt::format("{}.{}.{}", family.layers, name.substr(0, dot), *found))
               : std::nullopt;
}

bool IsMadeByConversion(std::string_view gguf_name) {
  return gguf_name.starts_with("rope_f") || gguf_name.find(".rope_f") != std::string_view::npos ||
         gguf_name.find(".attn_rot_embd") != std::string_view::npos;
}

}  // namespace fourpiles
