// --base-format, --offload and --optimizer-kernels in-backward.

#include <algorithm>

#include <gtest/gtest.h>

#include "base/testing.h"
#include "plan/budget.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Budget Of(const char* model, const Typed& typed) {
  return PlayedBudget(MakeJob(JobKind::kFinetune, model, TypedSettings(typed)).value()).value();
}

// Llama-2-7B: 32 × (4 × 4096² + 3 × 4096 × 11,008) weights of linear layers.
constexpr std::int64_t kLinear = 32 * (4 * 4096LL * 4096 + 3 * 4096LL * 11'008);
static_assert(kLinear == 6'476'005'376);
constexpr std::int64_t kOutputLayer = 32'000LL * 4096;
// Embedding and output layer, and 65 norms, in bfloat16.
constexpr std::int64_t kPlain = 2 * (2 * kOutputLayer + 65 * 4096);
// Of q_proj and v_proj, in float32 beside PyTorch.
constexpr std::int64_t kAdapters = 4 * 32 * 2 * 8 * (4096 + 4096LL);

// Dettmers et al. 2023, QLoRA, arXiv 2305.14314, section 3: blocks of 64 codes of 4 bits share a
// float32; double quantisation makes 8 bits of it, and blocks of 256 of these share a float32. Each
// of the 224 matrices has a table of the 16 codes in float32, and double quantisation one of 256
// and an offset (bitsandbytes, functional.py, QuantState).
TEST(BaseFormat, NormalFloatsTakeTheirCodesAndTheirScales) {
  Typed typed = {
      {"adapter", "lora:rank=8,targets=q_proj+v_proj"}, {"recipe", "bf16"}, {"base-format", "nf4"}};
  EXPECT_EQ(Of("llama-2-7b", typed).piles.at(Pile::kWeights),
            Bytes(kLinear / 2 + kLinear / 64 * 4 + 224 * 64 + kPlain + kAdapters));
  typed["base-format"] = "nf4-double";
  EXPECT_EQ(Of("llama-2-7b", typed).piles.at(Pile::kWeights),
            Bytes(kLinear / 2 + kLinear / 64 + kLinear / (64 * 256) * 4 + 224 * (64 + 4 * 256 + 4) +
                  kPlain + kAdapters));
}

// Lightning Fabric replaces every linear layer, the output layer too; LitGPT's adapters have the
// format of the weights. Queries, keys and values are one matrix: 5 in each layer, 161 in all.
TEST(BaseFormat, OfLitGptCodesTheOutputLayer) {
  const Typed typed = {{"adapter", "lora:rank=8,targets=q_proj+v_proj"},
                       {"recipe", "bf16"},
                       {"implementation", "litgpt"},
                       {"base-format", "nf4"}};
  constexpr std::int64_t kCoded = kLinear + kOutputLayer;
  EXPECT_EQ(
      Of("llama-2-7b", typed).piles.at(Pile::kWeights),
      Bytes(kCoded / 2 + kCoded / 64 * 4 + 161 * 64 + kPlain - 2 * kOutputLayer + kAdapters / 2));
}

// What is trained keeps its format: the last of 32 layers, its linear layers in bfloat16.
TEST(BaseFormat, CodesFrozenLayersAlone) {
  const Typed typed = {{"train-only", "last:1"}, {"recipe", "bf16"}, {"base-format", "nf4"}};
  constexpr std::int64_t kFrozen = kLinear / 32 * 31;
  constexpr std::int64_t kTrained = kLinear / 32;
  const Budget budget = Of("llama-2-7b", typed);
  EXPECT_EQ(budget.piles.at(Pile::kWeights),
            Bytes(kFrozen / 2 + kFrozen / 64 * 4 + 31 * 7 * 64 + 2 * kTrained + kPlain));
}

// Whether a kernel makes so many bytes of numbers for a moment.
bool Decodes(const Budget& budget, Bytes bytes) {
  return std::ranges::any_of(budget.tape.storages, [&](const Storage& storage) {
    return storage.text < 0 && storage.pile == Pile::kWorkspace && storage.format == "uint8" &&
           storage.bytes.expected == bytes;
  });
}

// In bfloat16, of Llama-2-7B's largest matrix and of one expert of Mixtral (transformers,
// modeling_mixtral.py up to 4.57: a linear layer each); they are no weights.
TEST(BaseFormat, DecodedNumbersAreWorkspace) {
  const Typed typed = {{"adapter", "lora:rank=8,targets=q_proj+v_proj"},
                       {"recipe", "bf16"},
                       {"sequence-length", "64"},
                       {"base-format", "nf4"}};
  EXPECT_TRUE(Decodes(Of("llama-2-7b", typed), Bytes(2 * 4096LL * 11'008)));
  EXPECT_TRUE(Decodes(Of("mixtral-8x7b", typed), Bytes(2 * 4096LL * 14'336)));
  Typed plain = typed;
  plain.erase("base-format");
  EXPECT_FALSE(Decodes(Of("llama-2-7b", plain), Bytes(2 * 4096LL * 11'008)));
}

// gpt-oss-20b's own checkpoint is in MXFP4.
TEST(BaseFormat, NeedsNoWarningOfPlainWeights) {
  const auto warns = [](const Typed& typed) {
    const Budget budget = Of("gpt-oss-20b", typed);
    return std::ranges::any_of(budget.warnings, [](const std::string& warning) {
      return warning.find("counted in a plain number format") != std::string::npos;
    });
  };
  EXPECT_TRUE(warns({{"sequence-length", "64"}}));
  EXPECT_FALSE(warns({{"sequence-length", "64"}, {"base-format", "mxfp4"}}));
}

// A step with each gradient as it comes: none is kept, and the largest is there while its parameter
// steps; of GPT-2 the embedding, 50,257 × 768, in float32.
TEST(StepKernels, InBackwardKeepNoGradients) {
  const Typed step = {{"adapter", "none"}, {"recipe", "fp32"}, {"sequence-length", "16"}};
  Typed in_backward = step;
  in_backward["optimizer-kernels"] = "in-backward";
  const Budget after = Of("gpt2", step);
  const Budget during = Of("gpt2", in_backward);
  // At the peak, which is before the first parameter has stepped or while one does.
  EXPECT_LE(during.piles.at(Pile::kGradients), Bytes(0));
  EXPECT_LT(during.peak.bytes, after.peak.bytes);
  Bytes temporaries(0);
  for (const Storage& storage : during.tape.storages) {
    const bool of_step =
        storage.text < 0 &&
        during.tape
                .actions[static_cast<std::size_t>(
                    during.tape.moments[static_cast<std::size_t>(storage.made)].action)]
                .kind == ActionKind::kStep;
    temporaries += of_step ? storage.bytes.expected : Bytes(0);
  }
  // With the temporaries of a loop over parameters, of which AdamW has at least one.
  EXPECT_GE(temporaries, Bytes(4 * 50'257LL * 768));
}

TEST(Offload, PutsSavedActivationsOnTheHost) {
  const Typed on_device = {{"adapter", "none"}, {"recipe", "fp32"}};
  Typed on_host = on_device;
  on_host["offload"] = "activations";
  const Budget here = Of("gpt2", on_device);
  const Budget there = Of("gpt2", on_host);
  EXPECT_LT(there.peak.bytes, here.peak.bytes);
  // What left the device stands in memory of the host, and the loss's part stayed.
  EXPECT_EQ(PeakOf(there.tape, Place::kHostPinned).bytes,
            here.saved_activations - there.saved_activations);
}

// The core of attention in layers before the first adapter makes nothing that needs a gradient, so
// that it is not run again and keeps nothing; layer 0's is such a one where o_proj alone is
// adapted.
TEST(BaseFormat, WhatNeedsNoGradientIsNotRunAgain) {
  for (const char* const targets : {"lora:targets=o_proj", "lora:targets=down_proj"}) {
    const Budget kept = Of("llama-3.2-1b", {{"adapter", targets}});
    const Budget again = Of("llama-3.2-1b", {{"adapter", targets}, {"recompute", "selective"}});
    EXPECT_LE(again.saved_activations, kept.saved_activations) << targets;
    EXPECT_GT(again.saved_activations, Bytes(0)) << targets;
  }
}

TEST(BaseFormat, RefusesWhatDoesNotGoTogether) {
  struct Case {
    Typed typed;
    const char* message;
  };
  const Case cases[] = {
      {{{"adapter", "none"}, {"base-format", "nf4"}},
       "--base-format | no weight is frozen | expected an adapter, or frozen parts | --adapter "
       "lora:rank=16 freezes the rest"},
      {{{"base-format", "nf5"}},
       "--base-format | unknown weight format \"nf5\" | did you mean \"nf4\"? | formats, or fp8, "
       "fp8-channel, fp8-block, int8, gptq, awq, nf4, nf4-double, bnb-int8, mxfp4, nvfp4, packed"},
      {{{"base-format", "bf16"}},
       "--base-format | \"bf16\" has no scales | expected codes with scales, nf4 or another | "
       "--recipe says the format of all weights"},
      {{{"offload", "activation"}},
       "--offload | unknown word \"activation\" | expected activations, optimizer or parameters | "
       "several are joined: optimizer+activations"},
      {{{"optimizer-kernels", "in-backward"}, {"gradient-accumulation", "2"}},
       "--optimizer-kernels | in-backward beside gradient accumulation | expected another kind | "
       "--gradient-accumulation 1"},
      {{{"optimizer-kernels", "in-backward"}, {"implementation", "llm.c"}},
       "--optimizer-kernels | in-backward beside an implementation that allocates everything once "
       "| expected another kind | --implementation pytorch has it"},
      {{{"optimizer-kernels", "in-backward"}, {"recipe", "amp-fp16"}},
       "--optimizer-kernels | in-backward beside a loss scaler, which looks at all gradients first "
       "| expected another kind | --recipe amp-bf16 has none"},
      {{{"optimizer-kernels", "in-backward"}, {"optimizer", "lbfgs"}},
       "--optimizer-kernels | in-backward beside L-BFGS, which steps over all parameters at once | "
       "expected another kind | --optimizer adamw"},
      {{{"base-format", "mxfp4"}},
       "--base-format | mxfp4 codes no frozen weight of this model | expected a scheme for frozen "
       "linear layers | nf4 codes the matrices of the layers, where they are frozen"},
      {{{"offload", "activations"}, {"implementation", "llm.c"}},
       "--offload | llm.c has none | expected another implementation | --implementation pytorch "
       "has it"},
      {{{"offload", "activations"}, {"activations", "lower-bound"}},
       "--offload | a lower bound has no activations to move | expected --activations exact | give "
       "a model with layers"},
      {{{"optimizer-kernels", "in-backward"}, {"zero", "1"}, {"devices", "2"}},
       "--optimizer-kernels | in-backward beside sharded gradients | expected another kind | leave "
       "one "
       "out"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorLine(MakeJob(JobKind::kFinetune, "gpt2", TypedSettings(c.typed))), c.message);
  }
}

}  // namespace
}  // namespace fourpiles
