#include "plan/split.h"

#include <algorithm>

#include <fmt/format.h>

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
  // With a pipeline what was gathered stays: every micro-batch would gather it again (torchtitan,
  // distributed/parallelize, reshard_after_forward "default").
  return {.gathers = gathers,
          .reshards = training.layout.reshards && training.layout.pipeline == 1,
          .reduces = gathers && training.layout.zero == 0 && !training.evaluates,
          .root_apart = training.profile.framework.shards_root_apart || training.layout.zero == 3};
}

std::vector<Action> ScheduleOf(const TrainingJob& training, const RankStage& stage,
                               LayersPlayed layers) {
  ScheduleStyle style = {
      .micro_batches = training.gradient_accumulation,
      .every_layer = layers == LayersPlayed::kEach || training.recompute.every > 1,
      .gather = GatherStyleOf(training)};
  if (training.evaluates) {
    return EvaluationSchedule(stage.stage.network, style);
  }
  if (!stage.is_whole) {
    const std::vector<std::int64_t> waiting =
        WaitingPasses(training.layout, stage.number, training.gradient_accumulation);
    for (std::size_t chunk = 0; chunk < waiting.size(); ++chunk) {
      const auto [first, last] = stage.stage.chunks[chunk];
      style.chunks.push_back({.first = first, .last = last, .waiting = waiting[chunk]});
    }
  }
  return TrainingSchedule(stage.stage.network, style);
}

Batch BatchOf(const TrainingJob& training) {
  const std::int64_t context = training.layout.context;
  return {.micro_batch_size = training.micro_batch_size,
          .sequence_length = (training.sequence_length + context - 1) / context,
          .loss_chunks = training.loss_chunks,
          .expert_imbalance = training.layout.expert_imbalance};
}

// Tokens come to the first stage, labels to the last.
void LeaveOutBatch(const Layout& layout, RankStage& stage) {
  if (stage.number != 0 && stage.number != layout.pipeline - 1) {
    stage.stage.network.batch.clear();
  }
}

std::optional<Shape> ReceivedBy(const TrainingJob& training, const RankStage& stage,
                                const Batch& batch) {
  if (stage.is_whole) {
    return std::nullopt;
  }
  const Layout& layout = training.layout;
  const std::int64_t ranks = layout.sequence_parallel ? layout.tensor : 1;
  return ShapeOf({batch.micro_batch_size, (batch.sequence_length + ranks - 1) / ranks,
                  stage.stage.network.hidden_size.value_or(0)});
}

}  // namespace

Network CutForRanks(const Network& network, const Layout& layout) {
  const TensorCut cut = {.tensor = layout.tensor,
                         .sequence_parallel = layout.sequence_parallel,
                         .context = layout.context,
                         .expert = layout.expert,
                         .expert_tensor = layout.expert_tensor};
  const bool whole = layout.tensor == 1 && layout.context == 1 && layout.expert == 1;
  return whole ? network : CutByTensors(network, cut);
}

Result<Part> PlayedPart(const TrainingJob& training, RankStage stage, LayersPlayed layers) {
  const Batch batch = BatchOf(training);
  LeaveOutBatch(training.layout, stage);
  // A tape names its moments by the network and outlives the job.
  const auto network = std::make_shared<const Network>(stage.stage.network);
  Batch with_prompt = batch;  // which all layers see
  with_prompt.prompt_tokens = training.adapter ? PromptTokens(*training.adapter) : 0;
  with_prompt.sequence_length += with_prompt.prompt_tokens;
  Part part = {.rank = RankName(training.layout, stage),
               .ranks = training.layout.devices / training.layout.pipeline,
               .network = network,
               .resident = std::make_shared<const Resident>(),
               .schedule = ScheduleOf(training, stage, layers),
               .batch = with_prompt,
               .numbers = NumbersOf(training.recipe),
               .activation_format = TypeOf(training.activation_format),
               .gradients = GradientUseOf(training),
               .recompute = training.recompute,
               .coded = CodedOf(training, *network),
               .gathers_stay = !GatherStyleOf(training).reshards,
               .received = ReceivedBy(training, stage, batch),
               .offloads_activations = training.offloads_activations,
               .holds_over_steps = !training.later_batches_are_shorter,
               .records = !training.evaluates,
               .is_first_step = training.first_step};
  if (GathersWeights(training)) {
    TRY(part.gathered, GatheredOf(training, *network));
  }
  return part;
}

Result<Resident> ResidentOf(const TrainingJob& training, const RankStage& stage) {
  RankStage own = stage;
  LeaveOutBatch(training.layout, own);
  return RankState(training, own.stage.network, BatchOf(training));
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
  TRY(Part part, PlayedPart(training, stage, layers));
  TRY(Resident resident, ResidentOf(training, stage));
  part.resident = std::make_shared<const Resident>(std::move(resident));
  TRY(part.step_temporaries, TemporariesOf(training, *part.network));
  return part;
}

Result<std::vector<Part>> SplitTraining(const Job& job, LayersPlayed layers) {
  const TrainingJob& training = job.training;
  const Network network = CutForRanks(job.model.network, job.training.layout);
  std::vector<Part> parts;
  if (training.layout.pipeline == 1) {
    TRY(Part part, PartOfStage(training, {.stage = {.network = network}}, layers));
    parts.push_back(std::move(part));
    return parts;
  }
  const std::int64_t stages = training.layout.pipeline;
  const auto of_stages = StageLayers(training.layout, network.num_hidden_layers.value_or(0));
  parts.reserve(of_stages.size());
  for (std::int64_t number = 0; number < stages; ++number) {
    const RankStage stage = {
        .number = number,
        .stage = CutByLayers(network, of_stages[static_cast<std::size_t>(number)], number == 0,
                             number == stages - 1),
        .is_whole = false};
    TRY(Part part, PartOfStage(training, stage, layers));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<Bytes> LargestState(const Job& job) {
  Bytes largest(0);
  const Network network = CutForRanks(job.model.network, job.training.layout);
  const Layout& layout = job.training.layout;
  if (layout.pipeline == 1) {
    return StateBytes(job.training, network);
  }
  const auto of_stages = StageLayers(layout, network.num_hidden_layers.value_or(0));
  for (std::size_t stage = 0; stage < of_stages.size(); ++stage) {
    const StageNetwork own =
        CutByLayers(network, of_stages[stage], stage == 0, stage + 1 == of_stages.size());
    TRY(const Bytes bytes, StateBytes(job.training, own.network));
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace fourpiles
