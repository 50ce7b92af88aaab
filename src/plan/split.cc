#include "plan/split.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "formats/storage.h"
#include "plan/pipeline.h"
#include "plan/rank_state.h"
#include "plan/serving_weights.h"

namespace fourpiles {
namespace {

// "rank 0", "ranks 16 to 23, stage 2".
std::string RankName(const Layout& layout, const RankStage& stage) {
  const std::int64_t ranks = layout.devices / layout.pipeline;
  const std::int64_t first = stage.number * ranks;
  std::string name = ranks == 1 ? fmt::format("rank {}", first)
                                : fmt::format("ranks {} to {}", first, first + ranks - 1);
  return stage.is_whole ? name : name + fmt::format(", stage {}", stage.number);
}

GradientUse GradientUseOf(const TrainingJob& training) {
  if (training.step_kernels == StepKernels::kInBackward) {
    return GradientUse::kAdded;
  }
  if (GathersWeights(training) && training.layout.zero == 0) {
    return GradientUse::kCollected;
  }
  if (!GradientsAreResident(training)) {
    return GradientUse::kBorn;
  }
  return training.lower_bound ? GradientUse::kDirect : GradientUse::kAdded;
}

// Which parameters a product reads as codes. A tensor of all experts is read in slices, which are
// not followed.
std::vector<std::vector<bool>> CodedOf(const TrainingJob& training, const Network& network) {
  std::vector<std::vector<bool>> coded;
  if (!training.base) {
    return coded;
  }
  for (const Block& block : network.blocks) {
    std::vector<bool>& of_block = coded.emplace_back();
    for (const Parameter& parameter : block.parameters) {
      const bool stacked = parameter.routed && parameter.name.find("{}") == std::string::npos;
      of_block.push_back(!stacked && !StaysPlain(block, parameter, *training.base));
    }
  }
  return coded;
}

Bytes LargestGradient(const TrainingJob& training, const Network& network) {
  const Checked bytes =
      StorageBytes(Checked(LargestTrainableTensor(network)), training.recipe.gradients);
  return Bytes(OrLargest(bytes));
}

GatherStyle GatherStyleOf(const TrainingJob& training) {
  const bool gathers = GathersWeights(training);
  const Framework& framework = training.profile.framework;
  // With a pipeline what was gathered stays: every micro-batch would gather it again (torchtitan,
  // distributed/parallelize, reshard_after_forward "default").
  return {.gathers = gathers,
          .reshards = training.layout.reshards && training.layout.pipeline == 1,
          .reduces = gathers && training.layout.zero == 0 && !training.evaluates,
          .root_apart = framework.shards_root_apart || training.layout.zero == 3,
          .keeps_last_layer = !training.layout.reshards_all &&
                              (framework.keeps_last_layer || training.layout.zero == 3),
          .keeps_head = !training.layout.reshards_all,
          .copies_out = training.layout.fsdp && !framework.flat_parameters};
}

std::vector<Action> ScheduleOf(const TrainingJob& training, const RankStage& stage,
                               LayersPlayed layers) {
  ScheduleStyle style = {
      .micro_batches = training.gradient_accumulation,
      .every_layer = layers == LayersPlayed::kEach || training.recompute.every > 1,
      .gather = GatherStyleOf(training)};
  if (training.evaluates) {
    return EvaluationSchedule(*stage.network, style);
  }
  if (!stage.is_whole) {
    const std::vector<std::int64_t> waiting =
        WaitingPasses(training.layout, stage.number, training.gradient_accumulation);
    for (std::size_t chunk = 0; chunk < waiting.size(); ++chunk) {
      const auto [first, last] = stage.chunks[chunk];
      style.chunks.push_back({.first = first, .last = last, .waiting = waiting[chunk]});
    }
  }
  return TrainingSchedule(*stage.network, style);
}

Batch BatchOf(const TrainingJob& training) {
  const std::int64_t context = training.layout.context;
  return {.micro_batch_size = training.micro_batch_size,
          .sequence_length = (training.sequence_length + context - 1) / context,
          .loss_chunks = training.loss_chunks,
          .expert_imbalance = training.layout.expert_imbalance};
}

std::optional<Shape> ReceivedBy(const TrainingJob& training, const RankStage& stage,
                                const Batch& batch) {
  if (stage.is_whole) {
    return std::nullopt;
  }
  const Layout& layout = training.layout;
  const std::int64_t ranks = layout.sequence_parallel ? layout.tensor : 1;
  return ShapeOf({batch.micro_batch_size, (batch.sequence_length + ranks - 1) / ranks,
                  stage.network->hidden_size.value_or(0)});
}

}  // namespace

Network CutForRanks(const Network& network, const Layout& layout) {
  const TensorCut cut = {.tensor = layout.tensor,
                         .sequence_parallel = layout.sequence_parallel,
                         .context = layout.context,
                         .expert = layout.expert,
                         .expert_tensor = layout.expert_tensor};
  const bool whole =
      layout.tensor == 1 && layout.context == 1 && layout.expert == 1 && layout.expert_tensor == 1;
  return whole ? network : CutByTensors(network, cut);
}

// Tokens come to the first stage, labels to the last.
RankStage StageOf(const Network& cut, const Layout& layout, std::int64_t number) {
  RankStage stage = {.number = number, .is_whole = layout.pipeline == 1};
  if (stage.is_whole) {
    stage.network = std::make_shared<const Network>(cut);
    return stage;
  }
  const bool ends = number == layout.pipeline - 1;
  const auto layers = StageLayers(layout, cut.num_hidden_layers.value_or(0));
  StageNetwork own = CutByLayers(cut, layers[static_cast<std::size_t>(number)], number == 0, ends);
  if (number != 0 && !ends) {
    own.network.batch.clear();
  }
  stage.chunks = std::move(own.chunks);
  stage.network = std::make_shared<const Network>(std::move(own.network));
  return stage;
}

Result<GatheredBlocks> GatheredBy(const TrainingJob& training, const RankStage& stage) {
  return GathersWeights(training) ? GatheredOf(training, *stage.network)
                                  : Result<GatheredBlocks>(GatheredBlocks());
}

// A tape names its moments by the network and outlives the job.
Part PlayedPart(const TrainingJob& training, const RankStage& stage, GatheredBlocks gathered,
                LayersPlayed layers) {
  const Batch batch = BatchOf(training);
  Batch with_prompt = batch;  // which all layers see
  with_prompt.prompt_tokens = training.adapter ? PromptTokens(*training.adapter) : 0;
  with_prompt.sequence_length += with_prompt.prompt_tokens;
  with_prompt.each_expert = layers == LayersPlayed::kEach;
  return {.rank = RankName(training.layout, stage),
          .ranks = training.layout.devices / training.layout.pipeline,
          .network = stage.network,
          .resident = std::make_shared<const Resident>(),
          .schedule = ScheduleOf(training, stage, layers),
          .batch = with_prompt,
          .numbers = NumbersOf(training.recipe),
          .activation_format = TypeOf(training.activation_format),
          .gradients = GradientUseOf(training),
          .recompute = training.recompute,
          .coded = CodedOf(training, *stage.network),
          .gathered = std::move(gathered),
          .gathers_stay = !GatherStyleOf(training).reshards,
          .received = ReceivedBy(training, stage, batch),
          .offloads_activations = training.offloads_activations,
          .holds_over_steps = !training.later_batches_are_shorter,
          .records = !training.evaluates,
          .is_first_step = training.first_step};
}

Result<Bytes> TemporariesOf(const TrainingJob& training, const Network& network) {
  if (training.evaluates || training.offloads_optimizer || training.offloads_parameters) {
    return Bytes(0);
  }
  TRY(Bytes temporaries,
      StepTemporaries(network, training.optimizer, training.recipe.states, training.step_kernels,
                      SharesOf(training.layout).optimizer_state));
  // The last gradient is there while its parameter steps.
  if (training.step_kernels == StepKernels::kInBackward) {
    temporaries += LargestGradient(training, network);
  }
  return temporaries;
}

Result<Part> PartOfStage(const TrainingJob& training, const RankStage& stage, LayersPlayed layers) {
  TRY(GatheredBlocks gathered, GatheredBy(training, stage));
  Part part = PlayedPart(training, stage, std::move(gathered), layers);
  TRY(Resident resident, RankState(training, *stage.network, BatchOf(training)));
  part.resident = std::make_shared<const Resident>(std::move(resident));
  TRY(part.step_temporaries, TemporariesOf(training, *stage.network));
  return part;
}

Result<std::vector<Part>> SplitTraining(const Job& job, LayersPlayed layers) {
  const TrainingJob& training = job.training;
  const Network network = CutForRanks(job.model.network, training.layout);
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(training.layout.pipeline));
  for (std::int64_t number = 0; number < training.layout.pipeline; ++number) {
    TRY(Part part, PartOfStage(training, StageOf(network, training.layout, number), layers));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<Part> PartOfRank(const Job& job, std::string_view rank, LayersPlayed layers) {
  const TrainingJob& training = job.training;
  const Network network = CutForRanks(job.model.network, training.layout);
  for (std::int64_t number = 0;; ++number) {
    CHECK(number < training.layout.pipeline);
    const RankStage stage = StageOf(network, training.layout, number);
    if (RankName(training.layout, stage) == rank) {
      return PartOfStage(training, stage, layers);
    }
  }
}

Result<Bytes> LargestState(const Job& job) {
  Bytes largest(0);
  const Layout& layout = job.training.layout;
  const Network network = CutForRanks(job.model.network, layout);
  for (std::int64_t number = 0; number < layout.pipeline; ++number) {
    TRY(const Bytes bytes, StateBytes(job.training, *StageOf(network, layout, number).network));
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace fourpiles
