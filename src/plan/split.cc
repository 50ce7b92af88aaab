#include "plan/split.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"

namespace fourpiles {
namespace {

std::string RankName(std::int64_t ranks) {
  return ranks == 1 ? "rank 0" : fmt::format("ranks 0 to {}", ranks - 1);
}

// One gradient buffer that is always there: where the recipe has one, and where ZeRO divides it.
bool GradientsAreResident(const TrainingJob& training) {
  return training.recipe.gradients_resident || training.zero >= 2;
}

}  // namespace

Shares SharesOf(const Job& job) {
  const auto over = [&](int stage) { return job.training.zero >= stage ? job.devices : 1; };
  return {.weights = over(3), .gradients = over(2), .optimizer_state = over(1)};
}

Result<std::vector<Part>> SplitTraining(const Job& job) {
  const TrainingJob& training = job.training;
  const Network& network = job.model.network;
  const Shares shares = SharesOf(job);
  TRY(std::vector<Storage> resident,
      WeightStorages(network, training.recipe.weights, shares.weights));
  if (GradientsAreResident(training)) {
    TRY(Storage gradients, GradientStorage(network, training.recipe, shares.gradients));
    resident.push_back(std::move(gradients));
  }
  TRY(std::vector<Storage> states,
      OptimizerStorages(network, training.recipe, training.optimizer, shares.optimizer_state));
  std::ranges::move(states, std::back_inserter(resident));
  Part part = {.rank = RankName(job.devices),
               .ranks = job.devices,
               .network = network,
               .resident = std::move(resident),
               .schedule = TrainingSchedule(network, training.gradient_accumulation),
               .shapes = {.micro_batch_size = training.micro_batch_size,
                          .sequence_length = training.sequence_length,
                          .activation_format = training.activation_format}};
  if (!GradientsAreResident(training)) {
    part.born_gradients = training.recipe.gradients;
  }
  return std::vector<Part>{std::move(part)};
}

Result<std::vector<Part>> SplitServing(const Job& job) {
  const Network& network = job.model.network;
  TRY(std::vector<Storage> resident, WeightStorages(network, job.serving.weights_format));
  TRY(std::vector<Storage> caches, CacheStorages(network, job.serving));
  std::ranges::move(caches, std::back_inserter(resident));
  return std::vector<Part>{{.rank = RankName(1),
                            .network = network,
                            .resident = std::move(resident),
                            .schedule = ServingSchedule()}};
}

}  // namespace fourpiles
