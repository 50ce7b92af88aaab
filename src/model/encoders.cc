// BERT and the Vision Transformer: every token sees every other, and serving keeps nothing.
//
// Names and shapes: huggingface/transformers, models/{bert,vit}. `architectures` says which head
// the checkpoint has; without it, it is the bare model.

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"
#include "model/decoder.h"
#include "model/part_flows.h"

namespace fourpiles {
namespace {

struct Encoder {
  std::int64_t hidden_size = 1;
  std::int64_t num_hidden_layers = 1;
  std::int64_t intermediate_size = 1;
  std::int64_t heads = 1;
  std::optional<Activation> activation = {};
  bool dropout = false;            // of what each part puts out
  bool attention_dropout = false;  // of the probabilities
};

// `dropout` is what a config.json without its probabilities means.
Encoder ReadEncoder(Record& config, double dropout) {
  const std::int64_t hidden_size = config.Count("hidden_size");
  const std::int64_t heads = config.Count("num_attention_heads");
  RequireDivisor(config, "num_attention_heads", heads, {"hidden_size", hidden_size});
  return {.hidden_size = hidden_size,
          .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
          .intermediate_size = config.Count("intermediate_size"),
          .heads = heads,
          .activation = ReadActivation(config, "hidden_act", "gelu"),
          .dropout = ReadDropout(config, "hidden_dropout_prob", dropout),
          .attention_dropout = ReadDropout(config, "attention_probs_dropout_prob", dropout)};
}

// Queries, keys and values under `projections`, the rest of a layer under BERT's names.
Parameters EncoderLayer(const Encoder& sizes, std::string_view projections, bool qkv_bias) {
  const LinearSize square = {sizes.hidden_size, sizes.hidden_size};
  Parameters qkv;
  for (const std::string_view name : {"query", "key", "value"}) {
    Append(qkv, name, Linear(square, Divide::kOutputs, qkv_bias));
  }
  Parameters layer;
  Append(layer, projections, std::move(qkv));
  Append(layer, "attention.output.dense", Linear(square, Divide::kInputs, true));
  Append(layer, Mlp(sizes.hidden_size, sizes.intermediate_size, true, "intermediate.dense",
                    "output.dense"));
  return layer;
}

// Attention with layers of its own for queries, keys and values.
Value Attend(Flow& flow, const Encoder& sizes, std::string_view projections, Value x, Mask mask) {
  const auto linear = [&](std::string_view name) {
    return flow.Linear(fmt::format("{}.{}", projections, name), x);
  };
  const Value q = linear("query");
  const Value k = linear("key");
  const Value v = linear("value");
  return flow.Attention(projections, q, k, v,
                        {.heads = sizes.heads,
                         .key_value_heads = sizes.heads,
                         .head_dim = sizes.hidden_size / sizes.heads,
                         .mask = mask,
                         .dropout = sizes.attention_dropout});
}

Value Output(Flow& flow, const Encoder& sizes, std::string_view name, Value x) {
  return flow.Dropout("dropout", flow.Linear(name, x), sizes.dropout);
}

Value Inner(Flow& flow, const Encoder& sizes, Value x) {
  return flow.Activation("intermediate.act", flow.Linear("intermediate.dense", x),
                         *sizes.activation);
}

// Norms behind the sums (models/bert/modeling_bert.py, BertLayer).
std::vector<Operator> DescribeBertLayer(const Parameters& parameters, const Encoder& sizes) {
  if (!sizes.activation) {
    return {};
  }
  Flow flow(parameters);
  Value x = Flow::Input();
  const Value attended = Attend(flow, sizes, "attention.self", x, Mask::kPadding);
  x = flow.Norm("attention.output.LayerNorm",
                flow.Add(Output(flow, sizes, "attention.output.dense", attended), x));
  flow.Norm("output.LayerNorm",
            flow.Add(Output(flow, sizes, "output.dense", Inner(flow, sizes, x)), x));
  return flow.Take();
}

// Norms before the parts; no mask (models/vit/modeling_vit.py, ViTLayer).
std::vector<Operator> DescribeVitLayer(const Parameters& parameters, const Encoder& sizes) {
  if (!sizes.activation) {
    return {};
  }
  Flow flow(parameters);
  Value x = Flow::Input();
  const Value attended =
      Attend(flow, sizes, "attention.attention", flow.Norm("layernorm_before", x), Mask::kNone);
  x = flow.Add(Output(flow, sizes, "attention.output.dense", attended), x);
  const Value inner = Inner(flow, sizes, flow.Norm("layernorm_after", x));
  flow.Add(Output(flow, sizes, "output.dense", inner), x);
  return flow.Take();
}

// tanh of a linear layer of the first token.
std::vector<Operator> DescribePooler(const Parameters& parameters) {
  Flow flow(parameters);
  flow.Activation("", flow.Linear("", flow.FirstToken(Flow::Input())), Activation::kTanh);
  return flow.Take();
}

// An output layer with a bias and the cross entropy of its logits. `first`: of the first token.
std::vector<Operator> DescribeClassifier(const Parameters& parameters, bool dropout, bool first) {
  Flow flow(parameters);
  Value x = first ? flow.FirstToken(Flow::Input()) : Flow::Input();
  x = flow.Dropout("dropout", x, dropout);
  flow.Loss("", x, flow.Use("weight"), parameters.front().shape.front(), false);
  std::vector<Operator> operators = flow.Take();
  operators.back().parameters.push_back(flow.Use("bias"));
  return operators;
}

std::string Architecture(Record& config, std::string_view otherwise) {
  const std::vector<std::string> architectures = config.Texts("architectures");
  return architectures.empty() ? std::string(otherwise) : architectures.front();
}

Parameters BertEmbeddings(Record& config, std::int64_t hidden_size) {
  Parameters embeddings;
  Append(embeddings, "word_embeddings", Embedding(config.Count("vocab_size"), hidden_size));
  Append(embeddings, "position_embeddings",
         Tensor("weight", {config.Count("max_position_embeddings"), hidden_size}));
  Append(embeddings, "token_type_embeddings",
         Tensor("weight", {config.CountOr("type_vocab_size", 2), hidden_size}));
  Append(embeddings, "LayerNorm", Norm(hidden_size, true));
  return embeddings;
}

// The head that predicts masked words, whose output weights are the embedding of the words.
Parameters MaskedWordHead(std::int64_t vocab_size, std::int64_t hidden_size) {
  Parameters head = Tensor("bias", {vocab_size}, 0);
  Append(head, "transform.dense", Linear({hidden_size, hidden_size}, Divide::kNot, true));
  Append(head, "transform.LayerNorm", Norm(hidden_size, true));
  return head;
}

std::vector<Operator> DescribeEmbeddings(const Parameters& parameters, bool dropout) {
  Flow flow(parameters);
  Value x = flow.Embedding("word_embeddings");
  x = flow.Add(x, flow.TokenTypes("token_type_embeddings"));
  x = flow.Add(x, flow.Positions("position_embeddings"));
  flow.Dropout("dropout", flow.Norm("LayerNorm", x), dropout);
  return flow.Take();
}

std::vector<Operator> DescribeMaskedWordHead(const Parameters& parameters, std::int64_t vocab_size,
                                             const std::optional<Activation>& activation) {
  if (!activation) {
    return {};
  }
  Flow flow(parameters);
  const Value x =
      flow.Activation("transform.act", flow.Linear("transform.dense", Flow::Input()), *activation);
  flow.Loss("decoder", flow.Norm("transform.LayerNorm", x), {.block = 0, .parameter = 0},
            vocab_size, false);
  std::vector<Operator> operators = flow.Take();
  operators.back().parameters.push_back(flow.Use("bias"));
  return operators;
}

// What stands after the layers of BERT, by the class that made the checkpoint
// (models/bert/modeling_bert.py).
struct BertHead {
  std::string_view architecture;
  bool pooler = false;
  bool words = false;                // cls.predictions
  bool next_sentence = false;        // cls.seq_relationship
  std::string_view classifier = {};  // the name of its linear layer
  std::int64_t labels = 0;           // its outputs; 0: as many as the config has labels
};

constexpr BertHead kBertHeads[] = {
    {.architecture = "BertModel", .pooler = true},
    {.architecture = "BertForMaskedLM", .words = true},
    {.architecture = "BertForPreTraining", .pooler = true, .words = true, .next_sentence = true},
    {.architecture = "BertForQuestionAnswering", .classifier = "qa_outputs", .labels = 2},
    {.architecture = "BertForSequenceClassification", .pooler = true, .classifier = "classifier"},
    {.architecture = "BertForTokenClassification", .classifier = "classifier"},
};

const BertHead* FindBertHead(std::string_view architecture) {
  const auto* head = std::find_if(
      std::begin(kBertHeads), std::end(kBertHeads),
      [architecture](const BertHead& row) { return row.architecture == architecture; });
  return head == std::end(kBertHeads) ? nullptr : head;
}

// How many classes the head of a classifier tells apart.
std::int64_t LabelCount(Record& config) {
  constexpr std::int64_t kLabels = 2;  // of a configuration that names none (transformers)
  return config.MemberCount("id2label", config.CountOr("num_labels", kLabels));
}

// Heads with two losses, of a word and of a sentence or of a first and a last word, are not
// described.
void AddBertHead(Network& network, Record& config, const BertHead& head, const Encoder& sizes,
                 std::int64_t vocab_size) {
  const std::int64_t hidden_size = sizes.hidden_size;
  const bool described = !head.next_sentence && head.labels == 0;
  if (head.pooler) {
    AddBlock(network, head.architecture == "BertModel" ? "pooler.dense" : "bert.pooler.dense",
             Linear({hidden_size, hidden_size}, Divide::kNot, true));
    network.blocks.back().operators = DescribePooler(network.blocks.back().parameters);
  }
  if (head.words) {
    AddBlock(network, "cls.predictions", MaskedWordHead(vocab_size, hidden_size));
    if (described) {
      network.blocks.back().operators =
          DescribeMaskedWordHead(network.blocks.back().parameters, vocab_size, sizes.activation);
    }
  }
  if (head.next_sentence) {
    AddBlock(network, "cls.seq_relationship", Linear({2, hidden_size}, Divide::kNot, true));
  }
  if (!head.classifier.empty()) {
    const std::int64_t labels = head.labels > 0 ? head.labels : LabelCount(config);
    AddBlock(network, head.classifier, Linear({labels, hidden_size}, Divide::kNot, true));
    if (described) {
      network.blocks.back().operators =
          DescribeClassifier(network.blocks.back().parameters, sizes.dropout, false);
    }
  }
}

std::vector<BatchTensor> BertBatch(const BertHead& head) {
  std::vector<BatchTensor> batch = TokensAndLabels();
  if (head.pooler) {
    batch.back().per_token = false;
  }
  if (head.architecture == "BertModel") {
    batch.pop_back();
  }
  batch.push_back({.name = "attention_mask", .per_token = true, .indices = true});
  return batch;
}

}  // namespace

Network BuildBert(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"attention.output.LayerNorm",
                                                             "output.LayerNorm"};
  constexpr double kDropout = 0.1;  // configuration_bert.py
  const Encoder sizes = ReadEncoder(config, kDropout);
  const std::int64_t vocab_size = config.Count("vocab_size");
  const std::string architecture = Architecture(config, "BertModel");
  const BertHead* known = FindBertHead(architecture);
  const BertHead& head = known == nullptr ? kBertHeads[0] : *known;
  const std::string base = head.architecture == "BertModel" ? "" : "bert.";
  Network network;
  AddBlock(network, base + "embeddings", BertEmbeddings(config, sizes.hidden_size));
  network.blocks.back().operators =
      DescribeEmbeddings(network.blocks.back().parameters, sizes.dropout);
  AddLayers(network, base + "encoder.layer.{}", sizes.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.parameters = EncoderLayer(sizes, "attention.self", true)};
    Append(layer.parameters, Norms(kNorms, sizes.hidden_size, true));
    layer.operators = DescribeBertLayer(layer.parameters, sizes);
    return layer;
  });
  AddBertHead(network, config, head, sizes, vocab_size);
  network.batch = BertBatch(head);
  if (known == nullptr) {
    network.left_out.push_back("the head of " + architecture);
  }
  network.num_hidden_layers = sizes.num_hidden_layers;
  network.hidden_size = sizes.hidden_size;
  network.vocab_size = vocab_size;
  return network;
}

