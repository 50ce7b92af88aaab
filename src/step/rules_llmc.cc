// llm.c (train_gpt2.cu, fill_in_activation_sizes): every tensor is allocated once, before the first
// step. What the rules keep is there all the time (Profile::allocates_once), and gradients of
// activations are written to three scratch buffers, which stand here with the loss.

#include <algorithm>
#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kGelu = {"gelu", "llm.c, llmc/gelu.cuh: reads its input"};
constexpr KernelKind kLayerNorm = {"layernorm",
                                   "llm.c, llmc/layernorm.cuh: reads input, mean and 1/deviation"};
constexpr KernelKind kClassifier = {
    "fused classifier",
    "llm.c, llmc/fused_classifier.cuh: the gradient takes the place of the "
    "logits; train_gpt2.cu: output, scratch_bt4c, scratch_btc, losses"};

// The buffer of the pass, made where it is first needed.
const Tensor& SharedBuffer(Stage& stage, Tensor& buffer, const Tensor& like, const char* slot) {
  if (buffer.type.bits == 0) {
    buffer = stage.kernels.Constant(like.shape, like.type, slot);
  }
  return buffer;
}

}  // namespace

// Added by the kernel that looks tokens up: llmc/encoder.cuh.
void LlmcPositionsRule(Stage& stage, const Operator& op) {
  const Shape shape = ShapeOf({1, stage.batch.sequence_length, op.widths.front()});
  stage.Put(op, stage.kernels.Embedding(stage.Parameter(op, 0), Tensor(), shape));
}

// From level 2 on all layers write to the buffer of the last norm, and the backward pass runs it
// again.
void LlmcLayerNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  if (kernels.framework().recompute_level < 2) {
    LayerNormRule(stage, op);
    return;
  }
  const Tensor x = stage.Take(op);
  Shape rows = x.shape;
  --rows.rank;
  const Tensor mean = kernels.Constant(rows, kFloat32, "mean");
  const Tensor deviation = kernels.Constant(rows, kFloat32, "1/deviation");
  const Tensor& normed = SharedBuffer(stage, stage.pass->normed, x, "norm of any layer");
  stage.Put(op, kernels.Into(kLayerNorm, normed,
                             {{x}, {stage.Parameter(op, 0)}, {stage.Parameter(op, 1)}},
                             {&x, &mean, &deviation}));
}

// One kernel, however the formula is written (llmc/gelu.cuh). From level 1 on all layers write to
// one buffer, and the backward pass runs it again.
void LlmcActivationRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  if (stage.kernels.framework().recompute_level < 1) {
    stage.Put(op, stage.kernels.KeepInput(kGelu, x));
    return;
  }
  const Tensor& activated = SharedBuffer(stage, stage.pass->activated, x, "GELU of any layer");
  stage.Put(op, stage.kernels.Into(kGelu, activated, {{x}}, {&x}));
}

// "output" holds the logits, and queries, keys and values on their way back; of the other two
// scratch buffers one is 4 channels wide and one 1.
void LlmcLossRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const ElementType type = x.type;
  const std::int64_t rows = Rows(x);
  const std::int64_t channels = x.shape.Last();
  const Tensor output =
      kernels.Constant(ShapeOf({rows, std::max(op.widths.front(), 3 * channels)}), type, "output");
  const Tensor wide = kernels.Constant(ShapeOf({rows, 4 * channels}), type, "scratch_bt4c");
  const Tensor narrow = kernels.Constant(ShapeOf({rows, channels}), type, "scratch_btc");
  const Tensor losses = kernels.Constant(ShapeOf({rows}), kFloat32, "losses");
  const Tensor logits = Logits(stage, op, std::move(x));
  stage.Put(op, kernels.Fused(kClassifier, ShapeOf({1}), kFloat32, {{logits}},
                              {&output, &wide, &narrow, &losses}));
}

}  // namespace fourpiles
