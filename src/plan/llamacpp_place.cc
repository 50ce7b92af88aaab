#include "plan/llamacpp_place.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/llamacpp_compute.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMicroBatch = 512;  // common/common.h, n_ubatch

ContextRequest ContextOf(const Job& job, const RequestLoad& load) {
  return {.context_length = OrLargest(Checked(load.tokens) * load.requests),
          .sequences = load.requests,
          .unified = job.serving.unified || load.requests == 1,
          .micro_batch = job.serving.micro_batch.value_or(kMicroBatch)};
}

LlamacppVersion VersionOf(const Job& job) {
  LlamacppVersion version = job.serving.version.llamacpp;
  version.sliding_caches = version.sliding_caches && !job.serving.full_windows;
  version.padding = job.serving.flash_attention ? version.padding : version.padding_without_flash;
  return version;
}

// Layers with their widths; cells and bytes are another's.
std::vector<LlamacppCache> LayersAlike(const Network& network, const GpuPlacement& placement,
                                       const LlamacppPlace& place) {
  std::vector<LlamacppCache> kinds;
  const std::int64_t layers = network.num_hidden_layers.value_or(1);
  for (const Cache& cache : network.caches) {
    if (cache.key_elements_per_token == 0 ||
        DeviceOfLayer(cache.layer, layers, placement) != place.device) {
      continue;
    }
    const std::int64_t values = cache.value_elements_per_token;
    const std::int64_t window = cache.window.value_or(0);
    const auto same = std::ranges::find_if(kinds, [&](const LlamacppCache& kind) {
      return kind.layers.key_width == cache.key_elements_per_token &&
             kind.layers.value_width == values && kind.window == window;
    });
    if (same != kinds.end()) {
      ++same->layers.layers;
    } else {
      kinds.push_back(
          {.layers = {.layers = 1,
                      .key_width = cache.key_elements_per_token,
                      .value_width = values},
           .window = window,
           .head = cache.key_elements_per_token / std::max<std::int64_t>(1, cache.heads)});
    }
  }
  return kinds;
}

// Heads of a layer's queries, and their elements of a token.
struct Queries {
  std::int64_t heads = 1;
  std::int64_t width = 0;
};
Queries QueriesOf(const Cache& cache, const QueryRows& rows, std::int64_t hidden_size) {
  const std::int64_t keys = cache.key_elements_per_token;
  if (rows.latent > 0 && keys > cache.rotary_elements) {  // as wide as latent and rotary part
    const std::int64_t heads = rows.latent / (keys - cache.rotary_elements);
    return {.heads = heads, .width = heads * keys};
  }
  const std::int64_t of_fused =
      rows.fused > 0 ? rows.fused - keys - cache.value_elements_per_token : hidden_size;
  const std::int64_t width = rows.alone > 0 ? rows.alone : of_fused;
  const std::int64_t head =
      std::max<std::int64_t>(1, keys / std::max<std::int64_t>(1, cache.heads));
  return {.heads = std::max<std::int64_t>(1, width / head), .width = width};
}

// Of the layers on the place: with flash attention the first counts, without it the one with the
// most scores and, of several, the widest queries.
void AddHeads(ComputeRequest& request, const LlamacppModel& model, const GpuPlacement& placement,
              const LlamacppPlace& place) {
  for (const Cache& cache : model.network->caches) {
    if (cache.key_elements_per_token == 0 ||
        DeviceOfLayer(cache.layer, model.layers, placement) != place.device) {
      continue;
    }
    const QueryRows& rows = model.queries[static_cast<std::size_t>(cache.layer)];
    const auto [heads, width] = QueriesOf(cache, rows, request.hidden_size);
    const bool more =
        std::pair(heads, width) > std::pair(request.heads.value_or(0), request.query_width);
    if (!request.heads || (!request.flash_attention && more)) {
      request.heads = heads;
      request.query_width = width;
      request.fused_width = rows.fused > 0 ? std::optional(rows.fused) : std::nullopt;
    }
  }
}

std::int64_t ExpertsPerToken(const Network& network) {
  std::int64_t most = 0;
  for (const Block& block : network.blocks) {
    for (const Operator& op : block.operators) {
      most = std::max(most, op.experts_per_token);
    }
  }
  return most;
}

void AddExperts(ComputeRequest& request, const Network& network, const GgufTensors& gguf) {
  request.experts_on_host = true;
  request.expert_bytes = LargestExpertBytes(gguf);
  request.experts_per_token = ExpertsPerToken(network);
  const auto down = std::ranges::find_if(gguf.tensors, [](const PlacedTensor& placed) {
    return placed.tensor.name.ends_with("ffn_down_exps.weight");
  });
  request.expert_width = down == gguf.tensors.end() ? 0 : down->tensor.ne0;
}

// The output layer is computed where it is; from the host the first device copies it.
void AddOutput(ComputeRequest& request, const LlamacppModel& model, const GpuPlacement& placement,
               const LlamacppPlace& place) {
  const std::optional<std::int64_t> output = DeviceOfLayer(model.layers, model.layers, placement);
  const bool copies = !output && place.device == 0;
  if (output != place.device && !copies) {
    return;
  }
  request.vocab_size = model.network->vocab_size;
  for (const PlacedTensor& placed : model.gguf.tensors) {
    if (copies && placed.tensor.name == (model.gguf.tied ? "token_embd.weight" : "output.weight")) {
      request.copied_bytes = TensorBytes(placed);
    }
  }
}

