#pragma once

// Sizes of what llama.cpp keeps on each device and on the host, as it lies there. plan/llamacpp.h
// and plan/llamacpp_compute.h have its rules, plan/gguf_tensors.h where tensors go.

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "plan/gguf_tensors.h"
#include "plan/llamacpp.h"
#include "plan/llamacpp_model.h"
#include "plan/serving.h"

namespace fourpiles {

GpuPlacement PlacementOf(const Job& job, std::int64_t layers);

// One device, or the host.
struct LlamacppPlace {
  std::optional<std::int64_t> device = {};  // none: the host

  Place Side() const { return device ? Place::kDevice : Place::kHost; }
};
inline constexpr LlamacppPlace kLlamacppHost = {};
// The host and every device of the job.
std::vector<LlamacppPlace> LlamacppPlaces(const Job& job);

// Of the tensors on a place, by the name of their type: in the buffer, padded where it pads.
struct TensorAmount {
  Checked elements = 0;
  Checked bytes = 0;
};
using TensorAmounts = std::map<std::string_view, TensorAmount>;
TensorAmounts LlamacppTensors(const Job& job, const LlamacppModel& model,
                              const LlamacppPlace& place);

// The cache of layers on a place which are alike.
struct LlamacppCache {
  CacheLayers layers = {};
  std::int64_t window = 0;  // 0: none
  std::int64_t head = 0;    // elements of a head of keys
  CacheCells cells = {};
  CacheTypes types = {};
  Checked buffer_bytes = 0;
};
std::vector<LlamacppCache> LlamacppCaches(const Job& job, const LlamacppModel& model,
                                          const RequestLoad& load, const LlamacppPlace& place);

// Of layers with a memory: always float32, whatever the model's format
// (llama-memory-recurrent.cpp).
struct LlamacppStates {
  Checked convolution = 0;  // bytes
  Checked recurrent = 0;
};
LlamacppStates LlamacppStatesOn(const Job& job, const LlamacppModel& model, const RequestLoad& load,
                                const LlamacppPlace& place);

// Of the buffer that the graph is computed in; 0 on the host where devices compute.
Checked LlamacppComputeBytes(const Job& job, const LlamacppModel& model, const RequestLoad& load,
                             const LlamacppPlace& place);

// What the log prints of one place, and of all together.
std::vector<EngineFigure> LlamacppFigures(const Job& job, const LlamacppModel& model,
                                          const RequestLoad& load, const LlamacppPlace& place);
std::vector<EngineFigure> LlamacppTotals(const Job& job, const LlamacppModel& model,
                                         const RequestLoad& load);

}  // namespace fourpiles
