#include "plan/engine_comparison.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/solve.h"

namespace fourpiles {
namespace {

// Weights differ by where they lie, which the budgets tell; line by line they are parameters.
constexpr Pile kEnginesPiles[] = {Pile::kKvCache, Pile::kWorkspace, Pile::kOverhead};

Result<Bytes> CacheBytes(const ServingPlan& plan, const RequestLoad& load) {
  Checked sum = 0;
  for (const ServingRank& rank : plan.ranks) {
    TRY(const Resident resident, rank.requests(load));
    for (const Storage& storage : resident.storages) {
      if (storage.pile == Pile::kKvCache) {
        sum = sum + Checked(storage.bytes.expected.value()) * rank.ranks;
      }
    }
  }
  if (!sum.ok()) {
    return CacheTooLarge();
  }
  return Bytes(sum.value());
}

Result<CacheSize> CacheSizeOf(const Job& job) {
  const RequestLoad load = LoadOf(job.serving);
  CacheSize size;
  TRY(const ServingPlan plan, PlanServing(job));
  TRY(size.as_allocated, CacheBytes(plan, load));
  TRY(const ServingPlan plain, PlanPlain(job));
  TRY(size.of_tokens, CacheBytes(plain, load));
  return size;
}

Result<EngineAnswer> AnswerOf(const Job& opened, Settings settings, const std::string& engine) {
  settings["engine"] = {engine, "--engine"};
  EngineAnswer answer = {.engine = engine};
  TRY(const Job job, ReadJob(opened, settings));
  TRY(answer.budget, BudgetOf(job));
  if (answer.budget->shapes_known) {
    TRY(answer.cache, CacheSizeOf(answer.budget->job));
  }
  return answer;
}

// The engines' one error, or all of theirs.
Error NoEngineCan(const std::vector<EngineAnswer>& answers) {
  const ErrorText& first = answers.front().budget.error().text;
  std::vector<std::string> reasons;
  bool alike = true;
  for (const EngineAnswer& answer : answers) {
    const ErrorText& text = answer.budget.error().text;
    alike = alike && text.where == first.where && text.found == first.found;
    reasons.push_back(fmt::format("{} ({}: {})", answer.engine, text.where, text.found));
  }
  if (alike) {
    return answers.front().budget.error();
  }
  return {.kind = answers.front().budget.error().kind,
          .text = {.where = "--engine all",
                   .found = fmt::format("not one can: {}", fmt::join(reasons, ", ")),
                   .expected = "expected settings that one engine has",
                   .hint = "leave out what the engine you mean does not have"}};
}

bool Differ(const std::vector<EngineAnswer>& answers, Pile pile) {
  std::optional<Bytes> first;
  return std::ranges::any_of(answers, [&](const EngineAnswer& answer) {
    if (!answer.budget) {
      return false;
    }
    const Bytes bytes = answer.budget->piles.at(pile);
    first = first.value_or(bytes);
    return bytes != *first;
  });
}

// The largest, and the one after it unless it is small beside the pile.
std::vector<Line> LargestOf(const Budget& budget, Pile pile) {
  constexpr std::size_t kMost = 2;
  constexpr std::int64_t kSmall = 10;  // a tenth
  std::vector<Line> lines = LinesAt(budget.tape, Place::kDevice, budget.peak.moment);
  const std::int64_t least = budget.piles.at(pile).value() / kSmall;
  std::erase_if(lines,
                [&](const Line& line) { return line.pile != pile || line.bytes.value() <= least; });
  std::ranges::stable_sort(lines, std::ranges::greater(), &Line::bytes);
  lines.resize(std::min(lines.size(), kMost));
  return lines;
}

bool IsSame(const Line& a, const Line& b) {
  return a.bytes == b.bytes && a.what == b.what && a.formula == b.formula;
}

std::vector<EngineDifference> DifferencesIn(const std::vector<EngineAnswer>& answers, Pile pile) {
  std::vector<EngineDifference> differences;
  for (const EngineAnswer& answer : answers) {
    if (!answer.budget) {
      continue;
    }
    for (Line& line : LargestOf(*answer.budget, pile)) {
      const auto same = std::ranges::find_if(
          differences, [&](const EngineDifference& other) { return IsSame(other.line, line); });
      if (same == differences.end()) {
        differences.push_back({.engines = {answer.engine}, .line = std::move(line)});
      } else {
        same->engines.push_back(answer.engine);
      }
    }
  }
  return differences;
}

}  // namespace

Result<EngineComparison> CompareEngines(std::string_view model, const Settings& settings) {
  TRY(const Job opened, OpenJob(JobKind::kServe, model, settings));
  EngineComparison comparison;
  for (const EngineRecord& engine : Engines()) {
    Result<EngineAnswer> answer = AnswerOf(opened, settings, engine.names.id);
    comparison.answers.push_back(
        answer ? *std::move(answer)
               : EngineAnswer{.engine = engine.names.id, .budget = tl::unexpected(answer.error())});
  }
  const bool none = std::ranges::none_of(
      comparison.answers, [](const EngineAnswer& answer) { return answer.budget.has_value(); });
  if (none) {
    return tl::unexpected(NoEngineCan(comparison.answers));
  }
  for (const Pile pile : kEnginesPiles) {
    if (Differ(comparison.answers, pile)) {
      std::ranges::move(DifferencesIn(comparison.answers, pile),
                        std::back_inserter(comparison.differences));
    }
  }
  return comparison;
}

}  // namespace fourpiles
