// llama.cpp: weights, caches and compute buffers on each device, and what stays on the host.
// plan/llamacpp.h and plan/llamacpp_compute.h have its rules, plan/gguf_tensors.h where tensors go.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/gguf_tensors.h"
#include "plan/llamacpp.h"
#include "plan/llamacpp_compute.h"
#include "plan/llamacpp_model.h"
#include "plan/serving_rank.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMicroBatch = 512;  // common/common.h, n_ubatch

GpuPlacement PlacementOf(const Job& job, std::int64_t layers) {
  return {.gpu_layers = std::min(job.serving.gpu_layers.value_or(layers + 1), layers + 1),
          .experts_on_host = job.serving.experts_on_host,
          .devices = job.serving.layout.pipeline};
}

// One device's part, or the host's.
struct Target {
  std::optional<std::int64_t> device = {};  // none: the host
  Place place = Place::kDevice;
};

Result<void> AddWeights(Resident& resident, const LlamacppModel& loaded,
                        const GpuPlacement& placement, const Target& target) {
  struct Amount {
    Checked elements = 0;
    Checked bytes = 0;
  };
  std::map<std::string_view, Amount> types;
  for (const AlikeTensors& alike : loaded.alike) {
    const PlacedTensor& placed = loaded.gguf.tensors[alike.number];
    const TensorPlaces places = PlacesOf(loaded.gguf, placed, loaded.layers, placement);
    if (target.device ? places.device == target.device : places.host) {
      Amount& amount = types[placed.type->name];
      amount.elements = amount.elements + alike.elements;
      amount.bytes = amount.bytes + (target.device ? alike.device_bytes : alike.bytes);
    }
  }
  for (const auto& [type, amount] : types) {
    if (!amount.bytes.ok() || !amount.elements.ok()) {
      return WrongUsage({.where = "budget", .found = "the weights pass 2^53 bytes"});
    }
    resident.Add({.pile = Pile::kWeights,
                  .place = target.place,
                  .format = type,
                  .elements = Elements(amount.elements.value()),
                  .bytes = Exactly(Bytes(amount.bytes.value()))},
                 {.what = fmt::format("tensors in {}", type),
                  .formula = loaded.padded && target.device
                                 ? "bytes of the type, rows padded to 512, tensors to 128 bytes"
                                 : "bytes of the type",
                  .source = "llama.cpp src/llama-model.cpp, load_tensors"});
  }
  return {};
}

ContextRequest ContextOf(const Job& job, const RequestLoad& load) {
  return {.context_length = OrLargest(Checked(load.tokens) * load.requests),
          .sequences = load.requests,
          .unified = job.serving.unified || load.requests == 1,
          .micro_batch = job.serving.micro_batch.value_or(kMicroBatch)};
}

LlamacppVersion VersionOf(const Job& job) {
  LlamacppVersion version = job.serving.version.llamacpp;
  version.sliding_caches = version.sliding_caches && !job.serving.full_windows;
  return version;
}

// Layers on the target whose caches are alike.
struct CacheRun {
  CacheLayers layers = {};
  std::int64_t window = 0;
  std::int64_t head = 0;
};

std::vector<CacheRun> RunsOn(const Network& network, const GpuPlacement& placement,
                             const Target& target, bool latent_values) {
  std::vector<CacheRun> runs;
  const std::int64_t layers = network.num_hidden_layers.value_or(1);
  for (const Cache& cache : network.caches) {
    if (cache.key_elements_per_token == 0 ||
        DeviceOfLayer(cache.layer, layers, placement) != target.device) {
      continue;
    }
    constexpr std::int64_t kRotary = 64;  // of latent attention, qk_rope_head_dim
    const bool latent = cache.value_elements_per_token == 0;
    const std::int64_t values =
        latent && latent_values ? std::max<std::int64_t>(0, cache.key_elements_per_token - kRotary)
                                : cache.value_elements_per_token;
    const std::int64_t window = cache.window.value_or(0);
    const auto same = std::ranges::find_if(runs, [&](const CacheRun& run) {
      return run.layers.key_width == cache.key_elements_per_token &&
             run.layers.value_width == values && run.window == window;
    });
    if (same != runs.end()) {
      ++same->layers.layers;
    } else {
      runs.push_back(
          {.layers = {.layers = 1,
                      .key_width = cache.key_elements_per_token,
                      .value_width = values},
           .window = window,
           .head = cache.key_elements_per_token / std::max<std::int64_t>(1, cache.heads)});
    }
  }
  return runs;
}

