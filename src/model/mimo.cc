// MiMo-V2: layers that see a window and layers that see all, each kind with key-value heads of its
// own number and with values narrower than keys; experts in all layers but the first.
//
// Names and shapes: XiaomiMiMo/MiMo-V2-Flash modeling_mimo_v2_flash.py, as vLLM loads it
// (vllm/model_executor/models/mimo_v2_flash.py).

#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"
#include "model/llama.h"

namespace fourpiles {
namespace {

// Attention whose values have a width of their own.
struct UnevenHeads {
  std::int64_t hidden_size = 1;
  std::int64_t query = 1;
  std::int64_t key_value = 1;
  std::int64_t head_dim = 1;
  std::int64_t v_head_dim = 1;
  bool sinks = false;
};

// The keys of the layers with a window begin with "swa_".
UnevenHeads ReadUnevenHeads(Record& config, std::string_view prefix, std::string_view sinks) {
  const auto count = [&](std::string_view key) {
    return config.Count(fmt::format("{}{}", prefix, key));
  };
  return {.hidden_size = config.Count("hidden_size"),
          .query = count("num_attention_heads"),
          .key_value = count("num_key_value_heads"),
          .head_dim = count("head_dim"),
          .v_head_dim = count("v_head_dim"),
          .sinks = config.Flag(sinks, false)};
}

Parameters Attention(const UnevenHeads& heads) {
  const auto to = [&heads](std::int64_t out) {
    return Linear({out, heads.hidden_size}, Divide::kOutputs);
  };
  Parameters attention;
  Append(attention, "q_proj", to(heads.query * heads.head_dim));
  Append(attention, "k_proj", to(heads.key_value * heads.head_dim));
  Append(attention, "v_proj", to(heads.key_value * heads.v_head_dim));
  Append(attention, "o_proj",
         Linear({heads.hidden_size, heads.query * heads.v_head_dim}, Divide::kInputs));
  if (heads.sinks) {
    Append(attention, Tensor("attention_sink_bias", {heads.query}, 0));
  }
  return attention;
}

Cache UnevenCache(const UnevenHeads& heads, std::optional<std::int64_t> window) {
  return {.key_elements_per_token = heads.key_value * heads.head_dim,
          .value_elements_per_token = heads.key_value * heads.v_head_dim,
          .window = window,
          .heads = heads.key_value};
}

// A 0 or a 1 for each layer.
std::vector<std::int64_t> ReadPattern(Record& config, std::string_view key, std::int64_t layers) {
  std::vector<std::int64_t> pattern = config.Counts(key, {0, 1});
  if (std::ssize(pattern) != layers) {
    config.Refuse(key, {.found = fmt::format("{} layers", pattern.size()),
                        .expected = fmt::format("expected num_hidden_layers, {}", layers)});
    pattern.resize(static_cast<std::size_t>(layers));
  }
  return pattern;
}

Parameters MimoExperts(Record& config, std::int64_t hidden_size) {
  const std::int64_t experts = config.Count("n_routed_experts", kExperts);
  Parameters moe;
  Append(moe, "mlp.gate", Linear({experts, hidden_size}, Divide::kNot));
  Append(moe, "mlp.gate", RouterCorrection("e_score_correction_bias", experts));
  Append(moe, "mlp.experts",
         Experts(GatedMlp(hidden_size, config.Count("moe_intermediate_size")), experts));
  return moe;
}

}  // namespace

Network BuildMimoV2(Record& config) {
  const UnevenHeads global = ReadUnevenHeads(config, "", "add_full_attention_sink_bias");
  const UnevenHeads local = ReadUnevenHeads(config, "swa_", "add_swa_attention_sink_bias");
  const std::int64_t hidden_size = global.hidden_size;
  const Decoder decoder = {.heads = {.hidden_size = hidden_size},
                           .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
                           .vocab_size = config.Count("vocab_size"),
                           .tie_word_embeddings = config.Flag("tie_word_embeddings", kUntied)};
  const auto slides = ReadPattern(config, "hybrid_layer_pattern", decoder.num_hidden_layers);
  const auto sparse = ReadPattern(config, "moe_layer_freq", decoder.num_hidden_layers);
  const std::int64_t window = config.Count("sliding_window");
  const Parameters experts = MimoExperts(config, hidden_size);
  Parameters mlp;
  Append(mlp, "mlp", GatedMlp(hidden_size, config.Count("intermediate_size")));
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    const auto index = static_cast<std::size_t>(number);
    const bool windowed = slides[index] == 1;
    const UnevenHeads& heads = windowed ? local : global;
    Layer layer = {.cache = UnevenCache(heads, windowed ? std::optional(window) : std::nullopt)};
    Append(layer.parameters, "self_attn", Attention(heads));
    Append(layer.parameters, sparse[index] == 1 ? experts : mlp);
    Append(layer.parameters, Norms(kNormsBefore, hidden_size));
    return layer;
  });
}

}  // namespace fourpiles
