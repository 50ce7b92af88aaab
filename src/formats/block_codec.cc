#include "formats/block_codec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "formats/block_codebook.h"
#include "formats/block_integer.h"
#include "formats/block_layout.h"
#include "formats/block_microscaling.h"
#include "formats/block_nvfp4.h"
#include "formats/ggml_blocks.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

tl::unexpected<Error> WrongTensor(const BlockTensor& tensor, std::string found,
                                  std::string expected) {
  const std::string_view name = tensor.format.name;
  return WrongUsage({.where = name.empty() ? "block tensor" : std::string(name),
                     .found = std::move(found),
                     .expected = std::move(expected)});
}

// A record as FindBlockFormat gives it: the arrays and the kernels are laid out by its numbers.
bool IsOneOfOurs(const BlockFormat& format) {
  const auto row = std::ranges::find(BlockFormats(), format.name, &BlockFormat::name);
  if (row == BlockFormats().end() || row->kind != format.kind || row->element != format.element ||
      row->element_bits != format.element_bits || row->block_bits != format.block_bits) {
    return false;
  }
  const bool may_choose_block =
      format.kind == BlockKind::kCodeBook || format.kind == BlockKind::kInteger;
  const bool is_whole = format.granularity != Granularity::kGroup;
  return may_choose_block ? (is_whole ? format.block_elements == 0 : format.block_elements > 0)
                          : format.block_elements == row->block_elements;
}

struct ArraySizes {
  std::size_t codes = 0;
  std::size_t scales = 0;
  std::size_t zero_points = 0;
  std::size_t scale_scales = 0;
};

ArraySizes ArraySizesOf(const BlockTensor& tensor) {
  const BlockFormat& format = tensor.format;
  if (format.kind == BlockKind::kGgml) {
    return {.codes = static_cast<std::size_t>(StorageBytes(tensor.shape, format))};
  }
  const auto scales = static_cast<std::size_t>(ScaleCount(tensor.shape, format));
  const Checked elements = Checked(tensor.shape.rows) * tensor.shape.columns;
  const std::size_t groups = (scales + kScalesPerGroup - 1) / kScalesPerGroup;
  return {.codes = static_cast<std::size_t>(StorageBytes(elements, format.element_bits).value()),
          .scales = scales * static_cast<std::size_t>(ScaleBytes(format)),
          .zero_points = format.asymmetric ? scales : 0,
          .scale_scales = format.double_quantized ? groups : 0};
}

// Whole blocks, rounded as ggml does.
Result<void> EncodeGgml(std::span<const float> values, BlockTensor& tensor) {
  const std::string_view type = GgmlTypeOf(tensor.format);
  if (!CanEncodeGgml(type)) {
    return WrongTensor(tensor, "a type whose encoding ggml searches for",
                       "one whose encoding is a formula; this one is decoded only");
  }
  EncodeGgmlBlocks(*FindGgmlCodec(type), values, tensor.codes);
  return {};
}

}  // namespace

Result<void> CheckShape(const BlockTensor& tensor, std::size_t values) {
  if (!IsOneOfOurs(tensor.format)) {
    return WrongTensor(tensor, "a record that no block format has",
                       "expected one that FindBlockFormat returned, as it was");
  }
  const auto [rows, columns] = tensor.shape;
  const Checked elements = Checked(rows) * columns;
  if (rows < 0 || columns < 0 || !elements.ok() ||
      static_cast<std::uint64_t>(elements.value()) != values) {
    return WrongTensor(tensor,
                       "a shape of " + std::to_string(rows) + " × " + std::to_string(columns) +
                           " for " + std::to_string(values) + " values",
                       "rows × columns is how many there are");
  }
  if (tensor.format.kind == BlockKind::kGgml && columns % tensor.format.block_elements != 0) {
    return WrongTensor(tensor, "rows of " + std::to_string(columns) + " elements",
                       "whole blocks of " + std::to_string(tensor.format.block_elements));
  }
  return {};
}

Result<void> CheckConversion(const Conversion& conversion, const BlockFormat& format) {
  const bool is_table = format.kind == BlockKind::kCodeBook;
  if (!is_table && format.kind != BlockKind::kGgml) {
    return {};
  }
  const std::string who = is_table ? "a table of values" : "a type of ggml";
  const auto refuse = [&](std::string_view what, std::string_view found, std::string_view only) {
    return WrongUsage({.where = std::string(format.name),
                       .found = std::string(what) + " \"" + std::string(found) + "\"",
                       .expected = who + " has \"" + std::string(only) + "\" only"});
  };
  if (conversion.rounding != RoundingMode::kNearestEven) {
    return refuse("rounding", Name(conversion.rounding), Name(RoundingMode::kNearestEven));
  }
  const bool flushes_input = is_table && conversion.subnormals == Subnormals::kFlushedOnInput;
  if (conversion.subnormals != Subnormals::kKept && !flushes_input) {
    return refuse("subnormals", Name(conversion.subnormals), Name(Subnormals::kKept));
  }
  return {};
}

Result<void> CheckArrays(const BlockTensor& tensor) {
  const ArraySizes sizes = ArraySizesOf(tensor);
  const auto check = [&](std::string_view what, std::size_t size,
                         std::size_t wanted) -> Result<void> {
    if (size == wanted) {
      return {};
    }
    return WrongTensor(tensor, std::to_string(size) + " " + std::string(what),
                       std::to_string(wanted) + " for its shape");
  };
  TRY_VOID(check("bytes of codes", tensor.codes.size(), sizes.codes));
  TRY_VOID(check("bytes of scales", tensor.scales.size(), sizes.scales));
  TRY_VOID(check("zero points", tensor.zero_points.size(), sizes.zero_points));
  return check("scales of scales", tensor.scale_scales.size(), sizes.scale_scales);
}

void ResizeArrays(BlockTensor& tensor) {
  const ArraySizes sizes = ArraySizesOf(tensor);
  tensor.codes.resize(sizes.codes);
  if (!tensor.codes.empty()) {
    tensor.codes.back() = std::byte{0};  // the bits behind the last code
  }
  tensor.scales.resize(sizes.scales);
  tensor.zero_points.resize(sizes.zero_points);
  tensor.scale_scales.resize(sizes.scale_scales);
  tensor.tensor_scale = 1;
  tensor.scale_offset = 0;
}

Result<void> EncodeTensor(std::span<const float> values, const Conversion& conversion,
                          BlockTensor& tensor) {
  CHECK(values.size() == static_cast<std::size_t>(tensor.shape.rows * tensor.shape.columns));
  if (auto checked = CheckConversion(conversion, tensor.format); !checked) {
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
