#pragma once

// Which passes of a pipeline wait on a stage while others run.

#include <cstdint>
#include <vector>

#include "plan/layout.h"

namespace fourpiles {

// Of each chunk of the stage's layers, the passes that are between forward and backward while one
// of the last chunk runs, itself left out, when there are most.
//
// 1F1B: min(p − s, m) at a time, of p stages, stage s and m micro-batches. GPipe: all m.
// Interleaved (v chunks): min(2 (p − s − 1) + (v − 1) p + 1, m v) chunks (Narayanan et al. 2021,
// arXiv 2104.04473, section 2.2; Megatron-LM, core/pipeline_parallel/schedules.py,
// get_pp_rank_microbatches). ZB-H1: min(p, m), of which some have only the inputs of weight
// gradients left, which is counted as if they had all (Qi et al. 2023, arXiv 2401.10241, table 2).
std::vector<std::int64_t> WaitingPasses(const Layout& layout, std::int64_t stage,
                                        std::int64_t micro_batches);

}  // namespace fourpiles