// Cells and formats of one run.
struct RunSizes {
  CacheCells cells = {};
  CacheTypes types = {};
  Checked bytes = 0;
};

RunSizes SizesOf(const CacheRun& run, const Job& job, const RequestLoad& load, bool padded) {
  const LlamacppVersion version = VersionOf(job);
  const ContextRequest context = ContextOf(job, load);
  const CacheTypes asked = {job.serving.key_format, job.serving.value_format};
  RunSizes sizes = {.cells = run.window > 0 ? SlidingCellsFor(context, run.window, version)
                                            : CellsFor(context, version),
                    .types = run.window > 0 ? SlidingTypes(asked, version) : asked};
  if (padded) {
    const std::optional<std::int64_t> head =
        version.key_rows_are_heads ? std::optional(run.head) : std::nullopt;
    sizes.bytes = CudaCacheBytes(run.layers, sizes.cells, sizes.types, head);
  } else {
    const CacheBytes bytes = CacheBytesOf(run.layers, sizes.cells, sizes.types);
    sizes.bytes = bytes.key + bytes.value;
  }
  return sizes;
}

Result<void> AddCaches(Resident& resident, const std::vector<CacheRun>& runs, const Job& job,
                       const RequestLoad& load, const Target& target) {
  const bool padded = target.device && job.device &&
                      (job.device->vendor == "NVIDIA" || job.device->vendor == "AMD");
  for (const CacheRun& run : runs) {
    const RunSizes sizes = SizesOf(run, job, load, padded);
    const Checked elements = (Checked(run.layers.key_width) + run.layers.value_width) *
                             run.layers.layers * sizes.cells.cells * sizes.cells.streams;
    if (!sizes.bytes.ok() || !elements.ok()) {
      return CacheTooLarge();
    }
    resident.Add(
        {.pile = Pile::kKvCache,
         .place = target.place,
         .format = sizes.types.key->name,
         .elements = Elements(elements.value()),
         .bytes = Exactly(Bytes(sizes.bytes.value()))},
        {.what = run.window > 0 ? fmt::format("keys and values of {} layers, window {}",
                                              run.layers.layers, run.window)
                                : fmt::format("keys and values of {} layers", run.layers.layers),
         .formula =
             fmt::format("{} × {} cells × ({} in {} + {} in {})", sizes.cells.streams,
                         sizes.cells.cells.value(), run.layers.key_width, sizes.types.key->name,
                         run.layers.value_width, sizes.types.value->name),
         .source = "llama.cpp src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp"});
  }
  return {};
}

// Always float32, whatever the model's format (llama-memory-recurrent.cpp).
Result<void> AddStates(Resident& resident, const Network& network, const GpuPlacement& placement,
                       const RequestLoad& load, const Target& target) {
  Checked elements = 0;
  for (const Cache& cache : network.caches) {
    if (DeviceOfLayer(cache.layer, network.num_hidden_layers.value_or(1), placement) ==
        target.device) {
      elements = elements + (Checked(cache.convolution_elements_per_request) +
                             cache.recurrent_elements_per_request) *
                                load.requests;
    }
  }
  const Checked bytes = elements * 4;
  if (!bytes.ok()) {
    return CacheTooLarge();
  }
  if (bytes.value() > 0) {
    resident.Add(
        {.pile = Pile::kKvCache,
         .place = target.place,
         .format = "float32",
         .elements = Elements(elements.value()),
         .bytes = Exactly(Bytes(bytes.value()))},
        {.what = "convolution inputs and recurrent memory",
         .formula = fmt::format("{} requests × elements of the states × 4 bytes", load.requests),
         .source = "llama.cpp src/llama-memory-recurrent.cpp"});
  }
  return {};
}

