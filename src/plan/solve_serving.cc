#include "plan/solve_serving.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "plan/advice.h"
#include "plan/search.h"
#include "plan/setting_reader.h"
#include "plan/solve.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostAsked = kSizes.most;

RequestLoad LoadWith(const Job& job, Unknown unknown, std::int64_t value) {
  ServingJob serving = {.context_length = job.serving.context_length,
                        .concurrency = job.serving.concurrency,
                        .layout = job.serving.layout,
                        .image_tokens = job.serving.image_tokens};
  (unknown == Unknown::kConcurrency ? serving.concurrency : serving.context_length) = value;
  return LoadOf(serving);
}

tl::unexpected<Error> DoesNotDepend(const Job& job, Unknown unknown) {
  if (job.bare_count) {
    return WrongUsage(
        {.where = "--solve",
         .found = "the KV cache is not known",
         .expected = "expected a model whose layers are known",
         .hint = job.from_file ? "put its config.json beside the tensors" : "give a model"});
  }
  return WrongUsage({.where = "--solve",
                     .found = fmt::format("memory does not limit {}", Name(unknown)),
                     .expected = "expected a model whose memory grows with it",
                     .hint = "a cache of sliding windows or states stops growing"});
}

// vLLM never runs more requests at a time than it was told.
std::int64_t WithinEngine(const Job& job, std::int64_t concurrency) {
  const bool vllm = job.serving.engine && job.serving.engine->names.id == "vllm";
  return vllm && job.serving.max_num_seqs
             ? std::min(concurrency, *job.serving.max_num_seqs * job.serving.layout.data)
             : concurrency;
}

bool IsTyped(const Job& job, std::string_view setting) {
  return job.settings.find(setting) != job.settings.end();
}

// Counts that a layout can be made of: few enough to try them all.
constexpr std::int64_t kDeviceCandidates[] = {1,  2,  3,  4,  5,  6,  7,  8,  10, 12, 14,
                                              16, 20, 24, 32, 40, 48, 64, 80, 96, 128};

struct SolvedDevices {
  std::optional<std::int64_t> devices = {};
  std::optional<Job> job = {};
};

Result<SolvedDevices> SolveDevices(const Job& job) {
  SolvedDevices last;
  const std::int64_t stage = IsTyped(job, "tensor-parallel") ? job.serving.layout.tensor : 1;
  const std::int64_t stages = IsTyped(job, "pipeline-parallel") ? job.serving.layout.pipeline : 1;
  for (const std::int64_t count : kDeviceCandidates) {
    const std::int64_t devices = count * stage * stages;
    std::optional<Job> candidate = WithDevices(job, devices);
    if (!candidate) {
      continue;
    }
    TRY(const ServingPlan plan, PlanServing(*candidate));
    const bool fits = HasRoom(plan, job.device->memory, LoadOf(candidate->serving));
    last = {.devices = fits ? std::optional(devices) : std::nullopt, .job = std::move(candidate)};
    if (fits) {
      break;
    }
  }
  if (!last.job) {
    return WrongUsage(
        {.where = "--solve",
         .found = "no number of devices can be laid out so",
         .expected = "expected experts over what tensor parallelism and replicas share",
         .hint = "leave out --expert-parallel or --tensor-parallel"});
  }
  return last;
}

Result<Budget> BudgetWithAll(const Job& job) {
  TRY(const ServingPlan plan, PlanServing(job));
  TRY(Budget budget, ServingBudget(job, plan));
  if (budget.serving && job.device && !job.model.network.caches.empty()) {
    if (const auto most = SolveServing(job, plan, Unknown::kConcurrency)) {
      budget.serving->max_concurrency = most->value_or(0);
    }
    budget.serving->contexts = ContextTable(job, plan);
  }
  budget.advice = ServingAdvice(budget);
  return budget;
}

Result<Budget> SolvedBudget(const Job& job, std::optional<std::int64_t> solution) {
  Job solved = job;
  std::erase_if(solved.defaults,
                [&](const Default& unset) { return unset.key == Name(*job.solve); });
  TRY(Budget budget, BudgetWithAll(solved));
  budget.solution = solution;
  return budget;
}

}  // namespace

