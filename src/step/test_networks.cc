#include "step/test_networks.h"

#include "model/flow.h"
#include "model/parts.h"

namespace fourpiles {
namespace {

std::vector<Operator> LlamaLayer(const Parameters& parameters, const SmallSizes& sizes) {
  const std::int64_t head_dim = sizes.hidden_size / sizes.heads;
  Flow flow(parameters);
  Value x = Flow::Input();
  const Value normed = flow.Norm("norm1", x);
  const Value q = flow.Rotary("rotary", flow.Linear("attn.q_proj", normed), {.head_dim = head_dim});
  const Value k = flow.Rotary("rotary", flow.Linear("attn.k_proj", normed), {.head_dim = head_dim});
  const Value v = flow.Linear("attn.v_proj", normed);
  const Value mixed = flow.Attention("attn", q, k, v,
                                     {.heads = sizes.heads,
                                      .key_value_heads = sizes.key_value_heads,
                                      .head_dim = head_dim,
                                      .float32_softmax = true});
  x = flow.Add(x, flow.Linear("attn.o_proj", mixed));
  const Value inner = flow.Norm("norm2", x);
  const Value gate = flow.Linear("mlp.gate_proj", inner);
  const Value up = flow.Linear("mlp.up_proj", inner);
  const Value gated = flow.Gate("mlp", gate, up, Activation::kSilu);
  flow.Add(x, flow.Linear("mlp.down_proj", gated));
  return flow.Take();
}

}  // namespace

Network SmallLlama(const SmallSizes& sizes) {
  Network network;
  Parameters embedding;
  Append(embedding, "embed", Embedding(sizes.vocab_size, sizes.hidden_size));
  Flow first(embedding);
  first.Embedding("embed");
  network.blocks.push_back({.parameters = embedding, .operators = first.Take()});
  const Heads heads = {.hidden_size = sizes.hidden_size,
                       .query = sizes.heads,
                       .key_value = sizes.key_value_heads,
                       .head_dim = sizes.hidden_size / sizes.heads};
  Parameters layer;
  Append(layer, "norm1", Norm(sizes.hidden_size));
  Append(layer, "attn", Attention(heads));
  Append(layer, "norm2", Norm(sizes.hidden_size));
  Append(layer, "mlp", GatedMlp(sizes.hidden_size, sizes.intermediate_size));
  AddLayers(network, "layers.{}", sizes.layers, [&](std::int64_t) {
    return Layer{.parameters = layer, .operators = LlamaLayer(layer, sizes)};
  });
  Parameters head;
  Append(head, "norm", Norm(sizes.hidden_size));
  if (!sizes.tied) {
    Append(head, "head", Linear({sizes.vocab_size, sizes.hidden_size}, Divide::kOutputs));
  }
  Flow last(head);
  const Value x = last.Norm("norm", Flow::Input());
  last.Loss("head", x, sizes.tied ? ParameterUse{.block = 0} : last.Use("head.weight"),
            sizes.vocab_size, true);
  network.blocks.push_back({.parameters = head, .operators = last.Take()});
  return network;
}

std::shared_ptr<const Network> SevenLayers() {
  Network network;
  Parameters embedding;
  Append(embedding, "embedding", Embedding(100, 8));
  AddBlock(network, "", embedding);
  Flow first(network.blocks.back().parameters);
  first.Embedding("embedding");
  network.blocks.back().operators = first.Take();
  Parameters layer;
  Append(layer, "mlp", Mlp(8, 32, false, "in", "out"));
  AddLayers(network, "layers.{}", 7, [&](std::int64_t) {
    Flow flow(layer);
    const Value hidden =
        flow.Activation("mlp.act", flow.Linear("mlp.in", Flow::Input()), Activation::kSilu);
    flow.Add(Flow::Input(), flow.Linear("mlp.out", hidden));
    return Layer{.parameters = layer, .operators = flow.Take()};
  });
  Parameters head;
  Append(head, "head", Linear({.out = 100, .in = 8}, Divide::kOutputs));
  AddBlock(network, "", head);
  Flow last(network.blocks.back().parameters);
  last.Loss("head", Flow::Input(), last.Use("head.weight"), 100, false);
  network.blocks.back().operators = last.Take();
  return std::make_shared<const Network>(std::move(network));
}

std::shared_ptr<const Network> Llama31Layers() {
  const Heads heads = {.hidden_size = 4096, .query = 32, .key_value = 8, .head_dim = 128};
  Parameters layer;
  Append(layer, "input_layernorm", Norm(4096));
  Append(layer, "self_attn", Attention(heads));
  Append(layer, "post_attention_layernorm", Norm(4096));
  Append(layer, "mlp", GatedMlp(4096, 14'336));
  Network network;
  Parameters embedding;
  Append(embedding, "embed_tokens", Embedding(16, 4096));
  AddBlock(network, "", embedding);
  Flow first(network.blocks.back().parameters);
  first.Embedding("embed_tokens");
  network.blocks.back().operators = first.Take();
  AddLayers(network, "layers.{}", 3, [&](std::int64_t) {
    Flow flow(layer);
    Value x = Flow::Input();
    Value normed = flow.Norm("input_layernorm", x);
    const Value q = flow.Linear("self_attn.q_proj", normed);
    const Value k = flow.Linear("self_attn.k_proj", normed);
    const Value v = flow.Linear("self_attn.v_proj", normed);
    const Value q_turned = flow.Rotary("self_attn.rotary", q, {.head_dim = 128});
    const Value k_turned = flow.Rotary("self_attn.rotary", k, {.head_dim = 128});
    const Value mixed = flow.Attention("self_attn", q_turned, k_turned, v,
                                       {.heads = 32, .key_value_heads = 8, .head_dim = 128});
    x = flow.Add(x, flow.Linear("self_attn.o_proj", mixed));
    normed = flow.Norm("post_attention_layernorm", x);
    const Value gate = flow.Linear("mlp.gate_proj", normed);
    const Value up = flow.Linear("mlp.up_proj", normed);
    flow.Add(x, flow.Linear("mlp.down_proj", flow.Gate("mlp", gate, up, Activation::kSilu)));
    return Layer{.parameters = layer, .operators = flow.Take()};
  });
  Parameters head;
  Append(head, "lm_head", Linear({.out = 16, .in = 4096}, Divide::kOutputs));
  AddBlock(network, "", head);
  Flow last(network.blocks.back().parameters);
  last.Loss("lm_head", Flow::Input(), last.Use("lm_head.weight"), 16, false);
  network.blocks.back().operators = last.Take();
  return std::make_shared<const Network>(std::move(network));
}

}  // namespace fourpiles
