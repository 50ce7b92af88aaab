// Qwen3-Next and Qwen3.5: three layers of gated linear attention (Yang et al. 2024, "Gated Delta
// Networks"), whose memory of the past does not grow, then one layer of gated full attention.
//
// Names and shapes: huggingface/transformers, models/{qwen3_next,qwen3_5,qwen3_5_moe}.

#include <utility>

#include "model/architectures.h"
#include "model/mixture.h"

namespace fourpiles {
namespace {

struct LinearAttention {
  std::int64_t hidden_size = 1;
  std::int64_t key_heads = 1;
  std::int64_t value_heads = 1;
  std::int64_t key_head_dim = 1;
  std::int64_t value_head_dim = 1;
  std::int64_t kernel = 1;  // of the short convolution

  std::int64_t KeySize() const { return key_heads * key_head_dim; }
  std::int64_t ValueSize() const { return value_heads * value_head_dim; }
  std::int64_t ConvolutionSize() const { return 2 * KeySize() + ValueSize(); }
};

LinearAttention ReadLinearAttention(Record& config) {
  return {.hidden_size = config.Count("hidden_size"),
          .key_heads = config.Count("linear_num_key_heads", kFactors),
          .value_heads = config.Count("linear_num_value_heads", kFactors),
          .key_head_dim = config.Count("linear_key_head_dim", kFactors),
          .value_head_dim = config.Count("linear_value_head_dim", kFactors),
          .kernel = config.Count("linear_conv_kernel_dim", kFactors)};
}

// Queries, keys, values and the gate z, and the rates b and a: Qwen3-Next keeps four and two of
// them in one tensor each, Qwen3.5 three in one and the others apart.
enum class Projections { kNext, k35 };

Parameters InputProjections(const LinearAttention& sizes, Projections projections) {
  const auto to = [&sizes](std::int64_t out) {
    return Linear({out, sizes.hidden_size}, Divide::kOutputs);
  };
  Parameters parameters;
  if (projections == Projections::kNext) {
    Append(parameters, "in_proj_qkvz", to(sizes.ConvolutionSize() + sizes.ValueSize()));
    Append(parameters, "in_proj_ba", to(2 * sizes.value_heads));
  } else {
    Append(parameters, "in_proj_qkv", to(sizes.ConvolutionSize()));
    Append(parameters, "in_proj_z", to(sizes.ValueSize()));
    Append(parameters, "in_proj_b", to(sizes.value_heads));
    Append(parameters, "in_proj_a", to(sizes.value_heads));
  }
  return parameters;
}

Parameters LinearAttentionParameters(const LinearAttention& sizes, Projections projections) {
  Parameters attention = InputProjections(sizes, projections);
  Append(attention, "conv1d", Tensor("weight", {sizes.ConvolutionSize(), 1, sizes.kernel}, 0));
  Append(attention, Tensor("dt_bias", {sizes.value_heads}, 0));
  Append(attention, Tensor("A_log", {sizes.value_heads}, 0));
  Append(attention, "norm", Norm(sizes.value_head_dim));
  Append(attention, "out_proj", Linear({sizes.hidden_size, sizes.ValueSize()}, Divide::kInputs));
  return attention;
}

// The convolution looks back kernel - 1 inputs; the memory is a matrix of keys to values a head.
Cache StateOf(const LinearAttention& sizes) {
  return {.heads = sizes.key_heads,
          .convolution_elements_per_request = sizes.ConvolutionSize() * (sizes.kernel - 1),
          .recurrent_elements_per_request = sizes.ValueSize() * sizes.key_head_dim};
}

Network Hybrid(Record& config, Projections projections,
               const std::function<FeedForward(const Decoder&)>& feed_forward_of) {
  const Decoder decoder = ReadDecoder(config);
  const LinearAttention linear = ReadLinearAttention(config);
  const bool bias = config.Flag("attention_bias", false);
  const AttentionStyle full = {.qkv_bias = bias,
                               .output_bias = bias,
                               .head_norm = HeadNorm::kEachHead,
                               .gated = config.Flag("attn_output_gate", true)};
  const std::int64_t interval = config.CountOr("full_attention_interval", 4, kLayers);
  const std::vector<std::string> types =
      ReadLayerTypes(config, decoder.num_hidden_layers, [interval](std::int64_t layer) {
        return (layer + 1) % interval == 0 ? "full_attention" : "linear_attention";
      });
  const FeedForward feed_forward = feed_forward_of(decoder);
  Network network = DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    if (types[static_cast<std::size_t>(number)] == "linear_attention") {
      Append(layer.parameters, "linear_attn", LinearAttentionParameters(linear, projections));
      layer.cache = StateOf(linear);
    } else {
      Append(layer.parameters, "self_attn", Attention(decoder.heads, full));
      layer.cache = KeyValueCache(decoder.heads);
    }
    Append(layer.parameters, feed_forward(number).parameters);
    Append(layer.parameters, Norms(kNormsBefore, decoder.heads.hidden_size));
    return layer;
  });
  LeaveOutPredictionLayers(network, config.CountOr("mtp_num_hidden_layers", 0, {0, kLayers.most}));
  return network;
}

}  // namespace

Network BuildQwen3Next(Record& config) {
  return Hybrid(config, Projections::kNext, [&config](const Decoder& decoder) {
    return QwenExperts(config, decoder, ExpertStorage::kSeparate);
  });
}

Network BuildQwen35(Record& config) {
  return Hybrid(config, Projections::k35,
                [&config](const Decoder& decoder) { return DenseMlp(config, decoder); });
}

Network BuildQwen35Moe(Record& config) {
  return Hybrid(config, Projections::k35, [&config](const Decoder& decoder) {
    return QwenExperts(config, decoder, ExpertStorage::kStackedOut);
  });
}

}  // namespace fourpiles
