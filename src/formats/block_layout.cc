// How much a tensor in a block format takes.

#include "formats/block_layout.h"

#include "base/checked.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

// Blocks run from one row into the next.
bool RunsThroughRows(const BlockFormat& format) {
  return format.kind == BlockKind::kCodeBook || format.granularity == Granularity::kTensor;
}

bool IsEmpty(const TensorShape& shape) {
  return shape.rows == 0 || shape.columns == 0;
}

// Blocks of so many elements that lie one after the other.
Checked BlocksOf(Checked elements, const BlockFormat& format) {
  return format.block_elements == 0 ? Checked(1)
                                    : DivideRoundingUp(elements, format.block_elements);
}

Checked CheckedScaleCount(const TensorShape& shape, const BlockFormat& format) {
  if (IsEmpty(shape) || format.kind == BlockKind::kGgml) {
    return 0;
  }
  return RunsThroughRows(format) ? BlocksOf(Checked(shape.rows) * shape.columns, format)
                                 : BlocksOf(shape.columns, format) * shape.rows;
}

// Bytes beside codes and one scale for each block.
Checked OtherBytes(Checked scales, const BlockFormat& format) {
  constexpr int kFloatBytes = 4;
  if (format.kind == BlockKind::kTwoLevel) {
    return kFloatBytes;
  }
  if (format.double_quantized) {
    return DivideRoundingUp(scales, kScalesPerGroup) * kFloatBytes + kFloatBytes;
  }
  return format.asymmetric ? scales : 0;
}

}  // namespace

RunLayout RunLayoutOf(const TensorShape& shape, const BlockFormat& format) {
  const auto columns = static_cast<std::size_t>(shape.columns);
  const std::size_t elements = static_cast<std::size_t>(shape.rows) * columns;
  if (elements == 0) {
    return {};
  }
  const std::size_t period = RunsThroughRows(format) ? elements : columns;
  const auto block = static_cast<std::size_t>(format.block_elements);
  return {elements, period, block == 0 ? period : block};
}

std::int64_t ScaleCount(const TensorShape& shape, const BlockFormat& format) {
  return OrLargest(CheckedScaleCount(shape, format));
}

std::int64_t StorageBytes(const TensorShape& shape, const BlockFormat& format) {
  if (format.kind == BlockKind::kGgml) {
    const Checked blocks = BlocksOf(shape.columns, format) * shape.rows;
    return OrLargest(StorageBytes(blocks, format.block_bits));
  }
  const Checked scales = CheckedScaleCount(shape, format);
  const Checked codes = StorageBytes(Checked(shape.rows) * shape.columns, format.element_bits);
  return OrLargest(codes + scales * ScaleBytes(format) + OtherBytes(scales, format));
}

double BitsPerElement(const BlockFormat& format) {
  if (format.kind == BlockKind::kGgml) {
    return static_cast<double>(format.block_bits) / format.block_elements;
  }
  if (format.block_elements == 0) {
    return format.element_bits;  // a scale for a row or a tensor, however long
  }
  const double shared = format.double_quantized ? 32.0 / kScalesPerGroup : 0;
  return format.element_bits + (format.scale_bits + shared) / format.block_elements;
}

}  // namespace fourpiles
