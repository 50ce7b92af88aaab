#include "plan/layout.h"

#include <gtest/gtest.h>

#include "plan/job.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Result<Job> JobOf(const char* model, const Typed& typed) {
  return MakeJob(JobKind::kTrain, model, TypedSettings(typed));
}

std::string ErrorOf(const char* model, const Typed& typed) {
  const Result<Job> job = JobOf(model, typed);
  if (job) {
    return "";
  }
  const ErrorText& error = job.error().text;
  return error.where + ": " + error.found + ", " + error.expected + " (" + error.hint + ")";
}

std::vector<std::int64_t> SizesOf(const Layout& layout, std::int64_t layers) {
  std::vector<std::int64_t> sizes;
  for (const auto& stage : StageLayers(layout, layers)) {
    std::int64_t sum = 0;
    for (const LayerSpan& chunk : stage) {
      sum += chunk.layers;
    }
    sizes.push_back(sum);
  }
  return sizes;
}

// Grattafiori et al. 2024, section 3.3.2: 126 layers, one fewer on the first and the last stage.
TEST(Layout, EndsHaveOneLayerFewerWhereTheRestDivides) {
  const std::vector<std::int64_t> sizes = SizesOf({.devices = 16, .pipeline = 16}, 126);
  ASSERT_EQ(sizes.size(), 16U);
  EXPECT_EQ(sizes.front(), 7);
  EXPECT_EQ(sizes[1], 8);
  EXPECT_EQ(sizes.back(), 7);
  EXPECT_EQ(SizesOf({.devices = 4, .pipeline = 4}, 31), (std::vector<std::int64_t>{8, 8, 8, 7}));
  EXPECT_EQ(SizesOf({.devices = 4, .pipeline = 4}, 32), (std::vector<std::int64_t>{8, 8, 8, 8}));
  EXPECT_TRUE(StageLayers({.devices = 4, .pipeline = 4}, 33).empty());
}

TEST(Layout, EndsHaveWhatWasAskedFor) {
  EXPECT_EQ(
      SizesOf({.devices = 4, .pipeline = 4, .first_stage_layers = 3, .last_stage_layers = 5}, 32),
      (std::vector<std::int64_t>{3, 12, 12, 5}));
  EXPECT_TRUE(
      StageLayers({.devices = 4, .pipeline = 4, .first_stage_layers = 4, .last_stage_layers = 5},
                  32)
          .empty());
}

TEST(Layout, ChunksAreDealtOutInTurn) {
  const auto stages = StageLayers({.devices = 4, .pipeline = 4, .chunks = 2}, 32);
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[1][0].first, 4);
  EXPECT_EQ(stages[1][1].first, 20);
  // The layer that the first stage lacks is one of its first chunk.
  const auto uneven = StageLayers({.devices = 16, .pipeline = 16, .chunks = 8}, 126);
  EXPECT_EQ(uneven.front().front().layers, 0);
  EXPECT_EQ(uneven.front()[1].layers, 1);
  EXPECT_EQ(uneven.back().back().layers, 0);
}

TEST(Layout, RanksOfEachKind) {
  const Layout layout = {.devices = 8192, .tensor = 8, .pipeline = 16};
  EXPECT_EQ(DataParallel(layout), 64);
  EXPECT_EQ(SharesOf({.devices = 8, .zero = 2}).weights.dense, 1);
  EXPECT_EQ(SharesOf({.devices = 8, .zero = 2}).gradients.dense, 8);
  // Of 8 ranks with 4 × 2 experts two have the same.
  const Layout experts = {.devices = 8, .expert = 4, .zero = 1};
  EXPECT_EQ(SharesOf(experts).optimizer_state.dense, 8);
  EXPECT_EQ(SharesOf(experts).optimizer_state.experts, 2);
}

TEST(Layout, RefusesWhatDoesNotDivideAndSaysWhatWould) {
  EXPECT_EQ(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"tensor-parallel", "3"}}),
            "--devices: 8 devices, tensor 3 × pipeline 1 × context 1 = 3, expected a multiple of 3 "
            "(divisors of 8 are 1, 2, 4, 8)");
  EXPECT_EQ(ErrorOf("llama-3.1-8b", {{"devices", "6"}, {"tensor-parallel", "3"}}),
            "--tensor-parallel: 3 devices cannot share the heads, expected a divisor of the "
            "attention heads (divisors of 32 heads are 1, 2, 4, 8, 16, 32)");
  EXPECT_EQ(ErrorOf("mixtral-8x7b", {{"devices", "6"}, {"expert-parallel", "3"}}),
            "--expert-parallel: 8 experts over 3 devices, expected a divisor of 8 (those are 1, 2, "
            "4, 8)");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "2"}, {"expert-parallel", "2"}}), "");
  EXPECT_EQ(ErrorOf("llama-3.1-8b", {{"devices", "5"}, {"pipeline-parallel", "5"}}),
            "--pipeline-parallel: 32 layers over 5 stages, expected one of 1, 2, 3, 4 stages "
            "(--first-stage-layers and --last-stage-layers say what the ends have)");
}

TEST(Layout, RefusesContradictions) {
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"fsdp", "full"}, {"zero", "3"}}), "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"pipeline-parallel", "4"}, {"zero", "2"}}),
            "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"virtual-pipeline", "2"}}), "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"first-stage-layers", "2"}}), "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"fsdp", "hybrid:3"}}), "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"fsdp", "half"}}), "");
  EXPECT_NE(ErrorOf("1B", {{"devices", "8"}, {"tensor-parallel", "2"}}), "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"},
                                     {"tensor-parallel", "8"},
                                     {"sequence-parallel", "true"},
                                     {"sequence-length", "1001"}}),
            "");
  EXPECT_NE(ErrorOf("llama-3.1-8b", {{"devices", "8"}, {"rank", "8"}}), "");
}

}  // namespace
}  // namespace fourpiles
