// Kimi Linear (Kimi Team 2025): three layers of delta attention, whose memory of the past decays
// channel by channel, then one of latent attention without positions; experts beside a shared one.
//
// Names and shapes: moonshotai/Kimi-Linear-48B-A3B-Instruct, modeling_kimi.py and
// model.safetensors.index.json.

#include <algorithm>
#include <utility>

#include "model/architectures.h"
#include "model/deepseek.h"
#include "model/llama.h"

namespace fourpiles {
namespace {

struct DeltaAttention {
  std::int64_t hidden_size = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t kernel = 1;
  std::vector<std::int64_t> attending = {};  // layers of latent attention, counted from 1

  std::int64_t Width() const { return heads * head_dim; }
};

DeltaAttention ReadDeltaAttention(Record& config) {
  DeltaAttention sizes = {.hidden_size = config.Count("hidden_size")};
  std::optional<Record> linear = config.Object("linear_attn_config");
  if (!linear) {
    config.Refuse("linear_attn_config", {.found = "nothing", .expected = "expected an object"});
    return sizes;
  }
  sizes.heads = linear->Count("num_heads", kFactors);
  sizes.head_dim = linear->Count("head_dim", kFactors);
  sizes.kernel = linear->Count("short_conv_kernel_size", kFactors);
  sizes.attending = linear->Counts("full_attn_layers", {1, kLayers.most});
  config.Include(*linear);
  return sizes;
}

Parameters InFloat32(Parameters part) {
  for (Parameter& parameter : part) {
    parameter.float32 = true;
  }
  return part;
}

// Rates of forgetting (f) and the gate of what comes out (g) are made through one head's width.
Layer LayerOf(const DeltaAttention& sizes) {
  const LinearSize in = {sizes.Width(), sizes.hidden_size};
  Layer layer = {
      .cache = Cache{.heads = sizes.heads,
                     .convolution_elements_per_request = 3 * sizes.Width() * (sizes.kernel - 1),
                     .recurrent_elements_per_request = sizes.Width() * sizes.head_dim}};
  Parameters attention;
  for (const std::string_view name : {"q_proj", "k_proj", "v_proj"}) {
    Append(attention, name, Linear(in, Divide::kOutputs));
  }
  for (const std::string_view name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    Append(attention, name, Tensor("weight", {sizes.Width(), 1, sizes.kernel}, 0));
  }
  Append(attention, InFloat32(Tensor("A_log", {1, 1, sizes.heads, 1}, 2)));
  Append(attention, InFloat32(Tensor("dt_bias", {sizes.Width()}, 0)));
  for (const std::string_view name : {"f", "g"}) {
    Append(attention, std::string(name) + "_a_proj",
           Linear({sizes.head_dim, sizes.hidden_size}, Divide::kNot));
    Append(attention, std::string(name) + "_b_proj",
           Linear({sizes.Width(), sizes.head_dim}, Divide::kOutputs));
  }
  Append(attention, "b_proj", Linear({sizes.heads, sizes.hidden_size}, Divide::kOutputs));
  Append(attention, "o_norm", Norm(sizes.head_dim));
  Append(attention, "o_proj", Linear({sizes.hidden_size, sizes.Width()}, Divide::kInputs));
  Append(layer.parameters, "self_attn", std::move(attention));
  return layer;
}

// The first layers are dense, then every moe_layer_freq-th has experts.
FeedForward ReadFeedForward(Record& config, const Decoder& decoder) {
  static constexpr GatedMlpStyle kExpert = {.gate = "w1", .up = "w3", .down = "w2"};
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t experts = config.Count("num_experts", kExperts);
  const std::int64_t width = config.Count("moe_intermediate_size");
  const std::int64_t shared = config.CountOr("num_shared_experts", 0, {0, kExperts.most});
  const std::int64_t dense_layers = config.CountOr("first_k_dense_replace", 0, {0, kLayers.most});
  const std::int64_t step = config.CountOr("moe_layer_freq", 1, kLayers);
  Parameters moe;
  Append(moe, "gate", Linear({experts, hidden_size}, Divide::kNot));
  Append(moe, "gate", RouterCorrection("e_score_correction_bias", experts));
  Append(moe, "experts", Experts(GatedMlp(hidden_size, width, kExpert), experts));
  if (shared > 0) {
    Append(moe, "shared_experts", GatedMlp(hidden_size, shared * width));
  }
  FeedForwardPart routed;
  Append(routed.parameters, "block_sparse_moe", std::move(moe));
  const FeedForward mlp = dense_layers > 0 || step > 1 ? DenseMlp(config, decoder) : FeedForward();
  return [=](std::int64_t layer) {
    return layer >= dense_layers && layer % step == 0 ? routed : mlp(layer);
  };
}

// Kimi K3 has the same model_type and more: experts in a narrower space, residuals across layers.
void RefuseKimiK3(Record& config) {
  for (const std::string_view key : {"routed_expert_hidden_size", "attn_res_block_size"}) {
    if (config.Has(key)) {
      config.Refuse(key, {.found = "a Kimi K3", .expected = "expected a Kimi Linear"});
    }
  }
}

}  // namespace

Network BuildKimiLinear(Record& config) {
  RefuseKimiK3(config);
  const LatentAttention latent = ReadLatentAttention(config);
  const DeltaAttention delta = ReadDeltaAttention(config);
  const Layer delta_layer = LayerOf(delta);
  const Decoder decoder = {.heads = {.hidden_size = latent.hidden_size},
                           .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
                           .vocab_size = config.Count("vocab_size"),
                           .tie_word_embeddings = config.Flag("tie_word_embeddings", kUntied)};
  const FeedForward feed_forward = ReadFeedForward(config, decoder);
  Network network = DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer = delta_layer;
    if (std::ranges::find(delta.attending, number + 1) != delta.attending.end()) {
      layer = {.cache = CacheOf(latent)};
      Append(layer.parameters, "self_attn", Attention(latent));
    }
    Append(layer.parameters, feed_forward(number).parameters);
    Append(layer.parameters, Norms(kNormsBefore, latent.hidden_size));
    return layer;
  });
  LeaveOutPredictionLayers(network,
                           config.CountOr("num_nextn_predict_layers", 0, {0, kLayers.most}));
  return network;
}

}  // namespace fourpiles
