#include "plan/llamacpp_compute.h"

#include <algorithm>

namespace fourpiles {
namespace {

constexpr std::int64_t kFloat32 = 4;
constexpr std::int64_t kFloat16 = 2;

// So many float32 values for each token of the micro-batch.
Checked Rows(const ComputeRequest& request, const Checked& width) {
  return Checked(request.micro_batch) * width * kFloat32;
}

// The residual or norm, and queries before and after the rotation.
Checked AroundAttention(const ComputeRequest& request) {
  return Rows(request, Checked(2) * request.hidden_size + request.query_width +
                           request.fused_width.value_or(request.query_width));
}

// Inputs that a GPU holds below the logits. With experts on the host, the output layer begins a
// part of the graph, and nothing of the layers before lives on. Where windows have their own
// caches, the masks lie above the values of the first attention, and are free by then.
Checked BelowLogits(const ComputeRequest& request) {
  if (!request.on_gpu) {
    return 0;
  }
  if (request.experts_on_host || !request.flash_attention || !request.mask_below_logits) {
    return Rows(request, request.hidden_size);
  }
  if (request.window_cells_apart) {
    return AroundAttention(request) - Rows(request, request.hidden_size);
  }
  return Rows(request, request.hidden_size) +
         Checked(request.micro_batch) * request.cells * kFloat16;
}

Checked AtOutput(const ComputeRequest& request) {
  if (!request.vocab_size) {
    return 0;
  }
  return Rows(request, Checked(*request.vocab_size) + request.hidden_size) +
         (OrLargest(request.copied_bytes) > 0 ? request.copied_bytes : BelowLogits(request));
}

Checked AtAttention(const ComputeRequest& request) {
  if (request.flash_attention || !request.heads) {
    return 0;
  }
  const Checked scores = Rows(request, Checked(*request.heads) * request.cells);
  const Checked masks = Rows(request, request.cells) * (request.window_mask ? 2 : 1);
  const Checked inputs =
      request.pipeline_copies > 1
          ? (masks + Rows(request, request.hidden_size)) * request.pipeline_copies
          : masks;
  return scores + inputs + AroundAttention(request);
}

Checked AtFeedForward(const ComputeRequest& request) {
  return request.feed_forward == 0
             ? Checked(0)
             : Rows(request, Checked(2) * request.hidden_size + request.feed_forward);
}

// While the last matrix of the experts is copied: its outputs, the gated values before, the
// residual and the norm, and the mask.
Checked AtExperts(const ComputeRequest& request) {
  if (!request.experts_on_host || OrLargest(request.expert_bytes) == 0) {
    return 0;
  }
  const Checked values =
      Checked(request.experts_per_token) * (Checked(request.hidden_size) + request.expert_width) +
      Checked(2) * request.hidden_size;
  return request.expert_bytes + Rows(request, values + request.cells);
}

}  // namespace

Checked ComputeBufferBytes(const ComputeRequest& request) {
  Checked most = 0;
  for (const Checked& place :
       {AtOutput(request), AtAttention(request), AtFeedForward(request), AtExperts(request)}) {
    most = OrLargest(place) > OrLargest(most) ? place : most;
  }
  return most;
}

}  // namespace fourpiles