// Gate and up, of the experts that a token uses where there are such, in the widest layer.
std::int64_t FeedForwardOf(const LlamacppModel& model, std::int64_t experts_per_token) {
  std::int64_t most = 0;
  for (const AlikeTensors& alike : model.alike) {
    const GgufTensor& tensor = model.gguf.tensors[alike.number].tensor;
    if (tensor.name.ends_with(".ffn_down.weight")) {
      most = std::max(most, 2 * tensor.ne0);
    } else if (tensor.name.ends_with(".ffn_down_exps.weight")) {
      most = std::max(most, 2 * tensor.ne0 * experts_per_token);
    }
  }
  return most;
}

}  // namespace

GpuPlacement PlacementOf(const Job& job, std::int64_t layers) {
  return {.gpu_layers = std::min(job.serving.gpu_layers.value_or(layers + 1), layers + 1),
          .experts_on_host = job.serving.experts_on_host,
          .devices = job.serving.layout.pipeline,
          .output_last = job.serving.version.llamacpp.output_last};
}

std::vector<LlamacppPlace> LlamacppPlaces(const Job& job) {
  std::vector<LlamacppPlace> places = {kLlamacppHost};
  for (std::int64_t device = 0; device < job.serving.layout.pipeline; ++device) {
    places.push_back({.device = device});
  }
  return places;
}

TensorAmounts LlamacppTensors(const Job& job, const LlamacppModel& model,
                              const LlamacppPlace& place) {
  const GpuPlacement placement = PlacementOf(job, model.layers);
  TensorAmounts types;
  for (const AlikeTensors& alike : model.alike) {
    const PlacedTensor& placed = model.gguf.tensors[alike.number];
    const TensorPlaces places = PlacesOf(model.gguf, placed, model.layers, placement);
    if (place.device ? places.device == place.device : places.host) {
      TensorAmount& amount = types[placed.type->name];
      amount.elements = amount.elements + alike.elements;
      amount.bytes = amount.bytes + (place.device ? alike.device_bytes : alike.bytes);
    }
  }
  return types;
}

std::vector<LlamacppCache> LlamacppCaches(const Job& job, const LlamacppModel& model,
                                          const RequestLoad& load, const LlamacppPlace& place) {
  const LlamacppVersion version = VersionOf(job);
  const ContextRequest context = ContextOf(job, load);
  const CacheTypes asked = {job.serving.key_format, job.serving.value_format};
  std::vector<LlamacppCache> caches =
      LayersAlike(*model.network, PlacementOf(job, model.layers), place);
  for (LlamacppCache& cache : caches) {
    const bool windows = cache.window > 0;
    cache.cells =
        windows ? SlidingCellsFor(context, cache.window, version) : CellsFor(context, version);
    cache.types = windows ? SlidingTypes(asked, version) : asked;
    const CacheBytes bytes = CacheBytesOf(cache.layers, cache.cells, cache.types);
    const auto head = version.key_rows_are_heads ? std::optional(cache.head) : std::nullopt;
    cache.buffer_bytes = model.padded && place.device
                             ? CudaCacheBytes(cache.layers, cache.cells, cache.types, head)
                             : bytes.key + bytes.value;
  }
  return caches;
}

LlamacppStates LlamacppStatesOn(const Job& job, const LlamacppModel& model, const RequestLoad& load,
                                const LlamacppPlace& place) {
  constexpr std::int64_t kFloat32Bytes = 4;
  const GpuPlacement placement = PlacementOf(job, model.layers);
  const Checked each = Checked(load.requests) * kFloat32Bytes;
  LlamacppStates states;
  for (const Cache& cache : model.network->caches) {
    if (DeviceOfLayer(cache.layer, model.layers, placement) == place.device) {
      states.convolution = states.convolution + each * cache.convolution_elements_per_request;
      states.recurrent = states.recurrent + each * cache.recurrent_elements_per_request;
    }
  }
  return states;
}

Checked LlamacppComputeBytes(const Job& job, const LlamacppModel& model, const RequestLoad& load,
                             const LlamacppPlace& place) {
  const Network& network = job.model.network;
  const GpuPlacement placement = PlacementOf(job, model.layers);
  const bool devices_compute = placement.gpu_layers > 0 || model.padded;
  if (!place.device && devices_compute) {
    return 0;
  }
  const ContextRequest context = ContextOf(job, load);
  ComputeRequest request = {.micro_batch = std::min(context.micro_batch, context.context_length),
                            .hidden_size = network.hidden_size.value_or(0),
                            .flash_attention = job.serving.flash_attention,
                            .on_gpu = place.device.has_value()};
  request.cells = OrLargest(CellsFor(context, VersionOf(job)).cells);
  request.mask_below_logits = !VersionOf(job).key_rows_are_heads;
  AddOutput(request, model, placement, place);
  const std::vector<LlamacppCache> caches = LlamacppCaches(job, model, load, place);
  const auto windows = [](const LlamacppCache& cache) { return cache.window > 0; };
  const bool some = std::ranges::any_of(caches, windows);
  request.window_cells_apart =
      some && !std::ranges::all_of(caches, windows) && VersionOf(job).sliding_caches;
  request.window_mask = some && !request.window_cells_apart;
  AddHeads(request, model, placement, place);
  const bool has_layers = std::ranges::any_of(model.network->caches, [&](const Cache& cache) {
    return DeviceOfLayer(cache.layer, model.layers, placement) == place.device;
  });
  if (has_layers && !placement.experts_on_host) {
    request.feed_forward = FeedForwardOf(model, ExpertsPerToken(network));
  }
  if (placement.experts_on_host && place.device) {
    AddExperts(request, network, model.gguf);
  }
  constexpr std::int64_t kMaxCopies = 4;  // GGML_SCHED_MAX_COPIES
  request.pipeline_copies =
      placement.devices > 1 && placement.gpu_layers > model.layers ? kMaxCopies : 1;
  return ComputeBufferBytes(request);
}

}  // namespace fourpiles
