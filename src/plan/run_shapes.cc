#include "plan/run_shapes.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "model/from_config.h"
#include "plan/run_megatron.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

constexpr Range kAnySize = {1, std::int64_t{1} << 30};

struct Shapes {
  const Fields& arch;
  std::string mlp = {};
  std::string norm = {};

  std::int64_t Count(std::string_view key, std::int64_t otherwise = 1) const {
    const auto count = arch.OptionalInteger(key, kAnySize);
    return count && *count ? **count : otherwise;
  }
  bool Flag(std::string_view key) const {
    const auto flag = arch.OptionalBool(key);
    return flag && *flag && **flag;
  }
  double Number(std::string_view key, double otherwise) const {
    const auto number = arch.OptionalNumber(key);
    return number && *number ? **number : otherwise;
  }
};

// Fields of a language model's shapes; others make a row not expressible.
constexpr std::string_view kShapeFields[] = {
    "layers", "hidden", "heads",      "kv_heads", "head_dim",          "ffn",         "vocab",
    "mlp",    "norm",   "tied",       "qkv_bias", "qk_norm",           "params",      "note",
    "maxT",   "bias",   "rotary_pct", "dropout",  "parallel_residual", "shared_norm", "softcap"};

// A shape of the wrong kind is none: what stands for an absent one would be another model.
Result<void> CheckKindsOfShapes(const Fields& arch) {
  for (const std::string_view key :
       {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "maxT"}) {
    TRY_VOID(arch.OptionalInteger(key, kAnySize));
  }
  TRY_VOID(arch.OptionalInteger("params", {1, kLargestAmount}));
  for (const std::string_view key :
       {"tied", "qkv_bias", "qk_norm", "bias", "parallel_residual", "shared_norm", "softcap"}) {
    TRY_VOID(arch.OptionalBool(key));
  }
  for (const std::string_view key : {"rotary_pct", "dropout"}) {
    TRY_VOID(arch.OptionalNumber(key, {0, 1}));
  }
  for (const std::string_view key : {"mlp", "norm"}) {
    TRY_VOID(arch.OptionalText(key));
  }
  return {};
}

Result<void> CheckShapes(const Fields& arch) {
  for (const auto& [key, value] : arch.Members()) {
    if (std::ranges::find(kShapeFields, key) == std::end(kShapeFields)) {
      return NotExpressible(fmt::format("arch.{} is not in the vocabulary", key));
    }
  }
  for (const std::string_view key : {"layers", "hidden", "heads", "ffn", "vocab"}) {
    if (!arch.Has(key)) {
      return NotExpressible(fmt::format("no field arch.{}", key));
    }
  }
  TRY_VOID(CheckKindsOfShapes(arch));
  const std::int64_t heads = *arch.Integer("heads", kAnySize);
  if (!arch.Has("head_dim") && *arch.Integer("hidden", kAnySize) % heads != 0) {
    return NotExpressible("arch.heads does not divide arch.hidden, and no head_dim is given");
  }
  return {};
}

Json::Object LitGptConfig(const Shapes& of) {
  const bool gemma2 = of.norm == "rms x4";
  const std::string mlp = of.mlp == "gelu"    ? "GptNeoxMLP"
                          : of.mlp == "geglu" ? "GemmaMLP"
                                              : "LLaMAMLP";
  const std::int64_t heads = of.Count("heads");
  constexpr double kScoreBound = 50;
  return {
      {"model_type", "litgpt"},
      {"n_layer", of.Count("layers")},
      {"n_embd", of.Count("hidden")},
      {"n_head", heads},
      {"n_query_groups", of.Count("kv_heads", heads)},
      {"head_size", of.Count("head_dim", std::max<std::int64_t>(1, of.Count("hidden") / heads))},
      {"intermediate_size", of.Count("ffn")},
      {"padded_vocab_size", of.Count("vocab")},
      {"rotary_percentage", of.Number("rotary_pct", 1)},
      {"parallel_residual", of.Flag("parallel_residual")},
      {"shared_attention_norm", of.Flag("shared_norm")},
      {"bias", of.Flag("bias")},
      {"norm_class_name", of.norm == "ln" ? "LayerNorm" : "RMSNorm"},
      {"mlp_class_name", mlp},
      {"post_attention_norm", gemma2},
      {"scale_embeddings", of.mlp == "geglu"},
      {"attention_logit_softcapping", of.Flag("softcap") ? kScoreBound : 0},
      {"final_logit_softcapping", of.Flag("softcap") ? kScoreBound : 0}};
}

