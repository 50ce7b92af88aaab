// What llama.cpp prints of its buffers, under the ids of plan/log_figures.cc.

#include <fmt/format.h>

#include "plan/llamacpp_place.h"

namespace fourpiles {
namespace {

// Sizes as they are; past 2^53 the largest there is. What is empty is not printed.
void AddFigure(std::vector<EngineFigure>& figures, std::string id, Checked value,
               std::string_view unit = "bytes") {
  if (OrLargest(value) > 0) {
    figures.push_back({.id = std::move(id),
                       .value = static_cast<double>(OrLargest(value)),
                       .unit = std::string(unit)});
  }
}

// Caches as the log sums them.
struct CacheSums {
  Checked buffer = 0;
  CacheBytes bytes = {};
  CacheCells cells = {};
};

// Layers with windows stand apart where this build keeps them so.
void AddCaches(CacheSums& sums, const Job& job, const std::vector<LlamacppCache>& caches,
               bool windows) {
  for (const LlamacppCache& cache : caches) {
    const bool apart = cache.window > 0 && job.serving.version.llamacpp.sliding_caches;
    if (apart == windows) {
      const CacheBytes bytes = CacheBytesOf(cache.layers, cache.cells, cache.types);
      sums = {.buffer = sums.buffer + cache.buffer_bytes,
              .bytes = {sums.bytes.key + bytes.key, sums.bytes.value + bytes.value},
              .cells = cache.cells};
    }
  }
}

}  // namespace

std::vector<EngineFigure> LlamacppFigures(const Job& job, const LlamacppModel& model,
                                          const RequestLoad& load, const LlamacppPlace& place) {
  std::vector<EngineFigure> figures;
  const std::string side = place.device ? "device" : "host";
  Checked weights = 0;
  for (const auto& [type, amount] : LlamacppTensors(job, model, place)) {
    weights = weights + amount.bytes;
  }
  AddFigure(figures, fmt::format("weights_{}_bytes", side), weights);
  const std::vector<LlamacppCache> caches = LlamacppCaches(job, model, load, place);
  Checked context = 0;
  for (const bool windows : {false, true}) {
    CacheSums sums;
    AddCaches(sums, job, caches, windows);
    context = context + sums.buffer;
    AddFigure(figures, windows ? "swa_kv_device_bytes" : "kv_device_bytes", sums.buffer);
  }
  const LlamacppStates states = LlamacppStatesOn(job, model, load, place);
  AddFigure(figures, "recurrent_device_bytes", states.convolution + states.recurrent);
  const Checked compute = LlamacppComputeBytes(job, model, load, place);
  AddFigure(figures, fmt::format("compute_{}_bytes", side), compute);
  context = context + states.convolution + states.recurrent;
  AddFigure(figures, "breakdown_self_bytes", weights + context + compute);
  AddFigure(figures, "breakdown_model_bytes", weights);
  AddFigure(figures, "breakdown_context_bytes", context);
  AddFigure(figures, "breakdown_compute_bytes", compute);
  for (EngineFigure& figure : figures) {
    figure.device = place.device ? fmt::format("GPU {}", *place.device) : side;
  }
  return figures;
}

std::vector<EngineFigure> LlamacppTotals(const Job& job, const LlamacppModel& model,
                                         const RequestLoad& load) {
  std::vector<EngineFigure> figures;
  const std::vector<LlamacppPlace> places = LlamacppPlaces(job);
  for (const bool windows : {false, true}) {
    CacheSums sums;
    for (const LlamacppPlace& place : places) {
      AddCaches(sums, job, LlamacppCaches(job, model, load, place), windows);
    }
    const std::string prefix = windows ? "swa_" : "";
    AddFigure(figures, prefix + "kv_bytes", sums.bytes.key + sums.bytes.value);
    AddFigure(figures, prefix + "kv_key_bytes", sums.bytes.key);
    AddFigure(figures, prefix + "kv_value_bytes", sums.bytes.value);
    AddFigure(figures, prefix + "cells", sums.cells.cells, "cells");
    if (OrLargest(sums.cells.cells) > 0) {
      AddFigure(figures, prefix + "streams", sums.cells.streams, "streams");
    }
  }
  LlamacppStates states;
  for (const LlamacppPlace& place : places) {
    const LlamacppStates here = LlamacppStatesOn(job, model, load, place);
    states = {states.convolution + here.convolution, states.recurrent + here.recurrent};
  }
  AddFigure(figures, "recurrent_bytes", states.convolution + states.recurrent);
  AddFigure(figures, "recurrent_conv_bytes", states.convolution);
  AddFigure(figures, "recurrent_state_bytes", states.recurrent);
  Checked file = 0;
  for (const PlacedTensor& placed : model.gguf.tensors) {
    file = file + TensorBytes(placed);
  }
  AddFigure(figures, "file_bytes", file);
  AddFigure(figures, "output_bytes",
            OutputBufferBytes(load.requests, model.network->vocab_size.value_or(0)));
  return figures;
}

}  // namespace fourpiles
