#include "step/rule.h"

#include <fmt/format.h>

namespace fourpiles {
namespace {

// 32 layers × 2,048 tokens × width 4,096 in float16 are 536,870,912 bytes a sample.
std::vector<SavedTensor> LayerOutput(const Operator& op, const OperatorShapes& shapes) {
  return {{.what = "output",
           .elements = Checked(shapes.micro_batch_size) * shapes.sequence_length *
                       op.output_elements_per_token,
           .format = shapes.activation_format,
           .formula = fmt::format("micro_batch_size {} × sequence_length {} × hidden_size {}",
                                  shapes.micro_batch_size, shapes.sequence_length,
                                  op.output_elements_per_token),
           .source = "lower bound: one output a layer"}};
}

}  // namespace

Rule Profile::RuleOf(OperatorKind kind) const {
  switch (kind) {
    case OperatorKind::kLayer:
      break;
  }
  return layer;
}

constexpr Profile kLowerBound = {"lower-bound", LayerOutput};

}  // namespace fourpiles
