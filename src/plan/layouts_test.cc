// What layouts leave on each rank: shards of all ranks come to the whole, and the closed forms of
// the papers are what is played.

#include <gtest/gtest.h>

#include "plan/budget.h"
#include "plan/split.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Budget BudgetFor(const char* model, Typed typed) {
  typed.try_emplace("sequence-length", "1024");
  return PlayedBudget(MakeJob(JobKind::kTrain, model, TypedSettings(typed)).value()).value();
}

std::int64_t PileOf(const RankBudget& rank, Pile pile) {
  return rank.piles.at(pile).value();
}

// Of all ranks together.
std::int64_t Everywhere(const Budget& budget, Pile pile) {
  std::int64_t sum = 0;
  for (const RankBudget& rank : budget.ranks) {
    sum += PileOf(rank, pile) * rank.ranks;
  }
  return sum;
}

// Llama-3.1-8B: a layer has 218,112,000 parameters, of which two norms of 4,096 are on every rank;
// so is the last norm.
constexpr std::int64_t kParameters = 8'030'261'248;
constexpr std::int64_t kLayer = 218'112'000;
constexpr std::int64_t kNorms = (2 * 32 + 1) * 4096;

TEST(Layouts, ShardsOfTensorParallelRanksComeToTheWhole) {
  for (const char* ranks : {"1", "2", "4", "8"}) {
    const Budget budget =
        BudgetFor("llama-3.1-8b", {{"devices", ranks}, {"tensor-parallel", ranks}});
    const std::int64_t copies = std::stoi(ranks) - 1;
    EXPECT_EQ(Everywhere(budget, Pile::kWeights), 2 * (kParameters + copies * kNorms)) << ranks;
  }
}

TEST(Layouts, ShardsOfStagesComeToTheWhole) {
  for (const char* chunks : {"1", "2"}) {
    const Budget budget = BudgetFor("llama-3.1-8b", {{"devices", "8"},
                                                     {"pipeline-parallel", "4"},
                                                     {"virtual-pipeline", chunks},
                                                     {"zero", "1"}});
    ASSERT_EQ(budget.ranks.size(), 4U);
    EXPECT_EQ(Everywhere(budget, Pile::kWeights), 2 * 2 * kParameters);  // of two replicas
    EXPECT_EQ(Everywhere(budget, Pile::kOptimizerState), 12 * kParameters);
  }
}

TEST(Layouts, ATiedOutputLayerStandsInTheFirstAndTheLastStage) {
  // Llama-3.2-1B: 1,235,814,400 parameters, of which 128,256 × 2,048 are the tied embedding.
  const Budget budget = BudgetFor("llama-3.2-1b", {{"devices", "4"}, {"pipeline-parallel", "4"}});
  EXPECT_EQ(Everywhere(budget, Pile::kWeights), std::int64_t{2} * (1'235'814'400 + 128'256 * 2048));
}

// One layer that stands for others alike, and one pass for others that wait, have the peak of a
// play of each for itself: gradients of several passes are one sum, and those of the last layer are
// on their way while the one before runs backward.
TEST(Layouts, OneThatStandsForManyHasThePeakOfEach) {
  const std::pair<const char*, Typed> jobs[] = {
      {"mixtral-8x7b", {{"devices", "16"}, {"fsdp", "full"}}},
      {"mixtral-8x7b", {{"devices", "16"}, {"fsdp", "full"}, {"recompute", "full"}}},
      {"mixtral-8x7b", {{"devices", "16"}, {"fsdp", "full"}, {"pipeline-parallel", "4"}}},
      {"llama-3.1-8b", {{"devices", "64"}, {"fsdp", "full"}, {"pipeline-parallel", "8"}}},
      {"llama-3.1-8b", {{"devices", "16"}, {"zero", "3"}, {"gradient-accumulation", "4"}}},
      {"llama-3.1-8b", {{"devices", "16"}, {"fsdp", "full"}, {"implementation", "torchtitan"}}}};
  for (const auto& [model, typed] : jobs) {
    const Job job = MakeJob(JobKind::kTrain, model, TypedSettings(typed)).value();
    const std::vector<Part> parts = SplitTraining(job).value();
    for (const Part& part : parts) {
      const Part each = PartOfRank(job, part.rank, LayersPlayed::kEach).value();
      const auto peak = [&](const Part& played) {
        return PeakOf(Play(played, job.training.profile).value(), Place::kDevice).bytes;
      };
      EXPECT_EQ(peak(part), peak(each)) << model << ", " << part.rank;
    }
  }
}

