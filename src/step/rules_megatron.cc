// Megatron-LM with Transformer Engine (megatron/core). Linear layers and norms keep what PyTorch's
// do; here is what its own kernels do otherwise.

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kDropout = {
    "bias dropout add",
    "Megatron-LM, core/fusions/fused_bias_dropout.py: one kernel, whose dropout "
    "keeps a mask of one byte an element"};
constexpr KernelKind kLoss = {
    "vocab parallel cross entropy",
    "Megatron-LM, core/tensor_parallel/cross_entropy.py: logits.float(), in whose place the "
    "exponentials and the softmax are written; keeps softmax, mask and target"};

}  // namespace

// Dropout and the addition behind it are one kernel: nothing stands between them.
void InPlaceDropoutRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  const Tensor mask = stage.kernels.Constant(x.shape, kBool, "mask");
  stage.Put(op, stage.kernels.InPlace(kDropout, std::move(x), Tensor(), {&mask}, Gradient::kNew));
}

// The attention core without flash attention (core/transformer/dot_product_attention.py): queries,
// keys and values stay views of what the linear layer made, scale, mask and softmax are one kernel
// in the format of the scores, and the result is brought back into the order of tokens.
void MegatronEagerAttentionRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor q = stage.Take(op, 0);
  const AttentionSizes sizes = SizesOf(op, q);
  Tensor k = Repeated(stage, stage.Take(op, 1), sizes, sizes.width);
  Tensor v = Repeated(stage, stage.Take(op, 2), sizes, sizes.value_width);
  const Shape square = ShapeOf({sizes.batch, sizes.heads, sizes.tokens, sizes.tokens});
  Tensor scores = kernels.MatMul(std::move(q), std::move(k), square);
  Tensor probabilities = kernels.Softmax(std::move(scores));
  if (op.dropout) {
    probabilities = kernels.Dropout(std::move(probabilities));
  }
  const Shape by_head = ShapeOf({sizes.batch, sizes.heads, sizes.tokens, sizes.value_width});
  Tensor mixed = kernels.Copy(kernels.MatMul(std::move(probabilities), std::move(v), by_head));
  const Shape by_token = ShapeOf({sizes.batch, sizes.tokens, sizes.heads * sizes.value_width});
  stage.Put(op, kernels.View(std::move(mixed), by_token));
}

// Queries, keys and values of a fused layer lie one behind the other in every token, which is none
// of the layouts that the kernels read: each is copied, so that no view of what the layer made
// lives on. cuDNN's kernel writes its result in the order of Megatron-LM's tensors, (sequence,
// batch, ...), and the output layer keeps it as it is (Transformer Engine,
// pytorch/attention/dot_product_attention/backends.py, FusedAttention; utils.py, get_qkv_layout).
void MegatronFusedAttentionRule(Stage& stage, const Operator& op) {
  for (std::size_t input = 0; input < op.inputs.size(); ++input) {
    Tensor x = stage.Take(op, input);
    // Those of other ranks come one after the other and are not kept.
    stage.PutValue(op.inputs[input], x.is_gathered ? std::move(x) : stage.kernels.Copy(x));
  }
  FlashAttentionRule(stage, op);
}

// flash-attn's kernel writes (batch, sequence, ...): of more than one sample the result is brought
// back into the order of Megatron-LM's tensors, beside the one that the kernel keeps (backends.py,
// FlashAttention.forward).
void MegatronFlashAttentionRule(Stage& stage, const Operator& op) {
  MegatronFusedAttentionRule(stage, op);
  if (stage.batch.micro_batch_size > 1) {
    stage.Put(op, stage.kernels.Copy(stage.TakeValue(op.outputs.front())));
  }
}

// 2 bytes a logit of 16 bits and 4 of its float32 copy. The logits live to the end of the forward
// pass, and their gradient stands beside the softmax in the backward pass.
void MegatronLossRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  const Tensor logits = Logits(stage, op, stage.Take(op));
  const Shape rows = ShapeOf({Rows(logits)});
  const Tensor softmax = logits.type.bits == kFloat32.bits
                             ? logits
                             : kernels.Constant(logits.shape, kFloat32, "softmax");
  const Tensor mask = kernels.Constant(rows, kBool, "targets of other ranks");
  const Tensor targets = kernels.Constant(rows, kInt64, "targets");
  stage.Put(op, kernels.Fused(kLoss, rows, kFloat32, {{logits}}, {&softmax, &mask, &targets}));
}

}  // namespace fourpiles