bool HasRoom(const ServingPlan& plan, Bytes memory, const RequestLoad& load) {
  return std::ranges::all_of(plan.ranks, [&](const ServingRank& rank) {
    const Result<Band> bytes = DeviceBytes(rank, load);
    return bytes && bytes->expected <= memory;
  });
}

std::optional<std::int64_t> MostThatFit(const Job& job, const ServingPlan& plan, Unknown unknown,
                                        std::int64_t most) {
  CHECK(job.device.has_value());
  const auto fits = [&](std::int64_t value) {
    return HasRoom(plan, job.device->memory, LoadWith(job, unknown, value));
  };
  if (!fits(1)) {
    return std::nullopt;
  }
  return LastFrom(1, most, fits).value_or(most);
}

Result<std::optional<std::int64_t>> SolveServing(const Job& job, const ServingPlan& plan,
                                                 Unknown unknown) {
  if (job.model.network.caches.empty()) {
    return DoesNotDepend(job, unknown);
  }
  const std::optional<std::int64_t> last = MostThatFit(job, plan, unknown, kMostAsked);
  if (last == kMostAsked) {
    return DoesNotDepend(job, unknown);
  }
  return unknown == Unknown::kConcurrency && last ? WithinEngine(job, *last) : last;
}

std::vector<ContextRow> ContextTable(const Job& job, const ServingPlan& plan) {
  constexpr std::int64_t kMostRequests = 1024;
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 32;  // of a model that names none
  std::vector<ContextRow> rows;
  std::int64_t before = job.model.network.max_position_embeddings.value_or(kNoLimit);
  for (std::int64_t requests = 1; requests <= kMostRequests; requests *= 2) {
    const auto fits = [&](std::int64_t tokens) {
      return HasRoom(plan, job.device->memory,
                     {.tokens = tokens + job.serving.image_tokens, .requests = requests});
    };
    if (!fits(1)) {
      break;
    }
    // More requests never have more tokens each.
    before = fits(before) ? before : LastThatHolds(1, before, fits);
    if (before == kNoLimit) {  // a state, which does not grow
      continue;
    }
    rows.push_back({.concurrency = requests * job.serving.layout.data, .context_length = before});
  }
  return rows;
}

std::optional<Job> WithDevices(const Job& job, std::int64_t devices) {
  constexpr std::int64_t kMostTensor = 8;
  Job other = job;
  other.devices = devices;
  ServingLayout& layout = other.serving.layout;
  const std::int64_t layers = job.model.network.num_hidden_layers.value_or(1);
  if (IsLlamacpp(job.serving)) {
    layout = {.pipeline = devices};
    return devices <= layers ? std::optional(std::move(other)) : std::nullopt;
  }
  const bool pipeline = IsTyped(job, "pipeline-parallel");
  std::int64_t left = devices / (pipeline ? layout.pipeline : 1);
  if (!IsTyped(job, "tensor-parallel")) {
    layout.tensor = std::min(left, kMostTensor);
  }
  left /= std::max<std::int64_t>(1, layout.tensor);
  const bool replicas = pipeline || IsTyped(job, "expert-parallel");
  (replicas ? layout.data : layout.pipeline) = left;
  if (replicas && !pipeline) {
    layout.pipeline = 1;
  }
  const bool whole = layout.tensor * layout.pipeline * layout.data == devices && left > 0 &&
                     layout.pipeline <= layers &&
                     (layout.tensor * layout.data) % layout.expert == 0;
  return whole && HeadsDivide(job.model.network, layout.tensor) ? std::optional(std::move(other))
                                                                : std::nullopt;
}

Result<Budget> BudgetOfServing(const Job& job) {
  if (!job.solve) {
    return BudgetWithAll(job);
  }
  if (*job.solve == Unknown::kDevices) {
    TRY(SolvedDevices solved, SolveDevices(job));
    return SolvedBudget(*solved.job, solved.devices);
  }
  std::optional<std::int64_t> solution;
  {
    TRY(const ServingPlan plan, PlanServing(job));
    TRY(solution, SolveServing(job, plan, *job.solve));
  }
  return SolvedBudget(WithValue(job, *job.solve, solution.value_or(1)), solution);
}

}  // namespace fourpiles
