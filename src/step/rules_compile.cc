// torch.compile. Its partitioner (functorch/_functorch/partitioners.py, min_cut_rematerialization)
// cuts the joint graph of forward and backward pass where the least crosses: results of matrix
// products, attention and reductions are kept, and what is elementwise is computed again from them.
// Framework::recomputes_elementwise is that as a rule of its own, without the graph; only the loss
// needs one more.

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kCompiledLoss = {
    "cross entropy",
    "partitioners.py: log-probabilities are computed again from logits and their "
    "log-sum-exp, a reduction, which is kept"};

}  // namespace

// Casts, softmax and the choice of the target are one kernel over the logits as they are.
// NOLINTNEXTLINE(performance-unnecessary-value-param): given up by the caller
Tensor CompiledCrossEntropy(Kernels& kernels, Tensor logits) {
  const Tensor sums = kernels.Constant(ShapeOf({Rows(logits)}), kFloat32, "logsumexp");
  return kernels.Fused(kCompiledLoss, ShapeOf({1}), kFloat32, {{logits}}, {&logits, &sums});
}

void CompiledLossRule(Stage& stage, const Operator& op) {
  Tensor logits = Logits(stage, op, stage.Take(op));
  if (op.keeps_logits) {
    stage.pass->logits = {logits};
  }
  stage.Put(op, CompiledCrossEntropy(stage.kernels, std::move(logits)));
}

}  // namespace fourpiles
