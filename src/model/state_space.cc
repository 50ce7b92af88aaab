// Names and shapes: state-spaces/mamba, mamba_ssm/modules/mamba_simple.py and mamba2.py;
// huggingface/transformers, models/{mamba,mamba2,jamba,bamba}.

#include "model/state_space.h"

#include "model/decoder.h"

namespace fourpiles {
namespace {

// One filter a channel.
Parameters Convolution(std::int64_t channels, std::int64_t kernel, bool bias) {
  Parameters convolution = Tensor("weight", {channels, 1, kernel}, 0);
  if (bias) {
    Append(convolution, Tensor("bias", {channels}, 0));
  }
  return convolution;
}

}  // namespace

Parameters MixerOf(const Mamba& sizes) {
  const auto [hidden, width, state, rank, kernel, bias, convolution_bias, norms] = sizes;
  Parameters mixer;
  Append(mixer, "in_proj", Linear({2 * width, hidden}, Divide::kOutputs, bias));
  Append(mixer, "conv1d", Convolution(width, kernel, convolution_bias));
  Append(mixer, "x_proj", Linear({rank + 2 * state, width}, Divide::kInputs));
  Append(mixer, "dt_proj", Linear({width, rank}, Divide::kOutputs, true));
  Append(mixer, Tensor("A_log", {width, state}, 0));
  Append(mixer, Tensor("D", {width}, 0));
  if (norms) {
    Append(mixer, "dt_layernorm", Norm(rank));
    Append(mixer, "b_layernorm", Norm(state));
    Append(mixer, "c_layernorm", Norm(state));
  }
  Append(mixer, "out_proj", Linear({hidden, width}, Divide::kInputs, bias));
  return mixer;
}

Cache StateOf(const Mamba& sizes) {
  return {.heads = sizes.width,
          .convolution_elements_per_request = sizes.width * (sizes.kernel - 1),
          .recurrent_elements_per_request = sizes.width * sizes.state_size};
}

// in_proj makes a gate, what the convolution takes, and a step size a head.
Parameters MixerOf(const Mamba2& sizes) {
  Parameters mixer;
  Append(mixer, "in_proj",
         Linear({sizes.Width() + sizes.ConvolutionSize() + sizes.heads, sizes.hidden_size},
                Divide::kOutputs, sizes.in_bias));
  Append(mixer, "conv1d",
         Convolution(sizes.ConvolutionSize(), sizes.kernel, sizes.convolution_bias));
  for (const std::string_view name : {"dt_bias", "A_log", "D"}) {
    Append(mixer, Tensor(name, {sizes.heads}, 0));
  }
  if (sizes.norm) {
    Append(mixer, "norm", Tensor("weight", {sizes.Width()}, 0));
  }
  Append(mixer, "out_proj",
         Linear({sizes.hidden_size, sizes.Width()}, Divide::kInputs, sizes.out_bias));
  return mixer;
}

Cache StateOf(const Mamba2& sizes) {
  return {.heads = sizes.groups,
          .convolution_elements_per_request = sizes.ConvolutionSize() * (sizes.kernel - 1),
          .recurrent_elements_per_request = sizes.Width() * sizes.state_size};
}

Cache Joined(const Cache& attention, const Cache& state) {
  Cache joined = attention;
  joined.convolution_elements_per_request = state.convolution_elements_per_request;
  joined.recurrent_elements_per_request = state.recurrent_elements_per_request;
  return joined;
}

Mamba2 ReadMamba2(Record& config, std::int64_t hidden_size) {
  const std::int64_t heads = config.Count("mamba_n_heads", kFactors);
  const std::int64_t expanded =
      hidden_size * config.CountOr("mamba_expand", kMambaExpand, kFactors);
  const std::int64_t width = config.CountOr("mamba_d_ssm", expanded);
  RequireDivisor(config, "mamba_n_heads", heads, {"the width of a mixer", width});
  const bool bias = config.Flag("mamba_proj_bias", false);
  return {.hidden_size = hidden_size,
          .heads = heads,
          .head_dim = width / heads,
          .groups = config.CountOr("mamba_n_groups", 1, kFactors),
          .state_size = config.Count("mamba_d_state", kFactors),
          .kernel = config.CountOr("mamba_d_conv", kMambaKernel, kFactors),
          .in_bias = bias,
          .out_bias = bias,
          .convolution_bias = config.Flag("mamba_conv_bias", true)};
}

std::int64_t ReadRank(Record& config, std::string_view key, std::int64_t hidden_size) {
  constexpr std::int64_t kWidthOfOne = 16;  // mamba_simple.py, dt_rank
  const std::int64_t automatic = (hidden_size + kWidthOfOne - 1) / kWidthOfOne;
  return config.IsText(key, "auto") ? automatic : config.CountOr(key, automatic);
}

}  // namespace fourpiles