namespace {

struct VitPatches {
  std::int64_t hidden_size = 1;
  std::int64_t channels = 3;
  std::int64_t patch = 1;
};

Parameters VitEmbeddings(const VitPatches& sizes, std::int64_t tokens) {
  Parameters embeddings = Tensor("cls_token", {1, 1, sizes.hidden_size});
  Append(embeddings, Tensor("position_embeddings", {1, tokens, sizes.hidden_size}));
  Append(embeddings, "patch_embeddings.projection",
         Tensor("weight", {sizes.hidden_size, sizes.channels, sizes.patch, sizes.patch}));
  Append(embeddings, "patch_embeddings.projection", Tensor("bias", {sizes.hidden_size}));
  return embeddings;
}

std::vector<Operator> DescribeVitEmbeddings(const Parameters& parameters, bool dropout) {
  Flow flow(parameters);
  const Value patches = flow.Patches("patch_embeddings.projection");
  const Value x = flow.Append({.kind = OperatorKind::kPrependToken,
                               .name = "cls_token",
                               .inputs = {patches},
                               .parameters = {flow.Use("cls_token")}});
  flow.Dropout("dropout", flow.Add(x, flow.Constant("position_embeddings")), dropout);
  return flow.Take();
}

}  // namespace

Network BuildVit(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"layernorm_before", "layernorm_after"};
  const Encoder sizes = ReadEncoder(config, 0);
  const std::int64_t hidden_size = sizes.hidden_size;
  const std::int64_t patch = config.Count("patch_size");
  const std::int64_t image = config.Count("image_size");
  RequireDivisor(config, "patch_size", patch, {"image_size", image});
  const std::int64_t tokens = (image / patch) * (image / patch) + 1;  // and the class token
  const bool qkv_bias = config.Flag("qkv_bias", true);
  const bool classifies = Architecture(config, "ViTModel") == "ViTForImageClassification";
  const std::string base = classifies ? "vit." : "";

  const std::int64_t channels = config.CountOr("num_channels", 3);

  Network network;
  AddBlock(
      network, base + "embeddings",
      VitEmbeddings({.hidden_size = hidden_size, .channels = channels, .patch = patch}, tokens));
  network.blocks.back().operators =
      DescribeVitEmbeddings(network.blocks.back().parameters, sizes.dropout);
  AddLayers(network, base + "encoder.layer.{}", sizes.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.parameters = EncoderLayer(sizes, "attention.attention", qkv_bias)};
    Append(layer.parameters, Norms(kNorms, hidden_size, true));
    layer.operators = DescribeVitLayer(layer.parameters, sizes);
    return layer;
  });
  AddBlock(network, base + "layernorm", Norm(hidden_size, true));
  Flow norm(network.blocks.back().parameters);
  norm.Norm("", Flow::Input());
  network.blocks.back().operators = norm.Take();
  network.batch = {{.name = "pixel_values", .elements = channels * image * image}};
  if (classifies) {
    AddBlock(network, "classifier", Linear({LabelCount(config), hidden_size}, Divide::kNot, true));
    Block& block = network.blocks.back();
    block.operators = DescribeClassifier(block.parameters, false, true);
    network.batch.push_back({.name = "labels", .indices = true});
  } else {
    AddBlock(network, "pooler.dense", Linear({hidden_size, hidden_size}, Divide::kNot, true));
    network.blocks.back().operators = DescribePooler(network.blocks.back().parameters);
  }
  network.tokens_per_sample = tokens;
  network.num_hidden_layers = sizes.num_hidden_layers;
  network.hidden_size = hidden_size;
  network.max_position_embeddings = tokens;
  return network;
}

}  // namespace fourpiles
