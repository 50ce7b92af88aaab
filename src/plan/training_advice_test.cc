#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/advice.h"
#include "plan/change_command.h"
#include "plan/solve.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Budget BudgetFor(std::string_view model, const Typed& typed, JobKind kind = JobKind::kTrain) {
  return BudgetOf(MakeJob(kind, model, TypedSettings(typed)).value()).value();
}

struct Command {
  std::string model = {};
  Typed typed = {};
};

// "fourpiles train gpt2 --evaluate --zero 3", of words that stand as they are.
Command ReadCommand(const std::string& text, JobKind kind) {
  std::istringstream words(text);
  std::string word;
  Command command;
  words >> word >> word >> command.model;
  const std::vector<Setting> settings = SettingsOf(kind);
  while (words >> word) {
    word.erase(0, 2);
    std::string& value = command.typed[word];
    value = "true";
    const auto setting = std::ranges::find(settings, word, &Setting::name);
    if (setting != settings.end() && !setting->value.empty()) {
      words >> value;
    }
  }
  return command;
}

const Advice* Find(const Budget& budget, std::string_view change) {
  const auto found = std::ranges::find(budget.advice, change, &Advice::change);
  return found == budget.advice.end() ? nullptr : &*found;
}

Bytes SavedBy(const Budget& budget, std::string_view change) {
  const Advice* advice = Find(budget, change);
  return advice == nullptr ? Bytes(0) : advice->saves;
}

// Every command is taken, saves what it says, and fits where it says so.
void ExpectTrue(const Budget& budget, const Advice& advice) {
  const JobKind kind = budget.job.kind;
  const Command command = ReadCommand(advice.command, kind);
  const Result<Job> job = MakeJob(kind, command.model, TypedSettings(command.typed));
  ASSERT_TRUE(job) << advice.command;
  const Budget changed = PlayedBudget(*job).value();
  EXPECT_EQ(budget.peak.bytes - changed.peak.bytes, advice.saves) << advice.command;
  EXPECT_GT(advice.saves, Bytes(0));
  if (advice.enough) {
    const bool is_tight = *budget.verdict == Fit::kTight;
    const bool fits =
        is_tight ? changed.verdict == Fit::kFits : changed.verdict != Fit::kDoesNotFit;
    EXPECT_EQ(*advice.enough, fits) << advice.command;
  }
}

struct TypedJob {
  JobKind kind;
  std::string model;
  Typed typed;
};

class Advised : public testing::TestWithParam<TypedJob> {};

TEST_P(Advised, SavesWhatItSays) {
  const auto& [kind, model, typed] = GetParam();
  const Budget budget = BudgetFor(model, typed, kind);
  EXPECT_FALSE(budget.advice.empty()) << model;
  EXPECT_TRUE(std::ranges::is_sorted(budget.advice, std::ranges::greater(), &Advice::saves));
  for (const Advice& advice : budget.advice) {
    ExpectTrue(budget, advice);
  }
}

const TypedJob kJobs[] = {
    {JobKind::kTrain,
     "llama-3.2-1b",
     {{"device", "16GB"}, {"micro-batch-size", "4"}, {"attention", "eager"}}},
    {JobKind::kTrain, "gpt2", {{"recipe", "fp32"}, {"micro-batch-size", "9"}}},
    {JobKind::kTrain, "gpt2", {{"evaluate", "true"}, {"micro-batch-size", "2"}}},
    {JobKind::kTrain,
     "llama-3.2-1b",
     {{"adapter", "lora:rank=8"}, {"devices", "4"}, {"zero", "1"}}},
    {JobKind::kTrain, "1B", {{"layers", "4"}, {"width", "1024"}}},
    {JobKind::kFinetune, "gpt2", {{"implementation", "llm.c"}}},
    {JobKind::kTrain, "gpt2", {{"freeze", "embeddings"}}},
    {JobKind::kTrain, "llama-3.2-1b", {{"implementation", "torchtune"}, {"recipe", "bf16"}}},
    {JobKind::kFinetune, "llama-3.1-8b", {{"device", "rtx-4090-24gb"}}},
    {JobKind::kFinetune,
     "llama-3.1-8b",
     {{"device", "rtx-4090-24gb"}, {"adapter", "prompt:tokens=20"}, {"sequence-length", "1024"}}},
    {JobKind::kTrain, "gpt2", {{"device", "2GB"}, {"solve", "batch"}, {"optimizer", "sgd"}}},
};

