// Granite 3 and 4 with experts, whose tensors hold gate and up of all of them; and Granite 4's
// hybrids, most of whose layers are state-space layers.
//
// Names and shapes: huggingface/transformers, models/{granitemoe,granitemoeshared,
// granitemoehybrid}.

#include <algorithm>
#include <array>
#include <utility>

#include "model/architectures.h"
#include "model/llama.h"
#include "model/state_space.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kExpertCount = 8;  // configuration_granitemoe.py

// A router and its experts, stacked, gate over up.
Parameters RoutedExperts(std::int64_t experts, std::int64_t hidden_size,
                         std::int64_t intermediate_size) {
  Parameters moe;
  Append(moe, "router.layer", Linear({experts, hidden_size}, Divide::kNot));
  Append(moe,
         StackedExperts("input_linear.weight", {experts, 2 * intermediate_size, hidden_size}, 1));
  Append(moe, StackedExperts("output_linear.weight", {experts, hidden_size, intermediate_size}, 2));
  return moe;
}

// What every token takes.
Parameters SharedMlp(std::int64_t hidden_size, std::int64_t intermediate_size) {
  return Mlp(hidden_size, intermediate_size, false, "input_linear", "output_linear");
}

// The feed-forward part under its full names: experts where there are any, and a shared part where
// its width is given.
Parameters FeedForwardOf(Record& config, std::int64_t hidden_size, std::int64_t experts,
                         std::optional<std::int64_t> shared) {
  Parameters part;
  if (experts > 0) {
    Append(part, "block_sparse_moe",
           RoutedExperts(experts, hidden_size, config.Count("intermediate_size")));
  }
  if (shared) {
    Parameters mlp = SharedMlp(hidden_size, *shared);
    mlp.front().shape.front() *= 2;  // gate over up
    Append(part, "shared_mlp", std::move(mlp));
  }
  return part;
}

// For each layer whether it attends. Without layer_types none does.
std::vector<std::string> ReadMixers(Record& config, std::int64_t num_hidden_layers) {
  static constexpr std::array<std::string_view, 2> kKinds = {"mamba", "attention"};
  return ReadLayerTypes(
      config, num_hidden_layers, [](std::int64_t) { return "mamba"; }, kKinds);
}

}  // namespace

Network BuildGraniteMoe(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const bool bias = config.Flag("attention_bias", false);
  const std::int64_t experts = config.CountOr("num_local_experts", kExpertCount, kExperts);
  const auto shared = config.CountOr("shared_intermediate_size", 0, {0, kLargestCount});
  const Parameters part = FeedForwardOf(config, decoder.heads.hidden_size, experts,
                                        shared > 0 ? std::optional(shared) : std::nullopt);
  return LlamaNetwork(decoder, {.attention = {.qkv_bias = bias, .output_bias = bias}},
                      Windows(static_cast<std::size_t>(decoder.num_hidden_layers)),
                      [part](std::int64_t) { return FeedForwardPart{.parameters = part}; });
}

Network BuildGraniteMoeHybrid(Record& config) {
  constexpr std::int64_t kSharedWidth = 1024;  // configuration_granitemoehybrid.py
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const bool bias = config.Flag("attention_bias", false);
  const std::vector<std::string> mixers = ReadMixers(config, decoder.num_hidden_layers);
  const bool has_states = std::ranges::find(mixers, "mamba") != mixers.end();
  const Mamba2 mixer = has_states ? ReadMamba2(config, heads.hidden_size) : Mamba2();
  const Parameters part =
      FeedForwardOf(config, heads.hidden_size,
                    config.CountOr("num_local_experts", kExpertCount, {0, kExperts.most}),
                    config.CountOr("shared_intermediate_size", kSharedWidth));
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    if (mixers[static_cast<std::size_t>(number)] == "attention") {
      Append(layer.parameters, "self_attn",
             Attention(heads, {.qkv_bias = bias, .output_bias = bias}));
      layer.cache = KeyValueCache(heads);
    } else {
      Append(layer.parameters, "mamba", MixerOf(mixer));
      layer.cache = StateOf(mixer);
    }
    Append(layer.parameters, part);
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size));
    return layer;
  });
}

}  // namespace fourpiles
