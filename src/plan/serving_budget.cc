// The budget of a serving job: each kind of rank as a tape of one moment, and the worst of them.

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/budget.h"
#include "plan/cache.h"
#include "plan/serving_rank.h"

namespace fourpiles {
namespace {

Result<Tape> TapeOf(const ServingRank& rank, const RequestLoad& load) {
  Resident all = rank.loaded;
  TRY(Resident requests, rank.requests(load));
  all.Append(std::move(requests));
  const Part part = {.rank = rank.name,
                     .ranks = rank.ranks,
                     .network = rank.network,
                     .resident = std::make_shared<const Resident>(std::move(all)),
                     .schedule = ServingSchedule()};
  return Play(part, LowerBound());
}

Band TotalOf(const Tape& tape) {
  Band sum;
  for (const Storage& storage : tape.storages) {
    if (storage.place == Place::kDevice) {
      sum.low += storage.bytes.low;
      sum.expected += storage.bytes.expected;
      sum.high += storage.bytes.high;
    }
  }
  return sum;
}

Result<ServingFigures> FiguresOf(const Job& job, const ServingPlan& plan) {
  const Network& network = job.model.network;
  const CacheFormats formats = CacheFormatsOf(job.serving);
  const Checked per_token = CacheBytesPerToken(network.caches, formats);
  const Checked per_request = StateBytesPerRequest(network.caches, formats);
  const Checked tokens = Checked(TokensOf(job.serving)) * job.serving.concurrency;
  if (!per_token.ok() || !per_request.ok() || !tokens.ok()) {
    return CacheTooLarge();
  }
  ServingFigures figures = {.cache_per_token = Bytes(per_token.value()),
                            .state_per_request = Bytes(per_request.value()),
                            .cache_tokens = tokens.value()};
  if (plan.most_gpu_layers) {
    TRY(figures.gpu_layers, plan.most_gpu_layers());
  }
  for (const ServingRank& rank : plan.ranks) {  // the least decides
    if (rank.pool && (!figures.pool || rank.pool->tokens < figures.pool->tokens)) {
      figures.pool = rank.pool;
      figures.cache_tokens = rank.pool->tokens;
    }
  }
  return figures;
}

std::vector<std::string> UnknownsOf(const Job& job, const ServingPlan& plan) {
  std::vector<std::string> unknowns = plan.unknowns;
  if (!KnowsOverheads(job)) {
    unknowns.emplace_back("the driver's context and the libraries' workspaces");
  }
  unknowns.emplace_back("the allocator's rounding");
  if (job.devices > 1) {
    unknowns.emplace_back("communication buffers");
  }
  return unknowns;
}

}  // namespace

Result<Budget> ServingBudget(const Job& job, const ServingPlan& plan) {
  Budget budget;
  budget.job = job;
  const RequestLoad load = LoadOf(job.serving);
  for (const ServingRank& rank : plan.ranks) {
    TRY(Tape tape, TapeOf(rank, load));
    const Band total = TotalOf(tape);
    budget.ranks.push_back({.rank = rank.name,
                            .ranks = rank.ranks,
                            .piles = PilesAt(tape, Place::kDevice, 0),
                            .total = total});
    if (budget.worst_rank.empty() || total.expected > budget.total.expected) {
      budget.total = total;
      budget.peak = PeakOf(tape, Place::kDevice);
      budget.worst_rank = rank.name;
      budget.piles = budget.ranks.back().piles;
      budget.state = budget.piles[Pile::kWeights];
      budget.tape = std::move(tape);
    }
  }
  budget.shapes_known = ShapesAreKnown(job);
  if (job.device) {
    budget.verdict = FitOf(budget.total, job.device->memory);
    budget.headroom = job.device->memory - budget.total.expected;
  }
  if (budget.shapes_known) {
    TRY(budget.serving, FiguresOf(job, plan));
    const auto worst = std::ranges::find(plan.ranks, budget.worst_rank, &ServingRank::name);
    if (worst->figures) {
      budget.serving->log = worst->figures(*worst, load);
    }
  }
  budget.warnings = WarningsOf(job);
  budget.unknowns = UnknownsOf(job, plan);
  return budget;
}

}  // namespace fourpiles
