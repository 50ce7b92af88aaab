// Layers that run again but for what is dear to compute, against counts by hand.

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;
constexpr TinySizes kSizes = {.heads = 8, .key_value_heads = 2, .ffn = 160, .fused_qkv = false};
constexpr Variant kSelective = {.recompute = {.kind = RecomputeKind::kOperators}};

// A layer of Llama has the matrix products q, k, v, o, gate, up, down, in that order; every second
// one is computed again (torchtitan, distributed/activation_checkpoint.py, mm_count % 2). Kept,
// bytes a token: the layer's input 2h, q 2h, v 2k, attention's output 2h and log-sum-exp 4a, gate
// 2F, down 2h.
TEST(Selective, KeepsEverySecondProductAndAttention) {
  constexpr std::int64_t kKeyWidth = 2 * 8;
  for (const char* implementation : {"torchtitan", "torchtitan-2024", "torchtitan-compile"}) {
    EXPECT_EQ(KeptByLayer(TinyLlama, kSizes, kBatch, implementation, kSelective),
              kTokens * (4 * 2 * 64 + 2 * kKeyWidth + 4 * 8 + 2 * 160))
        << implementation;
  }
}

// GPT-2's linear layers add a bias: those are aten::addmm, which is not in the list. Of a layer its
// input and what attention puts out are kept.
TEST(Selective, ProductsWithABiasAreComputedAgain) {
  EXPECT_EQ(KeptByLayer(TinyGpt, {}, kBatch, "torchtitan", kSelective),
            kTokens * (2 * 2 * 64 + 4 * 4));
}

// Outputs of products that are made as layers run again: k, o and up, of each layer.
TEST(Selective, WhatIsKeptIsNotMadeAgain) {
  Part part = TinyPart(TinyLlama(kSizes), kBatch);
  part.recompute = kSelective.recompute;
  const Tape tape = Played(part, "torchtitan");
  std::int64_t products = 0;
  std::int64_t attentions = 0;
  for (const Storage& storage : tape.storages) {
    const Kernel& kernel = tape.moments[static_cast<std::size_t>(storage.made)];
    const Action& action = tape.actions[static_cast<std::size_t>(kernel.action)];
    if (storage.text < 0 && action.kind == ActionKind::kRecompute) {
      const std::string_view name = kernel.kind->name;
      products += name == "linear" && std::string_view(storage.slot) == "output" ? 1 : 0;
      attentions += name == "flash attention" ? 1 : 0;
    }
  }
  EXPECT_EQ(products, kSizes.layers * 3);
  EXPECT_EQ(attentions, 0);
}

// Full recomputation keeps less, none more, at the end of the forward pass.
TEST(Selective, StandsBetweenFullAndNone) {
  const auto kept = [](RecomputeKind kind) {
    return KeptByLayer(TinyLlama, kSizes, kBatch, "torchtitan", {.recompute = {.kind = kind}});
  };
  EXPECT_LT(kept(RecomputeKind::kLayers), kept(RecomputeKind::kOperators));
  EXPECT_LT(kept(RecomputeKind::kOperators), kept(RecomputeKind::kNone));
}

// --- The loss of torchtitan ---

// Logits in bfloat16 are let go of before the backward pass, and so is their float32 copy; what
// stays is the result of log_softmax, 4 bytes a token and word (derivatives.yaml).
TEST(Torchtitan, TheLossKeepsLogProbabilities) {
  for (const char* implementation : {"torchtitan", "torchtitan-2024", "torchtitan-2024-compile"}) {
    const auto kept = [&](std::int64_t vocabulary) {
      TinySizes sizes = kSizes;
      sizes.vocabulary = vocabulary;
      return SavedActivations(Played(TinyPart(TinyLlama(sizes), kBatch), implementation)).value();
    };
    EXPECT_EQ(kept(101) - kept(100), 4 * kTokens) << implementation;
  }
}

}  // namespace
}  // namespace fourpiles
