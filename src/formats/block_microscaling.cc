#include "formats/block_microscaling.h"

#include <algorithm>
#include <cmath>

#include "formats/block_layout.h"
#include "formats/codes.h"
#include "formats/float32.h"

namespace fourpiles {
namespace {

constexpr NumberFormat kSixtyFourths = {.name = "int8 ÷ 64",
                                        .exponent_bits = 1,
                                        .fraction_bits = 6,
                                        .bias = 1,
                                        .specials = Specials::kNone,
                                        .source = "OCP Microscaling Formats (MX) 1.0, 5.3.4"};

// What the rule adds to floor(log2 largest).
int ExtraExponent(std::uint32_t significand, const Microscaling& format) {
  const int fraction_bits = format.element.fraction_bits;
  switch (format.rule) {
    case ScaleRule::kFloor:
      return 0;
    case ScaleRule::kCeil:
      return significand != 1U << 23 ? 1 : 0;
    case ScaleRule::kEven:  // half a step of the element, and it carries into the next binade
      return significand + (1U << (22 - fraction_bits)) >= 1U << 24 ? 1 : 0;
    case ScaleRule::kRceil:
      break;
  }
  const std::uint64_t hidden = std::uint64_t{1} << fraction_bits;
  const std::uint64_t largest = (LargestCode(format.element) & (hidden - 1)) | hidden;
  return significand > largest << (23 - fraction_bits) ? 1 : 0;
}

std::byte CodeOf(std::uint64_t code, const Microscaling& format) {
  if (!format.is_integer) {
    return static_cast<std::byte>(code);
  }
  const std::uint64_t magnitude = code & MagnitudeMask(format.element);
  return static_cast<std::byte>(code == magnitude ? magnitude : 0x100 - magnitude);
}

double ValueOf(std::byte code, const Microscaling& format) {
  const auto number = std::to_integer<std::uint8_t>(code);
  return format.is_integer ? static_cast<std::int8_t>(number) / 64.0
                           : Decode(number, format.element);
}

}  // namespace

Microscaling MicroscalingOf(const BlockFormat& format) {
  const bool is_integer = format.element == "int8";
  return {is_integer ? kSixtyFourths : FindFormat(format.element).value(), is_integer,
          format.scale_rule};
}

std::uint8_t MxScaleCode(float largest, const Microscaling& format) {
  if (!IsFinite(largest)) {
    return kMxNan;
  }
  if (MagnitudeOf(largest) == 0) {
    return 0;
  }
  const Binary binary = BinaryOf(largest);
  const int exponent =
      binary.exponent + ExtraExponent(binary.significand, format) - HighestExponent(format.element);
  return static_cast<std::uint8_t>(std::clamp(exponent, -127, 127) + 127);
}

std::uint8_t EncodeMxBlock(std::span<const float> values, const Microscaling& format,
                           const Conversion& conversion, std::uint64_t first_index,
                           std::span<std::byte> codes) {
  const std::uint8_t scale = MxScaleCode(LargestMagnitude(values, conversion.subnormals), format);
  if (scale == kMxNan) {
    const bool has_nan = format.element.specials != Specials::kNone;
    std::ranges::fill(codes, static_cast<std::byte>(has_nan ? NanCode(format.element) : 0));
    return scale;
  }
  Conversion saturating = conversion;
  saturating.overflow = Overflow::kSaturate;
  if (format.is_integer) {
    saturating.subnormals = Subnormals::kKept;  // an integer has none
  }
  const double inverse = std::ldexp(1.0, 127 - scale);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double element = InputOf(values[i], conversion.subnormals) * inverse;
    codes[i] = CodeOf(Encode(element, format.element, saturating, first_index + i).code, format);
  }
  return scale;
}

void DecodeMxBlock(std::span<const std::byte> codes, std::uint8_t scale, const Microscaling& format,
                   std::span<float> values) {
  const double factor = scale == kMxNan ? std::nan("") : std::ldexp(1.0, scale - 127);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values[i] = Narrow(ValueOf(codes[i], format) * factor);
  }
}

void EncodeMicroscaling(std::span<const float> values, const Conversion& conversion,
                        BlockTensor& tensor) {
  const Microscaling format = MicroscalingOf(tensor.format);
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    EncodeRun(values, run, tensor,
              [&](std::span<const float> block, std::uint64_t first, std::span<std::byte> codes) {
                tensor.scales[run.scale] =
                    std::byte{EncodeMxBlock(block, format, conversion, first, codes)};
              });
  });
}

void DecodeMicroscaling(const BlockTensor& tensor, std::span<float> values) {
  const Microscaling format = MicroscalingOf(tensor.format);
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    const auto scale = std::to_integer<std::uint8_t>(tensor.scales[run.scale]);
    DecodeRun(tensor, run, values, [&](std::span<const std::byte> codes, std::span<float> block) {
      DecodeMxBlock(codes, scale, format, block);
    });
  });
}

}  // namespace fourpiles
