// Losses: often the largest tensors of a step are the logits and what is made of them.

#include <algorithm>
#include <bit>
#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kLogSoftmax = {"log_softmax", "derivatives.yaml: _log_softmax keeps result"};
constexpr KernelKind kNll = {"nll_loss",
                             "derivatives.yaml: nll_loss keeps self, target and total_weight"};
constexpr KernelKind kFusedLoss = {
    "fused cross entropy",
    "Liger-Kernel, ops/cross_entropy.py: the gradient takes the place of the logits"};
constexpr KernelKind kFusedLinearLoss = {"fused linear cross entropy",
                                         "Liger-Kernel, ops/fused_linear_cross_entropy.py"};
constexpr KernelKind kMeanSquare = {"mse_loss", "derivatives.yaml: mse_loss keeps self and target"};

struct Targets {
  Tensor logits = {};
  Tensor copied = {};  // targets that are no longer those of the batch
};

// A token's loss is that of predicting the next one: the logits of the last are left out, or the
// targets are moved by one.
Targets Shifted(Stage& stage, const Operator& op, Tensor logits) {
  Kernels& kernels = stage.kernels;
  const std::int64_t samples = logits.shape.lengths[0];
  const std::int64_t rows = Rows(logits);
  Targets targets;
  if (op.shifted && kernels.framework().shift_copies_logits) {
    const std::int64_t left = rows - samples;
    logits = kernels.Copy(
        kernels.Slice(logits, ShapeOf({samples, left / samples, logits.shape.Last()})));
    // Of one sample the shifted targets are contiguous already.
    if (samples > 1) {
      targets.copied = kernels.Constant(ShapeOf({left}), kInt64, "targets");
    }
  } else if (op.shifted || op.transposed) {
    targets.copied = kernels.Constant(ShapeOf({rows}), kInt64, "targets");
  }
  targets.logits = std::move(logits);
  return targets;
}

// The negative log-likelihood of the targets.
Tensor LikelihoodLoss(Kernels& kernels, const Tensor& log_probabilities, const Tensor& targets) {
  const Tensor total = kernels.Constant(ShapeOf({1}), kFloat32, "total weight");
  return kernels.Fused(kNll, ShapeOf({1}), kFloat32, {{log_probabilities}},
                       {&log_probabilities, &targets, &total});
}

}  // namespace

std::int64_t Rows(const Tensor& logits) {
  Shape rows = logits.shape;
  --rows.rank;
  return OrLargest(rows.Elements());
}

Tensor Logits(Stage& stage, const Operator& op, Tensor x) {
  if (op.parameters.empty()) {
    return x;
  }
  Kernels& kernels = stage.kernels;
  x = LinearWithAdapter(stage, op, std::move(x));
  x = op.scaled ? kernels.Scale(x) : std::move(x);
  return op.softcap ? SoftCapped(kernels, std::move(x)) : x;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): given up by the caller
Tensor CrossEntropy(Kernels& kernels, Tensor logits, const Tensor& targets) {
  return LikelihoodLoss(kernels, kernels.KeepOutput(kLogSoftmax, logits), targets);
}

Tensor EagerCrossEntropy(Kernels& kernels, const Tensor& logits) {
  const Tensor log_probabilities =
      kernels.FusedKeepingOutput(kLogSoftmax, logits.shape, logits.type, {{logits}}, {});
  return LikelihoodLoss(kernels, log_probabilities, Tensor());
}

// Of a network whose layers are compiled, the loss that is not.
void EagerLossRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  const Tensor logits = Stored(kernels.Cast(Logits(stage, op, stage.Take(op)), kFloat32));
  stage.Put(op, EagerCrossEntropy(kernels, logits));
}

// As transformers compute it, from logits in float32 (loss/loss_utils.py).
void PlainLossRule(Stage& stage, const Operator& op) {
  Tensor logits = Logits(stage, op, stage.Take(op));
  Tensor as_they_are = op.keeps_logits ? logits : Tensor();
  logits = stage.kernels.Cast(std::move(logits), kFloat32);
  if (op.keeps_logits) {
    const bool as_cast = op.shifted && stage.kernels.framework().shift_copies_logits;
    stage.pass->logits = {as_cast ? logits : std::move(as_they_are)};
  }
  Targets targets = Shifted(stage, op, std::move(logits));
  stage.Put(op, CrossEntropy(stage.kernels, std::move(targets.logits), targets.copied));
}