TEST(Layouts, ShardsOfDataParallelRanksComeToTheWholeAndAtMostAnElementEach) {
  for (const Typed& shards : {Typed{{"zero", "3"}}, Typed{{"fsdp", "full"}}}) {
    std::int64_t before = kParameters * 2;
    for (const char* devices : {"2", "3", "8", "64", "1024"}) {
      Typed typed = shards;
      typed["devices"] = devices;
      const Budget budget = BudgetFor("llama-3.1-8b", typed);
      const std::int64_t share = PileOf(budget.ranks.front(), Pile::kWeights);
      const std::int64_t ranks = std::stoi(devices);
      EXPECT_GE(share * ranks, 2 * kParameters);
      EXPECT_LT(share * ranks, 2 * (kParameters + ranks));
      EXPECT_LT(share, before);
      before = share;
    }
  }
}

TEST(Layouts, HybridShardsRepeat) {
  const Budget budget = BudgetFor("llama-3.1-8b", {{"devices", "64"}, {"fsdp", "hybrid:8"}});
  EXPECT_EQ(PileOf(budget.ranks.front(), Pile::kWeights), 2 * kParameters / 8);
}

TEST(Layouts, ExpertsAreSpread) {
  // Mixtral-8x7B: 32 layers of 8 experts of 3 × 4,096 × 14,336.
  constexpr std::int64_t kAll = 46'702'792'704;
  constexpr std::int64_t kExperts = std::int64_t{32} * 8 * 3 * 4096 * 14'336;
  const Budget budget = BudgetFor("mixtral-8x7b", {{"devices", "8"}, {"expert-parallel", "8"}});
  EXPECT_EQ(PileOf(budget.ranks.front(), Pile::kWeights), 2 * (kAll - kExperts + kExperts / 8));
  // More tokens for the fullest rank's experts are more activations.
  const Budget uneven = BudgetFor(
      "mixtral-8x7b", {{"devices", "8"}, {"expert-parallel", "8"}, {"expert-imbalance", "2"}});
  EXPECT_GT(uneven.saved_activations, budget.saved_activations);
}

TEST(Layouts, OfOneDeviceEqualNone) {
  const Budget none = BudgetFor("llama-3.2-1b", {});
  for (const Typed& typed :
       {Typed{{"zero", "3"}}, Typed{{"fsdp", "full"}}, Typed{{"tensor-parallel", "1"}},
        Typed{{"pipeline-parallel", "1"}, {"context-parallel", "1"}, {"expert-parallel", "1"}}}) {
    const Budget one = BudgetFor("llama-3.2-1b", typed);
    EXPECT_EQ(one.peak.bytes, none.peak.bytes);
    EXPECT_EQ(one.peak.moment, none.peak.moment);
    EXPECT_EQ(one.piles, none.piles);
    EXPECT_EQ(one.worst_rank, "rank 0");
  }
}

