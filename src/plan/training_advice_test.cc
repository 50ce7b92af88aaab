#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/advice.h"
#include "plan/solve.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Budget BudgetFor(std::string_view model, const Typed& typed, JobKind kind = JobKind::kTrain) {
  return BudgetOf(MakeJob(kind, model, TypedSettings(typed)).value()).value();
}

// "--zero 3 --devices 8" and what it sets.
Typed WithOptions(Typed typed, std::string_view change) {
  while (!change.empty()) {
    const std::string_view option = change.substr(2, change.find(' ') - 2);
    change.remove_prefix(option.size() + 3);
    const std::string_view value = change.substr(0, change.find(' '));
    change.remove_prefix(std::min(change.size(), value.size() + 1));
    typed[std::string(option)] = std::string(value);
  }
  return typed;
}

const Advice* Find(const Budget& budget, std::string_view change) {
  const auto found = std::ranges::find(budget.advice, change, &Advice::change);
  return found == budget.advice.end() ? nullptr : &*found;
}

Bytes SavedBy(const Budget& budget, std::string_view change) {
  const Advice* advice = Find(budget, change);
  return advice == nullptr ? Bytes(0) : advice->saves;
}

TEST(TrainingAdvice, SavesWhatItSays) {
  const std::pair<std::string, Typed> jobs[] = {
      {"llama-3.2-1b", {{"device", "16GB"}, {"micro-batch-size", "4"}, {"attention", "eager"}}},
      {"gpt2", {{"recipe", "fp32"}, {"micro-batch-size", "9"}}},
      {"gpt2", {{"evaluate", "true"}, {"micro-batch-size", "2"}}},
      {"llama-3.2-1b", {{"adapter", "lora:rank=8"}, {"devices", "4"}, {"zero", "1"}}},
      {"1B", {{"layers", "4"}, {"width", "1024"}}},
  };
  for (const auto& [model, typed] : jobs) {
    const Budget budget = BudgetFor(model, typed);
    EXPECT_FALSE(budget.advice.empty()) << model;
    EXPECT_TRUE(std::ranges::is_sorted(budget.advice, std::ranges::greater(), &Advice::saves));
    for (const Advice& advice : budget.advice) {
      const Budget changed = BudgetFor(model, WithOptions(typed, advice.change));
      EXPECT_EQ(budget.peak.bytes - changed.peak.bytes, advice.saves) << model << advice.change;
      EXPECT_GT(advice.saves, Bytes(0));
    }
  }
}

