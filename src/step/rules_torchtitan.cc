// torchtitan (torchtitan/models/llama3/model/model.py, components/loss.py).

#include <algorithm>
#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kComplexRotary = {
    "rotary",
    "derivatives.yaml: mul keeps the other factor, here freqs_cis, a buffer of the model"};

// The training loop holds the logits until there is a loss (train.py: del pred).
Tensor LossOver(Kernels& kernels, const Tensor& logits) {
  return EagerCrossEntropy(kernels, Stored(kernels.Cast(logits, kFloat32)));
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
  stage.Put(op, LossOver(stage.kernels, logits));
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
    Tensor loss = LossOver(kernels, std::exchange(chunk, {}));
    sum = sum.storage == kNothing ? std::move(loss) : kernels.Add(sum, loss);
  }
  stage.Put(op, std::move(sum));
}

}  // namespace fourpiles
