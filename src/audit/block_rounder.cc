#include "audit/block_rounder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "audit/code_losses.h"
#include "base/try.h"
#include "formats/block_codebook.h"
#include "formats/block_layout.h"

namespace fourpiles {
namespace {

// What each byte of a tensor's scales stands for, before the tensor's own.
const std::vector<double>& ByteScales(BlockKind kind) {
  static const std::vector<double> powers = ValuesOfCodes(*FindFormat("float8_e8m0fnu"));
  static const std::vector<double> floats = ValuesOfCodes(*FindFormat("float8_e4m3fn"));
  return kind == BlockKind::kMicroscaling ? powers : floats;
}

// What a scale multiplies codes with.
double ScaleAt(const BlockTensor& tensor, std::size_t index) {
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
    case BlockKind::kTwoLevel:
      return ByteScales(tensor.format.kind)[std::to_integer<std::size_t>(tensor.scales[index])];
    case BlockKind::kCodeBook:
      return CodeBookScaleOf(tensor, index);
    case BlockKind::kInteger:
      return ReadFloat(tensor.scales, index);
    case BlockKind::kGgml:
      break;
  }
  return 0;
}

// What the scales of NVFP4 are multiplied with.
double TensorScaleOf(const BlockTensor& tensor) {
  const double scale = tensor.tensor_scale;
  return tensor.format.tensor_scale == TensorScale::kDivisor ? 1 / scale : scale;
}

}  // namespace

bool HasOneScale(const BlockFormat& format, bool cuts_rows) {
  return format.kind == BlockKind::kInteger &&
         (format.granularity == Granularity::kTensor ||
          (format.granularity == Granularity::kChannel && cuts_rows));
}

bool NeedsExtremes(const BlockFormat& format, bool cuts_rows) {
  return format.kind == BlockKind::kTwoLevel || HasOneScale(format, cuts_rows);
}

bool HasScales(const BlockFormat& format) {
  return format.kind != BlockKind::kGgml;
}

// The offset is that of the whole tensor, so that the scales are quantised here, not with the span.
Result<void> BlockRounder::EncodeDoubleQuantized(std::span<const float> values) {
  tensor_.format.double_quantized = false;
  const Result<void> done = EncodeBlocks(values, {}, tensor_);
  tensor_.format.double_quantized = true;
  TRY_VOID(done);
  std::vector<float>& scales = tensor_.scale_scales;
  scales.resize(tensor_.scales.size() / sizeof(float));
  std::memcpy(scales.data(), tensor_.scales.data(), tensor_.scales.size());
  tensor_.scales.resize(scales.size());
  QuantizeScales(context_.scale_offset, tensor_);
  return {};
}

// Elements beside the span that hold the tensor's extremes make a scale of the whole tensor what it
// would be: rows of their own, or a block of their own behind the last one of a single row.
Result<void> BlockRounder::Round(const Span& span, std::span<const float> values,
                                 std::span<float> rounded) {
  if (!needs_extremes_) {
    tensor_.shape = {.rows = span.rows, .columns = span.columns};
    TRY_VOID(tensor_.format.double_quantized ? EncodeDoubleQuantized(values)
                                             : EncodeBlocks(values, {}, tensor_));
    return DecodeBlocks(tensor_, rounded);
  }
  const std::int64_t block = std::max(2, tensor_.format.block_elements);
  const auto divided_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  std::int64_t behind = span.Elements();
  if (span.rows == 1) {
    behind = divided_up(span.columns, block) * block;  // zeros change no scale
    tensor_.shape = {.rows = 1, .columns = behind + block};
  } else {
    tensor_.shape = {.rows = span.rows + divided_up(block, span.columns), .columns = span.columns};
  }
  with_extremes_.assign(static_cast<std::size_t>(tensor_.shape.rows * tensor_.shape.columns), 0);
  std::ranges::copy(values, with_extremes_.begin());
  const auto place = static_cast<std::size_t>(behind);
  with_extremes_[place] = static_cast<float>(context_.extremes.lowest);
  with_extremes_[place + 1] = static_cast<float>(context_.extremes.highest);
  room_.resize(with_extremes_.size());
  TRY_VOID(EncodeBlocks(with_extremes_, {}, tensor_));
  TRY_VOID(DecodeBlocks(tensor_, room_));
  std::copy_n(room_.begin(), values.size(), rounded.begin());
  return {};
}

ScaleFacts BlockRounder::Scales(std::span<const float> values) const {
  ScaleFacts facts;
  const double tensor_scale = TensorScaleOf(tensor_);
  ForEachRun(tensor_.shape, tensor_.format, [&](const Run& run) {
    if (run.first >= values.size()) {
      return;  // the extremes
    }
    const double scale = std::abs(ScaleAt(tensor_, run.scale)) * tensor_scale;
    ++facts.scales;
    if (scale == 0) {
      const auto block = values.subspan(run.first, std::min(run.count, values.size() - run.first));
      ++facts.zero;
      facts.lost_blocks += std::ranges::any_of(block, [](float x) { return x != 0; }) ? 1 : 0;
      return;
    }
    if (std::isnan(scale)) {
      return;  // of a block with values that are no numbers
    }
    facts.largest = std::max(facts.largest, scale);
    facts.smallest = facts.smallest == 0 ? scale : std::min(facts.smallest, scale);
  });
  return facts;
}

void Add(const ScaleFacts& next, ScaleFacts& whole) {
  whole.scales += next.scales;
  whole.zero += next.zero;
  whole.lost_blocks += next.lost_blocks;
  whole.largest = std::max(whole.largest, next.largest);
  if (next.smallest != 0) {
    whole.smallest = whole.smallest == 0 ? next.smallest : std::min(whole.smallest, next.smallest);
  }
}

}  // namespace fourpiles
