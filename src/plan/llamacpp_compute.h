#pragma once

// llama.cpp's compute buffer: the peak of its graph allocator (ggml-alloc.c) over one micro-batch,
// on one device.
//
// The allocator puts each result into the tightest gap that earlier results have left. Three places
// in the graph can be the peak:
// - the output layer: logits of every token of the micro-batch, on top of the last norm. A GPU also
//   holds a copy of what came from the host. With flash attention a float16 copy of the mask stays
//   below the logits, as what is freed there is too small for them; in ik_llama.cpp they take its
//   place.
// - attention without flash attention: scores of all heads, the mask, and the values around them:
//   the residual, the norm, and queries before and after the rotation. Where queries, keys and
//   values come from one layer, its whole output in place of the first.
// - the feed-forward layer, where neither is there: what gate and up put out, above the residual
// and
//   the norm.
// An output matrix that stays on the host is copied to the first device for every large batch,
// which computes with it: Llama-3.1-8B's 410.98 MiB in Q6_K beside 258.50 are the 669.48 MiB of
// logs. Experts that stay on the host are copied one matrix at a time to the device which computes
// them; several devices at once (pipeline) keep 4 copies of what is handed in.
//
// That is an estimate: within 5 % of most logs, within 8 % of all that were tried. The rest is the
// order in which gaps come free, for which the whole graph would have to be built.

#include <cstdint>
#include <optional>

#include "base/checked.h"

namespace fourpiles {

struct ComputeRequest {
  std::int64_t micro_batch = 512;
  std::int64_t cells = 0;  // that the mask covers
  std::int64_t hidden_size = 0;
  std::optional<std::int64_t> vocab_size = {};  // where the output layer is computed
  Checked copied_bytes = 0;                     // of its matrix, where that stays on the host
  std::int64_t feed_forward = 0;           // values of a token that the widest gate and up put out
  std::optional<std::int64_t> heads = {};  // unknown: attention is not asked
  std::int64_t query_width = 0;            // heads × head size
  // Queries, keys and values together, where one layer makes them.
  std::optional<std::int64_t> fused_width = {};
  bool flash_attention = true;
  bool on_gpu = false;
  bool mask_below_logits = true;    // false: ik_llama.cpp
  bool window_mask = false;         // a mask for sliding windows beside the other, of as many cells
  bool window_cells_apart = false;  // windows have small caches of their own
  std::int64_t pipeline_copies = 1;
  // Experts on the host while the rest is on the GPU; bytes of the largest stack that is copied
  // over, or 0 where the host computes them (ik_llama.cpp with few tokens).
  bool experts_on_host = false;
  Checked expert_bytes = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_width = 0;
};

Checked ComputeBufferBytes(const ComputeRequest& request);

}  // namespace fourpiles
