#include "plan/budget.h"

#include <gtest/gtest.h>

#include "step/lines.h"

namespace fourpiles {
namespace {

Budget BudgetFor(JobKind kind, std::string_view model,
                 const std::map<std::string, std::string>& typed) {
  const Settings settings = TypedSettings(typed);
  return PlayedBudget(MakeJob(kind, model, settings).value()).value();
}

// The worked example: 16 bytes a parameter.
TEST(Budget, StateOfABareCount) {
  const Budget budget =
      BudgetFor(JobKind::kTrain, "1.5B", {{"recipe", "mixed-fp16"}, {"optimizer", "adam"}});
  EXPECT_EQ(budget.state.value(), 24'000'000'000);
  EXPECT_EQ(budget.peak.bytes.value(), 24'000'000'000);
  EXPECT_FALSE(budget.shapes_known);
  EXPECT_FALSE(budget.verdict);
  EXPECT_EQ(budget.warnings.size(), 1U);
}

TEST(Budget, GradientsBornInBackwardCountToTheStateWhereverThePeakIs) {
  // 4 bytes each for weights and gradients with SGD; the activations of 2^30 × 4 bytes in 8 layers
  // make the end of the forward pass the peak, before any gradient but the last layer's is born.
  const Budget budget = BudgetFor(JobKind::kTrain, "1B",
                                  {{"recipe", "fp32"},
                                   {"optimizer", "sgd"},
                                   {"layers", "8"},
                                   {"width", "1024"},
                                   {"sequence-length", "1024"},
                                   {"micro-batch-size", "1024"}});
  EXPECT_EQ(budget.state.value(), 8'000'000'000);
  EXPECT_EQ(budget.saved_activations.value(), std::int64_t{8} << 32);
  EXPECT_EQ(budget.peak.bytes.value(), 4'000'000'000 + (std::int64_t{8} << 32));
  EXPECT_EQ(budget.piles.at(Pile::kGradients).value(), 0);
}

TEST(Budget, VerdictComparesTheTotalWithTheMemory) {
  const auto verdict = [](const char* size) {
    return *BudgetFor(JobKind::kTrain, "1B",
                      {{"recipe", "mixed-fp16"}, {"optimizer", "adam"}, {"device", size}})
                .verdict;
  };
  EXPECT_EQ(verdict("16GB"), Fit::kFits);
  EXPECT_EQ(verdict("15999999999"), Fit::kDoesNotFit);
}

TEST(Budget, HeadroomMayBeNegative) {
  const Budget budget = BudgetFor(
      JobKind::kTrain, "7B", {{"recipe", "mixed-fp16"}, {"optimizer", "adam"}, {"device", "80GB"}});
  EXPECT_EQ(budget.headroom->value(), 80'000'000'000 - 112'000'000'000);
}

TEST(Budget, ZeroDividesTheState) {
  const Budget budget = BudgetFor(
      JobKind::kTrain, "7.5B",
      {{"recipe", "mixed-fp16"}, {"optimizer", "adam"}, {"zero", "2"}, {"devices", "64"}});
  EXPECT_EQ(budget.state.value(), 16'640'625'000);  // the ZeRO paper's 16.6 GB
  EXPECT_EQ(budget.worst_rank, "ranks 0 to 63");
}

// Llama-2-7B keeps 2 × 32 × 4,096 elements a token: 0.5 MiB in float16 (vLLM paper, arXiv
// 2309.06180, section 3, has 800 KB for OPT-13B by the same formula).
TEST(Budget, ServingHoldsWeightsAndTheCacheOfAllRequests) {
  const Budget budget =
      BudgetFor(JobKind::kServe, "llama-2-7b",
                {{"weights-format", "float16"}, {"context-length", "4096"}, {"concurrency", "3"}});
  EXPECT_EQ(budget.piles.at(Pile::kWeights).value(), 2 * 6'738'415'616);
  EXPECT_EQ(budget.piles.at(Pile::kKvCache).value(), std::int64_t{3} * 4096 * 524'288);
  EXPECT_EQ(budget.serving->cache_per_token.value(), 524'288);
  EXPECT_EQ(budget.serving->cache_tokens, 3 * 4096);
}

// llama.cpp prints 1024.00 MiB for Llama-3.1-8B at 8,192 cells in f16: 8 key-value heads of 128.
TEST(Budget, GroupedAttentionKeepsItsKeyValueHeadsOnly) {
  const Budget budget = BudgetFor(JobKind::kServe, "llama-3.1-8b",
                                  {{"kv-format", "float16"}, {"context-length", "8192"}});
  EXPECT_EQ(budget.piles.at(Pile::kKvCache).value(), 1024 << 20);
}

TEST(Budget, KeysAndValuesMayHaveFormatsOfTheirOwn) {
  const Budget budget =
      BudgetFor(JobKind::kServe, "llama-3.1-8b",
                {{"kv-format-k", "float16"}, {"kv-format-v", "fp8"}, {"context-length", "8192"}});
  EXPECT_EQ(budget.piles.at(Pile::kKvCache).value(), 768 << 20);
}

TEST(Budget, LinesSumToThePeak) {
  const Budget budget = BudgetFor(JobKind::kTrain, "qwen3-0.6b", {});
  Bytes sum(0);
  for (const Line& line : LinesAt(budget.tape, Place::kDevice, budget.peak.moment)) {
    sum += line.bytes;
    EXPECT_FALSE(line.formula.empty() || line.source.empty()) << line.what;
  }
  EXPECT_EQ(sum, budget.peak.bytes);
}

// A window and a model without a cache keep the storages small; the products are refused all the
// same.
TEST(Budget, RefusesContextTimesConcurrencyPast2To53) {
  for (const char* const model : {"mistral-7b-v0.1", "bert-base-uncased"}) {
    const Settings settings = {{"context-length", {"1e12", "--context-length"}},
                               {"concurrency", {"1e12", "--concurrency"}}};
    const Result<Budget> budget = PlayedBudget(MakeJob(JobKind::kServe, model, settings).value());
    ASSERT_FALSE(budget) << model;
    EXPECT_EQ(budget.error().kind, ErrorKind::kUsage);
  }
}

TEST(Budget, WarnsOfARecipeWithoutAMasterCopy) {
  const Budget budget = BudgetFor(JobKind::kTrain, "gpt2", {{"recipe", "fp16"}});
  ASSERT_FALSE(budget.warnings.empty());
  EXPECT_NE(budget.warnings.front().find("neither loss scaling nor a float32 master copy"),
            std::string::npos);
}

TEST(Budget, WarnsOfSequencesBeyondTheModelsPositions) {
  const Budget budget =
      BudgetFor(JobKind::kTrain, "gpt2", {{"recipe", "fp32"}, {"sequence-length", "5000"}});
  ASSERT_EQ(budget.warnings.size(), 1U);
  EXPECT_EQ(budget.warnings.front(), "5000 tokens are more than the 1024 that gpt2 was made for");
}

TEST(Budget, NamesSettingsThatALowerBoundDoesNotLookAt) {
  const Budget budget =
      BudgetFor(JobKind::kTrain, "1B", {{"layers", "8"}, {"width", "1024"}, {"recompute", "full"}});
  ASSERT_EQ(budget.warnings.size(), 1U);
  EXPECT_EQ(budget.warnings.front(),
            "--recompute changes nothing where activations are a lower bound");
}

}  // namespace
}  // namespace fourpiles
