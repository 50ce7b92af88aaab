// BERT and the Vision Transformer: every token sees every other, and serving keeps nothing.
//
// Names and shapes: huggingface/transformers, models/{bert,vit}. `architectures` says which head
// the checkpoint has; without it, it is the bare model.

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "model/architectures.h"
#include "model/decoder.h"

namespace fourpiles {
namespace {

struct Encoder {
  std::int64_t hidden_size = 1;
  std::int64_t num_hidden_layers = 1;
  std::int64_t intermediate_size = 1;
};

Encoder ReadEncoder(Record& config) {
  const std::int64_t hidden_size = config.Count("hidden_size");
  RequireDivisor(config, "num_attention_heads", config.Count("num_attention_heads"),
                 {"hidden_size", hidden_size});
  return {.hidden_size = hidden_size,
          .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
          .intermediate_size = config.Count("intermediate_size")};
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

struct EncoderSize {
  std::int64_t hidden_size = 1;
  std::int64_t vocab_size = 1;
};

void AddBertHead(Network& network, Record& config, const BertHead& head, const EncoderSize& size) {
  const std::int64_t hidden_size = size.hidden_size;
  if (head.pooler) {
    AddBlock(network, head.architecture == "BertModel" ? "pooler.dense" : "bert.pooler.dense",
             Linear({hidden_size, hidden_size}, Divide::kNot, true));
  }
  if (head.words) {
    AddBlock(network, "cls.predictions", MaskedWordHead(size.vocab_size, hidden_size));
  }
  if (head.next_sentence) {
    AddBlock(network, "cls.seq_relationship", Linear({2, hidden_size}, Divide::kNot, true));
  }
  if (!head.classifier.empty()) {
    const std::int64_t labels = head.labels > 0 ? head.labels : LabelCount(config);
    AddBlock(network, head.classifier, Linear({labels, hidden_size}, Divide::kNot, true));
  }
}

}  // namespace

Network BuildBert(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"attention.output.LayerNorm",
                                                             "output.LayerNorm"};
  const Encoder sizes = ReadEncoder(config);
  const std::int64_t vocab_size = config.Count("vocab_size");
  const std::string architecture = Architecture(config, "BertModel");
  const BertHead* known = FindBertHead(architecture);
  const BertHead& head = known == nullptr ? kBertHeads[0] : *known;
  const std::string base = head.architecture == "BertModel" ? "" : "bert.";
  Network network;
  AddBlock(network, base + "embeddings", BertEmbeddings(config, sizes.hidden_size));
  AddLayers(network, base + "encoder.layer.{}", sizes.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.parameters = EncoderLayer(sizes, "attention.self", true)};
    Append(layer.parameters, Norms(kNorms, sizes.hidden_size, true));
    return layer;
  });
  AddBertHead(network, config, head, {.hidden_size = sizes.hidden_size, .vocab_size = vocab_size});
  if (known == nullptr) {
    network.left_out.push_back("the head of " + architecture);
  }
  network.num_hidden_layers = sizes.num_hidden_layers;
  network.hidden_size = sizes.hidden_size;
  network.vocab_size = vocab_size;
  return network;
}

Network BuildVit(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"layernorm_before", "layernorm_after"};
  const Encoder sizes = ReadEncoder(config);
  const std::int64_t hidden_size = sizes.hidden_size;
  const std::int64_t patch = config.Count("patch_size");
  const std::int64_t image = config.Count("image_size");
  RequireDivisor(config, "patch_size", patch, {"image_size", image});
  const std::int64_t tokens = (image / patch) * (image / patch) + 1;  // and the class token
  const bool qkv_bias = config.Flag("qkv_bias", true);
  const bool classifies = Architecture(config, "ViTModel") == "ViTForImageClassification";
  const std::string base = classifies ? "vit." : "";

  Network network;
  Parameters embeddings = Tensor("cls_token", {1, 1, hidden_size});
  Append(embeddings, Tensor("position_embeddings", {1, tokens, hidden_size}));
  Append(embeddings, "patch_embeddings.projection",
         Tensor("weight", {hidden_size, config.CountOr("num_channels", 3), patch, patch}));
  Append(embeddings, "patch_embeddings.projection", Tensor("bias", {hidden_size}));
  AddBlock(network, base + "embeddings", std::move(embeddings));
  AddLayers(network, base + "encoder.layer.{}", sizes.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.parameters = EncoderLayer(sizes, "attention.attention", qkv_bias)};
    Append(layer.parameters, Norms(kNorms, hidden_size, true));
    return layer;
  });
  AddBlock(network, base + "layernorm", Norm(hidden_size, true));
  if (classifies) {
    AddBlock(network, "classifier", Linear({LabelCount(config), hidden_size}, Divide::kNot, true));
  } else {
    AddBlock(network, "pooler.dense", Linear({hidden_size, hidden_size}, Divide::kNot, true));
  }
  network.num_hidden_layers = sizes.num_hidden_layers;
  network.hidden_size = hidden_size;
  network.max_position_embeddings = tokens;
  return network;
}

}  // namespace fourpiles
