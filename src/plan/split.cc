#include "plan/split.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "formats/storage.h"
#include "plan/serving_weights.h"

namespace fourpiles {
namespace {

// A tape names its moments by the network and outlives the job.
std::shared_ptr<const Network> Share(const Network& network) {
  return std::make_shared<const Network>(network);
}

std::string RankName(std::int64_t ranks) {
  return ranks == 1 ? "rank 0" : fmt::format("ranks 0 to {}", ranks - 1);
}

// One gradient buffer that is always there: where the recipe has one, and where ZeRO divides it.
bool GradientsAreResident(const TrainingJob& training) {
  return training.step_kernels != StepKernels::kInBackward &&
         (training.recipe.gradients_resident || training.zero >= 2 ||
          training.profile.framework.zeroes_gradients);
}

}  // namespace

Shares SharesOf(const Job& job) {
  const auto over = [&](int stage) { return job.training.zero >= stage ? job.devices : 1; };
  return {.weights = over(3), .gradients = over(2), .optimizer_state = over(1)};
}

namespace {

// Autocast where the weights are kept wider than what is computed in, and are not gathered so.
Numbers NumbersOf(const Recipe& recipe) {
  if (recipe.gathered) {
    return {.weights = TypeOf(recipe.compute), .compute = TypeOf(recipe.compute)};
  }
  return {.weights = TypeOf(recipe.weights),
          .compute = TypeOf(recipe.compute),
          .autocast = StorageBits(recipe.weights) > StorageBits(recipe.compute)};
}

GradientUse GradientUseOf(const TrainingJob& training) {
  if (training.step_kernels == StepKernels::kInBackward) {
    return GradientUse::kAdded;
  }
  if (!GradientsAreResident(training)) {
    return GradientUse::kBorn;
  }
  return training.lower_bound ? GradientUse::kDirect : GradientUse::kAdded;
}

// What training keeps besides the weights: gradients, where they are resident, and the states.
Result<Resident> TrainedState(const Job& job) {
  const TrainingJob& training = job.training;
  const Network& network = job.model.network;
  const Shares shares = SharesOf(job);
  Resident state;
  if (GradientsAreResident(training)) {
    TRY(state, GradientStorage(network, training.recipe, shares.gradients));
  }
  TRY(Resident states,
      OptimizerStorages(network, training.recipe, training.optimizer, shares.optimizer_state));
  state.Append(std::move(states));
  return state;
}

Result<Resident> TrainingWeights(const Job& job) {
  const TrainingJob& training = job.training;
  const Network& network = job.model.network;
  return training.base ? SchemeWeights(network, *training.base, training.base_format)
                       : WeightStorages(network, training.recipe.weights, SharesOf(job).weights);
}

// Which parameters a product reads as codes. A tensor of all experts is read in slices, which are
// not followed.
std::vector<std::vector<bool>> CodedOf(const Job& job) {
  std::vector<std::vector<bool>> coded;
  if (!job.training.base) {
    return coded;
  }
  for (const Block& block : job.model.network.blocks) {
    std::vector<bool>& of_block = coded.emplace_back();
    for (const Parameter& parameter : block.parameters) {
      const bool stacked = parameter.routed && parameter.name.find("{}") == std::string::npos;
      of_block.push_back(!stacked && !StaysPlain(block, parameter, *job.training.base));
    }
  }
  return coded;
}

Result<std::shared_ptr<const Resident>> TrainingResident(const Job& job, const Batch& batch) {
  const TrainingJob& training = job.training;
  const Network& network = job.model.network;
  TRY(Resident resident, TrainingWeights(job));
  if (!training.evaluates) {
    TRY(Resident state, TrainedState(job));
    resident.Append(std::move(state));
    TRY(Resident scaling, ScalingStorages(network, training.recipe));
    resident.Append(std::move(scaling));
  }
  if (!training.lower_bound) {
    TRY(Resident buffers, BufferStorages(network, training.recipe.weights));
    resident.Append(std::move(buffers));
    TRY(Resident inputs, BatchStorages(network, batch, training.recipe.weights));
    resident.Append(std::move(inputs));
  }
  return std::make_shared<const Resident>(std::move(resident));
}

Bytes LargestGradient(const Job& job) {
  const Checked bytes = StorageBytes(Checked(LargestTrainableTensor(job.model.network)),
                                     job.training.recipe.gradients);
  return Bytes(OrLargest(bytes));
}

std::vector<Action> ScheduleOf(const Job& job, LayersPlayed layers) {
  const TrainingJob& training = job.training;
  const bool every_layer = layers == LayersPlayed::kEach || training.recompute.every > 1;
  return training.evaluates
             ? EvaluationSchedule(job.model.network, every_layer)
             : TrainingSchedule(job.model.network, {.micro_batches = training.gradient_accumulation,
                                                    .every_layer = every_layer});
}

}  // namespace

Result<std::vector<Part>> SplitTraining(const Job& job, LayersPlayed layers) {
  const TrainingJob& training = job.training;
  const Network& network = job.model.network;
  const Batch batch = {.micro_batch_size = training.micro_batch_size,
                       .sequence_length = training.sequence_length,
                       .loss_chunks = training.loss_chunks};
  TRY(std::shared_ptr<const Resident> resident, TrainingResident(job, batch));
  Batch with_prompt = batch;  // which all layers see
  with_prompt.prompt_tokens = training.adapter ? PromptTokens(*training.adapter) : 0;
  with_prompt.sequence_length += with_prompt.prompt_tokens;
  Part part = {.rank = RankName(job.devices),
               .ranks = job.devices,
               .network = Share(network),
               .resident = std::move(resident),
               .schedule = ScheduleOf(job, layers),
               .batch = with_prompt,
               .numbers = NumbersOf(training.recipe),
               .activation_format = TypeOf(training.activation_format),
               .gradients = GradientUseOf(training),
               .recompute = training.recompute,
               .coded = CodedOf(job),
               .offloads_activations = training.offloads_activations,
               .holds_over_steps = !training.later_batches_are_shorter,
               .records = !training.evaluates};
  if (!training.evaluates) {
    TRY(part.step_temporaries,
        StepTemporaries(network, training.optimizer, training.recipe.states, training.step_kernels,
                        SharesOf(job).optimizer_state));
    // The last gradient is there while its parameter steps.
    if (training.step_kernels == StepKernels::kInBackward) {
      part.step_temporaries += LargestGradient(job);
    }
  }
  return std::vector<Part>{std::move(part)};
}

}  // namespace fourpiles