// Rajbhandari et al. 2020, section 7.2: a layer's parameters are there while it runs, and the next
// one's on their way. Two layers of 218,112,000 parameters of 2 bytes: 872,448,000 bytes.
TEST(Layouts, ZeroThreeGathersALayerAndTheNext) {
  const Job job = MakeJob(JobKind::kTrain, "llama-3.1-8b",
                          TypedSettings({{"devices", "64"},
                                         {"zero", "3"},
                                         {"sequence-length", "128"},
                                         {"implementation", "pytorch"}}))
                      .value();
  const Part part = SplitTraining(job).value().front();
  const Tape tape = Play(part, job.training.profile).value();
  std::int64_t most = 0;
  for (Moment moment = 0; moment < std::ssize(tape.moments); ++moment) {
    const Action& action = tape.actions[static_cast<std::size_t>(
        tape.moments[static_cast<std::size_t>(moment)].action)];
    const Block& block = tape.network->blocks[static_cast<std::size_t>(action.block)];
    std::int64_t gathered = 0;
    for (const Storage& storage : tape.storages) {
      const bool is_gathered = std::string_view(storage.slot) == "gathered parameters";
      gathered += is_gathered && IsAlive(storage, moment) ? ExpectedBytes(storage).value() : 0;
    }
    most = IsNumbered(block) && action.layer == 1 ? std::max(most, gathered) : most;
  }
  EXPECT_EQ(most, std::int64_t{4} * kLayer);
}

// What is not let go of after the forward pass: all layers but the last, which the backward pass
// begins with (torchtitan, commit 5940ddeb5: 12.59 GiB more, 31 × 436 MB).
TEST(Layouts, WithoutReshardingAllLayersButOneStay) {
  const auto peak = [](const char* fsdp) {
    return BudgetFor("llama-3.1-8b", {{"devices", "8"},
                                      {"fsdp", fsdp},
                                      {"recipe", "fsdp-mixed"},
                                      {"implementation", "torchtitan-2024"},
                                      {"sequence-length", "8192"}})
        .peak;
  };
  EXPECT_EQ((peak("full:keep").bytes - peak("full").bytes).value(), 31 * 2 * kLayer);
}

// PyTorch, distributed/pipelining/stage.py, backward_maybe_with_nosync: beside a pipeline FSDP
// sends gradients after the last micro-batch alone, so that those of the others stay whole.
// Llama-3.1-8B without embedding and output layer in 4 stages: 8 × 218,112,000 parameters of 2
// bytes, and as many of gradients.
TEST(Layouts, BesideAPipelineShardedGradientsStayWhole) {
  const Budget budget = BudgetFor("llama-3.1-8b", {{"devices", "8"},
                                                   {"pipeline-parallel", "4"},
                                                   {"fsdp", "full"},
                                                   {"recipe", "bf16"},
                                                   {"optimizer", "sgd"},
                                                   {"sequence-length", "16"}});
  const RankBudget& middle = budget.ranks[1];
  EXPECT_GE(middle.total.expected.value() - PileOf(middle, Pile::kWeights),
            std::int64_t{2} * 8 * 2 * kLayer);
}

// A pass that has run backward has its gradients added up, whatever passes wait beside it: what a
// stage works in is less than its gradients.
TEST(Layouts, PassesThatWaitKeepNoGradients) {
  const Budget budget =
      BudgetFor("llama-3.1-8b", {{"pipeline-parallel", "2"}, {"recipe", "mixed-bf16"}});
  const RankBudget& first = budget.ranks.front();
  EXPECT_LT(PileOf(first, Pile::kWorkspace), PileOf(first, Pile::kGradients) / 4);
}

// 1F1B holds 4, 3, 2, 1 micro-batches in flight on 4 stages (Narayanan et al. 2021, figure 4): each
// keeps what it was given by the stage before. The first is given nothing.
TEST(Layouts, StagesHoldTheMicroBatchesInFlight) {
  const Job job = MakeJob(JobKind::kTrain, "llama-3.1-8b",
                          TypedSettings({{"devices", "4"},
                                         {"pipeline-parallel", "4"},
                                         {"gradient-accumulation", "8"},
                                         {"sequence-length", "1024"},
                                         {"implementation", "megatron"}}))
                      .value();
  std::vector<std::int64_t> in_flight;
  const std::vector<Part> parts = SplitTraining(job).value();
  for (const Part& part : parts) {
    const Tape tape = Play(part, job.training.profile).value();
    const Moment peak = PeakOf(tape, Place::kDevice).moment;
    std::int64_t received = 0;
    for (const Storage& storage : tape.storages) {
      const bool is_received = std::string_view(storage.slot) == "received";
      received += is_received && IsAlive(storage, peak) ? storage.copies : 0;
    }
    in_flight.push_back(received);
  }
  EXPECT_EQ(in_flight, (std::vector<std::int64_t>{0, 3, 2, 1}));
}

