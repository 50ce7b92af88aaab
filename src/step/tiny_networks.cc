#include "step/tiny_networks.h"

#include <string>
#include <utility>

#include "model/flow.h"
#include "model/parts.h"

namespace fourpiles {
namespace {

using MakeFlow = std::vector<Operator> (*)(const Parameters& parameters, const TinySizes& sizes);

// LoRA freezes all but A and B, which are called lora_A and lora_B.
void Freeze(Parameters& parameters, const TinySizes& sizes) {
  for (Parameter& parameter : parameters) {
    parameter.trainable =
        sizes.adapter_rank == 0 || parameter.name.find("lora_") != std::string::npos;
  }
}

Block TinyBlock(std::string name, Parameters parameters, const TinySizes& sizes, MakeFlow flow) {
  Freeze(parameters, sizes);
  std::vector<Operator> operators = flow(parameters, sizes);
  return {.name = std::move(name),
          .parameters = std::move(parameters),
          .operators = std::move(operators)};
}

AttentionShape ShapeOfAttention(const TinySizes& sizes) {
  return {.heads = sizes.heads,
          .key_value_heads = sizes.key_value_heads,
          .head_dim = sizes.hidden_size / sizes.heads,
          .dropout = sizes.dropout};
}

std::int64_t KeySize(const TinySizes& sizes) {
  return sizes.hidden_size / sizes.heads * sizes.key_value_heads;
}

std::vector<Operator> GptLayer(const Parameters& parameters, const TinySizes& sizes) {
  const std::int64_t h = sizes.hidden_size;
  Flow flow(parameters);
  Value x = Flow::Input();
  const std::vector<Value> qkv =
      flow.Split(flow.Linear("attn.c_attn", flow.Norm("ln_1", x)), {h, h, h});
  const Value mixed = flow.Attention("attn", qkv[0], qkv[1], qkv[2], ShapeOfAttention(sizes));
  x = flow.Add(x, flow.Dropout("attn.drop", flow.Linear("attn.c_proj", mixed), sizes.dropout));
  const Value inner = flow.Activation("mlp.act", flow.Linear("mlp.c_fc", flow.Norm("ln_2", x)),
                                      Activation::kGeluTanh);
  flow.Add(x, flow.Dropout("mlp.drop", flow.Linear("mlp.c_proj", inner), sizes.dropout));
  return flow.Take();
}

// Queries, keys and values of a Llama: fused, with LoRA of queries and values, or apart.
std::vector<Value> QueriesKeysValues(Flow& flow, Value x, const TinySizes& sizes) {
  if (!sizes.fused_qkv) {
    return {flow.Linear("q_proj", x), flow.Linear("k_proj", x), flow.Linear("v_proj", x)};
  }
  const std::int64_t h = sizes.hidden_size;
  const std::int64_t k = KeySize(sizes);
  Operator linear = {.kind = OperatorKind::kLinear,
                     .name = "qkv",
                     .inputs = {x},
                     .parameters = {flow.Use("qkv.weight")},
                     .widths = {h + 2 * k}};
  if (sizes.adapter_rank > 0) {
    linear.adapter = AdapterForm::kLowRank;
    linear.adapter_rank = sizes.adapter_rank;
    linear.adapter_dropout = true;
    linear.parameters.push_back(flow.Use("qkv.lora_A.weight"));
    linear.parameters.push_back(flow.Use("qkv.lora_B.weight"));
  }
  return flow.Split(flow.Append(std::move(linear)), {h, k, k});
}

std::vector<Operator> LlamaLayer(const Parameters& parameters, const TinySizes& sizes) {
  const std::int64_t head_dim = sizes.hidden_size / sizes.heads;
  Flow flow(parameters);
  Value x = Flow::Input();
  const std::vector<Value> qkv = QueriesKeysValues(flow, flow.Norm("norm_1", x), sizes);
  const Value q = flow.Rotary("rotary", qkv[0], {.head_dim = head_dim});
  const Value k = flow.Rotary("rotary", qkv[1], {.head_dim = head_dim});
  const Value mixed = flow.Attention("attn", q, k, qkv[2], ShapeOfAttention(sizes));
  x = flow.Add(x, flow.Linear("o_proj", mixed));
  const Value normed = flow.Norm("norm_2", x);
  const Value gate = flow.Linear("mlp.gate_proj", normed);
  const Value up = flow.Linear("mlp.up_proj", normed);
  flow.Add(x, flow.Linear("mlp.down_proj", flow.Gate("mlp", gate, up, Activation::kSilu)));
  return flow.Take();
}

Network Framed(const TinySizes& sizes) {
  Network network;
  network.hidden_size = sizes.hidden_size;
  network.vocab_size = sizes.vocabulary;
  network.num_hidden_layers = sizes.layers;
  return network;
}

Parameters GptParameters(const TinySizes& sizes) {
  const std::int64_t h = sizes.hidden_size;
  Parameters layer;
  Append(layer, "ln_1", Norm(h, true));
  Append(layer, "attn.c_attn", Linear({3 * h, h}, Divide::kOutputs, true));
  Append(layer, "attn.c_proj", Linear({h, h}, Divide::kInputs, true));
  Append(layer, "ln_2", Norm(h, true));
  Append(layer, "mlp", Mlp(h, sizes.ffn, true, "c_fc", "c_proj"));
  return layer;
}

Parameters LlamaParameters(const TinySizes& sizes) {
  const std::int64_t h = sizes.hidden_size;
  const std::int64_t k = KeySize(sizes);
  Parameters layer;
  Append(layer, "norm_1", Norm(h));
  if (sizes.fused_qkv) {
    Append(layer, "qkv", Linear({h + 2 * k, h}, Divide::kOutputs));
  } else {
    Append(layer, "q_proj", Linear({h, h}, Divide::kOutputs));
    Append(layer, "k_proj", Linear({k, h}, Divide::kOutputs));
    Append(layer, "v_proj", Linear({k, h}, Divide::kOutputs));
  }
  if (sizes.adapter_rank > 0) {
    Append(layer, "qkv.lora_A", Linear({2 * sizes.adapter_rank, h}, Divide::kNot));
    Append(layer, "qkv.lora_B", Linear({h + k, sizes.adapter_rank}, Divide::kNot));
  }
  Append(layer, "o_proj", Linear({h, h}, Divide::kInputs));
  Append(layer, "norm_2", Norm(h));
  Append(layer, "mlp", GatedMlp(h, sizes.ffn));
  return layer;
}

}  // namespace

Network TinyGpt(const TinySizes& sizes) {
  Network network = Framed(sizes);
  Parameters embeddings;
  Append(embeddings, "wte", Embedding(sizes.vocabulary, sizes.hidden_size));
  Append(embeddings, "wpe", Embedding(sizes.context, sizes.hidden_size));
  network.blocks.push_back(
      TinyBlock("", std::move(embeddings), sizes, [](const Parameters& own, const TinySizes& of) {
        Flow flow(own);
        const Value words = flow.Embedding("wte");
        flow.Dropout("drop", flow.Add(words, flow.Positions("wpe")), of.dropout);
        return flow.Take();
      }));
  network.blocks.push_back(TinyBlock("h.{}", GptParameters(sizes), sizes, GptLayer));
  network.blocks.back().repeat = sizes.layers;
  Parameters head;
  Append(head, "ln_f", Norm(sizes.hidden_size, true));
  network.blocks.push_back(
      TinyBlock("", std::move(head), sizes, [](const Parameters& own, const TinySizes& of) {
        Flow flow(own);
        const Value x = flow.Norm("ln_f", Flow::Input());
        flow.Loss("lm_head", x, {.block = 0, .parameter = 0}, of.vocabulary, false);
        return flow.Take();
      }));
  return network;
}

Network TinyLlama(const TinySizes& sizes) {
  Network network = Framed(sizes);
  Parameters embedding;
  Append(embedding, "embed_tokens", Embedding(sizes.vocabulary, sizes.hidden_size));
  network.blocks.push_back(
      TinyBlock("", std::move(embedding), sizes, [](const Parameters& own, const TinySizes&) {
        Flow flow(own);
        flow.Embedding("embed_tokens");
        return flow.Take();
      }));
  network.blocks.push_back(TinyBlock("layers.{}", LlamaParameters(sizes), sizes, LlamaLayer));
  network.blocks.back().repeat = sizes.layers;
  Parameters head;
  Append(head, "norm", Norm(sizes.hidden_size));
  Append(head, "lm_head", Linear({sizes.vocabulary, sizes.hidden_size}, Divide::kOutputs));
  network.blocks.push_back(
      TinyBlock("", std::move(head), sizes, [](const Parameters& own, const TinySizes& of) {
        Flow flow(own);
        const Value x = flow.Norm("norm", Flow::Input());
        flow.Loss("lm_head", x, flow.Use("lm_head.weight"), of.vocabulary, false);
        return flow.Take();
      }));
  return network;
}

Network LossOfLogits(const std::vector<std::int64_t>& shape) {
  Network network;
  Block block = {.parameters = {{.name = "logits", .shape = shape}}};
  Flow flow(block.parameters);
  const Value logits = flow.Constant("logits");
  flow.Append({.kind = OperatorKind::kLoss, .inputs = {logits}, .widths = {shape.back()}});
  block.operators = flow.Take();
  network.blocks.push_back(std::move(block));
  return network;
}

Network LossOfHiddenStates(const std::vector<std::int64_t>& shape, std::int64_t vocabulary) {
  Network network;
  Block block = {.parameters = {{.name = "x", .shape = shape},
                                {.name = "head.weight", .shape = {vocabulary, shape.back()}}}};
  Flow flow(block.parameters);
  const Value x = flow.Constant("x");
  flow.Loss("head", x, flow.Use("head.weight"), vocabulary, false);
  block.operators = flow.Take();
  network.blocks.push_back(std::move(block));
  return network;
}

}  // namespace fourpiles
