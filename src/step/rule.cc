#include "step/rule.h"

#include <algorithm>
#include <utility>

namespace fourpiles {
namespace {

std::size_t Index(Value value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

Stage::Stage(Kernels& kernels_used, const Batch& batch_run, const Block& block,
             ParameterOf parameter)
    : kernels(kernels_used), batch(batch_run), parameter_(std::move(parameter)) {
  Value values = 1;
  for (const Operator& op : block.operators) {
    for (const Value output : op.outputs) {
      values = std::max(values, output + 1);
    }
  }
  values_.resize(Index(values));
  last_use_.resize(Index(values));
  for (std::size_t op = 0; op < block.operators.size(); ++op) {
    for (const Value input : block.operators[op].inputs) {
      last_use_[Index(input)] = op;
    }
  }
}

Tensor Stage::Take(const Operator& op, std::size_t input) {
  const Value value = op.inputs[input];
  const auto uses = std::ranges::count(op.inputs, value);
  Tensor& tensor = values_[Index(value)];
  return last_use_[Index(value)] == at_ && uses == 1 ? std::exchange(tensor, {}) : tensor;
}

void Stage::Put(const Operator& op, Tensor value, std::size_t output) {
  values_[Index(op.outputs[output])] = std::move(value);
}

Tensor Stage::Parameter(const Operator& op, std::size_t parameter, std::int64_t copy) const {
  return parameter < op.parameters.size() ? parameter_(op.parameters[parameter], copy) : Tensor();
}

Tensor Stage::Peek(Value value) const {
  return values_[Index(value)];
}

Tensor Stage::TakeValue(Value value) {
  return std::exchange(values_[Index(value)], {});
}

void Stage::PutValue(Value value, Tensor tensor) {
  values_[Index(value)] = std::move(tensor);
}

}  // namespace fourpiles