Json::Object GptConfig(const Shapes& of) {
  return {{"model_type", "gpt2"},
          {"n_layer", of.Count("layers")},
          {"n_embd", of.Count("hidden")},
          {"n_head", of.Count("heads")},
          {"n_inner", of.Count("ffn")},
          {"n_positions", of.Count("maxT", 1024)},
          {"vocab_size", of.Count("vocab")},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0}};
}

Json::Object BertConfig(const Shapes& of, bool classifies) {
  constexpr std::int64_t kPositions = 512;  // configuration_bert.py
  const double dropout = of.Number("dropout", 0);
  return {{"model_type", "bert"},
          {"architectures",
           Json::Array{classifies ? "BertForSequenceClassification" : "BertForMaskedLM"}},
          {"num_hidden_layers", of.Count("layers")},
          {"hidden_size", of.Count("hidden")},
          {"num_attention_heads", of.Count("heads")},
          {"intermediate_size", of.Count("ffn")},
          {"vocab_size", of.Count("vocab")},
          {"max_position_embeddings", kPositions},
          {"type_vocab_size", 2},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", dropout},
          {"attention_probs_dropout_prob", dropout}};
}

Json::Object LlamaConfig(const Shapes& of) {
  const std::int64_t heads = of.Count("heads");
  const std::string type = of.Flag("qk_norm")    ? "qwen3"
                           : of.Flag("qkv_bias") ? "qwen2"
                           : of.norm == "rms x4" ? "gemma2"
                           : of.mlp == "geglu"   ? "gemma"
                                                 : "llama";
  constexpr std::int64_t kLongest = std::int64_t{1} << 20;  // no warning wanted
  return {{"model_type", type},
          {"num_hidden_layers", of.Count("layers")},
          {"hidden_size", of.Count("hidden")},
          {"num_attention_heads", heads},
          {"num_key_value_heads", of.Count("kv_heads", heads)},
          {"head_dim", of.Count("head_dim", std::max<std::int64_t>(1, of.Count("hidden") / heads))},
          {"intermediate_size", of.Count("ffn")},
          {"vocab_size", of.Count("vocab")},
          {"max_position_embeddings", kLongest},
          {"tie_word_embeddings", of.Flag("tied")},
          {"hidden_act", "silu"}};
}

// Whether the layers have the shape anyway, or it is one that says nothing.
bool IsUsual(const Shapes& of, std::string_view key) {
  const std::int64_t heads = of.Count("heads");
  if (key == "kv_heads") {
    return of.Count(key, heads) == heads;
  }
  if (key == "head_dim") {
    return of.Count(key) * heads == of.Count("hidden");
  }
  if (key == "rotary_pct") {
    return of.Number(key, 1) == 1;
  }
  if (key == "dropout") {
    return of.Number(key, 0) == 0;
  }
  return key != "maxT" && !of.Flag(key);
}

// A shape that these layers do not have would be another model without saying so.
Result<void> RefuseOthers(const Shapes& of, std::initializer_list<std::string_view> unread) {
  for (const std::string_view key : unread) {
    if (of.arch.Has(key) && !IsUsual(of, key)) {
      return NotExpressible(fmt::format("arch.{} with mlp \"{}\" and norm \"{}\" is not described",
                                        key, of.mlp, of.norm));
    }
  }
  return {};
}

