#include "step/test_networks.h"

#include "model/flow.h"

namespace fourpiles {
namespace {

std::vector<Operator> LlamaLayer(const Parameters& parameters, const SmallSizes& sizes) {
  const std::int64_t head_dim = sizes.hidden_size / sizes.heads;
  Flow flow(parameters);
  Value x = Flow::Input();
  const Value normed = flow.Norm("norm1", x);
  const Value q = flow.Rotary("rotary", flow.Linear("attn.q_proj", normed), head_dim);
  const Value k = flow.Rotary("rotary", flow.Linear("attn.k_proj", normed), head_dim);
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

}  // namespace fourpiles
