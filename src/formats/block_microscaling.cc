#include "formats/block_microscaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

std::int32_t SignificandKept(const Microscaling& format) {
  constexpr int kFraction = 23;
  const int fraction = format.element.fraction_bits;
  const std::int32_t hidden = 1 << fraction;
  switch (format.rule) {
    case ScaleRule::kFloor:
      break;
    case ScaleRule::kCeil:
      return 1 << kFraction;
    case ScaleRule::kEven:  // half a step of the element more would carry into the next binade
      return (1 << (kFraction + 1)) - (1 << (kFraction - 1 - fraction)) - 1;
    case ScaleRule::kRceil: {
      const auto largest = static_cast<std::int32_t>(LargestCode(format.element));
      return ((largest & (hidden - 1)) | hidden) << (kFraction - fraction);
    }
  }
  return std::numeric_limits<std::int32_t>::max();
}

std::uint8_t MxScaleCode(float largest, const Microscaling& format) {
  if (!IsFinite(largest)) {
    return kMxNan;
  }
  if (MagnitudeOf(largest) == 0) {
    return 0;
  }
  const Binary binary = BinaryOf(largest);
  const int extra = static_cast<std::int32_t>(binary.significand) > SignificandKept(format) ? 1 : 0;
  const int exponent = binary.exponent + extra - HighestExponent(format.element);
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
