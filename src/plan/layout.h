#pragma once

// How a training job is spread over devices.
//
// Ranks are numbered as Megatron-LM numbers them (core/parallel_state.py, "tp-cp-ep-dp-pp"): those
// of one tensor-parallel group stand side by side, then context, then data parallel, and a stage of
// the pipeline is a row of ranks.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"
#include "model/network.h"
#include "model/tensor_cut.h"
#include "step/state.h"

namespace fourpiles {

// In which order a stage of a pipeline runs its micro-batches.
enum class PipelineSchedule {
  kOneForwardOneBackward,  // PipeDream-Flush, 1F1B (Narayanan et al. 2021, arXiv 2104.04473)
  kGPipe,                  // all forward, then all backward (Huang et al. 2019, arXiv 1811.06965)
  kZeroBubble,             // ZB-H1 (Qi et al. 2023, arXiv 2401.10241)
};
std::string_view Name(PipelineSchedule schedule);  // "1f1b"

struct Layout {
  std::int64_t devices = 1;
  std::int64_t tensor = 1;         // ranks that cut every layer
  bool sequence_parallel = false;  // and what stands between the cut parts, by its tokens
  std::int64_t context = 1;        // ranks that cut every sequence
  std::int64_t pipeline = 1;       // stages of layers
  std::int64_t chunks = 1;         // of layers that every stage has (virtual pipeline)
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  std::optional<std::int64_t> first_stage_layers = {};  // else as the others
  std::optional<std::int64_t> last_stage_layers = {};
  std::int64_t expert = 1;         // ranks that whole experts are spread over
  std::int64_t expert_tensor = 1;  // ranks that cut every expert
  double expert_imbalance = 1;     // how many times its even share the fullest rank's experts get
  int zero = 0;                    // stage, 0 to 3
  bool fsdp = false;
  std::int64_t fsdp_ranks = 1;  // that the state is sharded over; hybrid: fewer than all
  bool reshards = true;         // FSDP: what was gathered goes after the forward pass …
  bool reshards_all = false;    // … even what the backward pass begins with
  std::int64_t per_host = 8;    // devices of one host
};

// As --fsdp takes it: "full", "hybrid:8:keep"; empty: not at all.
std::string FsdpWord(const Layout& layout);

// Ranks that see different samples, or different tokens of them: those that states are sharded
// over (DESIGN: ZeRO, FSDP and the distributed optimizer shard over data × context).
constexpr std::int64_t DataRanks(const Layout& layout) {
  return layout.devices / (layout.tensor * layout.pipeline);
}
constexpr std::int64_t DataParallel(const Layout& layout) {
  return DataRanks(layout) / layout.context;
}
// Ranks that have the same experts.
constexpr std::int64_t ExpertDataRanks(const Layout& layout) {
  return layout.devices / (layout.pipeline * layout.expert * layout.expert_tensor);
}

// A sequence is cut into pieces of as many tokens each: one for each rank, and of context-parallel
// ranks two, dealt out so that all have as much of a causal sequence to do (Transformer Engine).
std::int64_t TokenPieces(const Layout& layout);
// So many tokens, and as many more as it takes.
std::int64_t InPieces(std::int64_t tokens, const Layout& layout);

// Over how many ranks each pile is divided: ZeRO stage 1 divides the optimizer state, 2 the
// gradients too, 3 the weights too (Rajbhandari et al. 2020, arXiv 1910.02054, section 5), and so
// does FSDP.
Shares SharesOf(const Layout& layout);

// The least devices that the layout can be made of; and the same layout over so many.
std::int64_t DevicesOfOneReplica(const Layout& layout);
Layout WithDevices(Layout layout, std::int64_t devices);

// Stage by stage, and within a stage chunk by chunk: chunk c of stage s runs as number
// c × stages + s. Layout and layers go together (CheckLayout).
std::vector<std::vector<LayerSpan>> StageLayers(const Layout& layout, std::int64_t layers);

// Refuses at `where` what does not divide: devices, heads, hidden sizes, experts, layers.
Result<void> CheckLayout(const Layout& layout, const Network& network);

}  // namespace fourpiles
