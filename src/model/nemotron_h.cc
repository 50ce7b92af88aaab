// Nemotron-H: each layer is one thing, a state-space part (Dao and Gu 2024, "Mamba-2"), attention,
// a feed-forward part or experts, as a letter of hybrid_override_pattern says.
//
// Names and shapes: nvidia/Nemotron-H-8B-Base-8K and NVIDIA-Nemotron-3-Nano-30B-A3B-BF16,
// modeling_nemotron_h.py.

#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"
#include "model/decoder.h"
#include "model/state_space.h"

namespace fourpiles {
namespace {

Mamba2 ReadStateSpace(Record& config, std::int64_t hidden_size) {
  const bool bias = config.Flag("mamba_proj_bias", config.Flag("use_bias", false));
  return {.hidden_size = hidden_size,
          .heads = config.Count("mamba_num_heads", kFactors),
          .head_dim = config.Count("mamba_head_dim", kFactors),
          .groups = config.Count("n_groups", kFactors),
          .state_size = config.Count("ssm_state_size", kFactors),
          .kernel = config.Count("conv_kernel", kFactors),
          .in_bias = bias,
          .out_bias = bias,
          .convolution_bias = config.Flag("use_conv_bias", true)};
}

// Experts with two linear layers each; where moe_latent_size stands, in a narrower space.
Parameters ExpertLayer(Record& config, std::int64_t hidden_size) {
  const std::int64_t experts = config.Count("n_routed_experts", kExperts);
  const std::int64_t inner = config.Count("moe_intermediate_size");
  const std::optional<std::int64_t> latent = config.OptionalCount("moe_latent_size");
  Parameters moe;
  Append(moe, "gate", Linear({experts, hidden_size}, Divide::kNot));
  Append(moe, "gate", RouterCorrection("e_score_correction_bias", experts));
  Append(moe, "experts",
         Experts(Mlp(latent.value_or(hidden_size), inner, false, "up_proj", "down_proj"), experts));
  if (config.CountOr("n_shared_experts", 0, {0, kExperts.most}) > 0) {
    Append(moe, "shared_experts",
           Mlp(hidden_size, config.Count("moe_shared_expert_intermediate_size"), false, "up_proj",
               "down_proj"));
  }
  if (latent) {
    Append(moe, "fc1_latent_proj", Linear({*latent, hidden_size}, Divide::kNot));
    Append(moe, "fc2_latent_proj", Linear({hidden_size, *latent}, Divide::kNot));
  }
  return moe;
}

// One letter a layer: M state space, * attention, - feed-forward, E experts.
std::string ReadPattern(Record& config) {
  constexpr std::pair<std::string_view, char> kKinds[] = {
      {"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}};
  std::string pattern = config.TextOr("hybrid_override_pattern", "");
  for (const std::string& type : config.Texts("layers_block_type")) {
    for (const auto& [name, letter] : kKinds) {
      if (name == type) {
        pattern += letter;
      }
    }
  }
  const bool fits = !pattern.empty() && std::ssize(pattern) <= kLayers.most &&
                    pattern.find_first_not_of("M*-E") == std::string::npos;
  const auto layers = config.CountOr("num_hidden_layers", std::ssize(pattern), kLayers);
  if (!fits || layers != std::ssize(pattern)) {
    config.Refuse("hybrid_override_pattern",
                  {.found = fmt::format("\"{}\"", pattern.substr(0, 64)),
                   .expected = fmt::format("expected {} letters of M, *, - and E", layers)});
  }
  return pattern;
}

}  // namespace

Network BuildNemotronH(Record& config) {
  const std::string pattern = ReadPattern(config);
  const Decoder decoder = {.heads = ReadHeads(config),
                           .num_hidden_layers = std::ssize(pattern),
                           .vocab_size = config.Count("vocab_size"),
                           .tie_word_embeddings = config.Flag("tie_word_embeddings", kUntied)};
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const bool attention_bias = config.Flag("attention_bias", false);
  const bool has_experts = pattern.find('E') != std::string::npos;
  const Mamba2 sizes = ReadStateSpace(config, hidden_size);
  const Layer state_space = {.parameters = MixerOf(sizes), .cache = StateOf(sizes)};
  const Layer attention = {.parameters = Attention(decoder.heads, {.qkv_bias = attention_bias,
                                                                   .output_bias = attention_bias}),
                           .cache = KeyValueCache(decoder.heads)};
  const Layer mlp = {.parameters = Mlp(hidden_size, config.Count("intermediate_size"),
                                       config.Flag("mlp_bias", false), "up_proj", "down_proj")};
  const Layer experts = {.parameters =
                             has_experts ? ExpertLayer(config, hidden_size) : Parameters()};
  const Frame frame = {.embedding = "backbone.embeddings",
                       .layers = "backbone.layers.{}",
                       .norm = "backbone.norm_f"};
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t number) {
    const char letter = pattern[static_cast<std::size_t>(number)];
    const Layer& mixer = letter == 'M'   ? state_space
                         : letter == '*' ? attention
                         : letter == '-' ? mlp
                                         : experts;
    Layer layer = {.cache = mixer.cache};
    Append(layer.parameters, "norm", Norm(hidden_size));
    Append(layer.parameters, "mixer", mixer.parameters);
    return layer;
  });
  LeaveOutPredictionLayers(network,
                           config.CountOr("num_nextn_predict_layers", 0, {0, kLayers.most}));
  return network;
}

}  // namespace fourpiles
