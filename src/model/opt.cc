// OPT: learned positions, the first two of which stand for no position; and in the 350M model words
// narrower than the layers.
//
// Names and shapes: huggingface/transformers, src/transformers/models/opt/modeling_opt.py.

#include <array>
#include <utility>

#include "model/architectures.h"
#include "model/gpt.h"

namespace fourpiles {
namespace {

// Positions are counted over the attention mask, so every sample has its own
// (models/opt/modeling_opt.py, OPTLearnedPositionalEmbedding).
std::vector<Operator> OptPositions(const Parameters& parameters) {
  Flow flow(parameters);
  const Value words = Flow::Input();
  flow.Add(words, flow.TokenTypes(""));
  return flow.Take();
}

// Queries are scaled before the product with the keys (OPTAttention).
PartFlow OptAttention(const Heads& heads, const AttentionShape& style) {
  const AttentionShape shape = ShapeFor(heads, style);
  return [shape](Flow& flow, Value x) {
    const Value q = flow.Scale(flow.Linear("self_attn.q_proj", x));
    const Value k = flow.Linear("self_attn.k_proj", x);
    const Value v = flow.Linear("self_attn.v_proj", x);
    return flow.Linear("self_attn.out_proj", flow.Attention("self_attn", q, k, v, shape));
  };
}

struct OptSizes {
  std::int64_t word_size = 1;
  std::int64_t inner = 1;
  bool bias = true;
  bool norms_before = true;
};

void AddOptEmbeddings(Network& network, Record& config, const Decoder& decoder,
                      const OptSizes& sizes) {
  constexpr std::int64_t kPositionOffset = 2;
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  AddBlock(network, "model.decoder.embed_tokens", Embedding(decoder.vocab_size, sizes.word_size));
  Flow words(network.blocks.back().parameters);
  words.Embedding("");
  network.blocks.back().operators = words.Take();
  if (sizes.word_size != hidden_size) {
    AddBlock(network, "model.decoder.project_in",
             Linear({hidden_size, sizes.word_size}, Divide::kNot));
    Flow project(network.blocks.back().parameters);
    project.Linear("", Flow::Input());
    network.blocks.back().operators = project.Take();
  }
  AddBlock(
      network, "model.decoder.embed_positions",
      Tensor("weight", {config.Count("max_position_embeddings") + kPositionOffset, hidden_size}));
  network.blocks.back().operators = OptPositions(network.blocks.back().parameters);
}

// The last norm, the way back to the width of the words, and the loss, where the weights are tied
// in the last of these blocks.
void AddOptHead(Network& network, const Decoder& decoder, const OptSizes& sizes) {
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const bool projects = sizes.word_size != hidden_size;
  const bool tied = decoder.tie_word_embeddings;
  if (sizes.norms_before) {
    AddBlock(network, "model.decoder.final_layer_norm", Norm(hidden_size, true));
    Block& block = network.blocks.back();
    Flow flow(block.parameters);
    const Value x = flow.Norm("", Flow::Input());
    block.operators = tied && !projects ? WithLoss(flow, x, decoder, {}) : flow.Take();
  }
  if (projects) {
    AddBlock(network, "model.decoder.project_out",
             Linear({sizes.word_size, hidden_size}, Divide::kNot));
    Block& block = network.blocks.back();
    Flow flow(block.parameters);
    const Value x = flow.Linear("", Flow::Input());
    block.operators = tied ? WithLoss(flow, x, decoder, {}) : flow.Take();
  }
  if (!tied || (!sizes.norms_before && !projects)) {
    AddBlock(network, "lm_head",
             tied ? Parameters() : Linear({decoder.vocab_size, sizes.word_size}, Divide::kOutputs));
    Block& block = network.blocks.back();
    Flow flow(block.parameters);
    block.operators = WithLoss(flow, Flow::Input(), decoder, {});
  }
}

}  // namespace

Network BuildOpt(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"self_attn_layer_norm",
                                                             "final_layer_norm"};
  const Decoder decoder = ReadMultiHeadDecoder(config, kTied);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const OptSizes sizes = {.word_size = config.CountOr("word_embed_proj_dim", hidden_size),
                          .inner = config.Count("ffn_dim"),
                          .bias = config.Flag("enable_bias", true),
                          .norms_before = config.Flag("do_layer_norm_before", true)};
  const AttentionShape shape = {.float32_softmax = true,
                                .dropout = ReadDropout(config, "attention_dropout", 0)};
  const bool dropout = ReadDropout(config, "dropout", kGpt2Dropout);
  const TwoParts parts = {
      .attention_norm = kNorms[0],
      .mlp_norm = kNorms[1],
      .attention = WithDropout(OptAttention(decoder.heads, shape), dropout),
      .mlp = WithDropout(
          FlowOfMlp("", ReadActivation(config, "activation_function", "relu"), "fc1", "fc2"),
          dropout),
      .norms_after = !sizes.norms_before};
  Network network;
  AddOptEmbeddings(network, config, decoder, sizes);
  AddLayers(network, "model.decoder.layers.{}", decoder.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "self_attn",
           Attention(decoder.heads,
                     {.qkv_bias = sizes.bias, .output_bias = sizes.bias, .output = "out_proj"}));
    Append(layer.parameters, Mlp(hidden_size, sizes.inner, sizes.bias, "fc1", "fc2"));
    Append(layer.parameters, Norms(kNorms, hidden_size, true));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
  AddOptHead(network, decoder, sizes);
  network.batch = TokensAndLabels();
  network.num_hidden_layers = decoder.num_hidden_layers;
  network.hidden_size = hidden_size;
  network.vocab_size = decoder.vocab_size;
  return network;
}

}  // namespace fourpiles
