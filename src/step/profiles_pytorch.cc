// PyTorch, its versions, and what is added to it.

#include <utility>

#include "step/profiles.h"
#include "step/rules.h"

namespace fourpiles {

// PyTorch run operator by operator, with the modules of transformers.
Profile PyTorch() {
  Profile profile = {
      .name = "pytorch",
      .summary = "PyTorch 2.2 and later on CUDA, run operator by operator",
      .source = "PyTorch, tools/autograd/derivatives.yaml; transformers, modeling files"};
  constexpr std::pair<OperatorKind, Rule> kRules[] = {
      {OperatorKind::kEmbedding, EmbeddingRule},
      {OperatorKind::kPositions, PositionsRule},
      {OperatorKind::kTokenTypes, TokenTypesRule},
      {OperatorKind::kConstant, ConstantRule},
      {OperatorKind::kImages, ImagesRule},
      {OperatorKind::kInputGradient, InputGradientRule},
      {OperatorKind::kPrependToken, PrependTokenRule},
      {OperatorKind::kConcatChannels, ConcatChannelsRule},
      {OperatorKind::kBroadcastAdd, BroadcastAddRule},
      {OperatorKind::kPatches, PatchesRule},
      {OperatorKind::kLinear, LinearRule},
      {OperatorKind::kLayerNorm, LayerNormRule},
      {OperatorKind::kRmsNorm, ComposedRmsNormRule},
      {OperatorKind::kRotary, ComposedRotaryRule},
      {OperatorKind::kSplit, SplitRule},
      {OperatorKind::kConcat, ConcatRule},
      {OperatorKind::kExpand, ExpandRule},
      {OperatorKind::kAttention, SdpaAttentionRule},
      {OperatorKind::kActivation, ActivationRule},
      {OperatorKind::kGate, ComposedGateRule},
      {OperatorKind::kMultiply, MultiplyRule},
      {OperatorKind::kScale, ScaleRule},
      {OperatorKind::kAdd, AddRule},
      {OperatorKind::kDropout, DropoutRule},
      {OperatorKind::kExperts, ExpertsRule},
      {OperatorKind::kStackedExperts, StackedExpertsRule},
      {OperatorKind::kFirstToken, FirstTokenRule},
      {OperatorKind::kLoss, PlainLossRule},
      {OperatorKind::kMeanSquare, MeanSquareRule},
      {OperatorKind::kConvolution, ConvolutionRule},
      {OperatorKind::kBatchNorm, BatchNormRule},
      {OperatorKind::kGroupNorm, GroupNormRule},
      {OperatorKind::kMaxPool, MaxPoolRule},
      {OperatorKind::kMeanPool, MeanPoolRule},
      {OperatorKind::kUpsample, UpsampleRule},
      {OperatorKind::kPixelAttention, PixelAttentionRule},
      {OperatorKind::kLstm, LstmRule},
      {OperatorKind::kGatherTokens, GatherTokensRule},
      {OperatorKind::kScatterTokens, ScatterTokensRule},
      {OperatorKind::kGatherContext, GatherTokensAgainRule},
  };
  for (const auto& [kind, rule] : kRules) {
    SetRule(profile, kind, rule);
  }
  profile.attention = {EagerAttentionRule, SdpaAttentionRule, FlashAttentionRule};
  profile.loss = {PlainLossRule, FusedLossRule, ChunkedLossRule};
  return profile;
}

// Debian's build of 1.13.1, on which tests/truth was measured.
Profile PyTorch113OnCpu() {
  Profile profile = PyTorch();
  profile.name = "pytorch-1.13-cpu";
  profile.summary = "PyTorch 1.13 on the processor, run operator by operator";
  profile.framework = {.mean_keeps_input = true,
                       .dropout_keeps_float_mask = true,
                       .norms_keep_input_format = true,
                       .autocast_float32 = false,
                       .sums_in_place = false,
                       .rotary_casts_per_use = true,
                       .masks_are_buffers = true,
                       .shift_copies_logits = true,
                       .random_state_bytes = 5056,
                       .on_processor = true};
  return profile;
}

// PyTorch up to 2.1.
Profile PyTorch21() {
  Profile profile = PyTorch();
  profile.name = "pytorch-2.1";
  profile.summary = "PyTorch up to 2.1 on CUDA, whose mean() keeps its input";
  profile.framework.mean_keeps_input = true;
  profile.framework.shift_copies_logits = true;
  profile.framework.flat_parameters = true;
  return profile;
}

// PyTorch up to 1.13 on CUDA.
Profile PyTorch1() {
  Profile profile = PyTorch21();
  profile.name = "pytorch-1";
  profile.summary = "PyTorch up to 1.13 on CUDA, whose zero_grad() keeps the gradients";
  profile.framework.zeroes_gradients = true;
  return profile;
}

// FullyShardedDataParallel, the sharding of PyTorch before fully_shard.
Profile PyTorchFsdp1() {
  Profile profile = PyTorch();
  profile.name = "pytorch-fsdp1";
  profile.summary = "PyTorch whose --fsdp is FSDP1: a unit's parameters are one flat tensor";
  profile.source = "PyTorch, torch/distributed/fsdp/_flat_param.py; pytorch";
  profile.framework.flat_parameters = true;
  return profile;
}

// Liger-Kernel's fused RMS norm, SwiGLU, rotary embeddings and output layer with loss.
Profile Liger() {
  Profile profile = PyTorch();
  profile.name = "liger";
  profile.summary = "PyTorch with the kernels of Liger-Kernel";
  profile.source = "Hsu et al. 2024, Liger Kernel, arXiv 2410.10989; Liger-Kernel, ops";
  SetRule(profile, OperatorKind::kRmsNorm, FusedRmsNormRule);
  SetRule(profile, OperatorKind::kGate, LigerGateRule);
  SetRule(profile, OperatorKind::kRotary, FusedRotaryRule);
  SetRule(profile, OperatorKind::kLoss, FusedLinearLossRule);
  return profile;
}

// torchtune's modules keep what those of transformers do (torchtune/modules/rms_norm.py,
// attention.py, feed_forward.py); its training loop holds no logits.
Profile Torchtune() {
  Profile profile = PyTorch();
  profile.name = "torchtune";
  profile.summary = "torchtune of 2024, run operator by operator";
  profile.source = "torchtune 0.4, modules and recipes";
  return profile;
}

// Layers are compiled one by one, and of the losses the chunked one alone
// (torchtune/training/_compile.py, recipes/full_finetune_single_device.py).
Profile TorchtuneCompile() {
  Profile profile = PyTorchCompile();
  profile.name = "torchtune-compile";
  profile.summary = "torchtune of 2024 with compile=True";
  profile.source = "torchtune 0.4, training/_compile.py; pytorch-compile";
  SetRule(profile, OperatorKind::kLoss, EagerLossRule);
  profile.loss = {EagerLossRule, nullptr, ChunkedLossRule};
  return profile;
}

// A model of what the partitioner decides, not a run of it: see rules_compile.cc.
Profile PyTorchCompile() {
  Profile profile = PyTorch();
  profile.name = "pytorch-compile";
  profile.summary = "PyTorch with torch.compile, as a model of what its partitioner keeps";
  profile.source = "PyTorch, functorch/_functorch/partitioners.py, min_cut_rematerialization";
  profile.framework.recomputes_elementwise = true;
  SetRule(profile, OperatorKind::kRmsNorm, FusedRmsNormRule);
  SetRule(profile, OperatorKind::kGate, FusedGateRule);
  SetRule(profile, OperatorKind::kRotary, FusedRotaryRule);
  SetRule(profile, OperatorKind::kLoss, CompiledLossRule);
  // Inductor makes a fused kernel of attention that is written step by step
  // (_inductor/fx_passes/fuse_attention.py), or does not: that is not modelled.
  profile.attention = {nullptr, SdpaAttentionRule, FlashAttentionRule};
  profile.loss = {CompiledLossRule, FusedLossRule, ChunkedLossRule};
  return profile;
}

// torchtitan's Llama (models/llama3), whose norms are one kernel (torch.nn.RMSNorm) and whose
// embedding, and last norm with the output layer, are FSDP2 units of their own
// (models/llama3/infra/parallelize.py, apply_fsdp, since August 2025).
Profile Torchtitan() {
  Profile profile = PyTorch();
  profile.name = "torchtitan";
  profile.summary = "torchtitan since August 2025, run operator by operator";
  profile.source = "torchtitan 0.2, models/llama3, components/loss.py, distributed";
  profile.framework.shards_root_apart = true;
  SetRule(profile, OperatorKind::kRmsNorm, FusedRmsNormRule);
  SetRule(profile, OperatorKind::kRotary, TorchtitanRotaryRule);
  SetRule(profile, OperatorKind::kLoss, TorchtitanLossRule);
  profile.loss = {TorchtitanLossRule, nullptr, TorchtitanChunkedLossRule};
  return profile;
}

// The layers are compiled one by one, and the loss is compiled.
Profile TorchtitanCompile() {
  Profile profile = PyTorchCompile();
  profile.name = "torchtitan-compile";
  profile.summary = "torchtitan since August 2025, layers and loss compiled";
  profile.source = "torchtitan 0.2, models/llama3/infra/parallelize.py; pytorch-compile";
  profile.framework.shards_root_apart = true;
  profile.loss = {CompiledLossRule, nullptr, ChunkedLossRule};
  return profile;
}

// Norms are composed (models/norms.py), and embedding, last norm and output layer belong to the
// whole (parallelisms/parallelize_llama.py, apply_fsdp).
Profile Torchtitan2024() {
  Profile profile = Torchtitan();
  profile.name = "torchtitan-2024";
  profile.summary = "torchtitan of 2024 to March 2025, run operator by operator";
  profile.source = "torchtitan of December 2024, models/llama, parallelisms/parallelize_llama.py";
  profile.framework.shards_root_apart = false;
  profile.framework.keeps_last_layer = true;
  SetRule(profile, OperatorKind::kRmsNorm, ComposedRmsNormRule);
  return profile;
}

// The loss is not compiled (train_spec's loss_fn: "causes CUDA errors, turning off for now").
Profile Torchtitan2024Compile() {
  Profile profile = TorchtitanCompile();
  profile.name = "torchtitan-2024-compile";
  profile.summary = "torchtitan of 2024 to March 2025, layers compiled";
  profile.framework.shards_root_apart = false;
  profile.framework.keeps_last_layer = true;
  SetRule(profile, OperatorKind::kLoss, TorchtitanLossRule);
  profile.loss = {TorchtitanLossRule, nullptr, TorchtitanChunkedLossRule};
  return profile;
}

}  // namespace fourpiles
