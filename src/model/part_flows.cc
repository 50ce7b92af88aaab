#include "model/part_flows.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fourpiles {
namespace {

std::string Under(std::string_view name, std::string_view part) {
  return name.empty() ? std::string(part) : fmt::format("{}.{}", name, part);
}

NormShape NormOf(HeadNorm norm, NormForm form, std::int64_t heads) {
  return {.form = form, .heads = norm == HeadNorm::kAllHeads ? 1 : heads};
}

// Rotary embeddings, attention and the output layer.
Value Attend(Flow& flow, std::string_view name, const Heads& heads, std::vector<Value> qkv,
             const AttentionFlow& style) {
  if (style.rotary) {
    RotaryShape rotary = *style.rotary;
    rotary.head_dim = heads.head_dim;
    qkv[0] = flow.Rotary(Under(name, "rotary"), qkv[0], rotary);
    qkv[1] = flow.Rotary(Under(name, "rotary"), qkv[1], rotary);
  }
  return flow.Attention(name, qkv[0], qkv[1], qkv[2], ShapeFor(heads, style.shape));
}

}  // namespace

AttentionShape ShapeFor(const Heads& heads, AttentionShape shape) {
  shape.heads = heads.query;
  shape.key_value_heads = heads.key_value;
  shape.head_dim = heads.head_dim;
  return shape;
}

PartFlow FlowOf(std::string_view name, const Heads& heads, const AttentionStyle& style,
                const AttentionFlow& flow_style) {
  return [name = std::string(name), heads, style, output = std::string(style.output), flow_style](
             Flow& flow, Value x) {
    Value q = flow.Linear(Under(name, "q_proj"), x);
    Value k = flow.Linear(Under(name, "k_proj"), x);
    const Value v = flow.Linear(Under(name, "v_proj"), x);
    if (style.head_norm != HeadNorm::kNone) {
      const NormForm form = flow_style.norm;
      q = flow.Norm(Under(name, "q_norm"), q, NormOf(style.head_norm, form, heads.query));
      k = flow.Norm(Under(name, "k_norm"), k, NormOf(style.head_norm, form, heads.key_value));
    }
    return flow.Linear(Under(name, output), Attend(flow, name, heads, {q, k, v}, flow_style));
  };
}

PartFlow FlowOfFused(std::string_view name, std::string_view qkv, const Heads& heads,
                     std::string_view output, const AttentionFlow& flow_style) {
  return [name = std::string(name), qkv = std::string(qkv), heads, output = std::string(output),
          flow_style](Flow& flow, Value x) {
    const std::vector<Value> parts = flow.Split(
        flow.Linear(Under(name, qkv), x), {heads.QuerySize(), heads.KeySize(), heads.KeySize()});
    return flow.Linear(Under(name, output), Attend(flow, name, heads, parts, flow_style));
  };
}

PartFlow FlowOfGatedMlp(std::string_view name, std::optional<Activation> activation,
                        const GatedMlpStyle& style) {
  if (!activation) {
    return {};
  }
  return
      [name = std::string(name), activation = *activation, gate_name = Under(name, style.gate),
       up_name = Under(name, style.up), down_name = Under(name, style.down)](Flow& flow, Value x) {
        const Value gate = flow.Linear(gate_name, x);
        const Value up = flow.Linear(up_name, x);
        return flow.Linear(down_name, flow.Gate(name, gate, up, activation));
      };
}

PartFlow FlowOfMlp(std::string_view name, std::optional<Activation> activation, std::string_view in,
                   std::string_view out) {
  if (!activation) {
    return {};
  }
  return [name = std::string(name), activation = *activation, in_name = Under(name, in),
          out_name = Under(name, out)](Flow& flow, Value x) {
    return flow.Linear(out_name, flow.Activation(name, flow.Linear(in_name, x), activation));
  };
}

std::optional<Activation> FindActivation(std::string_view name) {
  static constexpr std::pair<std::string_view, Activation> kNames[] = {
      {"gelu", Activation::kGelu},
      {"gelu_new", Activation::kGeluComposed},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},
      {"relu2", Activation::kSquaredRelu},
      {"sigmoid", Activation::kSigmoid},
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},
      {"tanh", Activation::kTanh}};
  const auto* found =
      std::ranges::find(kNames, name, &std::pair<std::string_view, Activation>::first);
  return found == std::end(kNames) ? std::nullopt : std::optional(found->second);
}

std::optional<Activation> ReadActivation(Record& config, std::string_view key,
                                         std::string_view otherwise) {
  return FindActivation(config.TextOr(key, otherwise));
}

bool ReadDropout(Record& config, std::string_view key, double otherwise) {
  return config.OptionalNumber(key).value_or(otherwise) > 0;
}

std::int64_t ReadRotated(Record& config, std::string_view key, double otherwise,
                         std::int64_t head_dim) {
  const double share = config.OptionalNumber(key, {0, 1}).value_or(otherwise);
  return static_cast<std::int64_t>(share * static_cast<double>(head_dim));
}

PartFlow WithDropout(PartFlow part, bool used) {
  if (!part || !used) {
    return part;
  }
  return [part = std::move(part)](Flow& flow, Value x) {
    return flow.Dropout("dropout", part(flow, x));
  };
}

std::vector<BatchTensor> TokensAndLabels() {
  return {{.name = "input_ids", .per_token = true, .indices = true},
          {.name = "labels", .per_token = true, .indices = true}};
}

}  // namespace fourpiles
