// Lightning's LitGPT (litgpt/model.py, litgpt/lora.py, litgpt/utils.py) under Fabric.

#include <algorithm>
#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kRoot = {"rsqrt", "derivatives.yaml: rsqrt keeps result"};
constexpr KernelKind kIndexCopy = {"index_copy",
                                   "derivatives.yaml: index_copy keeps index and source"};

// LoRA of some of the fused queries, keys and values: its outputs are set into zeros as wide as all
// of them (litgpt/lora.py, LoRAQKVLinear.zero_pad).
Tensor WithFusedAdapter(Stage& stage, const Operator& op, Tensor x, const Tensor& y) {
  Kernels& kernels = stage.kernels;
  const Tensor down = stage.Parameter(op, op.parameters.size() - 2);
  const Tensor up = stage.Parameter(op, op.parameters.size() - 1);
  if (op.adapter_dropout) {
    x = kernels.Dropout(std::move(x));
  }
  const Tensor z = kernels.Linear(std::move(x), down, Tensor(), down.shape.lengths[0]);
  const Tensor source = kernels.Linear(z, up, Tensor(), up.shape.lengths[0]);
  const Tensor padded = kernels.Fused(kIndexCopy, y.shape, y.type, {{source}}, {&source});
  return kernels.Add(y, kernels.Scale(padded));
}

}  // namespace

void LitGptLinearRule(Stage& stage, const Operator& op) {
  const bool fused =
      op.adapter == AdapterForm::kLowRank &&
      stage.Parameter(op, op.parameters.size() - 1).shape.lengths[0] < op.widths.front();
  if (!fused) {
    LinearRule(stage, op);
    return;
  }
  Tensor x = stage.Take(op);
  const Tensor bias = op.parameters.size() > 3 ? stage.Parameter(op, 1) : Tensor();
  const Tensor y = stage.kernels.Linear(x, stage.Parameter(op, 0), bias, op.widths.front());
  stage.Put(op, WithFusedAdapter(stage, op, std::move(x), y));
}

// weight × (x × 1/√mean(x × x)), all in the format of x (litgpt/rmsnorm.py, up to 2024).
void LitGptRmsNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  const Tensor x = stage.Take(op);
  const Tensor mean = kernels.Mean(kernels.Multiply(x, x), x.shape.WithLast(1));
  const Tensor normed = kernels.Multiply(x, kernels.KeepOutput(kRoot, kernels.Scale(mean)));
  stage.Put(op, kernels.Multiply(stage.Parameter(op, 0), normed));
}

// The turned part of each head is concatenated with the rest, be it empty: one more tensor.
void LitGptRotaryRule(Stage& stage, const Operator& op) {
  ComposedRotaryRule(stage, op);
  const Value output = op.outputs.front();
  stage.PutValue(output, stage.kernels.Copy(stage.TakeValue(output)));
}

// The kernel writes heads outside a token, as the concatenated queries lie, so that they are copied
// back inside (litgpt/model.py, CausalSelfAttention: y.reshape).
void LitGptAttentionRule(Stage& stage, const Operator& op) {
  SdpaAttentionRule(stage, op);
  if (!op.eager) {
    const Value output = op.outputs.front();
    stage.PutValue(output, stage.kernels.Copy(stage.TakeValue(output)));
  }
}

// Logits of 128 tokens at a time (lm_head_chunk_size) are in float32 when they leave the model
// (lightning/fabric/plugins/precision/half.py, convert_output), and the training loop holds them
// until it has the next ones; each chunk has a cross entropy of its own (utils.py,
// chunked_cross_entropy). Chunks are not capped (lora.py, GPT.forward, up to October 2024).
void LitGptLossRule(Stage& stage, const Operator& op) {
  constexpr std::int64_t kChunk = 128;  // tokens
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const std::int64_t rows = Rows(x);
  const std::int64_t usual = (stage.batch.sequence_length + kChunk - 1) / kChunk;
  const std::int64_t chosen = stage.batch.loss_chunks > 1 ? stage.batch.loss_chunks : usual;
  std::vector<Tensor> parts = kernels.SplitRows(x, rows, std::min(chosen, rows));
  x = Tensor();
  Operator head = op;
  head.softcap = false;
  std::vector<Tensor> logits;
  logits.reserve(parts.size());
  for (Tensor& part : parts) {
    logits.push_back(kernels.Cast(Logits(stage, head, std::move(part)), kFloat32));
  }
  stage.pass->logits = logits;
  stage.pass->logits_made = kernels.Now();
  Tensor sum;
  for (const Tensor& chunk : logits) {
    Tensor loss = CrossEntropy(kernels, chunk, Tensor());
    sum = sum.storage == kNothing ? std::move(loss) : kernels.Add(sum, loss);
  }
  stage.Put(op, std::move(sum));
}

}  // namespace fourpiles