// torch.nn.CrossEntropyLoss over logits in the format they have.
void UncastLossRule(Stage& stage, const Operator& op) {
  stage.Put(op, CrossEntropy(stage.kernels, Logits(stage, op, stage.Take(op)), Tensor()));
}

// One kernel that reads logits in the format they have and writes their gradient in their place.
void FusedLossRule(Stage& stage, const Operator& op) {
  const Tensor logits = Logits(stage, op, stage.Take(op));
  stage.Put(op, stage.kernels.Fused(kFusedLoss, ShapeOf({1}), kFloat32, {{logits, Gradient::kKept}},
                                    {&logits}));
}

// The output layer makes the logits of a chunk of tokens after the other, and then each chunk has a
// loss (torchtune, modules/transformer.py, chunked_output; modules/loss,
// CEWithChunkedOutputLoss).
void ChunkedLossRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const std::int64_t rows = Rows(x);
  const std::int64_t chunks = std::min(stage.batch.loss_chunks, rows);
  std::vector<Tensor> logits = kernels.SplitRows(x, rows, chunks);
  x = Tensor();
  for (Tensor& chunk : logits) {
    chunk = Logits(stage, op, std::move(chunk));
  }
  Tensor sum;
  for (Tensor& chunk : logits) {
    Tensor loss = kernels.framework().recomputes_elementwise
                      ? CompiledCrossEntropy(kernels, std::move(chunk))
                      : CrossEntropy(kernels, kernels.Cast(std::move(chunk), kFloat32), Tensor());
    sum = sum.storage == kNothing ? std::move(loss) : kernels.Add(sum, loss);
  }
  stage.Put(op, std::move(sum));
}

// Output layer and loss in one: the forward pass makes the gradients, of a chunk of tokens after
// the other, and keeps those of its input and its weight (Hsu et al. 2024, Liger Kernel, section
// 3.2; ops/fused_linear_cross_entropy.py). It reads the weight itself, so with an adapter the layer
// is run and its logits go the plain way.
void FusedLinearLossRule(Stage& stage, const Operator& op) {
  if (op.parameters.empty() || op.adapter != AdapterForm::kNone) {
    PlainLossRule(stage, op);
    return;
  }
  Kernels& kernels = stage.kernels;
  const Tensor x = stage.Take(op);
  const Tensor weight = stage.Parameter(op, 0);
  const Tensor bias = stage.Parameter(op, 1);
  const std::int64_t rows = Rows(x);
  const std::int64_t classes = op.widths.front();
  const std::int64_t chunks = (classes + x.shape.Last() - 1) / x.shape.Last();
  const auto chunk = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>((rows + chunks - 1) / chunks)));
  const Tensor input_gradient = kernels.Constant(x.shape, x.type, "gradient of the input");
  Tensor weight_gradient;
  if (weight.RequiresGradient()) {
    weight_gradient = kernels.Constant(weight.shape, weight.type, "gradient of the weight");
  }
  Tensor bias_gradient;
  if (bias.RequiresGradient()) {
    bias_gradient = kernels.Constant(bias.shape, bias.type, "gradient of the bias");
  }
  {
    const Shape shape = ShapeOf({std::min(chunk, rows), classes});
    const Tensor logits = kernels.Constant(shape, x.type, "logits of a chunk");
    const bool casts = x.type.bits < kFloat32.bits;
    const Tensor wide = casts ? kernels.Constant(shape, kFloat32, "logits in float32") : Tensor();
    const Tensor narrow = casts ? kernels.Constant(shape, x.type, "their gradient") : Tensor();
  }
  stage.Put(
      op, kernels.Fused(kFusedLinearLoss, ShapeOf({1}), kFloat32,
                        {{x, Gradient::kKept}, {weight, Gradient::kKept}, {bias, Gradient::kKept}},
                        {x.RequiresGradient() ? &input_gradient : nullptr, &weight_gradient,
                         bias.RequiresGradient() ? &bias_gradient : nullptr}));
}

void MeanSquareRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.kernels.Cast(stage.Take(op), kFloat32);
  // The mean is a view of a buffer as large as the input (1.13, measured: reference in
  // tests/truth).
  stage.Put(op, stage.kernels.Fused(kMeanSquare, x.shape, kFloat32, {{x}}, {&x}));
}

}  // namespace fourpiles
