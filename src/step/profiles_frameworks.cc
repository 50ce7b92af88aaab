// Frameworks with modules and kernels of their own. A kind of operator that stands in none of a
// table's rows is one that the framework lacks.

#include <initializer_list>
#include <utility>

#include "step/profiles.h"
#include "step/rules.h"

namespace fourpiles {
namespace {

void SetRules(Profile& profile, std::initializer_list<std::pair<OperatorKind, Rule>> rules) {
  for (const auto& [kind, rule] : rules) {
    SetRule(profile, kind, rule);
  }
}

// Level: how much is computed again (train_gpt2.cu, option -r).
Profile LlmCAtLevel(int level) {
  Profile profile = {.source = "llm.c, train_gpt2.cu, fill_in_activation_sizes",
                     .framework = {.direct_gradients = DirectGradients::kAll,
                                   .recompute_level = level,
                                   .copies_into_buckets = false},
                     .attention = {nullptr, nullptr, FlashAttentionRule},
                     .loss = {nullptr, LlmcLossRule, nullptr},
                     .vocabulary_multiple = 128,
                     .allocates_once = true};
  SetRules(profile, {{OperatorKind::kEmbedding, EmbeddingRule},
                     {OperatorKind::kPositions, LlmcPositionsRule},
                     {OperatorKind::kLinear, LinearRule},
                     {OperatorKind::kLayerNorm, LlmcLayerNormRule},
                     {OperatorKind::kSplit, SplitRule},
                     {OperatorKind::kAttention, FlashAttentionRule},
                     {OperatorKind::kActivation, LlmcActivationRule},
                     {OperatorKind::kAdd, AddRule},
                     {OperatorKind::kDropout, PassRule},  // it has none
                     {OperatorKind::kLoss, LlmcLossRule}});
  return profile;
}

}  // namespace

Profile Megatron() {
  Profile profile = {
      .name = "megatron",
      .summary = "Megatron-LM with Transformer Engine",
      .source =
          "Megatron-LM, megatron/core; Transformer Engine; Korthikanti et al. 2022, Reducing "
          "Activation Recomputation in Large Transformer Models, arXiv 2205.05198",
      // gradient_accumulation_fusion: core/tensor_parallel/layers.py.
      .framework = {.direct_gradients = DirectGradients::kLinear,
                    .frees_sent_outputs = true,
                    .copies_into_buckets = false},
      .attention = {MegatronEagerAttentionRule, MegatronFusedAttentionRule,
                    MegatronFlashAttentionRule},
      .loss = {MegatronLossRule, nullptr, nullptr},
      .vocabulary_multiple = 128};  // make_vocab_size_divisible_by
  SetRules(profile, {{OperatorKind::kEmbedding, EmbeddingRule},
                     {OperatorKind::kPositions, PositionsRule},
                     {OperatorKind::kTokenTypes, TokenTypesRule},
                     {OperatorKind::kLinear, LinearRule},
                     {OperatorKind::kLayerNorm, LayerNormRule},
                     {OperatorKind::kRmsNorm, FusedRmsNormRule},
                     {OperatorKind::kRotary, FusedRotaryRule},
                     {OperatorKind::kSplit, SplitRule},
                     {OperatorKind::kConcat, ConcatRule},
                     {OperatorKind::kAttention, MegatronFusedAttentionRule},
                     {OperatorKind::kExpand, ExpandRule},
                     {OperatorKind::kExperts, MegatronExpertsRule},
                     {OperatorKind::kActivation, ActivationRule},
                     {OperatorKind::kGate, FusedGateRule},
                     {OperatorKind::kMultiply, MultiplyRule},
                     {OperatorKind::kScale, ScaleRule},
                     {OperatorKind::kAdd, AddRule},
                     {OperatorKind::kDropout, InPlaceDropoutRule},
                     {OperatorKind::kLoss, MegatronLossRule},
                     {OperatorKind::kGatherTokens, GatherTokensAgainRule},
                     {OperatorKind::kScatterTokens, ScatterTokensRule},
                     {OperatorKind::kGatherContext, GatherTokensAgainRule}});
  return profile;
}

// Gradients of weights are tensors of their own first, and added by the hook of the data-parallel
// wrapper (core/distributed/distributed_data_parallel.py, _make_backward_post_hook).
Profile MegatronWithSeparateGradients() {
  Profile profile = Megatron();
  profile.name = "megatron-separate-gradients";
  profile.summary = "Megatron-LM with --no-gradient-accumulation-fusion";
  profile.framework.direct_gradients = DirectGradients::kNone;
  return profile;
}

Profile LlmC() {
  Profile profile = LlmCAtLevel(1);
  profile.name = "llm.c";
  profile.summary = "llm.c with cuDNN, which computes GELU again: its default";
  return profile;
}

Profile LlmCKeepingGelu() {
  Profile profile = LlmCAtLevel(0);
  profile.name = "llm.c-r0";
  profile.summary = "llm.c with cuDNN and -r 0, which computes nothing again";
  return profile;
}

Profile LlmCRecomputingNorms() {
  Profile profile = LlmCAtLevel(2);
  profile.name = "llm.c-r2";
  profile.summary = "llm.c with cuDNN and -r 2, which computes GELU and layer norms again";
  return profile;
}

Profile LitGpt() {
  Profile profile = {.name = "litgpt",
                     .summary = "Lightning's LitGPT of 2024, on PyTorch 2.1",
                     .source =
                         "LitGPT, litgpt/model.py, lora.py, rmsnorm.py, utils.py; Lightning "
                         "Fabric, plugins/precision/half.py",
                     // cos and sin are buffers of the model.
                     .framework = {.mean_keeps_input = true,
                                   .rotary_casts_per_use = true,
                                   .coded_product_keeps_input = true,
                                   .codes_are_of_float16 = true,
                                   .flat_parameters = true,
                                   .loop_holds_logits = true},
                     .attention = {EagerAttentionRule, LitGptAttentionRule, nullptr},
                     .loss = {nullptr, nullptr, LitGptLossRule},
                     .codes_output_layer = true,
                     .fuses_queries_keys_values = true};
  SetRules(profile, {{OperatorKind::kEmbedding, EmbeddingRule},
                     {OperatorKind::kLinear, LitGptLinearRule},
                     {OperatorKind::kLayerNorm, LayerNormRule},
                     {OperatorKind::kRmsNorm, LitGptRmsNormRule},
                     {OperatorKind::kRotary, LitGptRotaryRule},
                     {OperatorKind::kSplit, SplitRule},
                     {OperatorKind::kConcat, ConcatRule},
                     {OperatorKind::kAttention, LitGptAttentionRule},
                     {OperatorKind::kActivation, ActivationRule},
                     {OperatorKind::kGate, ComposedGateRule},
                     {OperatorKind::kMultiply, MultiplyRule},
                     {OperatorKind::kScale, ScaleRule},
                     {OperatorKind::kAdd, AddRule},
                     {OperatorKind::kDropout, DropoutRule},
                     {OperatorKind::kLoss, LitGptLossRule}});
  return profile;
}

}  // namespace fourpiles
