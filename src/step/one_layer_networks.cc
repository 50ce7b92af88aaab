#include "step/one_layer_networks.h"

#include <string>
#include <utility>

#include "model/flow.h"
#include "model/parts.h"

namespace fourpiles::one_layer {
namespace {

Value Input(Flow& flow, bool needs_gradient) {
  const Value x = flow.Append({.kind = OperatorKind::kImages, .widths = {kTokens, kIn}});
  return needs_gradient ? flow.Append({.kind = OperatorKind::kInputGradient, .inputs = {x}}) : x;
}

Network OfOneBlock(std::string name, const Parameters& parameters, Flow& flow) {
  Network network;
  network.blocks.push_back(
      {.name = std::move(name), .parameters = parameters, .operators = flow.Take()});
  return network;
}

}  // namespace

Network OneLinear(bool bias, bool needs_gradient) {
  Parameters parameters;
  Append(parameters, "q_proj", Linear({kOut, kIn}, Divide::kNot, bias));
  Flow flow(parameters);
  flow.Linear("q_proj", Input(flow, needs_gradient));
  return OfOneBlock("layers.{}", parameters, flow);
}

Network OneAttention(std::int64_t key_value_heads, bool needs_gradient) {
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kWidth = 12;
  Parameters parameters;
  Append(parameters, "q_proj", Linear({kHeads * kWidth, kIn}, Divide::kNot));
  Append(parameters, "k_proj", Linear({key_value_heads * kWidth, kIn}, Divide::kNot));
  Append(parameters, "v_proj", Linear({key_value_heads * kWidth, kIn}, Divide::kNot));
  Flow flow(parameters);
  const Value x = Input(flow, needs_gradient);
  const Value q = flow.Linear("q_proj", x);
  const Value k = flow.Linear("k_proj", x);
  const Value v = flow.Linear("v_proj", x);
  flow.Attention("attn", q, k, v,
                 {.heads = kHeads,
                  .key_value_heads = key_value_heads,
                  .head_dim = kWidth,
                  .mask = Mask::kNone});
  return OfOneBlock("layers.{}", parameters, flow);
}

Network OneOutputLayer(bool needs_gradient) {
  const Parameters parameters = Linear({kOut, kIn}, Divide::kNot);
  Flow flow(parameters);
  flow.Loss("", Input(flow, needs_gradient), flow.Use("weight"), kOut, false);
  return OfOneBlock("lm_head", parameters, flow);
}

Network OneEmbedding() {
  const Parameters parameters = Embedding(30, kIn);
  Flow flow(parameters);
  flow.Embedding("");
  return OfOneBlock("embed_tokens", parameters, flow);
}

Network EmbeddingAndLinear() {
  Parameters parameters;
  Append(parameters, "embed_tokens", Embedding(30, kIn));
  Append(parameters, "q_proj", Linear({kOut, kIn}, Divide::kNot));
  Flow flow(parameters);
  flow.Linear("q_proj", flow.Embedding("embed_tokens"));
  return OfOneBlock("layers.{}", parameters, flow);
}

}  // namespace fourpiles::one_layer
