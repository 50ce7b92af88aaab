#pragma once

// Spans of a tensor into a block format and back, as if the whole tensor were there.

#include <span>
#include <vector>

#include "audit/losses.h"
#include "audit/spans.h"
#include "fourpiles/formats.h"
#include "kernels/losses.h"

namespace fourpiles {

// Whether all of a tensor's spans have one scale: of the whole tensor, or of its only row, that is
// cut.
bool HasOneScale(const BlockFormat& format, bool cuts_rows);
// Whether a span alone does not tell the scales: such a one, or one that others are multiplied
// with.
bool NeedsExtremes(const BlockFormat& format, bool cuts_rows);

// Of the tensor that spans are of.
struct SpanContext {
  Extremes extremes = {};  // where they are needed
  float scale_offset = 0;  // of a double-quantised format: the mean of all scales
};

class BlockRounder {
 public:
  BlockRounder(const BlockFormat& format, const SpanContext& context, bool needs_extremes)
      : context_(context), needs_extremes_(needs_extremes) {
    tensor_.format = format;
  }

  // `values` and `rounded` are those of the span. Error: the format cannot have such rows; see
  // EncodeBlocks.
  Result<void> Round(const Span& span, std::span<const float> values, std::span<float> rounded);

  // Of the span that was rounded last. Nothing is known of blocks that hold their scales themselves
  // (ggml).
  ScaleFacts Scales(std::span<const float> values) const;

 private:
  Result<void> EncodeDoubleQuantized(std::span<const float> values);

  SpanContext context_;
  bool needs_extremes_;
  BlockTensor tensor_ = {};
  std::vector<float> with_extremes_ = {};
  std::vector<float> room_ = {};
};

bool HasScales(const BlockFormat& format);
// Adds those of the next span.
void Add(const ScaleFacts& next, ScaleFacts& whole);

}  // namespace fourpiles