INSTANTIATE_TEST_SUITE_P(Jobs, Advised, testing::ValuesIn(kJobs));

// An adapter has the format that the implementation keeps it in.
TEST(TrainingAdvice, ReadsAnAdapterAsItsCommandDoes) {
  const Budget budget =
      BudgetFor("llama-3.2-1b", {{"implementation", "torchtune"}, {"recipe", "bf16"}});
  EXPECT_EQ(SavedBy(budget, "--adapter lora:rank=16"), Bytes(5'170'282'496));
  EXPECT_EQ(Find(BudgetFor("gpt2", {{"freeze", "embeddings"}}), "--adapter lora:rank=16"), nullptr);
  const Typed llmc = {{"implementation", "llm.c"}};
  EXPECT_EQ(Find(BudgetFor("gpt2", llmc, JobKind::kFinetune), "--adapter lora:rank=16"), nullptr);
}

// 1.35 times as much reserved as asked for shrinks with what is asked for.
TEST(TrainingAdvice, JudgesTheBandOfTheChangedJob) {
  const Budget budget = BudgetFor(
      "llama-3.1-8b",
      {{"device", "rtx-4090-24gb"}, {"adapter", "prompt:tokens=20"}, {"sequence-length", "1024"}},
      JobKind::kFinetune);
  EXPECT_EQ(budget.verdict, Fit::kTight);
  EXPECT_EQ(Find(budget, "--recompute full")->enough, true);
}

// Of 18,000 tensors the allocator is replayed for the largest savings near the limit alone.
TEST(TrainingAdvice, LeavesOpenWhatWouldTakeLongToSay) {
  const Budget budget =
      BudgetFor("qwen3-30b-a3b", {{"device", "h200-sxm-141gb"}, {"devices", "8"}, {"zero", "2"}});
  EXPECT_EQ(budget.verdict, Fit::kDoesNotFit);
  EXPECT_EQ(budget.advice.front().enough, true);
  EXPECT_EQ(budget.advice.back().enough, std::nullopt);
}

TEST(TrainingAdvice, CodesWhatIsFrozen) {
  const Budget lora = BudgetFor("llama-3.2-1b", {}, JobKind::kFinetune);
  EXPECT_GT(SavedBy(lora, "--base-format nf4-double"), SavedBy(lora, "--base-format nf4"));
  EXPECT_GT(SavedBy(lora, "--base-format nf4"), Bytes(0));
  EXPECT_EQ(Find(BudgetFor("llama-3.2-1b", {}), "--base-format nf4"), nullptr);
}

// Nothing that is to be summed or scaled first is thrown away.
TEST(TrainingAdvice, StepsInBackwardWhereGradientsAreAlone) {
  const auto is_advised = [](const Typed& typed) {
    const Budget budget = BudgetFor("llama-3.2-1b", typed);
    return Find(budget, "--optimizer-kernels in-backward") != nullptr;
  };
  EXPECT_TRUE(is_advised({}));
  EXPECT_FALSE(is_advised({{"gradient-accumulation", "2"}}));
  EXPECT_FALSE(is_advised({{"recipe", "mixed-fp16"}}));
  EXPECT_FALSE(is_advised({{"devices", "2"}, {"zero", "1"}}));
  EXPECT_FALSE(is_advised({{"activations", "lower-bound"}}));
}

// Updates of adapters in float32 are not lost.
TEST(TrainingAdvice, TellsWhatTheRecipeRounds) {
  const Typed fp32 = {{"recipe", "fp32"}};
  const Budget lora = BudgetFor("gpt2", fp32, JobKind::kFinetune);
  EXPECT_EQ(Find(lora, "--recipe bf16")->costs,
            "weights that are not trained are rounded to bfloat16");
  EXPECT_EQ(Find(lora, "--recipe bf16-stochastic"), nullptr);
  const Typed of_weights = {{"recipe", "fp32"}, {"adapter", "lora:format=weights"}};
  EXPECT_NE(Find(BudgetFor("gpt2", of_weights), "--recipe bf16")->costs.find("1/512"),
            std::string::npos);
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
  const Job job = MakeJob(JobKind::kTrain, "gpt2", settings).value();
  EXPECT_EQ(CommandWith(job, {{"micro-batch-size", "1"}}),
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
