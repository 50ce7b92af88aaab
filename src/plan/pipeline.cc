#include "plan/pipeline.h"

#include <algorithm>

namespace fourpiles {
namespace {

// At a time on a stage whose layers are one chunk.
std::int64_t AtATime(const Layout& layout, std::int64_t stage, std::int64_t micro_batches) {
  switch (layout.schedule) {
    case PipelineSchedule::kGPipe:
      return micro_batches;
    case PipelineSchedule::kZeroBubble:
      return std::min(layout.pipeline, micro_batches);
    case PipelineSchedule::kOneForwardOneBackward:
      break;
  }
  return std::min(layout.pipeline - stage, micro_batches);
}

}  // namespace

std::vector<std::int64_t> WaitingPasses(const Layout& layout, std::int64_t stage,
                                        std::int64_t micro_batches) {
  const std::int64_t stages = layout.pipeline;
  const std::int64_t chunks = layout.chunks;
  if (chunks == 1) {
    return {AtATime(layout, stage, micro_batches) - 1};
  }
  const std::int64_t at_a_time =
      std::min(2 * (stages - stage - 1) + (chunks - 1) * stages + 1, micro_batches * chunks);
  // Micro-batches pass in groups of as many as there are stages, chunk by chunk.
  std::vector<std::int64_t> waiting(static_cast<std::size_t>(chunks));
  std::int64_t left = at_a_time;
  for (std::int64_t first = 0; left > 0; first += stages) {
    const std::int64_t group = std::min(stages, micro_batches - first);
    for (std::int64_t& of_chunk : waiting) {
      const std::int64_t passes = std::min(left, group);
      of_chunk += passes;
      left -= passes;
    }
  }
  --(waiting.back() > 0 ? waiting.back() : waiting.front());
  return waiting;
}

}  // namespace fourpiles
