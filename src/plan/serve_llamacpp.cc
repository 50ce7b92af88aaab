// llama.cpp: what lies on each device and on the host (plan/llamacpp_place.h), and how many layers
// the devices have room for.

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/declared_scheme.h"
#include "plan/llamacpp_place.h"
#include "plan/serving_rank.h"

namespace fourpiles {
namespace {

Result<Resident> WeightsOn(const Job& job, const LlamacppModel& model, const LlamacppPlace& place) {
  Resident resident;
  for (const auto& [type, amount] : LlamacppTensors(job, model, place)) {
    if (!amount.bytes.ok() || !amount.elements.ok()) {
      return WrongUsage({.where = "budget", .found = "the weights pass 2^53 bytes"});
    }
    resident.Add({.pile = Pile::kWeights,
                  .place = place.Side(),
                  .format = type,
                  .elements = Elements(amount.elements.value()),
                  .bytes = Exactly(Bytes(amount.bytes.value()))},
                 {.what = fmt::format("tensors in {}", type),
                  .formula = model.padded && place.device
                                 ? "bytes of the type, rows padded to 512, tensors to 128 bytes"
                                 : "bytes of the type",
                  .source = "llama.cpp src/llama-model.cpp, load_tensors"});
  }
  return resident;
}

Result<void> AddCaches(Resident& resident, const std::vector<LlamacppCache>& caches,
                       const LlamacppPlace& place) {
  for (const LlamacppCache& cache : caches) {
    const Checked elements = (Checked(cache.layers.key_width) + cache.layers.value_width) *
                             cache.layers.layers * cache.cells.cells * cache.cells.streams;
    if (!cache.buffer_bytes.ok() || !elements.ok()) {
      return CacheTooLarge();
    }
    resident.Add({.pile = Pile::kKvCache,
                  .place = place.Side(),
                  .format = cache.types.key->name,
                  .elements = Elements(elements.value()),
                  .bytes = Exactly(Bytes(cache.buffer_bytes.value()))},
                 {.what = cache.window > 0
                              ? fmt::format("keys and values of {} layers, window {}",
                                            cache.layers.layers, cache.window)
                              : fmt::format("keys and values of {} layers", cache.layers.layers),
                  .formula = fmt::format("{} × {} cells × ({} in {} + {} in {})",
                                         cache.cells.streams, cache.cells.cells.value(),
                                         cache.layers.key_width, cache.types.key->name,
                                         cache.layers.value_width, cache.types.value->name),
                  .source = "llama.cpp src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp"});
  }
  return {};
}

Result<void> AddStates(Resident& resident, const LlamacppStates& states, const RequestLoad& load,
                       const LlamacppPlace& place) {
  const Checked bytes = states.convolution + states.recurrent;
  if (!bytes.ok()) {
    return CacheTooLarge();
  }
  if (bytes.value() > 0) {
    resident.Add(
        {.pile = Pile::kKvCache,
         .place = place.Side(),
         .format = "float32",
         .elements = Elements(bytes.value() / 4),
         .bytes = Exactly(Bytes(bytes.value()))},
        {.what = "convolution inputs and recurrent memory",
         .formula = fmt::format("{} requests × elements of the states × 4 bytes", load.requests),
         .source = "llama.cpp src/llama-memory-recurrent.cpp"});
  }
  return {};
}

Result<void> AddCompute(Resident& resident, const Job& job, Checked bytes,
                        const LlamacppPlace& place) {
  if (!bytes.ok()) {
    return CacheTooLarge();
  }
  if (bytes.value() > 0) {
    resident.Add(
        {.pile = Pile::kWorkspace, .place = place.Side(), .bytes = Times(bytes, job, "compute")},
        {.what = "compute buffer",
         .formula = "the largest place of the graph: logits, attention or experts",
         .source = "llama.cpp ggml-alloc.c; plan/llamacpp_compute.h"});
  }
  return {};
}

Result<void> AddOutput(Resident& resident, const Job& job, const RequestLoad& load) {
  const Checked bytes = OutputBufferBytes(load.requests, job.model.network.vocab_size.value_or(0));
  if (!bytes.ok()) {
    return CacheTooLarge();
  }
  resident.Add(
      {.pile = Pile::kWorkspace, .place = Place::kHost, .bytes = Exactly(Bytes(bytes.value()))},
      {.what = "output buffer",
       .formula = fmt::format("{} requests × vocabulary × 4 bytes", load.requests),
       .source = "llama.cpp src/llama-context.cpp, output_reserve"});
  return {};
}

Result<Resident> RequestsOn(const Job& job, const LlamacppModel& model, const RequestLoad& load,
                            const LlamacppPlace& place) {
  Resident resident;
  TRY_VOID(AddCaches(resident, LlamacppCaches(job, model, load, place), place));
  TRY_VOID(AddStates(resident, LlamacppStatesOn(job, model, load, place), load, place));
  TRY_VOID(AddCompute(resident, job, LlamacppComputeBytes(job, model, load, place), place));
  if (!place.device) {
    TRY_VOID(AddOutput(resident, job, load));
  }
  return resident;
}

Result<ServingRank> RankOf(const Job& job, const std::shared_ptr<const LlamacppModel>& model,
                           std::int64_t device) {
  const GpuPlacement placement = PlacementOf(job, model->layers);
  const LlamacppPlace place = {.device = device};
  ServingRank rank = {.name = placement.devices == 1 ? "rank 0" : fmt::format("GPU {}", device),
                      .network = model->network};
  TRY(rank.loaded, WeightsOn(job, *model, place));
  if (device == 0) {
    TRY(Resident host, WeightsOn(job, *model, kLlamacppHost));
    rank.loaded.Append(std::move(host));
    if (job.serving.projector_bytes > 0) {
      AddBand(rank.loaded, Pile::kWeights, Exactly(Bytes(job.serving.projector_bytes)),
              {.what = "projector of images", .formula = "its tensors", .source = "--mmproj"});
    }
    TRY(Resident adapters, AdapterWeights(job.serving, job.model.network));
    rank.loaded.Append(std::move(adapters));
  }
  if (placement.gpu_layers > 0) {
    AddTerm(rank.loaded, job, "unaccounted");
  }
  rank.requests = [&job, model, place](const RequestLoad& load) -> Result<Resident> {
    TRY(Resident resident, RequestsOn(job, *model, load, place));
    if (*place.device == 0) {
      TRY(Resident host, RequestsOn(job, *model, load, kLlamacppHost));
      resident.Append(std::move(host));
    }
    return resident;
  };
  rank.figures = [&job, model, place](const ServingRank&, const RequestLoad& load) {
    std::vector<EngineFigure> figures = LlamacppTotals(job, *model, load);
    std::ranges::move(LlamacppFigures(job, *model, load, place), std::back_inserter(figures));
    if (*place.device == 0) {
      std::ranges::move(LlamacppFigures(job, *model, load, kLlamacppHost),
                        std::back_inserter(figures));
    }
    return figures;
  };
  return rank;
}

// The draft model as a job of its own, all of it on the last device, in its own formats.
Result<Job> DraftJob(const Job& job) {
  Job draft = job;
  draft.model = *job.serving.draft;
  draft.serving.draft = nullptr;
  draft.serving.adapter = std::nullopt;
  draft.serving.projector_bytes = 0;
  draft.serving.gpu_layers = draft.model.network.num_hidden_layers.value_or(1) + 1;
  draft.serving.layout.pipeline = 1;
  draft.bare_count = draft.model.tensors_alone;
  TRY(draft.serving.weights, OwnFormatOf(draft.model, true));
  return draft;
}

void NameAsDraft(Resident& resident) {
  for (StorageText& text : resident.texts) {
    text.what = "draft model: " + text.what;
  }
  // The device's own overhead is there once.
  std::erase_if(resident.storages,
                [](const Storage& storage) { return storage.pile == Pile::kOverhead; });
}

Result<void> AddDraft(ServingRank& rank, const Job& job) {
  TRY(Job alone, DraftJob(job));
  const auto draft = std::make_shared<const Job>(std::move(alone));
  TRY(ServingPlan plan, PlanLlamacpp(*draft));
  ServingRank& beside = plan.ranks.front();
  NameAsDraft(beside.loaded);
  rank.loaded.Append(std::move(beside.loaded));
  rank.requests = [draft, own = rank.requests,
                   its = beside.requests](const RequestLoad& load) -> Result<Resident> {
    TRY(Resident resident, own(load));
    TRY(Resident other, its(load));
    NameAsDraft(other);
    resident.Append(std::move(other));
    return resident;
  };
  return {};
}

Result<std::vector<ServingRank>> RanksWith(const Job& job,
                                           const std::shared_ptr<const LlamacppModel>& model) {
  std::vector<ServingRank> ranks;
  for (std::int64_t device = 0; device < job.serving.layout.pipeline; ++device) {
    TRY(ServingRank rank, RankOf(job, model, device));
    ranks.push_back(std::move(rank));
  }
  if (job.serving.draft) {
    TRY_VOID(AddDraft(ranks.back(), job));
  }
  return ranks;
}

Result<bool> FitWith(const Job& job, const std::shared_ptr<const LlamacppModel>& model,
                     std::int64_t gpu_layers) {
  Job fewer = job;
  fewer.serving.gpu_layers = gpu_layers;
  TRY(const std::vector<ServingRank> ranks, RanksWith(fewer, model));
  for (const ServingRank& rank : ranks) {
    TRY(const Band bytes, DeviceBytes(rank, LoadOf(job.serving)));
    if (bytes.expected > job.device->memory) {
      return false;
    }
  }
  return true;
}

// The most layers, the output layer as one more, with which every device has room.
Result<std::int64_t> MostGpuLayers(const Job& job,
                                   const std::shared_ptr<const LlamacppModel>& model) {
  const std::int64_t all = model->layers + 1;
  TRY(const bool all_fit, FitWith(job, model, all));
  std::int64_t fit = all_fit ? all : 0;
  std::int64_t too_many = all_fit ? all + 1 : all;
  while (too_many - fit > 1) {
    const std::int64_t middle = fit + (too_many - fit) / 2;
    TRY(const bool fits, FitWith(job, model, middle));
    (fits ? fit : too_many) = middle;
  }
  return fit;
}

}  // namespace

Result<ServingPlan> PlanLlamacpp(const Job& job) {
  TRY(LlamacppModel found, LlamacppModelOf(job));
  const auto model = std::make_shared<const LlamacppModel>(std::move(found));
  ServingPlan plan;
  TRY(plan.ranks, RanksWith(job, model));
  if (job.device && !job.serving.gpu_layers) {
    plan.most_gpu_layers = [&job, model] { return MostGpuLayers(job, model); };
  }
  plan.unknowns.emplace_back("buffers of inputs on the host, the image encoder's own");
  return plan;
}

}  // namespace fourpiles
