#include "step/profile.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "step/rules.h"

namespace fourpiles {
namespace {

void Set(Profile& profile, OperatorKind kind, Rule rule) {
  profile.rules[static_cast<std::size_t>(kind)] = rule;
}

// PyTorch run operator by operator, with the modules of transformers.
Profile PyTorch() {
  Profile profile = {.name = "pytorch",
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
  };
  for (const auto& [kind, rule] : kRules) {
    Set(profile, kind, rule);
  }
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
  return profile;
}

// Liger-Kernel's fused RMS norm, SwiGLU, rotary embeddings and output layer with loss.
Profile Liger() {
  Profile profile = PyTorch();
  profile.name = "liger";
  profile.summary = "PyTorch with the kernels of Liger-Kernel";
  profile.source = "Hsu et al. 2024, Liger Kernel, arXiv 2410.10989; Liger-Kernel, ops";
  Set(profile, OperatorKind::kRmsNorm, FusedRmsNormRule);
  Set(profile, OperatorKind::kGate, FusedGateRule);
  Set(profile, OperatorKind::kRotary, FusedRotaryRule);
  Set(profile, OperatorKind::kLoss, FusedLinearLossRule);
  return profile;
}

using MakeProfile = Profile (*)();
constexpr MakeProfile kProfiles[] = {PyTorch, PyTorch21, PyTorch113OnCpu, Liger};

Rule RuleOf(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kEager:
      return EagerAttentionRule;
    case AttentionKind::kSdpa:
      return SdpaAttentionRule;
    case AttentionKind::kFlash:
      break;
  }
  return FlashAttentionRule;
}

Rule RuleOf(LossKind kind) {
  switch (kind) {
    case LossKind::kPlain:
      return PlainLossRule;
    case LossKind::kFused:
      return FusedLossRule;
    case LossKind::kChunked:
      break;
  }
  return ChunkedLossRule;
}

}  // namespace

std::string_view Name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kEager:
      return "eager";
    case AttentionKind::kSdpa:
      return "sdpa";
    case AttentionKind::kFlash:
      break;
  }
  return "flash";
}

std::string_view Name(LossKind kind) {
  switch (kind) {
    case LossKind::kPlain:
      return "plain";
    case LossKind::kFused:
      return "fused";
    case LossKind::kChunked:
      break;
  }
  return "chunked";
}

std::vector<std::string_view> ImplementationNames() {
  std::vector<std::string_view> names;
  for (const MakeProfile make : kProfiles) {
    names.push_back(make().name);
  }
  return names;
}

Result<Profile> FindProfile(std::string_view name, const ProfileChoices& choices,
                            std::string_view where) {
  const std::vector<std::string_view> names = ImplementationNames();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    return WrongUsage(
        {.where = std::string(where),
         .found = fmt::format("unknown implementation \"{}\"{}", name, DidYouMean(name, names)),
         .hint = fmt::format("known: {}", fmt::join(names, ", "))});
  }
  Profile profile = kProfiles[found - names.begin()]();
  if (choices.attention) {
    Set(profile, OperatorKind::kAttention, RuleOf(*choices.attention));
  }
  if (choices.loss) {
    Set(profile, OperatorKind::kLoss, RuleOf(*choices.loss));
  }
  return profile;
}

void UseFusedNorms(Profile& profile) {
  Set(profile, OperatorKind::kRmsNorm, FusedRmsNormRule);
}

Profile LowerBound() {
  return {.name = "lower-bound",
          .summary = "of each layer its output and no more",
          .source = "any implementation keeps the input of a layer to run it backward",
          .lower_bound = true};
}

}  // namespace fourpiles
