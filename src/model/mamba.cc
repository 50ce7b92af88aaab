// Mamba and Mamba-2 alone, without attention: a norm and a state-space mixer in every layer.
//
// Names and shapes: huggingface/transformers, models/{mamba,falcon_mamba,mamba2}.

#include "model/architectures.h"
#include "model/decoder.h"
#include "model/state_space.h"

namespace fourpiles {
namespace {

Network MixerNetwork(Record& config, std::int64_t hidden_size, bool tied, const Layer& mixer) {
  const Decoder decoder = {.heads = {.hidden_size = hidden_size},
                           .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
                           .vocab_size = config.Count("vocab_size"),
                           .tie_word_embeddings = config.Flag("tie_word_embeddings", tied)};
  const Frame frame = {.embedding = "backbone.embeddings",
                       .layers = "backbone.layers.{}",
                       .norm = "backbone.norm_f"};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = mixer.cache};
    Append(layer.parameters, "norm", Norm(hidden_size));
    Append(layer.parameters, "mixer", mixer.parameters);
    return layer;
  });
}

}  // namespace

// Falcon-Mamba norms step sizes, B and C as well, without weights.
Network BuildMamba(Record& config) {
  constexpr std::int64_t kStateSize = 16;  // configuration_mamba.py
  const std::int64_t hidden_size = config.Count("hidden_size");
  const Mamba sizes = {
      .hidden_size = hidden_size,
      .width = config.CountOr("intermediate_size",
                              hidden_size * config.CountOr("expand", kMambaExpand, kFactors)),
      .state_size = config.CountOr("state_size", kStateSize, kFactors),
      .rank = ReadRank(config, "time_step_rank", hidden_size),
      .kernel = config.CountOr("conv_kernel", kMambaKernel, kFactors),
      .projection_bias = config.Flag("use_bias", false),
      .convolution_bias = config.Flag("use_conv_bias", true)};
  return MixerNetwork(config, hidden_size, kTied,
                      {.parameters = MixerOf(sizes), .cache = StateOf(sizes)});
}

Network BuildMamba2(Record& config) {
  const std::int64_t hidden_size = config.Count("hidden_size");
  const bool bias = config.Flag("use_bias", false);
  const Mamba2 sizes = {.hidden_size = hidden_size,
                        .heads = config.Count("num_heads", kFactors),
                        .head_dim = config.Count("head_dim", kFactors),
                        .groups = config.Count("n_groups", kFactors),
                        .state_size = config.Count("state_size", kFactors),
                        .kernel = config.CountOr("conv_kernel", kMambaKernel, kFactors),
                        .in_bias = bias,
                        .out_bias = bias,
                        .convolution_bias = config.Flag("use_conv_bias", true)};
  return MixerNetwork(config, hidden_size, kUntied,
                      {.parameters = MixerOf(sizes), .cache = StateOf(sizes)});
}

}  // namespace fourpiles
