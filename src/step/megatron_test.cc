// The profile "megatron" against closed forms of the literature.

#include <algorithm>

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 3, .sequence_length = 32};
constexpr std::int64_t kTokens = 3 * 32;
constexpr TinySizes kSizes = {.dropout = true};  // h 64, a 4, 4h wide, s 32

// Korthikanti et al. 2022, arXiv 2205.05198, section 4: a layer keeps s·b·h × (34 + 5·a·s/h) bytes,
// two of them an element, dropout everywhere, the attention core unfused. "We … ignore the small
// contributions": mean and deviation of the two layer norms, 2 × 8 bytes a token.
TEST(Megatron, KeepsWhatKorthikantiCounts) {
  constexpr std::int64_t kPaper = kTokens * 64 * 34 + 5 * 4 * 32 * kTokens;
  EXPECT_EQ(KeptByLayer(TinyGpt, kSizes, kBatch, "megatron", {.attention = AttentionKind::kEager}),
            kPaper + 16 * kTokens);
}

// The same, section 5: selective recomputation leaves 34·s·b·h.
TEST(Megatron, SelectiveRecomputationKeepsWhatKorthikantiCounts) {
  EXPECT_EQ(KeptByLayer(TinyGpt, kSizes, kBatch, "megatron",
                        {.attention = AttentionKind::kEager,
                         .recompute = {.kind = RecomputeKind::kAttention}}),
            kTokens * 64 * 34 + 16 * kTokens);
}

// The same, table 2: full recomputation leaves the input of the layer, 2·s·b·h.
TEST(Megatron, FullRecomputationKeepsWhatKorthikantiCounts) {
  EXPECT_EQ(KeptByLayer(TinyGpt, kSizes, kBatch, "megatron",
                        {.attention = AttentionKind::kEager,
                         .recompute = {.kind = RecomputeKind::kLayers}}),
            kTokens * 64 * 2);
}

// Flash attention, by element of 2 bytes and token: each norm's input and output, 4h; queries, keys
// and values, 3h; attention's output, h; two masks of one byte; GELU's input and output, 2 × 4h;
// 4 bytes a head of log-sum-exp and 16 of statistics. Together 34h + 4a + 16, for the scores of the
// attention core are gone.
TEST(Megatron, FlashAttentionKeepsNoScores) {
  EXPECT_EQ(KeptByLayer(TinyGpt, kSizes, kBatch, "megatron"), kTokens * (34 * 64 + 4 * 4 + 16));
}

// Llama: norms 8h and 8 bytes of 1/rms; queries 2h, grouped keys and values 2k each, though the
// fused linear layer made them as one tensor; attention 2h + 4a; gate and up 4F, their product 2F.
TEST(Megatron, KeepsKeysAndValuesUnexpanded) {
  const TinySizes sizes = {.heads = 8, .key_value_heads = 2, .ffn = 160};
  constexpr std::int64_t kKeySize = 16;
  EXPECT_EQ(KeptByLayer(TinyLlama, sizes, kBatch, "megatron"),
            kTokens * (8 * 64 + 8 + 2 * 64 + 4 * kKeySize + 2 * 64 + 4 * 8 + 6 * 160));
}

// Logits of 2 bytes and their softmax of 4: core/tensor_parallel/cross_entropy.py. One more word
// costs 6 bytes a token at the peak, which is at the loss.
TEST(Megatron, ALogitCostsSixBytes) {
  const auto peak = [](std::int64_t vocabulary) {
    TinySizes sizes = kSizes;
    sizes.vocabulary = vocabulary;
    return PeakOf(Played(TinyPart(TinyLlama(sizes), kBatch), "megatron"), Place::kDevice)
        .bytes.value();
  };
  EXPECT_EQ(peak(20'001) - peak(20'000), 6 * kTokens);
}

// gradient_accumulation_fusion: where the buffers are there, no kernel of a linear layer makes a
// gradient of its weight; PyTorch's do.
TEST(Megatron, AddsGradientsOfLinearWeightsDirectly) {
  const auto weight_gradients = [](const char* implementation) {
    const Tape tape = Played(TinyPart(TinyLlama(kSizes), kBatch), implementation);
    return std::ranges::count_if(tape.storages, [](const Storage& storage) {
      return storage.shape.rank == 2 && storage.shape.lengths[0] == 192 &&
             storage.shape.lengths[1] == 64;  // of queries, keys and values
    });
  };
  EXPECT_EQ(weight_gradients("megatron"), 0);
  EXPECT_EQ(weight_gradients("pytorch"), 2);
}

}  // namespace
}  // namespace fourpiles
