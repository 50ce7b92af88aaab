#pragma once

// The rules of frameworks and of the networks written for them, one function an operator. Profiles
// (profiles.h) put them together.

#include "step/rule.h"

namespace fourpiles {

// --- PyTorch and transformers ---

// rules_layers.cc
void EmbeddingRule(Stage& stage, const Operator& op);
void PositionsRule(Stage& stage, const Operator& op);
void TokenTypesRule(Stage& stage, const Operator& op);
void ConstantRule(Stage& stage, const Operator& op);
void LinearRule(Stage& stage, const Operator& op);
void LayerNormRule(Stage& stage, const Operator& op);
void ComposedRmsNormRule(Stage& stage, const Operator& op);
void FusedRmsNormRule(Stage& stage, const Operator& op);
void ActivationRule(Stage& stage, const Operator& op);
void ComposedGateRule(Stage& stage, const Operator& op);
void FusedGateRule(Stage& stage, const Operator& op);
void LigerGateRule(Stage& stage, const Operator& op);
void PassRule(Stage& stage, const Operator& op);
void MultiplyRule(Stage& stage, const Operator& op);
void ScaleRule(Stage& stage, const Operator& op);
void AddRule(Stage& stage, const Operator& op);
void DropoutRule(Stage& stage, const Operator& op);
void SplitRule(Stage& stage, const Operator& op);
void ConcatRule(Stage& stage, const Operator& op);
void ExpandRule(Stage& stage, const Operator& op);
void InputGradientRule(Stage& stage, const Operator& op);
void PrependTokenRule(Stage& stage, const Operator& op);
void FirstTokenRule(Stage& stage, const Operator& op);

// What stands in other rules as well: an activation, and its product with another input.
Tensor Activate(Kernels& kernels, Tensor x, Activation activation);
Tensor SoftCapped(Kernels& kernels, Tensor x);  // tanh(x / bound) × bound
Tensor Gated(Kernels& kernels, Tensor gate, Tensor up, Activation activation);

// rules_attention.cc
void ComposedRotaryRule(Stage& stage, const Operator& op);
void FusedRotaryRule(Stage& stage, const Operator& op);
void EagerAttentionRule(Stage& stage, const Operator& op);
void SdpaAttentionRule(Stage& stage, const Operator& op);
void FlashAttentionRule(Stage& stage, const Operator& op);

// rules_parallel.cc
void GatherTokensRule(Stage& stage, const Operator& op);
void GatherTokensAgainRule(Stage& stage, const Operator& op);
void ScatterTokensRule(Stage& stage, const Operator& op);

// rules_mixture.cc
void ExpertsRule(Stage& stage, const Operator& op);
void StackedExpertsRule(Stage& stage, const Operator& op);

// rules_loss.cc
void PlainLossRule(Stage& stage, const Operator& op);
void FusedLossRule(Stage& stage, const Operator& op);
void UncastLossRule(Stage& stage, const Operator& op);
void EagerLossRule(Stage& stage, const Operator& op);
void ChunkedLossRule(Stage& stage, const Operator& op);
void FusedLinearLossRule(Stage& stage, const Operator& op);
void MeanSquareRule(Stage& stage, const Operator& op);

// rules_images.cc
void ImagesRule(Stage& stage, const Operator& op);
void ConcatChannelsRule(Stage& stage, const Operator& op);
void BroadcastAddRule(Stage& stage, const Operator& op);
void PatchesRule(Stage& stage, const Operator& op);
void ConvolutionRule(Stage& stage, const Operator& op);
void BatchNormRule(Stage& stage, const Operator& op);
void GroupNormRule(Stage& stage, const Operator& op);
void MaxPoolRule(Stage& stage, const Operator& op);
void MeanPoolRule(Stage& stage, const Operator& op);
void UpsampleRule(Stage& stage, const Operator& op);
void PixelAttentionRule(Stage& stage, const Operator& op);

// rules_recurrent.cc
void LstmRule(Stage& stage, const Operator& op);

// --- Other implementations ---

// rules_compile.cc
void CompiledLossRule(Stage& stage, const Operator& op);

// rules_megatron.cc
void InPlaceDropoutRule(Stage& stage, const Operator& op);
void MegatronEagerAttentionRule(Stage& stage, const Operator& op);
void MegatronFusedAttentionRule(Stage& stage, const Operator& op);
void MegatronExpertsRule(Stage& stage, const Operator& op);
void MegatronFlashAttentionRule(Stage& stage, const Operator& op);
void MegatronLossRule(Stage& stage, const Operator& op);

// rules_llmc.cc
void LlmcPositionsRule(Stage& stage, const Operator& op);
void LlmcLayerNormRule(Stage& stage, const Operator& op);
void LlmcActivationRule(Stage& stage, const Operator& op);
void LlmcLossRule(Stage& stage, const Operator& op);

// rules_torchtitan.cc
void TorchtitanRotaryRule(Stage& stage, const Operator& op);
void TorchtitanLossRule(Stage& stage, const Operator& op);
void TorchtitanChunkedLossRule(Stage& stage, const Operator& op);

// rules_litgpt.cc
void LitGptLinearRule(Stage& stage, const Operator& op);
void LitGptRmsNormRule(Stage& stage, const Operator& op);
void LitGptAttentionRule(Stage& stage, const Operator& op);
void LitGptRotaryRule(Stage& stage, const Operator& op);
void LitGptLossRule(Stage& stage, const Operator& op);

// --- What rules share ---

// rules_attention.cc: the sizes of attention, and a key or value once for every query head.
struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t key_tokens = 1;  // with those of a prefix
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t width = 1;        // of a query and a key
  std::int64_t value_width = 1;  // of a value
};
AttentionSizes SizesOf(const Operator& op, const Tensor& q);
Tensor Repeated(Stage& stage, Tensor x, const AttentionSizes& sizes, std::int64_t width);

// rules_adapter.cc: how many parameters an operator has without its adapter's; a linear layer with
// its adapter, if it has one; what an embedding puts out with that of its adapter; trained tokens
// before those of a sample, and trained keys and values before those of a layer.
std::size_t OwnParameters(const Operator& op);
Tensor LinearWithAdapter(Stage& stage, const Operator& op, Tensor x);
Tensor EmbeddingWithAdapter(Stage& stage, const Operator& op, Tensor y);
Tensor WithPrompt(Stage& stage, const Operator& op, const Tensor& x);
void AddPrefix(Stage& stage, const Operator& op, Tensor& key, Tensor& value);

// rules_loss.cc: tokens; the output layer, where the loss has one; log-probabilities and the
// negative log-likelihood, in float32 (torch/nn/functional.py, cross_entropy).
std::int64_t Rows(const Tensor& logits);
Tensor Logits(Stage& stage, const Operator& op, Tensor x);
Tensor CrossEntropy(Kernels& kernels, Tensor logits, const Tensor& targets);
// The same of logits that are not compiled with it.
Tensor EagerCrossEntropy(Kernels& kernels, const Tensor& logits);
// rules_compile.cc: one kernel over the logits as they are.
Tensor CompiledCrossEntropy(Kernels& kernels, Tensor logits);

}  // namespace fourpiles