// Of the layers on the target: with flash attention the first counts, without it the one with the
// most scores and, of several, the widest queries.
void AddHeads(ComputeRequest& request, const LlamacppModel& loaded, const GpuPlacement& placement,
              const Target& target) {
  for (const Cache& cache : loaded.network->caches) {
    const std::int64_t keys = cache.key_elements_per_token;
    if (keys == 0 || DeviceOfLayer(cache.layer, loaded.layers, placement) != target.device) {
      continue;
    }
    const QueryRows& rows = loaded.queries[static_cast<std::size_t>(cache.layer)];
    const std::int64_t of_fused =
        rows.fused > 0 ? rows.fused - keys - cache.value_elements_per_token : request.hidden_size;
    const std::int64_t width = rows.alone > 0 ? rows.alone : of_fused;
    const std::int64_t head =
        std::max<std::int64_t>(1, keys / std::max<std::int64_t>(1, cache.heads));
    const std::int64_t heads = std::max<std::int64_t>(1, width / head);
    const bool more =
        std::pair(heads, width) > std::pair(request.heads.value_or(0), request.query_width);
    if (!request.heads || (!request.flash_attention && more)) {
      request.heads = heads;
      request.query_width = width;
      request.fused_width = rows.fused > 0 ? std::optional(rows.fused) : std::nullopt;
    }
  }
}

void AddExperts(ComputeRequest& request, const Network& network, const GgufTensors& gguf) {
  request.experts_on_host = true;
  request.expert_bytes = LargestExpertBytes(gguf);
  for (const Block& block : network.blocks) {
    for (const Operator& op : block.operators) {
      request.experts_per_token = std::max(request.experts_per_token, op.experts_per_token);
    }
  }
  const auto up = std::ranges::find_if(gguf.tensors, [](const PlacedTensor& placed) {
    return placed.tensor.name.ends_with("ffn_down_exps.weight");
  });
  request.expert_width = up == gguf.tensors.end() ? 0 : up->tensor.ne0;
}

Checked ComputeBytes(const Job& job, const LlamacppModel& loaded, const RequestLoad& load,
                     const Target& target) {
  const Network& network = job.model.network;
  const GpuPlacement placement = PlacementOf(job, loaded.layers);
  const ContextRequest context = ContextOf(job, load);
  ComputeRequest request = {.micro_batch = std::min(context.micro_batch, context.context_length),
                            .hidden_size = network.hidden_size.value_or(0),
                            .flash_attention = job.serving.flash_attention,
                            .on_gpu = target.device.has_value()};
  request.cells = OrLargest(CellsFor(context, VersionOf(job)).cells);
  request.mask_below_logits = !VersionOf(job).key_rows_are_heads;
  if (DeviceOfLayer(loaded.layers, loaded.layers, placement) == target.device) {
    request.vocab_size = network.vocab_size;
  }
  const std::vector<CacheRun> runs = RunsOn(network, placement, target, false);
  const auto windows = [](const CacheRun& run) { return run.window > 0; };
  const bool some = std::ranges::any_of(runs, windows);
  request.window_cells_apart =
      some && !std::ranges::all_of(runs, windows) && VersionOf(job).sliding_caches;
  request.window_mask = some && !request.window_cells_apart;
  AddHeads(request, loaded, placement, target);
  if (placement.experts_on_host && target.device) {
    AddExperts(request, network, loaded.gguf);
  }
  constexpr std::int64_t kMaxCopies = 4;  // GGML_SCHED_MAX_COPIES
  request.pipeline_copies =
      placement.devices > 1 && placement.gpu_layers > loaded.layers ? kMaxCopies : 1;
  return ComputeBufferBytes(request);
}

