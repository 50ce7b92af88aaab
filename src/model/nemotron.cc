// NVIDIA's transformers: Nemotron-4 and Minitron, and what a search made of Llama, whose layers are
// of many sizes or lack a part.
//
// Names and shapes: huggingface/transformers, models/nemotron; nvidia/Llama-3_1-Nemotron-Ultra-253B
// and Llama-3_3-Nemotron-Super-49B, modeling_decilm.py.

#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"
#include "model/gpt.h"
#include "model/llama.h"

namespace fourpiles {

// Layer norms that add 1 to their weights, and a squared ReLU between two linear layers.
Network BuildNemotron(Record& config) {
  constexpr double kRotated = 0.5;  // configuration_nemotron.py
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const bool bias = config.Flag("attention_bias", false);
  const AttentionStyle style = {.qkv_bias = bias, .output_bias = bias};
  AttentionFlow flow = ReadAttentionFlow(config);
  flow.rotary->rotated = ReadRotated(config, "partial_rotary_factor", kRotated, heads.head_dim);
  const TwoParts parts = {.attention_norm = kNormsBefore[0],
                          .mlp_norm = kNormsBefore[1],
                          .attention = FlowOf("self_attn", heads, style, flow),
                          .mlp = FlowOfMlp("mlp", ReadActivation(config, "hidden_act", "relu2"),
                                           "up_proj", "down_proj")};
  const Parameters mlp = Mlp(heads.hidden_size, config.Count("intermediate_size"),
                             config.Flag("mlp_bias", false), "up_proj", "down_proj");
  return DecoderNetwork(decoder, {.norm_bias = true}, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(heads)};
    Append(layer.parameters, "self_attn", Attention(heads, style));
    Append(layer.parameters, "mlp", mlp);
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size, true));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
}

namespace {

// What block_configs says of one part of one layer.
struct SearchedPart {
  bool absent = false;
  bool linear = false;    // one linear layer in its place
  std::int64_t size = 1;  // key-value heads, or the width
};

SearchedPart ReadAttentionPart(Record& part, std::int64_t heads) {
  const bool linear = part.Flag("replace_with_linear", false);
  if (linear || part.Flag("no_op", false)) {
    return {.absent = !linear, .linear = linear};
  }
  const std::int64_t group = part.Count("n_heads_in_group", {1, heads});
  RequireDivisor(part, "n_heads_in_group", group, {"num_attention_heads", heads});
  return {.size = heads / group};
}

// The width is two thirds of so many times hidden_size, in whole 256s (modeling_decilm.py), or is
// given as it is.
SearchedPart ReadFeedForwardPart(Record& part, std::int64_t hidden_size) {
  constexpr std::int64_t kMultiple = 256;
  constexpr double kLargest = 1024;
  const bool linear = part.Flag("replace_with_linear", false);
  if (linear || part.Flag("no_op", false)) {
    return {.absent = !linear, .linear = linear};
  }
  if (!part.Has("ffn_mult")) {
    return {.size = part.Count("intermediate_size")};
  }
  const double times = part.OptionalNumber("ffn_mult", {0, kLargest}).value_or(0);
  const auto width = static_cast<std::int64_t>(2 * times * static_cast<double>(hidden_size) / 3);
  return {.size = (width + kMultiple - 1) / kMultiple * kMultiple};
}

struct SearchedLayer {
  SearchedPart attention = {};
  SearchedPart feed_forward = {};
};

// An absent object says what an empty one does, which lacks its sizes.
SearchedLayer ReadSearchedLayer(Record& block, const Heads& heads) {
  SearchedLayer layer;
  if (auto attention = block.Object("attention")) {
    layer.attention = ReadAttentionPart(*attention, heads.query);
    block.Include(*attention);
  }
  if (auto feed_forward = block.Object("ffn")) {
    layer.feed_forward = ReadFeedForwardPart(*feed_forward, heads.hidden_size);
    block.Include(*feed_forward);
  }
  return layer;
}

std::vector<SearchedLayer> ReadSearchedLayers(Record& config, const Heads& heads,
                                              std::int64_t num_hidden_layers) {
  std::vector<SearchedLayer> layers;
  for (Record& block : config.Objects("block_configs")) {
    layers.push_back(ReadSearchedLayer(block, heads));
    config.Include(block);
  }
  if (std::ssize(layers) != num_hidden_layers) {
    config.Refuse("block_configs",
                  {.found = fmt::format("{} layers", layers.size()),
                   .expected = fmt::format("expected num_hidden_layers, {}", num_hidden_layers)});
    layers.resize(static_cast<std::size_t>(num_hidden_layers));
  }
  return layers;
}

Layer LayerOf(const SearchedLayer& searched, Heads heads, bool bias) {
  const std::int64_t hidden_size = heads.hidden_size;
  const Parameters linear = Linear({hidden_size, hidden_size}, Divide::kOutputs);
  Layer layer;
  if (searched.attention.linear) {
    Append(layer.parameters, "self_attn.linear_attn", linear);
  } else if (!searched.attention.absent) {
    heads.key_value = searched.attention.size;
    Append(layer.parameters, "self_attn",
           Attention(heads, {.qkv_bias = bias, .output_bias = bias}));
    layer.cache = KeyValueCache(heads);
  }
  if (searched.feed_forward.linear) {
    Append(layer.parameters, "mlp.linear_mlp", linear);
  } else if (!searched.feed_forward.absent) {
    Append(layer.parameters, "mlp", GatedMlp(hidden_size, searched.feed_forward.size));
  }
  if (!searched.attention.absent) {
    Append(layer.parameters, kNormsBefore[0], Norm(hidden_size));
  }
  if (!searched.feed_forward.absent) {
    Append(layer.parameters, kNormsBefore[1], Norm(hidden_size));
  }
  return layer;
}

}  // namespace

Network BuildNemotronNas(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const bool bias = config.Flag("attention_bias", false);
  const std::vector<SearchedLayer> layers =
      ReadSearchedLayers(config, decoder.heads, decoder.num_hidden_layers);
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    return LayerOf(layers[static_cast<std::size_t>(number)], decoder.heads, bias);
  });
}

}  // namespace fourpiles