Result<Json> GptConfigOf(const Shapes& of) {
  TRY_VOID(RefuseOthers(of, {"kv_heads", "head_dim", "rotary_pct", "parallel_residual",
                             "shared_norm", "softcap", "qk_norm", "qkv_bias", "dropout"}));
  for (const std::string_view key : {"tied", "bias"}) {
    if (of.arch.Has(key) && !of.Flag(key)) {
      return NotExpressible(fmt::format("arch.{}: false is not described for GPT-2", key));
    }
  }
  return Json(GptConfig(of));
}

Result<Json> LlamaConfigOf(const Shapes& of) {
  TRY_VOID(RefuseOthers(
      of, {"maxT", "rotary_pct", "parallel_residual", "shared_norm", "bias", "dropout"}));
  if (of.norm == "rms") {
    TRY_VOID(RefuseOthers(of, {"softcap"}));
  }
  return Json(LlamaConfig(of));
}

Result<Json> ConfigOf(const Shapes& of, const std::string& implementation, bool classifies) {
  const bool is_rms = of.norm == "rms" || of.norm == "rms x4";
  const bool is_gated = of.mlp == "swiglu" || of.mlp == "geglu";
  if (implementation == "litgpt" && (is_rms || of.norm == "ln") && (is_gated || of.mlp == "gelu")) {
    TRY_VOID(RefuseOthers(of, {"maxT", "qkv_bias", "qk_norm", "dropout"}));
    return Json(LitGptConfig(of));
  }
  if (of.norm == "ln post" && of.mlp == "gelu") {
    TRY_VOID(RefuseOthers(of, {"kv_heads", "head_dim", "rotary_pct", "parallel_residual",
                               "shared_norm", "softcap", "qk_norm"}));
    return Json(BertConfig(of, classifies));
  }
  if (of.norm == "ln" && of.mlp == "gelu" && of.arch.Has("maxT")) {
    return GptConfigOf(of);
  }
  if (is_rms && is_gated) {
    return LlamaConfigOf(of);
  }
  return NotExpressible(
      fmt::format("layers with mlp \"{}\" and norm \"{}\" are not described", of.mlp, of.norm));
}

}  // namespace

Result<Network> NetworkOfRun(const Fields& row, const std::string& implementation,
                             std::int64_t tensor) {
  if (!row.Has("arch")) {
    return NotExpressible("no field arch");
  }
  TRY(const Fields arch, row.Object("arch"));
  if (implementation.starts_with("megatron")) {
    TRY(const Json config, MegatronConfigOf(row, arch, tensor));
    return NetworkFromConfig(config, "arch");
  }
  TRY_VOID(CheckShapes(arch));
  const auto text = [&](std::string_view key, const std::string& otherwise) {
    const auto value = arch.OptionalText(key);
    return value && *value ? LowerCase(**value) : otherwise;
  };
  const Shapes shapes = {.arch = arch, .mlp = text("mlp", "swiglu"), .norm = text("norm", "rms")};
  const bool classifies =
      LowerCase(RunText(row, "mode")).find("classification") != std::string::npos;
  TRY(const Json config, ConfigOf(shapes, implementation, classifies));
  TRY(Network network, NetworkFromConfig(config, "arch"));
  // The row's own count shows a shape that was understood wrongly.
  if (const auto stated = arch.OptionalInteger("params", {1, kLargestAmount}); stated && *stated) {
    const double ratio =
        static_cast<double>(ParameterCount(network)) / static_cast<double>(**stated);
    constexpr double kSame = 0.01;
    if (ratio < 1 - kSame || ratio > 1 + kSame) {
      return NotExpressible(
          fmt::format("arch.params: {}, its shapes give {}", **stated, ParameterCount(network)));
    }
  }
  return network;
}

}  // namespace fourpiles