Result<void> AddCompute(Resident& resident, const Job& job, const LlamacppModel& loaded,
                        const RequestLoad& load, const Target& target) {
  const Checked bytes = ComputeBytes(job, loaded, load, target);
  if (!bytes.ok()) {
    return CacheTooLarge();
  }
  if (bytes.value() > 0) {
    resident.Add(
        {.pile = Pile::kWorkspace, .place = target.place, .bytes = Times(bytes, job, "compute")},
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

Result<Resident> RequestsOn(const Job& job, const LlamacppModel& loaded, const RequestLoad& load,
                            const Target& target) {
  const GpuPlacement placement = PlacementOf(job, loaded.layers);
  const Network& network = job.model.network;
  Resident resident;
  TRY_VOID(AddCaches(resident, RunsOn(network, placement, target, VersionOf(job).latent_values),
                     job, load, target));
  TRY_VOID(AddStates(resident, network, placement, load, target));
  if (target.device || placement.gpu_layers == 0) {  // without devices the host computes
    TRY_VOID(AddCompute(resident, job, loaded, load, target));
  }
  if (!target.device) {
    TRY_VOID(AddOutput(resident, job, load));
  }
  return resident;
}

constexpr Target kHost = {.place = Place::kHost};

Result<ServingRank> RankOf(const Job& job, const std::shared_ptr<const LlamacppModel>& loaded,
                           std::int64_t device) {
  const GpuPlacement placement = PlacementOf(job, loaded->layers);
  const Target target = {.device = device};
  ServingRank rank = {.name = placement.devices == 1 ? "rank 0" : fmt::format("GPU {}", device),
                      .network = loaded->network};
  TRY_VOID(AddWeights(rank.loaded, *loaded, placement, target));
  if (device == 0) {
    TRY_VOID(AddWeights(rank.loaded, *loaded, placement, kHost));
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
  rank.requests = [&job, loaded, target](const RequestLoad& load) -> Result<Resident> {
    TRY(Resident resident, RequestsOn(job, *loaded, load, target));
    if (*target.device == 0) {
      TRY(Resident host, RequestsOn(job, *loaded, load, kHost));
      resident.Append(std::move(host));
    }
    return resident;
  };
  return rank;
}

// The draft model as a job of its own, all of it on the last device.
Job DraftJob(const Job& job) {
  Job draft = job;
  draft.model = *job.serving.draft;
  draft.serving.draft = nullptr;
  draft.serving.adapter = std::nullopt;
  draft.serving.projector_bytes = 0;
  draft.serving.gpu_layers = draft.model.network.num_hidden_layers.value_or(1) + 1;
  draft.serving.layout.pipeline = 1;
  const bool stored = draft.model.checkpoint && draft.model.checkpoint->gguf;
  if (stored) {
    draft.serving.weights = {.name = "stored", .as_stored = true};
  }
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
  const auto draft = std::make_shared<const Job>(DraftJob(job));
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
                                           const std::shared_ptr<const LlamacppModel>& loaded) {
  std::vector<ServingRank> ranks;
  for (std::int64_t device = 0; device < job.serving.layout.pipeline; ++device) {
    TRY(ServingRank rank, RankOf(job, loaded, device));
    ranks.push_back(std::move(rank));
  }
  if (job.serving.draft) {
    TRY_VOID(AddDraft(ranks.back(), job));
  }
  return ranks;
}

Result<bool> FitWith(const Job& job, const std::shared_ptr<const LlamacppModel>& loaded,
                     std::int64_t gpu_layers) {
  Job fewer = job;
  fewer.serving.gpu_layers = gpu_layers;
  TRY(const std::vector<ServingRank> ranks, RanksWith(fewer, loaded));
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
                                   const std::shared_ptr<const LlamacppModel>& loaded) {
  const std::int64_t all = loaded->layers + 1;
  TRY(const bool all_fit, FitWith(job, loaded, all));
  std::int64_t fit = all_fit ? all : 0;
  std::int64_t too_many = all_fit ? all + 1 : all;
  while (too_many - fit > 1) {
    const std::int64_t middle = fit + (too_many - fit) / 2;
    TRY(const bool fits, FitWith(job, loaded, middle));
    (fits ? fit : too_many) = middle;
  }
  return fit;
}

}  // namespace

Result<ServingPlan> PlanLlamacpp(const Job& job) {
  TRY(LlamacppModel found, LlamacppModelOf(job));
  const auto loaded = std::make_shared<const LlamacppModel>(std::move(found));
  ServingPlan plan;
  TRY(plan.ranks, RanksWith(job, loaded));
  if (job.device && !job.serving.gpu_layers) {
    TRY(plan.gpu_layers, MostGpuLayers(job, loaded));
  }
  plan.unknowns.emplace_back("buffers of inputs on the host, the image encoder's own");
  return plan;
}

}  // namespace fourpiles
