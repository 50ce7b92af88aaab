// BERT and the Vision Transformer: every token sees every other, and serving keeps nothing.
//
// Names and shapes: huggingface/transformers, models/{bert,vit}. `architectures` says which head
// the checkpoint has; without it, it is the bare model.

#include <array>
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

}  // namespace

Network BuildBert(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"attention.output.LayerNorm",
                                                             "output.LayerNorm"};
  const Encoder sizes = ReadEncoder(config);
  const std::int64_t vocab_size = config.Count("vocab_size");
  const std::string architecture = Architecture(config, "BertModel");
  const std::string base = architecture == "BertModel" ? "" : "bert.";
  Network network;
  AddBlock(network, base + "embeddings", BertEmbeddings(config, sizes.hidden_size));
  AddLayers(network, base + "encoder.layer.{}", sizes.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.parameters = EncoderLayer(sizes, "attention.self", true)};
    Append(layer.parameters, Norms(kNorms, sizes.hidden_size, true));
    return layer;
  });
  const LinearSize square = {sizes.hidden_size, sizes.hidden_size};
  if (architecture != "BertForMaskedLM") {
    AddBlock(network, base + "pooler.dense", Linear(square, Divide::kNot, true));
  }
  if (architecture == "BertForMaskedLM" || architecture == "BertForPreTraining") {
    AddBlock(network, "cls.predictions", MaskedWordHead(vocab_size, sizes.hidden_size));
  }
  if (architecture == "BertForPreTraining") {
    AddBlock(network, "cls.seq_relationship", Linear({2, sizes.hidden_size}, Divide::kNot, true));
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
    constexpr std::int64_t kLabels = 2;  // of a configuration that names none (transformers)
    AddBlock(network, "classifier",
             Linear({config.MemberCount("id2label", kLabels), hidden_size}, Divide::kNot, true));
  } else {
    AddBlock(network, "pooler.dense", Linear({hidden_size, hidden_size}, Divide::kNot, true));
  }
  network.num_hidden_layers = sizes.num_hidden_layers;
  network.hidden_size = hidden_size;
  network.max_position_embeddings = tokens;
  return network;
}

}  // namespace fourpiles
