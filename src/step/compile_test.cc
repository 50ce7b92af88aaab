// The compiled profiles against counts by hand and a measured saving.

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;

// What stands in memory when a matrix product, attention or a sum over rows reads it in the
// backward pass, bytes a token: both inputs of the residual stream 2 × 2h and their 1/rms 2 × 4;
// what norms make of them, the inputs of products, 2 × 2h; queries, keys and values as attention
// reads them, turned and repeated, 3 × 2h; what attention puts out 2h + 4a; gate, up and their
// product, 3 × 2F (functorch/_functorch/partitioners.py, ban_recompute_materialized_backward). What
// only elementwise kernels read is computed again: no float32 copies, no halves of a rotation, no
// SiLU.
TEST(Compile, KeepsWhatProductsAndAttentionRead) {
  const TinySizes sizes = {.heads = 8, .key_value_heads = 2, .ffn = 160, .fused_qkv = false};
  EXPECT_EQ(KeptByLayer(TinyLlama, sizes, kBatch, "pytorch-compile"),
            kTokens * (16 * 64 + 6 * 160 + 4 * 8 + 2 * 4));
}

// The same for GPT-2 with dropout, which keeps a seed: inputs of the norms 2 × 2h and their
// statistics 2 × 8, normed 2 × 2h, queries, keys and values 6h, attention 2h + 4a, the input of
// GELU and what GELU puts out, 2 × 8h.
TEST(Compile, DropoutKeepsNoMask) {
  EXPECT_EQ(KeptByLayer(TinyGpt, {.dropout = true}, kBatch, "pytorch-compile"),
            kTokens * (32 * 64 + 4 * 4 + 16));
}

// pytorch/torchtune, README.md, optimization flags, Llama-3.2-3B, 2 × 4096 tokens, bfloat16: with
// compile the peak falls from 60 to 51 GiB, 13.7·h bytes a token of each of the 28 layers. By hand:
// a layer of Llama keeps 24h + 8F + 8 + 4a, and compiled 16h + 6F + 8 + 4a; with F = 8/3·h the
// difference is 13.33·h, 3 % less.
TEST(Compile, SavesWhatTorchtuneMeasured) {
  const TinySizes sizes = {
      .hidden_size = 3072, .heads = 24, .key_value_heads = 8, .ffn = 8192, .fused_qkv = false};
  const std::int64_t saved = KeptByLayer(TinyLlama, sizes, kBatch, "torchtune") -
                             KeptByLayer(TinyLlama, sizes, kBatch, "torchtune-compile");
  EXPECT_EQ(saved, kTokens * (8 * 3072 + 2 * 8192));
  EXPECT_NEAR(static_cast<double>(saved) / static_cast<double>(kTokens * 3072), 13.7, 0.03 * 13.7);
}

// What one more word of the vocabulary costs beside its weight; the output layer is frozen, so that
// no gradient of its weight stands at the peak.
struct LogitCosts {
  std::int64_t kept;
  std::int64_t peak;
};
LogitCosts CostsOfAWord(std::string_view implementation, const ProfileChoices& choices,
                        const Batch& batch) {
  const auto played = [&](std::int64_t vocabulary) {
    const TinySizes sizes = {.vocabulary = vocabulary, .adapter_rank = 8};
    return Played(TinyPart(TinyLlama(sizes), batch), implementation, choices);
  };
  const Tape more = played(100'001);
  const Tape less = played(100'000);
  return {
      .kept = (SavedActivations(more) - SavedActivations(less)).value(),
      .peak = (PeakOf(more, Place::kDevice).bytes - PeakOf(less, Place::kDevice).bytes).value()};
}

// Logits in bfloat16, and 4 bytes a token.
TEST(Compile, TheLossKeepsLogitsAsTheyAre) {
  EXPECT_EQ(CostsOfAWord("pytorch-compile", {}, kBatch).kept, 2 * kTokens);
}

// torchtune compiles the layers and not the loss: log-probabilities in float32 are kept, as without
// a compiler, and so are not computed again.
TEST(Compile, TorchtunesPlainLossKeepsFloat32) {
  for (const char* implementation : {"torchtune", "torchtune-compile"}) {
    EXPECT_EQ(CostsOfAWord(implementation, {}, kBatch).kept, 4 * kTokens) << implementation;
  }
}

// torchtune, modules/transformer.py, chunked_output: all chunks' logits are there before the first
// loss. Compiled, each chunk's loss keeps them as they are, 2 bytes a logit; else it casts a chunk
// to float32, lets go of the 2 bytes, and keeps 4. At the peak, of 8 chunks: compiled, the logits
// that have no gradient yet and, of one chunk, logits and gradient, (8 × 2 + 2) / 8 = 2.25 bytes;
// else 4 bytes a logit and of one chunk two gradients in float32, (8 × 4 + 2 × 4) / 8 = 5.
TEST(Compile, ChunksOfALossHaveTheirLogitsAtOnce) {
  Batch batch = kBatch;
  batch.loss_chunks = 8;
  const LogitCosts compiled =
      CostsOfAWord("torchtune-compile", {.loss = LossKind::kChunked}, batch);
  EXPECT_EQ(compiled.kept, 2 * kTokens);
  EXPECT_EQ(compiled.peak, kTokens * 9 / 4);
  const LogitCosts eager = CostsOfAWord("torchtune", {.loss = LossKind::kChunked}, batch);
  EXPECT_EQ(eager.kept, 4 * kTokens);
  EXPECT_EQ(eager.peak, kTokens * 5);
}

}  // namespace
}  // namespace fourpiles
