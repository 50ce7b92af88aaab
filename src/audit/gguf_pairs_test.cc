#include "audit/gguf_pairs.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "audit/against.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

// tests/data/audit/make_gguf.py made both: what it does to names, rows and values is what is
// expected here.
class GgufPairsOf : public testing::Test {
 protected:
  static Checkpoint Open(std::string_view name) {
    auto checkpoint =
        OpenCheckpoint(std::string(FOURPILES_TEST_DATA "/audit/") + std::string(name));
    EXPECT_TRUE(checkpoint.has_value()) << ErrorLine(checkpoint);
    return *std::move(checkpoint);
  }
  static std::string WhyLeftOut(const std::vector<SkippedTensor>& left_out, std::string_view name) {
    const auto found = std::ranges::find(left_out, name, &SkippedTensor::name);
    return found == left_out.end() ? "" : found->why;
  }
  static const FileTensor* Find(const Checkpoint& checkpoint, std::string_view name) {
    const auto found = std::ranges::find(checkpoint.tensors, name, &FileTensor::name);
    return found == checkpoint.tensors.end() ? nullptr : &*found;
  }

  const Checkpoint gguf_ = Open("llama.gguf");
  const Checkpoint checkpoint_ = Open("llama.npz");
};

TEST_F(GgufPairsOf, AConversionHaveTheNamesOfTheCheckpoint) {
  const auto pairs = PairGguf(gguf_, checkpoint_);
  ASSERT_TRUE(pairs.has_value()) << ErrorLine(pairs);
  EXPECT_EQ(pairs->gguf.tensors.size(), 14U);  // 3 experts' matrices, twice, and 8 others
  for (const FileTensor& tensor : pairs->gguf.tensors) {
    SCOPED_TRACE(tensor.name);
    const FileTensor* const partner = Find(pairs->checkpoint, tensor.name);
    ASSERT_NE(partner, nullptr);
    EXPECT_EQ(tensor.shape, partner->shape);
  }
  const FileTensor* const query = Find(pairs->gguf, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(query->shape, (std::vector<std::int64_t>{4, 8, 2, 32}));
  const FileTensor* const value = Find(pairs->gguf, "model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(value->shape, (std::vector<std::int64_t>{32, 32}));
}

TEST_F(GgufPairsOf, AConversionLeaveOutWhatTheConverterMakesAndChanges) {
  const auto pairs = PairGguf(gguf_, checkpoint_);
  EXPECT_EQ(pairs->left_out.size(), 3U);
  EXPECT_EQ(WhyLeftOut(pairs->left_out, "rope_freqs.weight"), "llama.cpp's converter makes it");
  EXPECT_EQ(WhyLeftOut(pairs->left_out, "model.layers.0.post_attention_layernorm.weight"),
            "llama.cpp's converter adds 1 to it");
  EXPECT_EQ(WhyLeftOut(pairs->left_out, "model.layers.0.self_attn.rotary_emb.inv_freq"),
            "llama.cpp's converter drops it");
}

// All but one tensor are what they were, but for the rounding of their types.
TEST_F(GgufPairsOf, AConversionTellOfItsErrorsAlone) {
  for (const bool gguf_first : {false, true}) {
    const auto comparison =
        gguf_first ? AuditAgainst(gguf_, checkpoint_, {}) : AuditAgainst(checkpoint_, gguf_, {});
    ASSERT_TRUE(comparison.has_value()) << ErrorLine(comparison);
    EXPECT_EQ(comparison->unpaired, 0);
    EXPECT_TRUE(comparison->only_first.empty() && comparison->only_second.empty());
    EXPECT_EQ(comparison->audit.skipped.size(), 3U);
    for (const TensorAudit& tensor : comparison->audit.tensors) {
      SCOPED_TRACE(tensor.name);
      double worst = 1000;
      for (const FormatLosses& format : tensor.formats) {
        worst = format.not_possible.empty() ? std::min(worst, SignalToNoise(format.losses)) : worst;
      }
      EXPECT_EQ(worst < 40, tensor.name.ends_with("o_proj.weight")) << worst;
    }
  }
}

TEST_F(GgufPairsOf, AConversionHasFindingsWhereItIsWrongAlone) {
  const Comparison comparison = *AuditAgainst(checkpoint_, gguf_, {});
  const auto findings = FindingsOf(comparison, DefaultThresholds());
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].what, "the values are 2 times what they were, all alike");
  for (const AuditFinding& finding : findings) {
    EXPECT_TRUE(comparison.audit.tensors[static_cast<std::size_t>(finding.tensor)].name.ends_with(
        "o_proj.weight"));
  }
}

TEST_F(GgufPairsOf, TiedModelsHaveNoOutputLayerOfTheirOwn) {
  Checkpoint tied = checkpoint_;
  FileTensor head = *Find(tied, "model.embed_tokens.weight");
  head.name = "lm_head.weight";
  tied.tensors.push_back(head);
  EXPECT_EQ(WhyLeftOut(PairGguf(gguf_, tied)->left_out, "lm_head.weight"),
            "is tied to the embeddings");
  tied.tensors.back().offset += 1;  // another one
  EXPECT_EQ(AuditAgainst(tied, gguf_, {})->only_first.at(0), "lm_head.weight");
}

TEST_F(GgufPairsOf, FusedTensorsAreLeftOut) {
  Checkpoint split = gguf_;
  split.tensors.push_back(*Find(split, "blk.0.attn_v.weight"));  // twice for one of the checkpoint
  EXPECT_EQ(
      WhyLeftOut(PairGguf(split, checkpoint_)->left_out, "model.layers.0.self_attn.v_proj.weight"),
      "the GGUF has it in 2 tensors");
}

TEST_F(GgufPairsOf, NamesThatAreTheSameStay) {
  Checkpoint same = checkpoint_;
  for (FileTensor& tensor : same.tensors) {
    tensor.name = "blk.0." + tensor.name;
  }
  const auto pairs = PairGguf(gguf_, same);
  EXPECT_EQ(Find(pairs->gguf, "blk.0.attn_v.weight"), nullptr);
  EXPECT_NE(Find(pairs->gguf, "model.layers.0.self_attn.v_proj.weight"), nullptr);
}

}  // namespace
}  // namespace fourpiles
