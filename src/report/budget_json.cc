// A budget as the members of its JSON, docs/json.md.

#include "report/budget.h"
#include "report/explanation.h"
#include "report/job_json.h"
#include "step/lines.h"

namespace fourpiles {
namespace {

Json BytesJson(Bytes bytes) {
  return bytes.value();
}

Json BandJson(const Band& band) {
  return Json::Object{{"low", BytesJson(band.low)},
                      {"expected", BytesJson(band.expected)},
                      {"high", BytesJson(band.high)}};
}

Json ModelJson(const Job& job) {
  return Json::Object{{"name", job.model.name},
                      {"parameters", ParameterCount(job.model.network)},
                      {"trainable_parameters", TrainableParameterCount(job.model.network)},
                      {"source", job.model.source}};
}

// Every pile at one place; those whose shapes are not known are null.
Json PilesJson(const Budget& budget, Place place) {
  const auto formats = FormatsAt(budget.tape, place, budget.peak.moment);
  Json::Object piles;
  const Moment moment =
      place == Place::kDevice ? budget.peak.moment : PeakOf(budget.tape, place).moment;
  std::map<Pile, Bytes> amounts = PilesAt(budget.tape, place, moment);
  if (place == Place::kHost) {
    for (const auto& [pile, bytes] :
         PilesAt(budget.tape, Place::kHostPinned, PeakOf(budget.tape, Place::kHostPinned).moment)) {
      amounts[pile] += bytes;
    }
  }
  for (const auto& [pile, bytes] : amounts) {
    const bool training = budget.job.kind != JobKind::kServe;
    const bool has_shapes = pile == (training ? Pile::kActivations : Pile::kKvCache);
    if (has_shapes && !budget.shapes_known) {
      piles.emplace_back(Name(pile), Json());
      continue;
    }
    Json::Object by_format;
    if (const auto found = formats.find(pile); found != formats.end()) {
      for (const auto& [format, amount] : found->second) {
        by_format.emplace_back(format, BytesJson(amount));
      }
    }
    piles.emplace_back(
        Name(pile), Json::Object{{"bytes", BytesJson(bytes)}, {"formats", std::move(by_format)}});
  }
  return piles;
}

Json HostJson(const Budget& budget) {
  const Bytes pinned = PeakOf(budget.tape, Place::kHostPinned).bytes;
  const Bytes pageable = PeakOf(budget.tape, Place::kHost).bytes;
  return Json::Object{
      {"piles", PilesJson(budget, Place::kHost)},
      {"peak_bytes", BytesJson(pinned + pageable)},
      {"total_bytes", BytesJson(budget.host)},
      {"memory_bytes", budget.job.host_memory ? BytesJson(*budget.job.host_memory) : Json()}};
}

Json DeviceJson(const std::optional<Device>& device) {
  if (!device) {
    return {};
  }
  return Json::Object{{"name", IsSize(*device) ? device->name : device->names.id},
                      {"memory_bytes", BytesJson(device->memory)}};
}

Json SolutionJson(const Budget& budget) {
  if (!budget.solution) {
    return {};
  }
  return Json::Object{{std::string(Name(*budget.job.solve)), *budget.solution}};
}

Json ServingJson(const Budget& budget) {
  if (!budget.serving) {
    return {};
  }
  const ServingFigures& figures = *budget.serving;
  Json::Array contexts;
  for (const ContextRow& row : figures.contexts) {
    contexts.emplace_back(
        Json::Object{{"concurrency", row.concurrency}, {"context_length", row.context_length}});
  }
  Json::Array log;
  for (const EngineFigure& figure : figures.log) {
    log.emplace_back(
        Json::Object{{"id", figure.id},
                     {"device", figure.device},
                     {"value", figure.unit == "x" ? Json(figure.value)
                                                  : Json(static_cast<std::int64_t>(figure.value))},
                     {"unit", figure.unit}});
  }
  const std::optional<CachePool>& pool = figures.pool;
  return Json::Object{
      {"cache_bytes_per_token", BytesJson(figures.cache_per_token)},
      {"state_bytes_per_request", BytesJson(figures.state_per_request)},
      {"cache_tokens", figures.cache_tokens},
      {"pool_bytes", pool ? BytesJson(pool->bytes) : Json()},
      {"blocks", pool ? Json(pool->blocks) : Json()},
      {"block_tokens", pool ? Json(pool->block_tokens) : Json()},
      {"max_concurrency", figures.max_concurrency ? Json(*figures.max_concurrency) : Json()},
      {"gpu_layers", figures.gpu_layers ? Json(*figures.gpu_layers) : Json()},
      {"context_length", budget.job.serving.context_length},
      {"contexts", std::move(contexts)},
      {"log", std::move(log)}};
}

Json RanksJson(const Budget& budget) {
  Json::Array ranks;
  for (const RankBudget& rank : budget.ranks) {
    Json::Object piles;
    for (const auto& [pile, bytes] : rank.piles) {
      piles.emplace_back(Name(pile), BytesJson(bytes));
    }
    const bool serving = budget.job.kind == JobKind::kServe;
    ranks.emplace_back(
        Json::Object{{"rank", rank.rank},
                     {"ranks", rank.ranks},
                     {"piles", std::move(piles)},
                     {serving ? "total_bytes" : "peak_bytes",
                      serving ? BandJson(rank.total) : BytesJson(rank.total.expected)}});
  }
  return ranks;
}

Json ReadingsJson(const Budget& budget) {
  Json::Array readings;
  for (const RecipeReading& reading : budget.readings) {
    readings.emplace_back(
        Json::Object{{"recipe", reading.recipe},
                     {"bytes_per_parameter", reading.bytes_per_parameter},
                     {"assumed", reading.recipe == budget.job.training.recipe.names.id}});
  }
  return readings;
}

Json AdviceJson(const Budget& budget) {
  Json::Array list;
  for (const Advice& advice : budget.advice) {
    list.emplace_back(Json::Object{{"change", advice.change},
                                   {"command", advice.command},
                                   {"saves_bytes", BytesJson(advice.saves)},
                                   {"costs", advice.costs},
                                   {"enough", advice.enough ? Json(*advice.enough) : Json()}});
  }
  return list;
}

}  // namespace

Json LinesJson(const std::vector<Line>& lines) {
  Json::Array json;
  for (const Line& line : lines) {
    json.emplace_back(Json::Object{{"pile", Name(line.pile)},
                                   {"what", line.what},
                                   {"elements", line.elements.value()},
                                   {"format", line.format},
                                   {"bytes", BytesJson(line.bytes)},
                                   {"formula", line.formula},
                                   {"source", line.source}});
  }
  return json;
}

Json::Object BudgetJson(const Budget& budget, const BudgetStyle& style) {
  const bool serving = budget.job.kind == JobKind::kServe;
  Json::Object json = {
      {"job", JobJson(budget.job)},
      {"model", ModelJson(budget.job)},
      {"piles", PilesJson(budget, Place::kDevice)},
      {"host", HostJson(budget)},
      {"state_bytes", BytesJson(budget.state)},
      {"saved_activation_bytes",
       budget.shapes_known && !serving ? BytesJson(budget.saved_activations) : Json()},
      {"peak_bytes", BytesJson(budget.peak.bytes)},
      {"peak_moment", MomentName(budget.tape, budget.peak.moment)},
      {"total_bytes", BandJson(budget.total)},
      {"device", DeviceJson(budget.job.device)},
      {"verdict", budget.verdict ? Json(Name(*budget.verdict)) : Json()},
      {"fits", budget.verdict ? Json(*budget.verdict != Fit::kDoesNotFit) : Json()},
      {"headroom_bytes", budget.headroom ? BytesJson(*budget.headroom) : Json()},
      {"worst_rank", budget.worst_rank},
      {"solution", SolutionJson(budget)},
  };
  if (!budget.readings.empty()) {
    json.emplace_back("recipe_readings", ReadingsJson(budget));
  }
  if (serving) {
    json.emplace_back("serving", ServingJson(budget));
  } else {
    json.emplace_back("shown_rank", budget.shown_rank);
  }
  json.emplace_back("ranks", RanksJson(budget));
  json.emplace_back("lines", LinesJson(LinesAt(budget.tape, Place::kDevice, budget.peak.moment)));
  if (style.explain) {
    AddExplanation(budget, json);
  }
  json.emplace_back("advice", AdviceJson(budget));
  json.emplace_back("warnings", TextsJson(budget.warnings));
  json.emplace_back("unknowns", TextsJson(budget.unknowns));
  return json;
}

}  // namespace fourpiles
