#include "formats/block_codec.h"

#include <string>

#include "base/check.h"
#include "formats/block_codebook.h"
#include "formats/block_integer.h"
#include "formats/block_layout.h"
#include "formats/block_microscaling.h"
#include "formats/block_nvfp4.h"
#include "formats/ggml_blocks.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

// Whole blocks, rounded as ggml does.
Result<void> EncodeGgml(std::span<const float> values, BlockTensor& tensor) {
  const std::string_view type = GgmlTypeOf(tensor.format);
  if (!CanEncodeGgml(type)) {
    return WrongUsage({.where = std::string(tensor.format.name),
                       .found = "a type of ggml that is found by a search, not a formula",
                       .expected = "it can be decoded only"});
  }
  if (tensor.shape.columns % tensor.format.block_elements != 0) {
    return WrongUsage(
        {.where = std::string(tensor.format.name),
         .found = "rows of " + std::to_string(tensor.shape.columns) + " elements",
         .expected = "whole blocks of " + std::to_string(tensor.format.block_elements)});
  }
  EncodeGgmlBlocks(*FindGgmlCodec(type), values, tensor.codes);
  return {};
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
  DecodeGgmlBlocks(*FindGgmlCodec(GgmlTypeOf(tensor.format)), tensor.codes, values);
}

}  // namespace fourpiles
