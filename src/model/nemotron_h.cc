// Nemotron-H: each layer is one thing, a state-space part (Dao and Gu 2024, "Mamba-2"), attention,
// a feed-forward part or experts, as a letter of hybrid_override_pattern says.
//
// Names and shapes: nvidia/Nemotron-H-8B-Base-8K and NVIDIA-Nemotron-3-Nano-30B-A3B-BF16,
// modeling_nemotron_h.py.

#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"
#include "model/decoder.h"

namespace fourpiles {
namespace {

struct StateSpace {
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t groups = 1;
  std::int64_t state_size = 1;
  std::int64_t kernel = 1;
  bool projection_bias = false;
  bool convolution_bias = true;

  std::int64_t Width() const { return heads * head_dim; }
  // The convolution runs over the inputs and the B and C of every group.
  std::int64_t ConvolutionSize() const { return Width() + 2 * groups * state_size; }
};

StateSpace ReadStateSpace(Record& config) {
  return {.heads = config.Count("mamba_num_heads", kFactors),
          .head_dim = config.Count("mamba_head_dim", kFactors),
          .groups = config.Count("n_groups", kFactors),
          .state_size = config.Count("ssm_state_size", kFactors),
          .kernel = config.Count("conv_kernel", kFactors),
          .projection_bias = config.Flag("mamba_proj_bias", config.Flag("use_bias", false)),
          .convolution_bias = config.Flag("use_conv_bias", true)};
}

// in_proj makes a gate, what the convolution takes, and a step size a head.
Layer StateSpaceLayer(const StateSpace& sizes, std::int64_t hidden_size) {
  Layer layer;
  Parameters& mixer = layer.parameters;
  Append(mixer, "in_proj",
         Linear({sizes.Width() + sizes.ConvolutionSize() + sizes.heads, hidden_size},
                Divide::kOutputs, sizes.projection_bias));
  Append(mixer, "conv1d", Tensor("weight", {sizes.ConvolutionSize(), 1, sizes.kernel}, 0));
  if (sizes.convolution_bias) {
    Append(mixer, "conv1d", Tensor("bias", {sizes.ConvolutionSize()}, 0));
  }
  for (const std::string_view name : {"dt_bias", "A_log", "D"}) {
    Append(mixer, Tensor(name, {sizes.heads}, 0));
  }
  Append(mixer, "norm", Tensor("weight", {sizes.Width()}, 0));
  Append(mixer, "out_proj",
         Linear({hidden_size, sizes.Width()}, Divide::kInputs, sizes.projection_bias));
  layer.cache = {.heads = sizes.groups,
                 .convolution_elements_per_request = sizes.ConvolutionSize() * (sizes.kernel - 1),
                 .recurrent_elements_per_request = sizes.Width() * sizes.state_size};
  return layer;
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
  const Layer state_space = StateSpaceLayer(ReadStateSpace(config), hidden_size);
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
