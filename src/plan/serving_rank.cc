#include "plan/serving_rank.h"

#include <cmath>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/declared_scheme.h"
#include "plan/paged_cache.h"

namespace fourpiles {
namespace {

std::string RankName(const LayerStage& stage, std::int64_t stages, std::int64_t number,
                     std::int64_t ranks) {
  if (stages > 1) {
    return fmt::format("stage {} of {}, layers {} to {}", number, stages, stage.first,
                       stage.first + stage.layers - 1);
  }
  return ranks == 1 ? "rank 0" : fmt::format("ranks 0 to {}", ranks - 1);
}

// Draft weights, in their own formats, and caches are cut as the model's; the draft runs in one
// stage, on the last.
Result<void> AddDraft(ServingRank& rank, const Job& job) {
  if (!job.serving.draft || !rank.ends) {
    return {};
  }
  const Network& whole = job.serving.draft->network;
  const LayerStage stage = LayerStagesOf(whole, 1).front();
  const Network draft = RankNetwork(whole, stage, job.serving.layout);
  ServingJob serving = job.serving;
  serving.layout.pipeline = 1;
  TRY(serving.weights, OwnFormatOf(*job.serving.draft, false));
  TRY(Resident weights,
      RankWeights(serving, {.model = job.serving.draft.get(), .network = &draft, .stage = stage}));
  for (StorageText& text : weights.texts) {
    text.what = "draft model: " + text.what;
  }
  rank.loaded.Append(std::move(weights));
  rank.caches.insert(rank.caches.end(), draft.caches.begin(), draft.caches.end());
  return {};
}

}  // namespace

Result<std::vector<ServingRank>> RanksOf(const Job& job) {
  const ServingLayout& layout = job.serving.layout;
  const std::vector<LayerStage> stages = LayerStagesOf(job.model.network, layout.pipeline);
  const std::int64_t alike = layout.tensor * layout.data;
  const bool cut = layout.tensor * layout.pipeline * layout.expert > 1;
  std::vector<ServingRank> ranks;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const LayerStage& stage = stages[i];
    ServingRank rank = {
        .name = RankName(stage, std::ssize(stages), static_cast<std::int64_t>(i), alike),
        .ranks = alike};
    rank.network = std::make_shared<const Network>(
        cut ? RankNetwork(job.model.network, stage, layout) : job.model.network);
    TRY(rank.loaded,
        RankWeights(job.serving,
                    {.model = &job.model, .network = rank.network.get(), .stage = stage}));
    TRY(Resident adapters, AdapterWeights(job.serving, *rank.network));
    rank.loaded.Append(std::move(adapters));
    rank.ends = stage.ends;
    rank.caches = rank.network->caches;
    TRY_VOID(AddDraft(rank, job));
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

bool KnowsOverheads(const Job& job) {
  return job.device && !IsSize(*job.device);
}

void AddBand(Resident& resident, Pile pile, const Band& band, StorageText text) {
  resident.Add({.pile = pile, .bytes = band}, std::move(text));
}

void AddTerm(Resident& resident, const Job& job, std::string_view id) {
  const EngineTerm* term = FindTerm(*job.serving.engine, id);
  if (term != nullptr && KnowsOverheads(job)) {
    AddBand(resident, Pile::kOverhead,
            {Bytes(term->low_bytes), Bytes(term->expected_bytes), Bytes(term->high_bytes)},
            {.what = term->what, .formula = "measured", .source = term->source});
  }
}

double ExpectedRatio(const Job& job, std::string_view id) {
  const EngineRatio* ratio = FindRatio(*job.serving.engine, id);
  return ratio == nullptr ? 1 : ratio->expected;
}

Band Times(Checked bytes, const Job& job, std::string_view id) {
  const EngineRatio* ratio = FindRatio(*job.serving.engine, id);
  const auto times = [&](double factor) {
    const double product = static_cast<double>(OrLargest(bytes)) * factor;
    return Bytes(std::llround(std::min(product, static_cast<double>(kLargestAmount))));
  };
  if (ratio == nullptr) {
    return Exactly(Bytes(OrLargest(bytes)));
  }
  return KnowsOverheads(job) ? Band{times(ratio->low), times(ratio->expected), times(ratio->high)}
                             : Exactly(times(ratio->expected));
}

void AddLeftFree(Resident& resident, Bytes bytes, std::string_view formula) {
  if (bytes > Bytes(0)) {
    AddBand(resident, Pile::kOverhead, Exactly(bytes),
            {.what = "left free by the engine",
             .formula = std::string(formula),
             .source = "--memory-utilization"});
  }
}

Bytes ExpectedOf(const Resident& resident) {
  Bytes sum(0);
  for (const Storage& storage : resident.storages) {
    sum += storage.place == Place::kDevice ? storage.bytes.expected : Bytes(0);
  }
  return sum;
}

Bytes ExpectedOf(const Resident& resident, Pile pile) {
  Bytes sum(0);
  for (const Storage& storage : resident.storages) {
    const bool counts = storage.place == Place::kDevice && storage.pile == pile;
    sum += counts ? storage.bytes.expected : Bytes(0);
  }
  return sum;
}

void AddRepacking(Resident& resident, const Job& job) {
  const EngineRatio* ratio = FindRatio(*job.serving.engine, "mxfp4_repacked");
  std::int64_t codes = 0;
  for (const Storage& storage : resident.storages) {
    codes += storage.format == "mxfp4" ? storage.bytes.expected.value() : 0;
  }
  if (ratio == nullptr || codes == 0) {
    return;
  }
  const Band whole = Times(codes, job, ratio->id);
  const Bytes once(codes);
  AddBand(resident, Pile::kWeights, {whole.low - once, whole.expected - once, whole.high - once},
          {.what = ratio->what, .formula = "share of the experts", .source = ratio->source});
}

}  // namespace fourpiles
