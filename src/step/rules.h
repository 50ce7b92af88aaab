#pragma once

// The rules of PyTorch and of the networks written for it, one function an operator. Profiles
// (profiles.cc) put them together.

#include "step/rule.h"

namespace fourpiles {

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

// rules_mixture.cc
void ExpertsRule(Stage& stage, const Operator& op);
void StackedExpertsRule(Stage& stage, const Operator& op);

// rules_loss.cc
void PlainLossRule(Stage& stage, const Operator& op);
void FusedLossRule(Stage& stage, const Operator& op);
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

}  // namespace fourpiles
