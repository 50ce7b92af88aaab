// Decoders whose layers mix attention and state-space parts, one in place of the other or, in
// Falcon-H1, side by side.
//
// Names and shapes: huggingface/transformers, models/{falcon_h1,bamba,jamba,lfm2}.

#include <algorithm>
#include <array>
#include <utility>

#include "model/architectures.h"
#include "model/llama.h"
#include "model/state_space.h"

namespace fourpiles {
namespace {

constexpr std::array<std::string_view, 2> kNorms = {"input_layernorm", "pre_ff_layernorm"};

Frame FrameOfHybrid() {
  return {.norm = "model.final_layernorm"};
}

}  // namespace

// Every layer has both: keys and values, and a state (Zuo et al. 2025, "Falcon-H1").
Network BuildFalconH1(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const bool bias = config.Flag("attention_bias", false);
  Mamba2 mixer = ReadMamba2(config, heads.hidden_size);
  mixer.out_bias = config.Flag("projectors_bias", false);
  mixer.norm = config.Flag("mamba_rms_norm", false);
  Layer layer = {.cache = Joined(KeyValueCache(heads), StateOf(mixer))};
  Append(layer.parameters, "self_attn", Attention(heads, {.qkv_bias = bias, .output_bias = bias}));
  Append(layer.parameters, "mamba", MixerOf(mixer));
  Append(layer.parameters, "feed_forward",
         GatedMlp(heads.hidden_size, config.Count("intermediate_size"),
                  {.bias = config.Flag("mlp_bias", false)}));
  Append(layer.parameters, Norms(kNorms, heads.hidden_size));
  return DecoderNetwork(decoder, FrameOfHybrid(), [&](std::int64_t) { return layer; });
}

// Mamba-2, and attention in the layers that attn_layer_indices lists.
Network BuildBamba(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const Mamba2 mixer = ReadMamba2(config, heads.hidden_size);
  const std::vector<std::int64_t> attention =
      config.Counts("attn_layer_indices", {0, kLayers.most});
  const std::int64_t width = config.Count("intermediate_size");
  return DecoderNetwork(decoder, FrameOfHybrid(), [&](std::int64_t number) {
    Layer layer;
    if (std::ranges::find(attention, number) != attention.end()) {
      Append(layer.parameters, "self_attn", Attention(heads));
      layer.cache = KeyValueCache(heads);
    } else {
      Append(layer.parameters, "mamba", MixerOf(mixer));
      layer.cache = StateOf(mixer);
    }
    Append(layer.parameters, "feed_forward", GatedMlp(heads.hidden_size, width));
    Append(layer.parameters, Norms(kNorms, heads.hidden_size));
    return layer;
  });
}

namespace {

// Every so many layers, from the offset on: the keys of Jamba.
LayerRule ReadPeriod(Record& config, const std::string& kind, std::int64_t period,
                     std::int64_t offset) {
  const std::int64_t every = config.CountOr(kind + "_layer_period", period, kLayers);
  const std::int64_t first = config.CountOr(kind + "_layer_offset", offset, {0, every - 1});
  return [every, first](std::int64_t layer) { return layer % every == first; };
}

Parameters JambaExperts(const Parameters& one, std::int64_t experts, std::int64_t hidden_size) {
  Parameters moe;
  Append(moe, "router", Linear({experts, hidden_size}, Divide::kNot));
  Append(moe, "experts", Experts(one, experts));
  return moe;
}

}  // namespace

// Mamba, every eighth layer attention, and experts in every other one (Lieber et al. 2024,
// "Jamba").
Network BuildJamba(Record& config) {
  constexpr std::int64_t kStateSize = 16;  // configuration_jamba.py
  constexpr std::int64_t kExpertCount = 16;
  const Decoder decoder = ReadDecoder(config, kJambaDefaults);
  const Heads& heads = decoder.heads;
  const std::int64_t hidden_size = heads.hidden_size;
  const Mamba mixer = {
      .hidden_size = hidden_size,
      .width = hidden_size * config.CountOr("mamba_expand", kMambaExpand, kFactors),
      .state_size = config.CountOr("mamba_d_state", kStateSize, kFactors),
      .rank = ReadRank(config, "mamba_dt_rank", hidden_size),
      .kernel = config.CountOr("mamba_d_conv", kMambaKernel, kFactors),
      .projection_bias = config.Flag("mamba_proj_bias", false),
      .convolution_bias = config.Flag("mamba_conv_bias", true),
      .norms = true};
  const LayerRule attends = ReadPeriod(config, "attn", 8, 4);
  const LayerRule routes = ReadPeriod(config, "expert", 2, 1);
  const std::int64_t experts = config.CountOr("num_experts", kExpertCount, kExperts);
  const Parameters mlp = GatedMlp(hidden_size, config.Count("intermediate_size"));
  const Parameters moe = JambaExperts(mlp, experts, hidden_size);
  return DecoderNetwork(decoder, FrameOfHybrid(), [&](std::int64_t number) {
    const bool attention = attends(number);
    Layer layer = {.cache = attention ? KeyValueCache(heads) : StateOf(mixer)};
    Append(layer.parameters, attention ? "self_attn" : "mamba",
           attention ? Attention(heads) : MixerOf(mixer));
    Append(layer.parameters, "feed_forward", experts > 1 && routes(number) ? moe : mlp);
    Append(layer.parameters, Norms(kNorms, hidden_size));
    return layer;
  });
}

namespace {

// A gate before and one after a short convolution.
struct ShortConvolution {
  std::int64_t hidden_size = 1;
  std::int64_t kernel = 1;
  bool bias = false;
};

Layer LayerOf(const ShortConvolution& sizes) {
  const std::int64_t width = sizes.hidden_size;
  Layer layer = {.cache = Cache{.heads = width,
                                .convolution_elements_per_request = width * (sizes.kernel - 1)}};
  Append(layer.parameters, "conv.conv", Tensor("weight", {width, 1, sizes.kernel}, 0));
  if (sizes.bias) {
    Append(layer.parameters, "conv.conv", Tensor("bias", {width}, 0));
  }
  Append(layer.parameters, "conv.in_proj",
         Linear({3 * width, width}, Divide::kOutputs, sizes.bias));
  Append(layer.parameters, "conv.out_proj", Linear({width, width}, Divide::kInputs, sizes.bias));
  return layer;
}

// Two thirds of the width that is given, times a factor, in whole multiples; or as it is given.
std::int64_t ReadLfm2Width(Record& config) {
  constexpr double kLargestFactor = 64;
  const std::int64_t given =
      config.Count(config.Has("block_ff_dim") ? "block_ff_dim" : "intermediate_size");
  const double factor =
      config.OptionalNumber("block_ffn_dim_multiplier", {0, kLargestFactor}).value_or(1);
  const std::int64_t multiple = config.CountOr("block_multiple_of", 256, kFactors);
  if (!config.Flag("block_auto_adjust_ff_dim", true)) {
    return given;
  }
  const std::int64_t two_thirds = 2 * given / 3;
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
  return (width + multiple - 1) / multiple * multiple;
}

// By layer_types, else by the list of those that attend.
std::vector<std::string> ReadLfm2Types(Record& config, std::int64_t num_hidden_layers) {
  static constexpr std::array<std::string_view, 2> kKinds = {"full_attention", "conv"};
  const std::vector<std::int64_t> full = config.Counts("full_attn_idxs", {0, kLayers.most});
  const bool all = !config.Has("full_attn_idxs");
  return ReadLayerTypes(
      config, num_hidden_layers,
      [&](std::int64_t layer) {
        const bool attends = all || std::ranges::find(full, layer) != full.end();
        return attends ? "full_attention" : "conv";
      },
      kKinds);
}

}  // namespace

// LFM2: short convolutions, which keep two inputs, and some layers of attention.
Network BuildLfm2(Record& config) {
  static constexpr std::array<std::string_view, 2> kLfm2Norms = {"operator_norm", "ffn_norm"};
  static constexpr GatedMlpStyle kMlp = {.gate = "w1", .up = "w3", .down = "w2"};
  Decoder decoder = ReadDecoder(config, kLfm2Defaults);
  decoder.tie_word_embeddings = config.Flag("tie_embedding", decoder.tie_word_embeddings);
  const Heads& heads = decoder.heads;
  const Layer convolution = LayerOf({.hidden_size = heads.hidden_size,
                                     .kernel = config.CountOr("conv_L_cache", 3, kFactors),
                                     .bias = config.Flag("conv_bias", false)});
  const std::vector<std::string> types = ReadLfm2Types(config, decoder.num_hidden_layers);
  const Parameters mlp = GatedMlp(heads.hidden_size, ReadLfm2Width(config), kMlp);
  return DecoderNetwork(decoder, {.norm = "model.embedding_norm"}, [&](std::int64_t number) {
    Layer layer = convolution;
    if (types[static_cast<std::size_t>(number)] == "full_attention") {
      layer = {.cache = KeyValueCache(heads)};
      Append(layer.parameters, "self_attn", Attention(heads, {.output = "out_proj"}));
      Append(layer.parameters, "self_attn.q_layernorm", Norm(heads.head_dim));
      Append(layer.parameters, "self_attn.k_layernorm", Norm(heads.head_dim));
    }
    Append(layer.parameters, "feed_forward", mlp);
    Append(layer.parameters, Norms(kLfm2Norms, heads.hidden_size));
    return layer;
  });
}

}  // namespace fourpiles
