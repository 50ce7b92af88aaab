// Outputs that a region keeps beside its input, because they are dear to compute: running it again
// reads them and computes the rest (PyTorch, torch/utils/checkpoint.py,
// create_selective_checkpoint_contexts).

#include <utility>

#include "base/check.h"
#include "step/kernels.h"

namespace fourpiles {

void Kernels::KeepOutputs() {
  outputs_use_ = Outputs::kKept;
  products_ = 0;
}

void Kernels::ReadOutputs(std::vector<Tensor> outputs) {
  outputs_use_ = Outputs::kRead;
  outputs_ = std::move(outputs);
  next_output_ = 0;
  products_ = 0;
}

std::vector<Tensor> Kernels::TakeOutputs() {
  outputs_use_ = Outputs::kMade;
  return std::exchange(outputs_, {});
}

// aten::mm; a product that adds a bias is aten::addmm, which is not in the list (torchtitan,
// distributed/activation_checkpoint.py: mm_count % 2).
bool Kernels::IsDearProduct(const Tensor& bias) {
  const bool counts = outputs_use_ != Outputs::kMade && bias.type.bits == 0;
  products_ += counts ? 1 : 0;
  return counts && products_ % 2 == 1;
}

Tensor Kernels::NextOutput(const Shape& shape) {
  CHECK(next_output_ < outputs_.size());
  Tensor output = std::move(outputs_[next_output_++]);
  output.shape = shape;
  return output;
}

void Kernels::KeepForRegion(const Tensor& output) {
  memory_.Keep(output.storage);
  memory_.LetGo(output.storage);
  outputs_.push_back(output);
}

Tensor Kernels::Dear(const KernelKind& kind, const Shape& shape, const ElementType& type,
                     std::initializer_list<Input> inputs,
                     std::initializer_list<const Tensor*> saved) {
  if (outputs_use_ == Outputs::kRead) {
    return Into(kind, NextOutput(shape), inputs, saved);
  }
  Tensor output = Fused(kind, shape, type, inputs, saved);
  if (outputs_use_ == Outputs::kKept) {
    KeepForRegion(output);
  }
  return output;
}

Tensor Kernels::DearKeepingOutput(const KernelKind& kind, const Shape& shape,
                                  const ElementType& type, std::initializer_list<Input> inputs,
                                  std::initializer_list<const Tensor*> saved) {
  Tensor output = Dear(kind, shape, type, inputs, saved);
  graph_.KeepOutput(output);
  return output;
}

Tensor Kernels::DearConstant(const Shape& shape, const ElementType& type, const char* slot) {
  if (outputs_use_ == Outputs::kRead) {
    return NextOutput(shape);
  }
  Tensor constant = Constant(shape, type, slot);
  if (outputs_use_ == Outputs::kKept) {
    KeepForRegion(constant);
  }
  return constant;
}

}  // namespace fourpiles
