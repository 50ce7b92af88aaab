// The profile "pytorch-compile" against a count by hand and a measured saving.

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;

// What a matrix product, attention or a sum over rows made, and no more, bytes a token: both inputs
// of the residual stream 2 × 2h, their 1/rms 2 × 4, queries, keys and values before rotation
// 2h + 2 × 2k, attention 2h + 4a, gate and up 2 × 2F. Norms, rotation, repeated keys and values and
// SwiGLU's product are computed again.
TEST(Compile, KeepsOnlyWhatIsNotElementwise) {
  const TinySizes sizes = {.heads = 8, .key_value_heads = 2, .ffn = 160, .fused_qkv = false};
  EXPECT_EQ(KeptByLayer(TinyLlama, sizes, kBatch, "pytorch-compile"),
            kTokens * (8 * 64 + 4 * 16 + 4 * 160 + 4 * 8 + 8));
}

// The same for GPT-2 with dropout, which keeps a seed: 2 × 2h and 2 × 8 of the norms, 6h, 2h + 4a,
// and the input of GELU, 2 × 4h.
TEST(Compile, DropoutKeepsNoMask) {
  EXPECT_EQ(KeptByLayer(TinyGpt, {.dropout = true}, kBatch, "pytorch-compile"),
            kTokens * (20 * 64 + 4 * 4 + 16));
}

// pytorch/torchtune, README.md, optimization flags, Llama-3.2-3B, 2 × 4096 tokens, bfloat16: with
// compile the peak falls from 60 to 51 GiB, 13.7·h bytes a token and layer of the 28 layers. With
// norms of one kernel and keys and values unexpanded on both sides it is 4h + 4F = 14.67·h by hand,
// 7 % more.
TEST(Compile, SavesAboutWhatTorchtuneMeasured) {
  const TinySizes sizes = {
      .hidden_size = 3072, .heads = 24, .key_value_heads = 8, .ffn = 8192, .fused_qkv = false};
  const auto kept = [&](Profile profile, std::int64_t layers) {
    TinySizes deeper = sizes;
    deeper.layers = layers;
    const Part part = TinyPart(TinyLlama(deeper), kBatch);
    return SavedActivations(Play(part, profile).value()).value();
  };
  constexpr ProfileChoices kFlash = {.attention = AttentionKind::kFlash};
  Profile eager = FindProfile("pytorch", kFlash).value();
  UseFusedNorms(eager);
  const Profile compiled = FindProfile("pytorch-compile", kFlash).value();
  const std::int64_t saved =
      kept(eager, 4) - kept(eager, 3) - (kept(compiled, 4) - kept(compiled, 3));
  EXPECT_NEAR(static_cast<double>(saved) / static_cast<double>(kTokens * 3072), 13.7, 0.1 * 13.7);
}

// Logits in bfloat16 and 4 bytes a token.
TEST(Compile, TheLossKeepsLogitsAsTheyAre) {
  const auto saved = [](std::int64_t vocabulary) {
    const TinySizes sizes = {.vocabulary = vocabulary};
    return SavedActivations(Played(TinyPart(TinyLlama(sizes), kBatch), "pytorch-compile")).value();
  };
  EXPECT_EQ(saved(1001) - saved(1000), 2 * kTokens);
}

}  // namespace
}  // namespace fourpiles
