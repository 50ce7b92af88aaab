#include "plan/search_layouts.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "plan/layout_memory.h"

namespace fourpiles {
namespace {

constexpr Bytes kNoLimit = Bytes(std::numeric_limits<std::int64_t>::max());

std::map<std::string, std::string> With(std::map<std::string, std::string> settings,
                                        const std::map<std::string, std::string>& more) {
  for (const auto& [name, value] : more) {
    settings[name] = value;
  }
  return settings;
}

PlanRequest RequestOf(const std::map<std::string, std::string>& settings) {
  PlanRequest request = {.model = settings.at("model"), .settings = TypedSettings(settings)};
  return request;
}

// What is typed for a plan's job, read anew and played whole.
Budget Reproduced(const LayoutPlan& plan) {
  const Job job =
      MakeJob(JobKind::kTrain, plan.job.settings.at("model").text, plan.job.settings).value();
  return PlayedBudget(job).value();
}

// Every so many of a model's layouts: the bytes are those of PeakBytes.
struct Sample {
  std::map<std::string, std::string> settings;
  std::int64_t tensor;
  std::size_t stride;
};

class MemoryOfLayouts : public testing::TestWithParam<Sample> {};

TEST_P(MemoryOfLayouts, IsThatOfPlayingEveryStage) {
  const auto& [settings, tensor, stride] = GetParam();
  auto cut = With(settings, {{"tensor-parallel", std::to_string(tensor)}});
  if (tensor > 1) {
    cut["sequence-parallel"] = "true";
  }
  Job job = MakeJob(JobKind::kTrain, settings.at("model"), TypedSettings(cut)).value();
  LayoutMemory memory(job.model.network);
  const std::vector<LayoutChoice> choices = LayoutChoices(job, {});
  ASSERT_GT(choices.size(), stride);
  for (std::size_t i = 0; i < choices.size(); i += stride) {
    Choose(job.training, choices[i]);
    const SettingChanges changes = ChangesOf(choices[i], job);
    const Job typed =
        MakeJob(JobKind::kTrain, settings.at("model"), SettingsWith(job, changes)).value();
    const Bytes peak = PeakBytes(typed).value();
    EXPECT_EQ(memory.PeakOf(job.training, kNoLimit, kNoLimit)->peak, peak)
        << CommandWith(job, changes);
    EXPECT_LE(memory.AtLeast(job.training).value(), peak);
    EXPECT_LE(memory.PeakOf(job.training, kNoLimit, Bytes(0))->peak, peak)
        << CommandWith(job, changes);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, MemoryOfLayouts,
    testing::Values(
        Sample{{{"model", "llama-3.2-1b"}, {"devices", "32"}, {"sequence-length", "4096"}}, 1, 31},
        Sample{{{"model", "llama-3.2-1b"}, {"devices", "32"}, {"sequence-length", "4096"}}, 4, 17},
        // Gradients that are born, and temporaries of the step.
        Sample{{{"model", "llama-3.2-1b"},
                {"devices", "16"},
                {"recipe", "amp-bf16"},
                {"optimizer-kernels", "foreach"}},
               1,
               13},
        Sample{{{"model", "gpt2"}, {"devices", "8"}, {"sequence-length", "1024"}}, 2, 7},
        Sample{{{"model", "mixtral-8x7b"}, {"devices", "32"}}, 2, 61},
        // Layers of two kinds in turn.
        Sample{{{"model", "gpt-oss-20b"}, {"devices", "24"}}, 1, 97},
        Sample{{{"model", "llama-3.1-8b"}, {"devices", "16"}}, 2, 23}));

PlanAnswer Answer(const std::map<std::string, std::string>& settings) {
  return SearchLayouts(RequestOf(settings)).value();
}

TEST(SearchLayouts, ItsCommandsPrintTheSameNumbers) {
  const PlanAnswer answer =
      Answer({{"model", "llama-3.1-8b"}, {"device", "h100-sxm-80gb"}, {"devices", "8"}});
  ASSERT_FALSE(answer.plans.empty());
  for (const LayoutPlan& plan : answer.plans) {
    const Budget budget = Reproduced(plan);
    EXPECT_EQ(budget.peak.bytes, plan.peak) << plan.command;
    EXPECT_EQ(budget.total.expected, plan.total.expected) << plan.command;
    EXPECT_EQ(budget.total.high, plan.total.high) << plan.command;
    EXPECT_EQ(budget.headroom, plan.headroom) << plan.command;
    EXPECT_EQ(budget.verdict, plan.verdict) << plan.command;
  }
}

TEST(SearchLayouts, NoneOfTheFrontIsBothFasterAndSmallerThanAnother) {
  PlanRequest request =
      RequestOf({{"model", "llama-3.1-8b"}, {"device", "80GB"}, {"devices", "16"}});
  request.others = 5;
  const PlanAnswer answer = SearchLayouts(request).value();
  EXPECT_GT(std::ranges::count(answer.plans, true, &LayoutPlan::on_front), 1);
  EXPECT_EQ(std::ranges::count(answer.plans, false, &LayoutPlan::on_front), 5);
  for (const LayoutPlan& a : answer.plans) {
    for (const LayoutPlan& b : answer.plans) {
      const bool better = a.seconds < b.seconds && a.total.expected < b.total.expected;
      EXPECT_FALSE(b.on_front && better) << a.command << "\n" << b.command;
    }
    EXPECT_GE(a.headroom, Bytes(0));
  }
}

TEST(SearchLayouts, WhatIsSetStays) {
  const PlanAnswer answer = Answer({{"model", "llama-3.1-8b"},
                                    {"device", "80GB"},
                                    {"devices", "64"},
                                    {"tensor-parallel", "4"},
                                    {"pipeline-parallel", "4"},
                                    {"zero", "1"},
                                    {"recompute", "selective"}});
  ASSERT_FALSE(answer.plans.empty());
  for (const LayoutPlan& plan : answer.plans) {
    const TrainingJob& training = plan.job.training;
    EXPECT_EQ(training.layout.tensor, 4);
    EXPECT_EQ(training.layout.pipeline, 4);
    EXPECT_EQ(training.layout.zero, 1);
    EXPECT_EQ(training.recompute.kind, RecomputeKind::kAttention);
    EXPECT_EQ(plan.samples, 64);
  }
}

// Grattafiori et al. 2024, arXiv 2407.21783, table 4: 8,192 H100s, tensor 8, context 1, pipeline
// 16, data 64, 32 samples of 8,192 tokens a replica and step.
TEST(SearchLayouts, TheLayoutThatLlama405BWasTrainedWithFits) {
  PlanRequest request = RequestOf({{"model", "llama-3.1-405b"},
                                   {"device", "h100-sxm-80gb"},
                                   {"devices", "8192"},
                                   {"sequence-length", "8192"},
                                   {"tensor-parallel", "8"},
                                   {"context-parallel", "1"},
                                   {"pipeline-parallel", "16"}});
  request.samples = 2048;
  const PlanAnswer answer = SearchLayouts(request).value();
  ASSERT_FALSE(answer.plans.empty());
  EXPECT_EQ(DataParallel(answer.plans.front().job.training.layout), 64);
}

TEST(SearchLayouts, WhereNoneFitsItTellsTheClosest) {
  const PlanAnswer answer =
      Answer({{"model", "llama-3.1-405b"}, {"device", "80GB"}, {"devices", "8"}});
  EXPECT_TRUE(answer.plans.empty());
  ASSERT_TRUE(answer.closest.has_value());
  EXPECT_EQ(answer.closest->verdict, Fit::kDoesNotFit);
  // Sharded eight ways, 2 + 2 + 12 bytes a parameter are 811 × 10^9 bytes.
  EXPECT_GT(answer.closest->peak.bytes, Bytes(811'000'000'000));
}

std::string ErrorOf(const PlanRequest& request) {
  const auto answer = SearchLayouts(request);
  return answer ? "" : answer.error().text.where + ": " + answer.error().text.found;
}

TEST(SearchLayouts, RefusesWhatIsNoSearch) {
  const std::map<std::string, std::string> gpt2 = {
      {"model", "gpt2"}, {"device", "80GB"}, {"devices", "8"}};
  EXPECT_EQ(ErrorOf(RequestOf({{"model", "gpt2"}})), "--device: missing");
  EXPECT_EQ(ErrorOf(RequestOf(With(gpt2, {{"solve", "batch"}}))),
            "--solve: beside a search for layouts");
  EXPECT_EQ(ErrorOf(RequestOf(With(gpt2, {{"tensor-parallel", "5"}}))),
            "--devices: 8 devices, tensor 5 × pipeline 1 × context 1 = 5");
  EXPECT_EQ(ErrorOf(RequestOf(With(gpt2, {{"pipeline-parallel", "3"}}))),
            "--devices: 8 devices, tensor 1 × pipeline 3 × context 1 = 3");
  PlanRequest nodes = RequestOf(gpt2);
  nodes.nodes = 2;
  EXPECT_EQ(ErrorOf(nodes), "--nodes: 2 nodes of 8 devices");
  PlanRequest samples = RequestOf(With(gpt2, {{"zero", "1"}, {"tensor-parallel", "1"}}));
  samples.samples = 3;  // no number of replicas divides it but 1, which a pipeline of 8 has not
  EXPECT_EQ(ErrorOf(samples), "--devices: no layout of 8 devices has these settings");
}

TEST(SearchLayouts, NodesAreDevices) {
  PlanRequest request = RequestOf({{"model", "gpt2"}, {"device", "80GB"}});
  request.nodes = 2;
  EXPECT_EQ(SearchLayouts(request)->job.devices, 16);
}

}  // namespace
}  // namespace fourpiles
