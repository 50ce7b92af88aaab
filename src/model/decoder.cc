#include "model/decoder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/part_flows.h"

namespace fourpiles {
namespace {

// layer_types, checked; empty where the config has none.
std::vector<std::string> GivenLayerTypes(Record& config, std::int64_t num_hidden_layers,
                                         std::span<const std::string_view> known) {
  std::vector<std::string> types = config.Texts("layer_types");
  if (types.empty()) {
    return types;
  }
  if (std::ssize(types) != num_hidden_layers) {
    config.Refuse("layer_types",
                  {.found = fmt::format("{} layers", types.size()),
                   .expected = fmt::format("expected num_hidden_layers, {}", num_hidden_layers)});
    return {};
  }
  for (const std::string& type : types) {
    if (std::ranges::find(known, type) == known.end()) {
      config.Refuse("layer_types",
                    {.found = fmt::format("\"{}\"", type),
                     .expected = fmt::format("expected {}", fmt::join(known, ", "))});
      return {};
    }
  }
  return types;
}

}  // namespace

void RequireDivisor(Record& config, std::string_view key, std::int64_t part, const Whole& whole,
                    std::string_view hint) {
  if (whole.value % part != 0) {
    config.Refuse(key,
                  {.found = std::to_string(part),
                   .expected = fmt::format("expected a divisor of {}, {}", whole.key, whole.value),
                   .hint = std::string(hint)});
  }
}

std::int64_t CountOrDefault(Record& config, std::string_view key,
                            std::optional<std::int64_t> otherwise, Range range) {
  return otherwise ? config.CountOr(key, *otherwise, range) : config.Count(key, range);
}

Heads ReadHeads(Record& config, const FamilyDefaults& defaults) {
  Heads heads = {
      .hidden_size = config.Count("hidden_size"),
      .query = CountOrDefault(config, "num_attention_heads", defaults.num_attention_heads)};
  heads.key_value =
      config.CountOr("num_key_value_heads", defaults.num_key_value_heads.value_or(heads.query));
  RequireDivisor(config, "num_key_value_heads", heads.key_value,
                 {"num_attention_heads", heads.query});
  if (config.Has("head_dim") || defaults.head_dim) {
    heads.head_dim = CountOrDefault(config, "head_dim", defaults.head_dim);
    return heads;
  }
  RequireDivisor(config, "num_attention_heads", heads.query, {"hidden_size", heads.hidden_size},
                 "or give head_dim");
  heads.head_dim = heads.hidden_size / heads.query;
  return heads;
}

Decoder ReadDecoder(Record& config, const FamilyDefaults& defaults) {
  return {.heads = ReadHeads(config, defaults),
          .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
          .vocab_size = CountOrDefault(config, "vocab_size", defaults.vocab_size),
          .tie_word_embeddings = config.Flag("tie_word_embeddings", defaults.tie_word_embeddings)};
}

bool EveryOtherLayer(std::int64_t layer) {
  return layer % 2 == 0;
}

bool AllButEveryFourth(std::int64_t layer) {
  return (layer + 1) % 4 != 0;
}

std::vector<std::string> ReadLayerTypes(
    Record& config, std::int64_t num_hidden_layers,
    const std::function<std::string(std::int64_t layer)>& kind_of,
    std::span<const std::string_view> known) {
  std::vector<std::string> types = GivenLayerTypes(config, num_hidden_layers, known);
  for (std::int64_t layer = std::ssize(types); layer < num_hidden_layers; ++layer) {
    types.push_back(kind_of(layer));
  }
  return types;
}

Windows ReadWindows(Record& config, std::int64_t num_hidden_layers, const LayerRule& slides,
                    const WindowKey& length) {
  const std::vector<std::string> types =
      ReadLayerTypes(config, num_hidden_layers, [&slides](std::int64_t layer) {
        return slides(layer) ? "sliding_attention" : "full_attention";
      });
  std::optional<std::int64_t> window;  // read once, and only where a layer has one
  Windows windows;
  for (const std::string& type : types) {
    const bool windowed = type == "sliding_attention" || type == "chunked_attention";
    if (windowed && !window) {
      window =
          CountOrDefault(config, length.key, length.otherwise, {-kLargestCount, kLargestCount});
      if (*window < 1) {
        config.Refuse(length.key, {.found = fmt::format("a window of {} tokens", *window),
                                   .expected = "expected at least 1",
                                   .hint = "null, or the key left out, is for no window"});
      }
    }
    windows.push_back(windowed ? window : std::nullopt);
  }
  return windows;
}

Windows WindowsWhereGiven(Record& config, std::int64_t num_hidden_layers) {
  const bool given = config.Has("sliding_window");
  return ReadWindows(config, num_hidden_layers, [given](std::int64_t) { return given; });
}

std::vector<Operator> WithLoss(Flow& flow, Value x, const Decoder& decoder, const Frame& frame) {
  const bool tied = decoder.tie_word_embeddings;
  flow.Loss("", x, tied ? ParameterUse{.block = 0, .parameter = 0} : flow.Use("weight"),
            decoder.vocab_size, true);
  std::vector<Operator> operators = flow.Take();
  if (!tied && frame.head_bias) {
    operators.back().parameters.push_back(flow.Use("bias"));
  }
  operators.back().softcap = frame.softcap;
  operators.back().scaled = frame.scaled_logits;
  return operators;
}

namespace {

void DescribeEmbedding(Block& block, const Frame& frame) {
  Flow flow(block.parameters);
  const Value words = flow.Embedding("");
  if (frame.scaled_embedding) {
    flow.Scale(words);
  }
  block.operators = flow.Take();
}

}  // namespace

Network DecoderNetwork(const Decoder& decoder, const Frame& frame,
                       const std::function<Layer(std::int64_t number)>& layer) {
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  Network network;
  AddBlock(network, frame.embedding, Embedding(decoder.vocab_size, hidden_size));
  DescribeEmbedding(network.blocks.back(), frame);
  AddLayers(network, frame.layers, decoder.num_hidden_layers, layer);
  AddBlock(network, frame.norm, Norm(hidden_size, frame.norm_bias));
  Flow norm(network.blocks.back().parameters);
  const Value normed = norm.Norm("", Flow::Input(), {.form = frame.norm_form});
  if (decoder.tie_word_embeddings) {
    network.blocks.back().operators = WithLoss(norm, normed, decoder, frame);
  } else {
    network.blocks.back().operators = norm.Take();
    AddBlock(network, frame.head,
             Linear({decoder.vocab_size, hidden_size}, Divide::kOutputs, frame.head_bias));
    Flow head(network.blocks.back().parameters);
    network.blocks.back().operators = WithLoss(head, Flow::Input(), decoder, frame);
  }
  network.batch = TokensAndLabels();
  network.num_hidden_layers = decoder.num_hidden_layers;
  network.hidden_size = hidden_size;
  network.vocab_size = decoder.vocab_size;
  return network;
}

void LeaveOutPredictionLayers(Network& network, std::int64_t count) {
  if (count > 0) {
    network.left_out.push_back(
        fmt::format("{} multi-token-prediction layer{}", count, count == 1 ? "" : "s"));
  }
}

}  // namespace fourpiles
