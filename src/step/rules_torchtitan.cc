// torchtitan (torchtitan/models/llama3/model/model.py, components/loss.py).

#include <algorithm>
#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kComplexRotary = {
    "rotary",
    "derivatives.yaml: mul keeps the other factor, here freqs_cis, a buffer of the model"};

constexpr KernelKind kParallelLogSoftmax = {"log_softmax of parts",
                                            "PyTorch, distributed/tensor/parallel/loss.py, "
                                            "_log_softmax: logits less their largest, and the "
                                            "exponentials of that, are tensors of their own"};
constexpr KernelKind kParallelNll = {
    "nll_loss of parts",
    "PyTorch, distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward: (grad_input "
    "+ exp(x)) * grad_output, each a tensor of its own, which is the gradient of the logits"};

// Of logits that are cut by words over ranks (loss_parallel).
Tensor ParallelLoss(Kernels& kernels, const Tensor& logits) {
  Tensor log_probabilities;
  {
    const Tensor shifted = kernels.Constant(logits.shape, kFloat32, "less the largest");
    kernels.Constant(logits.shape, kFloat32, "exponentials");
    log_probabilities =
        kernels.Fused(kParallelLogSoftmax, logits.shape, kFloat32, {{logits, Gradient::kSame}}, {});
  }
  return kernels.LossWithTwoTemporaries(kParallelNll, log_probabilities);
}

// The training loop holds the logits until there is a loss (train.py: del pred).
Tensor LossOver(Kernels& kernels, const Operator& op, const Tensor& logits) {
  const Tensor wide = Stored(kernels.Cast(logits, kFloat32));
  return op.ranks > 1 ? ParallelLoss(kernels, wide) : EagerCrossEntropy(kernels, wide);
}

}  // namespace

// Pairs of elements are complex numbers in float32, times one of the position, and cast back
// (apply_rotary_emb).
void TorchtitanRotaryRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const ElementType type = x.type;
  x = kernels.Cast(std::move(x), kFloat32);
  x = kernels.Fused(kComplexRotary, x.shape, x.type, {{x}}, {});
  stage.Put(op, kernels.Cast(std::move(x), type));
}

// cross_entropy(pred.flatten(0, 1).float(), labels.flatten(0, 1)); labels come moved by one.
void TorchtitanLossRule(Stage& stage, const Operator& op) {
  const Tensor logits = Logits(stage, op, stage.Take(op));
  stage.Put(op, LossOver(stage.kernels, op, logits));
}

// All logits are made, and then each chunk of them has a loss (chunked_cross_entropy_loss).
void TorchtitanChunkedLossRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  const Tensor logits = Logits(stage, op, stage.Take(op));
  const std::int64_t rows = Rows(logits);
  std::vector<Tensor> chunks =
      kernels.SplitRows(logits, rows, std::min(stage.batch.loss_chunks, rows));
  Tensor sum;
  for (Tensor& chunk : chunks) {
    Tensor loss = LossOver(kernels, op, std::exchange(chunk, {}));
    sum = sum.storage == kNothing ? std::move(loss) : kernels.Add(sum, loss);
  }
  stage.Put(op, std::move(sum));
}

}  // namespace fourpiles
