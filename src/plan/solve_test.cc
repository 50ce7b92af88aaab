#include "plan/solve.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Result<Budget> Answered(JobKind kind, std::string_view model, const Typed& typed) {
  const Settings settings = TypedSettings(typed);
  return BudgetOf(MakeJob(kind, model, settings).value());
}

const Typed kWorkedExample = {
    {"recipe", "mixed-fp16"}, {"optimizer", "adam"}, {"layers", "32"},  {"sequence-length", "2048"},
    {"width", "4096"},        {"device", "80GB"},    {"solve", "batch"}};

// The worked example: 64 GB ÷ 0.537 GB a sample.
TEST(Solve, TheLargestBatch) {
  const Budget budget = Answered(JobKind::kTrain, "1B", kWorkedExample).value();
  EXPECT_EQ(budget.solution, 119);
  EXPECT_EQ(budget.job.training.micro_batch_size, 119);
  EXPECT_EQ(*budget.verdict, Fit::kFits);
}

TEST(Solve, HalfTheActivationsTwiceTheBatch) {
  Typed typed = kWorkedExample;
  typed["activation-format"] = "float8_e4m3fn";
  EXPECT_EQ(Answered(JobKind::kTrain, "1B", typed)->solution, 238);
}

TEST(Solve, TheLongestSequence) {
  Typed typed = kWorkedExample;
  typed["solve"] = "sequence";
  // 64e9 ÷ (32 layers × 4,096 × 2 bytes) = 244,140.6
  EXPECT_EQ(Answered(JobKind::kTrain, "1B", typed)->solution, 244'140);
}

TEST(Solve, TheFewestDevices) {
  const Typed typed = {{"recipe", "mixed-fp16"},
                       {"optimizer", "adam"},
                       {"device", "80GB"},
                       {"zero", "3"},
                       {"solve", "devices"}};
  EXPECT_EQ(Answered(JobKind::kTrain, "7B", typed)->solution, 2);
  EXPECT_EQ(Answered(JobKind::kTrain, "1B", typed)->solution, 1);
}

TEST(Solve, WithoutShardingMoreDevicesDoNotHelp) {
  const Typed typed = {
      {"recipe", "mixed-fp16"}, {"optimizer", "adam"}, {"device", "80GB"}, {"solve", "devices"}};
  EXPECT_EQ(Answered(JobKind::kTrain, "7B", typed)->solution, std::nullopt);
}

TEST(Solve, NothingFits) {
  Typed typed = kWorkedExample;
  typed["device"] = "16GB";
  const Budget budget = Answered(JobKind::kTrain, "1B", typed).value();
  EXPECT_EQ(budget.solution, std::nullopt);
  EXPECT_EQ(*budget.verdict, Fit::kDoesNotFit);
}

// What is found fits, and one more does not.
TEST(Solve, TheSolutionIsTheLastThatFits) {
  struct Case {
    JobKind kind;
    const char* model;
    Typed typed;
    Unknown unknown;
  };
  const Case cases[] = {
      {JobKind::kTrain, "gpt2", {{"device", "8GB"}}, Unknown::kMicroBatchSize},
      {JobKind::kTrain, "gpt2", {{"device", "8GB"}}, Unknown::kSequenceLength},
      {JobKind::kServe, "llama-3.1-8b", {{"device", "24GB"}}, Unknown::kContextLength},
      {JobKind::kServe,
       "gemma-3-4b",
       {{"device", "24GB"}, {"context-length", "4096"}},
       Unknown::kConcurrency},
  };
  for (const Case& c : cases) {
    const Settings settings = TypedSettings(c.typed);
    const Job job = MakeJob(c.kind, c.model, settings).value();
    const std::int64_t found = Solve(job, c.unknown)->value();
    EXPECT_NE(*PlayedBudget(WithValue(job, c.unknown, found))->verdict, Fit::kDoesNotFit);
    EXPECT_EQ(*PlayedBudget(WithValue(job, c.unknown, found + 1))->verdict, Fit::kDoesNotFit);
  }
}

// All layers of Mistral-7B-v0.1 slide over 4,096 tokens, so its cache stops growing there.
TEST(Solve, SaysWhenTheMemoryDoesNotLimit) {
  const Result<Budget> budget =
      Answered(JobKind::kServe, "mistral-7b-v0.1", {{"device", "80GB"}, {"solve", "context"}});
  ASSERT_FALSE(budget);
  EXPECT_EQ(budget.error().text.found, "memory does not limit context_length");
}

TEST(Solve, TheSolvedSettingIsNoDefault) {
  const Budget budget = Answered(JobKind::kTrain, "1B", kWorkedExample).value();
  for (const Default& unset : budget.job.defaults) {
    EXPECT_NE(unset.key, "micro_batch_size");
  }
}

TEST(Solve, RefusesWhatTheMemoryDoesNotDependOn) {
  const Result<Budget> budget =
      Answered(JobKind::kTrain, "1B", {{"device", "80GB"}, {"solve", "batch"}});
  ASSERT_FALSE(budget);
  EXPECT_EQ(budget.error().text.found, "what the layers compute is not known");
}

}  // namespace
}  // namespace fourpiles