TEST(Layouts, ARankThatIsAskedForIsShown) {
  const Typed typed = {{"devices", "8"}, {"pipeline-parallel", "4"}};
  Typed last = typed;
  last["rank"] = "last";
  Typed third = typed;
  third["rank"] = "3";  // of two ranks a stage the second of stage 1
  EXPECT_EQ(BudgetFor("llama-3.1-8b", last).shown_rank, "ranks 6 to 7, stage 3");
  EXPECT_EQ(BudgetFor("llama-3.1-8b", third).shown_rank, "ranks 2 to 3, stage 1");
  EXPECT_EQ(BudgetFor("llama-3.1-8b", third).total.expected,
            BudgetFor("llama-3.1-8b", typed).total.expected);
}

// Sequence parallelism cuts what tensor parallelism leaves whole (Korthikanti et al. 2022, table 2:
// with both the layer's bytes are sbh × (10 + 24) / t, without 10 + 24 / t).
TEST(Layouts, SequenceParallelismCutsWhatStandsBetween) {
  const auto saved = [](Typed typed) {
    typed.insert({{"devices", "8"}, {"tensor-parallel", "8"}, {"implementation", "megatron"}});
    return BudgetFor("llama-3.1-8b", typed).saved_activations;
  };
  EXPECT_LT(saved({{"sequence-parallel", "true"}}), saved({}));
  const auto whole = BudgetFor("llama-3.1-8b", {{"implementation", "megatron"}}).saved_activations;
  EXPECT_NEAR(static_cast<double>(saved({{"sequence-parallel", "true"}}).value()) /
                  static_cast<double>(whole.value()),
              1.0 / 8, 0.01);
}

TEST(Layouts, ContextParallelismCutsTheSequence) {
  const auto saved = [](const char* ranks) {
    return BudgetFor("llama-3.1-8b", {{"devices", "8"},
                                      {"context-parallel", ranks},
                                      {"sequence-length", "8192"},
                                      {"implementation", "megatron"}})
        .saved_activations.value();
  };
  EXPECT_NEAR(static_cast<double>(saved("4")) / static_cast<double>(saved("1")), 1.0 / 4, 0.001);
}

TEST(Layouts, WhatIsOffloadedStandsOnTheHost) {
  const Budget budget = BudgetFor(
      "llama-3.2-1b",
      {{"devices", "8"}, {"zero", "3"}, {"offload", "optimizer"}, {"host-memory", "10GB"}});
  EXPECT_EQ(PileOf(budget.ranks.front(), Pile::kOptimizerState), 0);
  // Master copy and two moments of 4 bytes, and the gradients of 2 that the host steps with, of all
  // 8 ranks: 14 bytes of 1,235,814,400 parameters, and step counters.
  EXPECT_NEAR(static_cast<double>(budget.host.value()), 14.0 * 1'235'814'400, 1e6);
  EXPECT_EQ(*budget.verdict, Fit::kDoesNotFit);
}

TEST(Layouts, DataParallelRanksHaveBucketsBesideTheirGradients) {
  const Budget one = BudgetFor("llama-3.2-1b", {});
  const Budget two = BudgetFor("llama-3.2-1b", {{"devices", "2"}});
  EXPECT_EQ((two.peak.bytes - one.peak.bytes).value(), std::int64_t{2} * 1'235'814'400);
}

}  // namespace
}  // namespace fourpiles
