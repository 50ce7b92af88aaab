// Training runs: what a device held at the peak, between steps, or of one pile.

#include "plan/validate_training.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/budget.h"
#include "plan/published_formulas.h"
#include "plan/reserved.h"
#include "plan/split.h"
#include "plan/surroundings.h"
#include "plan/training_run.h"
#include "plan/validate_fields.h"
#include "step/allocator_run.h"

namespace fourpiles {
namespace {

// Of the last stage of a pipeline, where the row is of that; what is around its tensors is not
// counted.
Result<Budget> BudgetOf(const TrainingRun& run) {
  if (!run.of_last_rank || run.job.training.layout.pipeline == 1) {
    return PlayedBudget(run.job);
  }
  if (run.metric != "allocated") {
    return NotExpressible("rank \"last\": only of what is allocated");
  }
  TRY(const std::vector<Part> parts, SplitTraining(run.job));
  const Part& part = parts.back();
  Budget budget;
  budget.job = run.job;
  TRY(budget.tape, Play(part, run.job.training.profile));
  budget.worst_rank = part.rank;
  budget.peak = PeakOf(budget.tape, Place::kDevice);
  budget.piles = PilesAt(budget.tape, Place::kDevice, budget.peak.moment);
  budget.saved_activations = SavedActivations(budget.tape);
  return budget;
}

double Number(Bytes bytes) {
  return static_cast<double>(bytes.value());
}

// What is alive of a pile on the device when the step is over.
Bytes BetweenSteps(const Tape& tape) {
  Bytes sum(0);
  for (const auto& [pile, bytes] : PilesAt(tape, Place::kDevice, std::ssize(tape.moments) - 1)) {
    sum += pile == Pile::kWorkspace || pile == Pile::kOverhead ? Bytes(0) : bytes;
  }
  return sum;
}

// Storages that are there before anything runs, of a pile, whose text has this word.
Bytes ResidentBytes(const Tape& tape, Pile pile, std::string_view word, std::string_view without) {
  Bytes sum(0);
  for (const Storage& storage : tape.storages) {
    if (storage.pile != pile || storage.place != Place::kDevice || storage.text < 0) {
      continue;
    }
    const std::string& what = (*tape.texts)[static_cast<std::size_t>(storage.text)].what;
    const bool is_other = !without.empty() && what.find(without) != std::string::npos;
    sum += what.find(word) != std::string::npos && !is_other ? ExpectedBytes(storage) : Bytes(0);
  }
  return sum;
}

Result<Bytes> PileBytes(const Budget& budget, std::string_view pile) {
  struct State {
    std::string_view name;
    std::string_view word;
    std::string_view without;
  };
  constexpr State kStates[] = {{"optimizer_state.m", "exp_avg", "exp_avg_sq"},
                               {"optimizer_state.v", "exp_avg_sq", ""},
                               {"optimizer_state.master", "master copy", ""}};
  for (const State& state : kStates) {
    if (state.name == pile) {
      return ResidentBytes(budget.tape, Pile::kOptimizerState, state.word, state.without);
    }
  }
  for (const Pile known : kPiles) {
    if (Name(known) == pile) {
      const auto bytes = budget.piles.find(known);
      return bytes == budget.piles.end() ? Bytes(0) : bytes->second;
    }
  }
  return NotExpressible(fmt::format("measures: \"pile:{}\" is not in the vocabulary", pile));
}

Prediction Exact(Bytes bytes) {
  return {.value = Number(bytes), .unit = "bytes", .closeness = Closeness::kBand};
}

Prediction InBand(const Band& band) {
  return {.value = Number(band.expected),
          .unit = "bytes",
          .band = PrintedRange{Number(band.low), Number(band.high)},
          .closeness = Closeness::kInBand};
}

// With the driver's context, which the row may state.
Band DriverOf(const TrainingRun& run) {
  return run.context ? Exactly(*run.context) : DriverBand(run.job);
}

Band WholeOf(const TrainingRun& run, const Budget& budget) {
  const Band reserved = ReservedOf(run.job, budget.total);
  const Band driver = DriverOf(run);
  return {reserved.low + driver.low, reserved.expected + driver.expected,
          reserved.high + driver.high};
}

// The most that was held at once, as the row's metric counts it.
Result<Prediction> PeakOfRun(const TrainingRun& run, const Budget& budget) {
  if (run.metric == "allocated") {
    return Exact(budget.peak.bytes + LibraryBytes(run.job));
  }
  if (run.metric == "reserved") {
    return InBand(ReservedOf(run.job, budget.total));
  }
  if (run.metric == "smi" || run.metric == "unknown") {
    return InBand(WholeOf(run, budget));
  }
  return NotExpressible(fmt::format("metric: \"{}\" is not in the vocabulary", run.metric));
}

// What the allocator reserves for the model as it is loaded, tensor by tensor.
Band ReservedByWeights(Tape tape) {
  std::erase_if(tape.storages, [](const Storage& storage) {
    return storage.pile != Pile::kWeights || storage.text < 0;
  });
  const AllocatorRun run = AllocatorRunOf(tape, {});
  return ReservedBand(std::span(&run, 1), {});
}

Result<Prediction> FigureOf(const TrainingRun& run, const Budget& budget) {
  constexpr std::string_view kPile = "pile:";
  if (run.measures == "peak") {
    return PeakOfRun(run, budget);
  }
  const bool counts =
      run.metric == "allocated" || (run.measures == "after_init" && run.metric == "smi");
  if (!counts) {
    return NotExpressible(
        fmt::format("measures \"{}\" by metric \"{}\" is not described", run.measures, run.metric));
  }
  if (run.measures.starts_with(kPile)) {
    TRY(const Bytes bytes, PileBytes(budget, run.measures.substr(kPile.size())));
    return Exact(bytes);
  }
  if (run.measures == "between_steps") {
    return Exact(BetweenSteps(budget.tape) + LibraryBytes(run.job));
  }
  if (run.measures == "after_init") {
    const Bytes weights = ResidentBytes(budget.tape, Pile::kWeights, "", "");
    if (run.metric != "smi") {
      return Exact(weights);
    }
    const Band reserved = ReservedByWeights(budget.tape);
    const Band driver = DriverOf(run);
    return InBand({reserved.low + driver.low, reserved.expected + driver.expected,
                   reserved.high + driver.high});
  }
  return NotExpressible(fmt::format("measures: \"{}\" is not in the vocabulary", run.measures));
}

// All devices together, where they are alike.
Result<void> SumOverDevices(Prediction& prediction, const Layout& layout) {
  if (layout.pipeline > 1) {
    return NotExpressible("the sum over the stages of a pipeline is not described");
  }
  const auto devices = static_cast<double>(layout.devices);
  prediction.value *= devices;
  if (prediction.band) {
    prediction.band = PrintedRange{prediction.band->low * devices, prediction.band->high * devices};
  }
  return {};
}

std::int64_t InputsOf(const Block& block, const Operator& linear) {
  const ParameterUse& weight = linear.parameters.front();
  return ElementsOf(block.parameters[static_cast<std::size_t>(weight.parameter)]) /
         std::max<std::int64_t>(1, linear.widths.front());
}

DescribedOptimizer OptimizerOf(const Optimizer& optimizer) {
  const std::string& id = optimizer.names.id;
  return id.starts_with("adam")   ? DescribedOptimizer::kAdam
         : id == "sgd-momentum"   ? DescribedOptimizer::kMomentum
         : id.starts_with("muon") ? DescribedOptimizer::kMuon
                                  : DescribedOptimizer::kOther;
}

// The job as other planners ask for it.
TrainingDescription DescriptionOf(const Job& job) {
  const Network& network = job.model.network;
  const TrainingJob& training = job.training;
  TrainingDescription description = {
      .parameters = ParameterCount(network),
      .trainable_parameters = TrainableParameterCount(network),
      .layers = network.num_hidden_layers.value_or(1),
      .hidden_size = network.hidden_size.value_or(1),
      .heads = 1,
      .key_value_heads = 1,
      .ffn_size = 1,
      .vocabulary = network.vocab_size.value_or(1),
      .is_gated = false,
      .sequence_length = training.sequence_length,
      .micro_batch_size = training.micro_batch_size,
      .devices = job.devices,
      .zero_stage = training.layout.zero,
      .precision_bytes = StorageBits(training.recipe.compute) / 8,
      .optimizer = OptimizerOf(training.optimizer),
      .recompute = training.recompute.kind == RecomputeKind::kLayers ? DescribedRecompute::kFull
                   : training.recompute.kind == RecomputeKind::kAttention
                       ? DescribedRecompute::kSelective
                       : DescribedRecompute::kNone};
  for (const Block& block : network.blocks) {
    for (const Operator& op : block.operators) {
      if (op.kind == OperatorKind::kAttention) {
        description.heads = op.heads;
        description.key_value_heads = op.key_value_heads;
      } else if (IsNumbered(block) && op.kind == OperatorKind::kLinear) {
        description.ffn_size = InputsOf(block, op);  // the last is the feed-forward part's
      }
      description.is_gated = description.is_gated || op.kind == OperatorKind::kGate;
    }
  }
  return description;
}

// What other planners would answer; those that cannot express the job are left out.
std::vector<NamedFigure> PublishedOf(const Job& job) {
  std::vector<NamedFigure> figures;
  for (const PublishedEstimate& estimate : PublishedEstimates(DescriptionOf(job))) {
    if (estimate.bytes) {
      figures.push_back({std::string(estimate.name), Number(*estimate.bytes)});
    }
  }
  return figures;
}

}  // namespace

Result<Prediction> PredictTrainingRun(const Fields& row) {
  if (!IsTrainingRun(row)) {
    return NotExpressible("no field mode or metric");
  }
  TRY(const TrainingRun run, TrainingRunOf(row));
  TRY(const Budget budget, BudgetOf(run));
  TRY(Prediction prediction, FigureOf(run, budget));
  // MB that a program prints for MiB; a row that says GiB is believed.
  if (RunText(row, "unit").substr(0, 1) == run.unit.substr(0, 1)) {
    prediction.means_unit = run.unit;
  }
  if (run.sums_devices) {
    TRY_VOID(SumOverDevices(prediction, run.job.training.layout));
  }
  if (run.measures == "peak") {
    prediction.published = PublishedOf(run.job);
  }
  // What is not known well is shown, and judges nothing.
  const std::string confidence = RunText(row, "confidence");
  if (confidence == "low" || run.metric == "unknown") {
    prediction.closeness = Closeness::kShown;
  }
  return prediction;
}

std::span<const RunKind> TrainingRunKinds() {
  static constexpr RunKind kKinds[] = {{"llm", Closeness::kBand, PredictTrainingRun},
                                       {"moe", Closeness::kBand, PredictTrainingRun},
                                       {"encoder", Closeness::kBand, PredictTrainingRun},
                                       {"hybrid-ssm", Closeness::kBand, PredictTrainingRun},
                                       {"vision", Closeness::kBand, PredictTrainingRun},
                                       {"diffusion", Closeness::kBand, PredictTrainingRun},
                                       {"kernel", Closeness::kBand, PredictKernelRun}};
  return kKinds;
}

}  // namespace fourpiles
