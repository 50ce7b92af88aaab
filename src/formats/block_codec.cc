#include "formats/block_codec.h"

#include <string>

#include "base/check.h"
#include "formats/block_codebook.h"
#include "formats/block_integer.h"
#include "formats/block_layout.h"
#include "formats/block_microscaling.h"
#include "formats/block_nvfp4.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

// The one place where ggml's blocks come in: EncodeGgmlBlocks and DecodeGgmlBlocks of
// ggml_blocks.h belong into these two.
Result<void> EncodeGgml(std::span<const float> /*values*/, const BlockTensor& tensor) {
  return WrongUsage({.where = std::string(tensor.format.name),
                     .found = "a block type of ggml",
                     .expected = "only the other block formats can be encoded"});
}

void DecodeGgml(const BlockTensor& tensor, std::span<float> /*values*/) {
  CHECK(tensor.format.kind != BlockKind::kGgml);  // none was encoded
}

Result<void> CheckRounding(const Conversion& conversion, const BlockFormat& format) {
  if (format.kind != BlockKind::kCodeBook || conversion.rounding == RoundingMode::kNearestEven) {
    return {};
  }
  return WrongUsage({.where = std::string(format.name),
                     .found = "rounding \"" + std::string(Name(conversion.rounding)) + "\"",
                     .expected = "a table of values has \"nearest-even\" only"});
}

}  // namespace

void ResizeArrays(BlockTensor& tensor) {
  const BlockFormat& format = tensor.format;
  if (format.kind == BlockKind::kGgml) {
    tensor.codes.resize(static_cast<std::size_t>(StorageBytes(tensor.shape, format)));
    return;
  }
  const auto scales = static_cast<std::size_t>(ScaleCount(tensor.shape, format));
  const Checked elements = Checked(tensor.shape.rows) * tensor.shape.columns;
  tensor.codes.resize(
      static_cast<std::size_t>(StorageBytes(elements, format.element_bits).value()));
  if (!tensor.codes.empty()) {
    tensor.codes.back() = std::byte{0};  // the bits behind the last code
  }
  tensor.scales.resize(scales * static_cast<std::size_t>(ScaleBytes(format)));
  tensor.zero_points.resize(format.asymmetric ? scales : 0);
  tensor.scale_scales.resize(
      format.double_quantized ? (scales + kScalesPerGroup - 1) / kScalesPerGroup : 0);
  tensor.tensor_scale = 1;
  tensor.scale_offset = 0;
}

Result<void> EncodeTensor(std::span<const float> values, const Conversion& conversion,
                          BlockTensor& tensor) {
  CHECK(values.size() == static_cast<std::size_t>(tensor.shape.rows * tensor.shape.columns));
  if (auto checked = CheckRounding(conversion, tensor.format); !checked) {
    return checked;
  }
  ResizeArrays(tensor);
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
      EncodeMicroscaling(values, conversion, tensor);
      return {};
    case BlockKind::kTwoLevel:
      EncodeNvFp4(values, conversion, tensor);
      return {};
    case BlockKind::kCodeBook:
      EncodeCodeBook(values, conversion, tensor);
      return {};
    case BlockKind::kInteger:
      EncodeInteger(values, conversion, tensor);
      return {};
    case BlockKind::kGgml:
      break;
  }
  return EncodeGgml(values, tensor);
}

void DecodeTensor(const BlockTensor& tensor, std::span<float> values) {
  CHECK(values.size() == static_cast<std::size_t>(tensor.shape.rows * tensor.shape.columns));
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
      return DecodeMicroscaling(tensor, values);
    case BlockKind::kTwoLevel:
      return DecodeNvFp4(tensor, values);
    case BlockKind::kCodeBook:
      return DecodeCodeBook(tensor, values);
    case BlockKind::kInteger:
      return DecodeInteger(tensor, values);
    case BlockKind::kGgml:
      break;
  }
  DecodeGgml(tensor, values);
}

}  // namespace fourpiles
