#include "model/flow.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fourpiles {
namespace {

std::string Join(std::string_view module, std::string_view parameter) {
  return module.empty() ? std::string(parameter)
                        : std::string(module) + "." + std::string(parameter);
}

}  // namespace

ParameterUse Flow::Use(std::string_view parameter) const {
  const auto found = std::ranges::find(parameters_, parameter, &Parameter::name);
  CHECK(found != parameters_.end());
  return {.parameter = static_cast<std::int32_t>(found - parameters_.begin())};
}

bool Flow::Has(std::string_view parameter) const {
  return std::ranges::find(parameters_, parameter, &Parameter::name) != parameters_.end();
}

const Parameter& Flow::Find(std::string_view parameter) const {
  return parameters_[static_cast<std::size_t>(Use(parameter).parameter)];
}

std::vector<ParameterUse> Flow::UsesOf(std::string_view module) const {
  std::vector<ParameterUse> uses = {Use(Join(module, "weight"))};
  if (const std::string bias = Join(module, "bias"); Has(bias)) {
    uses.push_back(Use(bias));
  }
  return uses;
}

Value Flow::Append(Operator op) {
  const std::size_t outputs = op.kind == OperatorKind::kSplit ? op.widths.size() : std::size_t{1};
  for (std::size_t i = 0; i < outputs; ++i) {
    op.outputs.push_back(values_++);
  }
  operators_.push_back(std::move(op));
  return operators_.back().outputs.front();
}

Value Flow::Linear(std::string_view name, Value x) {
  return Append({.kind = OperatorKind::kLinear,
                 .name = std::string(name),
                 .inputs = {x},
                 .parameters = UsesOf(name),
                 .widths = {Find(Join(name, "weight")).shape[0]}});
}

Value Flow::TransposedLinear(std::string_view name, Value x) {
  return Append({.kind = OperatorKind::kLinear,
                 .name = std::string(name),
                 .inputs = {x},
                 .parameters = UsesOf(name),
                 .widths = {Find(Join(name, "weight")).shape[1]}});
}

Value Flow::Norm(std::string_view name, Value x, const NormShape& shape) {
  const bool layer_norm = Has(Join(name, "bias")) || shape.form == NormForm::kComposed;
  return layer_norm ? LayerNorm(name, x, shape) : RmsNorm(name, x, shape);
}

Value Flow::LayerNorm(std::string_view name, Value x, const NormShape& shape) {
  return Append({.kind = OperatorKind::kLayerNorm,
                 .name = std::string(name),
                 .inputs = {x},
                 .parameters = UsesOf(name),
                 .heads = shape.heads,
                 .norm = shape.form});
}

Value Flow::RmsNorm(std::string_view name, Value x, const NormShape& shape) {
  return Append({.kind = OperatorKind::kRmsNorm,
                 .name = std::string(name),
                 .inputs = {x},
                 .parameters = UsesOf(name),
                 .heads = shape.heads,
                 .norm = shape.form});
}

Value Flow::Embedding(std::string_view name) {
  return Append({.kind = OperatorKind::kEmbedding,
                 .name = std::string(name),
                 .parameters = UsesOf(name),
                 .widths = {Find(Join(name, "weight")).shape[1]}});
}

Value Flow::Positions(std::string_view name) {
  return Append({.kind = OperatorKind::kPositions,
                 .name = std::string(name),
                 .parameters = UsesOf(name),
                 .widths = {Find(Join(name, "weight")).shape[1]}});
}

Value Flow::TokenTypes(std::string_view name) {
  return Append({.kind = OperatorKind::kTokenTypes,
                 .name = std::string(name),
                 .parameters = UsesOf(name),
                 .widths = {Find(Join(name, "weight")).shape[1]}});
}

Value Flow::Constant(std::string_view name) {
  return Append(
      {.kind = OperatorKind::kConstant, .name = std::string(name), .parameters = {Use(name)}});
}

