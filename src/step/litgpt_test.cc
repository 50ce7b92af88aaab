// The profile "litgpt" against what LitGPT's code keeps, counted by hand.

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kFfn = 160;
constexpr std::int64_t kRank = 8;

// LoRA of queries and values on a frozen base; a frozen linear layer keeps no input, a frozen norm
// no normed input. Bytes a token: inputs of the norms 2 × 2h, their squares, which mean() keeps,
// 2 × 2h, and 2 × 2 of 1/rms; dropped input of A 2h and its mask h; input of B, for queries and
// values, 2 × 2r; source of index_copy 2h + 2k; queries and keys after rotation 2h + 2h; the value
// is a view that keeps the fused tensor, 6h; attention 2h + 4a; SwiGLU 3 × 2F. Sum: 27h + 6F and
// small ones. For Llama-2-7B, h 4096 and F 11008, and 1304 tokens: 32 × 176,640 × 1304 = 7.37 GB,
// of the 21.30 GB that tutorials/resource-tables.md of LitGPT measured.
TEST(LitGpt, KeepsWhatLoraNeeds) {
  const TinySizes sizes = {.ffn = kFfn, .adapter_rank = kRank};
  EXPECT_EQ(KeptByLayer(TinyLlama, sizes, kBatch, "litgpt"),
            kTokens * (27 * kHidden + 6 * kFfn + 4 + 4 * kRank + 4 * 4));
}

// Grouped keys and values: what is turned and what attention keeps of them is expanded to all query
// heads first, 2h each, so no view of the fused tensor lives on; the source of index_copy is
// 2h + 2k. Sum: 8h + 3h + 2h + 2k + 4h + 2h + 2h + 6F = 21h + 2k + 6F.
TEST(LitGpt, ExpandsGroupedKeysAndValues) {
  const TinySizes sizes = {.heads = 8, .key_value_heads = 2, .ffn = kFfn, .adapter_rank = kRank};
  constexpr std::int64_t kKeySize = 16;
  EXPECT_EQ(KeptByLayer(TinyLlama, sizes, kBatch, "litgpt"),
            kTokens * (21 * kHidden + 2 * kKeySize + 6 * kFfn + 4 + 4 * kRank + 4 * 8));
}

// Full training: without the adapter's 3h + 4h, but with the normed inputs, 2 × 2h, which the
// weights of the norms need, the inputs of the linear layers, 3 × 2h (attention puts heads outside
// a token, as its queries lie, so that its output is copied for the layer behind it), and the
// product of SwiGLU, 2F: 20h + 10h + 8F.
TEST(LitGpt, KeepsWhatFullTrainingNeeds) {
  const TinySizes sizes = {.ffn = kFfn};
  EXPECT_EQ(KeptByLayer(TinyLlama, sizes, kBatch, "litgpt"),
            kTokens * (30 * kHidden + 8 * kFfn + 4 + 4 * 4));
}

// Logits in float32, held by the training loop, and their log-probabilities: 8 bytes a logit; in
// the backward pass two gradients of one chunk of 128 tokens (utils.py, chunked_cross_entropy).
TEST(LitGpt, ALogitCostsEightBytesAndTwoChunks) {
  const auto peak = [](std::int64_t vocabulary) {
    const TinySizes sizes = {.vocabulary = vocabulary, .adapter_rank = kRank};
    const Batch batch = {.micro_batch_size = 1, .sequence_length = 512};
    return PeakOf(Played(TinyPart(TinyLlama(sizes), batch), "litgpt"), Place::kDevice)
        .bytes.value();
  };
  EXPECT_EQ(peak(50'001) - peak(50'000), 8 * 512 + 2 * 4 * 128);
}

}  // namespace
}  // namespace fourpiles