// 16 bytes a parameter with Adam; 12 without a master copy, 8 all in bfloat16.
TEST(TrainingAdvice, SavesTheBytesOfARecipe) {
  const Budget budget = BudgetFor("7B", {{"device", "80GB"}});
  EXPECT_EQ(SavedBy(budget, "--recipe bf16-fp32-states"), Bytes(28'000'000'000));
  EXPECT_EQ(SavedBy(budget, "--recipe bf16"), Bytes(56'000'000'000));
  EXPECT_EQ(Find(budget, "--recipe bf16-fp32-states")->enough, false);  // 84 GB
  EXPECT_EQ(Find(budget, "--recipe bf16")->enough, true);
  // What activations would take is not known, and one device shards nothing.
  EXPECT_EQ(Find(budget, "--recompute full"), nullptr);
  EXPECT_EQ(Find(budget, "--zero 1"), nullptr);
  // Nor what sums of rows and columns would be.
  EXPECT_EQ(Find(budget, "--optimizer adafactor"), nullptr);
}

// Rajbhandari et al. 2020, arXiv 1910.02054, figure 1: 120 GB, 31.4, 16.6, 1.9 on 64 devices.
TEST(TrainingAdvice, ShardsOverSeveralDevices) {
  const Budget budget = BudgetFor("7.5B", {{"devices", "64"}, {"device", "32GB"}});
  const auto left = [&](std::string_view change) {
    return static_cast<double>((budget.peak.bytes - SavedBy(budget, change)).value()) / 1e9;
  };
  EXPECT_NEAR(left("--zero 1"), 31.4, 0.05);
  EXPECT_NEAR(left("--zero 2"), 16.6, 0.05);
  EXPECT_NEAR(left("--zero 3"), 1.9, 0.05);
}

TEST(TrainingAdvice, IsSilentWhereTheJobFits) {
  EXPECT_TRUE(BudgetFor("1B", {{"device", "80GB"}}).advice.empty());
  EXPECT_FALSE(BudgetFor("1B", {}).advice.empty());
  EXPECT_EQ(BudgetFor("1B", {}).advice.front().enough, std::nullopt);
}

// V100 and T4 compute in float16, not in bfloat16.
TEST(TrainingAdvice, NamesFormatsThatTheDeviceHas) {
  const Budget t4 = BudgetFor("1B", {{"device", "t4-16gb"},
                                     {"recipe", "fp32"},
                                     {"layers", "16"},
                                     {"width", "2048"},
                                     {"micro-batch-size", "64"}});
  EXPECT_NE(Find(t4, "--recipe mixed-fp16"), nullptr);
  EXPECT_EQ(Find(t4, "--recipe mixed-bf16"), nullptr);
  EXPECT_EQ(Find(t4, "--recipe bf16"), nullptr);
}

TEST(TrainingAdvice, KeepsTheBatch) {
  const Budget budget = BudgetFor(
      "gpt2", {{"micro-batch-size", "12"}, {"gradient-accumulation", "2"}, {"recipe", "fp32"}});
  EXPECT_NE(Find(budget, "--micro-batch-size 6 --gradient-accumulation 4"), nullptr);
  EXPECT_NE(Find(budget, "--micro-batch-size 1 --gradient-accumulation 24"), nullptr);
  EXPECT_EQ(Find(budget, "--sequence-length 512"), nullptr);
}

TEST(TrainingAdvice, HasACommandWithEachOptionOnce) {
  const Budget budget = BudgetFor("gpt2", {{"recipe", "fp32"}, {"micro-batch-size", "8"}});
  EXPECT_EQ(Find(budget, "--recipe bf16")->command,
            "fourpiles train gpt2 --micro-batch-size 8 --recipe bf16");
  Settings settings = TypedSettings({{"evaluate", "true"}, {"micro-batch-size", "2"}});
  settings["model"] = {"my models/it's.json", "MODEL"};
  Job job = MakeJob(JobKind::kTrain, "gpt2", settings).value();
  const Budget file = BudgetOf(job).value();
  EXPECT_EQ(Find(file, "--micro-batch-size 1")->command,
            "fourpiles train 'my models/it'\\''s.json' --evaluate --micro-batch-size 1");
}

// What was solved for stands in the command, and is not changed.
TEST(TrainingAdvice, StandsOnWhatWasSolvedFor) {
  const Budget budget =
      BudgetFor("gpt2", {{"device", "8GB"}, {"recipe", "fp32"}, {"solve", "batch"}});
  ASSERT_TRUE(budget.solution);
  Job tight = budget.job;
  tight.device->memory = budget.peak.bytes - Bytes(1);
  Budget too_much = PlayedBudget(tight).value();
  const std::vector<Advice> advice = TrainingAdvice(too_much);
  const auto found = std::ranges::find(advice, "--recipe bf16", &Advice::change);
  ASSERT_NE(found, advice.end());
  EXPECT_EQ(found->command, fmt::format("fourpiles train gpt2 --device 8GB --micro-batch-size {} "
                                        "--recipe bf16",
                                        *budget.solution));
  EXPECT_EQ(std::ranges::count_if(advice,
                                  [](const Advice& one) {
                                    return one.change.find("micro-batch") != std::string::npos;
                                  }),
            0);
}

}  // namespace
}  // namespace fourpiles