Value Flow::Patches(std::string_view name) {
  const Parameter& weight = Find(Join(name, "weight"));  // (out, channels, side, side)
  return Append({.kind = OperatorKind::kPatches,
                 .name = std::string(name),
                 .parameters = UsesOf(name),
                 .widths = {weight.shape[0]},
                 .channels = weight.shape[1],
                 .kernel = weight.shape[2]});
}

Value Flow::Unary(OperatorKind kind, std::string_view name, Value x) {
  return Append({.kind = kind, .name = std::string(name), .inputs = {x}});
}

Value Flow::Activation(std::string_view name, Value x, fourpiles::Activation activation) {
  return Append({.kind = OperatorKind::kActivation,
                 .name = std::string(name),
                 .inputs = {x},
                 .activation = activation});
}

Value Flow::Gate(std::string_view name, Value gate, Value up, fourpiles::Activation activation) {
  return Append({.kind = OperatorKind::kGate,
                 .name = std::string(name),
                 .inputs = {gate, up},
                 .activation = activation});
}

Value Flow::Multiply(Value a, Value b) {
  return Append({.kind = OperatorKind::kMultiply, .name = "", .inputs = {a, b}});
}

Value Flow::Scale(Value x) {
  return Unary(OperatorKind::kScale, "", x);
}

Value Flow::Add(Value a, Value b) {
  return Append({.kind = OperatorKind::kAdd, .name = "", .inputs = {a, b}});
}

Value Flow::Dropout(std::string_view name, Value x, bool used) {
  return used ? Unary(OperatorKind::kDropout, name, x) : x;
}

std::vector<Value> Flow::Split(Value x, std::vector<std::int64_t> widths) {
  Append({.kind = OperatorKind::kSplit, .inputs = {x}, .widths = std::move(widths)});
  return operators_.back().outputs;
}

Value Flow::Concat(Value a, Value b) {
  return Append({.kind = OperatorKind::kConcat, .inputs = {a, b}});
}

Value Flow::Expand(Value x, std::int64_t heads) {
  return Append({.kind = OperatorKind::kExpand, .inputs = {x}, .heads = heads});
}

Value Flow::Rotary(std::string_view name, Value x, const RotaryShape& shape) {
  const std::int64_t rotated = shape.rotated > 0 ? shape.rotated : shape.head_dim;
  const std::int64_t table = shape.table_width > 0 ? shape.table_width : rotated;
  return Append({.kind = OperatorKind::kRotary,
                 .name = std::string(name),
                 .inputs = {x},
                 .widths = {rotated, shape.head_dim, table},
                 .tables = shape.tables});
}

Value Flow::Attention(std::string_view name, Value q, Value k, Value v,
                      const AttentionShape& shape) {
  const std::int64_t value_width = shape.value_head_dim > 0 ? shape.value_head_dim : shape.head_dim;
  std::vector<ParameterUse> sinks;
  if (!shape.sinks.empty()) {
    sinks.push_back(Use(shape.sinks));
  }
  return Append({.kind = OperatorKind::kAttention,
                 .name = std::string(name),
                 .inputs = {q, k, v},
                 .parameters = std::move(sinks),
                 .widths = {value_width, shape.head_dim},
                 .heads = shape.heads,
                 .key_value_heads = shape.key_value_heads,
                 .mask = shape.mask,
                 .tables = shape.masks,
                 .float32 = shape.float32_softmax,
                 .softcap = shape.softcap,
                 .eager = shape.eager,
                 .dropout = shape.dropout});
}

Value Flow::FirstToken(Value x) {
  return Unary(OperatorKind::kFirstToken, "", x);
}

Value Flow::Loss(std::string_view name, Value x, const ParameterUse& weight, std::int64_t classes,
                 bool shifted) {
  return Append({.kind = OperatorKind::kLoss,
                 .name = std::string(name),
                 .inputs = {x},
                 .parameters = {weight},
                 .widths = {classes},
                 .shifted = shifted});
}

}  // namespace fourpiles
