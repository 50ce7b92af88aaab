#include "formats/block_facts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "formats/block_codebook.h"
#include "formats/block_integer.h"
#include "formats/block_microscaling.h"
#include "formats/block_nvfp4.h"

namespace fourpiles {
namespace {

// Every code with a scale of 1.
void DecodeCodes(const BlockFormat& format, std::span<const std::byte> codes,
                 std::span<float> values) {
  switch (format.kind) {
    case BlockKind::kMicroscaling:
      return DecodeMxBlock(codes, 127, MicroscalingOf(format), values);
    case BlockKind::kTwoLevel: {
      constexpr std::uint8_t kOne = 0x38;
      return DecodeNvFp4Block(codes, kOne, {1, TensorScale::kMultiplier}, values);
    }
    case BlockKind::kCodeBook:
      return DecodeCodeBookBlock(codes, 1, FindCodeBook(format.element), values);
    case BlockKind::kInteger:
      return DecodeIntegers(codes, {IntegerCodesOf(format), 1, 0}, values);
    case BlockKind::kGgml:
      break;
  }
}

}  // namespace

std::vector<float> ElementValues(const BlockFormat& format) {
  if (format.kind == BlockKind::kGgml) {
    return {};
  }
  std::vector<std::byte> codes(std::size_t{1} << format.element_bits);
  for (std::size_t code = 0; code < codes.size(); ++code) {
    codes[code] = static_cast<std::byte>(code);
  }
  std::vector<float> values(codes.size());
  DecodeCodes(format, codes, values);
  return values;
}

std::string_view ScaleFormatName(const BlockFormat& format) {
  switch (format.kind) {
    case BlockKind::kMicroscaling:
      return "float8_e8m0fnu";
    case BlockKind::kTwoLevel:
      return "float8_e4m3fn";
    case BlockKind::kCodeBook:
      return format.double_quantized ? "" : "float32";
    case BlockKind::kInteger:
      return "float32";
    case BlockKind::kGgml:
      break;
  }
  return "";
}

std::optional<BlockLimits> LimitsOf(const BlockFormat& format) {
  if (format.kind != BlockKind::kMicroscaling && format.kind != BlockKind::kTwoLevel) {
    return std::nullopt;
  }
  const NumberFormat scale = FindFormat(ScaleFormatName(format)).value();
  double largest = 0;
  double smallest = INFINITY;
  for (const double value : ElementValues(format)) {
    if (std::isfinite(value) && value > 0) {
      largest = std::max(largest, value);
      smallest = std::min(smallest, value);
    }
  }
  return BlockLimits{largest * Largest(scale), smallest * SmallestPositive(scale)};
}

}  // namespace fourpiles
