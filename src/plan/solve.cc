#include "plan/solve.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "plan/advice.h"
#include "plan/search.h"
#include "plan/setting_reader.h"
#include "plan/solve_serving.h"
#include "plan/training_data.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostDevices = kDeviceCounts.most;
constexpr std::int64_t kMostElse = kSizes.most;

// A product past 2^53 bytes fits nothing.
bool Fits(const Job& job, Unknown unknown, std::int64_t value) {
  const Result<Budget> budget = PlayedBudget(WithValue(job, unknown, value));
  return budget && *budget->verdict != Fit::kDoesNotFit;
}

bool Scales(const Job& job, Unknown unknown) {
  return unknown == Unknown::kDevices || !job.bare_count ||
         job.model.network.num_hidden_layers.has_value();
}

tl::unexpected<Error> DoesNotDepend(const Job& job, Unknown unknown) {
  if (job.bare_count) {
    return WrongUsage({.where = "--solve",
                       .found = "what the layers compute is not known",
                       .expected = "expected a model whose layers are known",
                       .hint = job.from_file ? "put its config.json beside the tensors"
                                             : "give a model, or --layers and --width"});
  }
  return WrongUsage({.where = "--solve",
                     .found = fmt::format("memory does not limit {}", Name(unknown)),
                     .expected = "expected a model whose memory grows with it"});
}

// No sample is longer, and without filling no sequence.
std::int64_t MostOf(const Job& job, Unknown unknown) {
  const std::shared_ptr<const TrainingData>& data = job.training.data;
  const bool ends = unknown == Unknown::kSequenceLength && data && !FillsLimit(*data);
  return ends ? std::min(data->lengths.Longest(), kMostElse) : kMostElse;
}

Result<std::optional<std::int64_t>> SolveDevices(const Job& job) {
  // Ranks of tensor, pipeline and context parallelism come together.
  const std::int64_t unit = DevicesOfOneReplica(job.training.layout);
  const std::int64_t most = kMostDevices / unit;
  const auto fits = [&](std::int64_t units) { return Fits(job, Unknown::kDevices, units * unit); };
  if (fits(1)) {
    return unit;
  }
  if (most < 1 || !fits(most)) {
    return std::nullopt;
  }
  return unit * (1 + LastThatHolds(1, most, [&](std::int64_t units) { return !fits(units); }));
}

// Of the worst batch where samples end at the limit.
std::int64_t LengthAt(const TrainingJob& training, std::int64_t limit) {
  const bool drops = training.data && training.data->drops_longer && !FillsLimit(*training.data);
  return drops ? InPieces(LongestKept(*training.data, limit), training.layout) : limit;
}

}  // namespace

Job WithValue(Job job, Unknown unknown, std::int64_t value) {
  switch (unknown) {
    case Unknown::kMicroBatchSize:
      job.training.micro_batch_size = value;
      break;
    case Unknown::kSequenceLength:
      job.training.sequence_length = LengthAt(job.training, value);
      break;
    case Unknown::kDevices:
      job.devices = value;
      job.training.layout = WithDevices(job.training.layout, value);
      break;
    case Unknown::kConcurrency:
      job.serving.concurrency = value;
      break;
    case Unknown::kContextLength:
      job.serving.context_length = value;
      break;
  }
  return job;
}

Result<std::optional<std::int64_t>> Solve(const Job& job, Unknown unknown) {
  CHECK(job.device.has_value());
  if (job.kind == JobKind::kServe) {
    TRY(const ServingPlan plan, PlanServing(job));
    return SolveServing(job, plan, unknown);
  }
  if (!Scales(job, unknown)) {
    return DoesNotDepend(job, unknown);
  }
  if (unknown == Unknown::kDevices) {
    return SolveDevices(job);
  }
  const auto fits = [&](std::int64_t value) { return Fits(job, unknown, value); };
  if (!fits(1)) {
    return std::nullopt;
  }
  const std::int64_t most = MostOf(job, unknown);
  const std::optional<std::int64_t> last = LastFrom(1, most, fits);
  if (!last && most == kMostElse) {
    return DoesNotDepend(job, unknown);
  }
  return last.value_or(most);
}

Result<Budget> BudgetOf(const Job& job) {
  if (job.kind == JobKind::kServe) {
    return BudgetOfServing(job);
  }
  if (!job.solve) {
    TRY(Budget budget, PlayedBudget(job));
    budget.advice = TrainingAdvice(budget);
    return budget;
  }
  TRY(const std::optional<std::int64_t> solution, Solve(job, *job.solve));
  const std::int64_t worst = *job.solve == Unknown::kDevices ? kMostDevices : 1;
  Job solved = WithValue(job, *job.solve, solution.value_or(worst));
  std::erase_if(solved.defaults,
                [&](const Default& unset) { return unset.key == Name(*job.solve); });
  TRY(Budget budget, PlayedBudget(solved));
  budget.solution = solution;
  budget.advice = TrainingAdvice(budget);
  return budget;
}

}  // namespace fourpiles
