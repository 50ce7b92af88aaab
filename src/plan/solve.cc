#include "plan/solve.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "plan/setting_reader.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostDevices = kDeviceCounts.most;
constexpr std::int64_t kMostElse = kSizes.most;

// A product past 2^53 bytes fits nothing.
bool Fits(const Job& job, Unknown unknown, std::int64_t value) {
  const Result<Budget> budget = PlayedBudget(WithValue(job, unknown, value));
  return budget && *budget->verdict != Fit::kDoesNotFit;
}

// The last value of low … high for which `holds`, which is true up to some value and false beyond;
// it is true for `low` and false for `high`.
template <class Holds>
std::int64_t LastThatHolds(std::int64_t low, std::int64_t high, Holds holds) {
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

bool Scales(const Job& job, Unknown unknown) {
  switch (unknown) {
    case Unknown::kMicroBatchSize:
    case Unknown::kSequenceLength:
      return !job.bare_count || job.model.network.num_hidden_layers.has_value();
    case Unknown::kDevices:
      return true;
    case Unknown::kConcurrency:
    case Unknown::kContextLength:
      break;
  }
  return !job.model.network.caches.empty();
}

tl::unexpected<Error> DoesNotDepend(const Job& job, Unknown unknown) {
  const bool serving = job.kind == JobKind::kServe;
  if (job.bare_count) {
    return WrongUsage(
        {.where = "--solve",
         .found = serving ? "the KV cache is not known" : "what the layers compute is not known",
         .expected = "expected a model whose layers are known",
         .hint = job.from_file ? "put its config.json beside the tensors"
                 : serving     ? "give a model"
                               : "give a model, or --layers and --width"});
  }
  return WrongUsage({.where = "--solve",
                     .found = fmt::format("memory does not limit {}", Name(unknown)),
                     .expected = "expected a model whose memory grows with it",
                     .hint = "a cache of sliding windows or states stops growing"});
}

Result<std::optional<std::int64_t>> SolveDevices(const Job& job) {
  const auto fits = [&](std::int64_t value) { return Fits(job, Unknown::kDevices, value); };
  if (fits(1)) {
    return 1;
  }
  if (!fits(kMostDevices)) {
    return std::nullopt;
  }
  return 1 + LastThatHolds(1, kMostDevices, [&](std::int64_t value) { return !fits(value); });
}

}  // namespace

Job WithValue(Job job, Unknown unknown, std::int64_t value) {
  switch (unknown) {
    case Unknown::kMicroBatchSize:
      job.training.micro_batch_size = value;
      break;
    case Unknown::kSequenceLength:
      job.training.sequence_length = value;
      break;
    case Unknown::kDevices:
      job.devices = value;
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
  if (fits(kMostElse)) {
    return DoesNotDepend(job, unknown);
  }
  return LastThatHolds(1, kMostElse, fits);
}

Result<Budget> BudgetOf(const Job& job) {
  if (!job.solve) {
    TRY(Budget budget, PlayedBudget(job));
    if (budget.serving && job.device && !job.model.network.caches.empty()) {
      TRY(budget.serving->max_concurrency, Solve(job, Unknown::kConcurrency));
    }
    return budget;
  }
  TRY(const std::optional<std::int64_t> solution, Solve(job, *job.solve));
  const std::int64_t worst = *job.solve == Unknown::kDevices ? kMostDevices : 1;
  Job solved = WithValue(job, *job.solve, solution.value_or(worst));
  std::erase_if(solved.defaults,
                [&](const Default& unset) { return unset.key == Name(*job.solve); });
  TRY(Budget budget, PlayedBudget(solved));
  budget.solution = solution;
  return budget;
}

}  // namespace fourpiles
