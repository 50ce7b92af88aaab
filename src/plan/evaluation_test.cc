// train --evaluate.

#include <gtest/gtest.h>

#include "plan/budget.h"
#include "step/play.h"
#include "step/test_networks.h"

namespace fourpiles {
namespace {

Budget Played(const std::map<std::string, std::string>& typed) {
  Settings settings;
  for (const auto& [name, text] : typed) {
    settings[name] = {text, "--" + name};
  }
  Job job = MakeJob(JobKind::kTrain, "gpt2", settings).value();
  job.model.network = *SevenLayers();
  job.training.lower_bound = false;
  job.training.profile = FindProfile("pytorch").value();
  return PlayedBudget(job).value();
}

TEST(Evaluation, KeepsNothing) {
  const Budget budget = Played({{"evaluate", "true"}});
  EXPECT_EQ(budget.saved_activations, Bytes(0));
  EXPECT_EQ(budget.piles.at(Pile::kGradients), Bytes(0));
  EXPECT_EQ(budget.piles.at(Pile::kOptimizerState), Bytes(0));
}

// Recipe bf16, two bytes a parameter: 100 × 8, seven times 2 × 8 × 32, 100 × 8.
TEST(Evaluation, ItsStateIsTheWeights) {
  const Budget budget = Played({{"evaluate", "true"}, {"recipe", "bf16"}});
  EXPECT_EQ(budget.state, Bytes(2 * (800 + 7 * 512 + 800)));
  EXPECT_EQ(budget.piles.at(Pile::kWeights), budget.state);
}

TEST(Evaluation, PeaksBelowTraining) {
  for (const char* recipe : {"bf16", "amp-bf16", "mixed-bf16"}) {
    for (const char* recompute : {"none", "full"}) {
      const std::map<std::string, std::string> step = {{"recipe", recipe},
                                                       {"recompute", recompute}};
      std::map<std::string, std::string> evaluation = step;
      evaluation["evaluate"] = "true";
      EXPECT_LT(Played(evaluation).peak.bytes, Played(step).peak.bytes) << recipe << recompute;
    }
  }
}

// The whole play and the one of layers alike agree.
TEST(Evaluation, PeaksAlikeWhereEveryLayerIsPlayed) {
  const Budget budget = Played({{"evaluate", "true"}});
  EXPECT_EQ(PeakOf(PlayWhole(budget.job, budget.worst_rank).value(), Place::kDevice).bytes,
            budget.peak.bytes);
}

// Of a lower bound: a layer's input and its output, 1024 × 768 bfloat16 each.
TEST(Evaluation, OfALowerBoundHoldsTheInputAndTheOutputOfALayer) {
  const Settings settings = {{"evaluate", {"true", "--evaluate"}},
                             {"activations", {"lower-bound", "--activations"}}};
  const Budget budget = PlayedBudget(MakeJob(JobKind::kTrain, "gpt2", settings).value()).value();
  EXPECT_EQ(budget.peak.bytes, budget.state + Bytes(2 * 2 * 1024 * 768));
}

}  // namespace
}  // namespace fourpiles
