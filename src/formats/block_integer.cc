#include "formats/block_integer.h"

#include <algorithm>
#include <cmath>

#include "formats/block_layout.h"
#include "formats/codes.h"
#include "formats/float32.h"

namespace fourpiles {
namespace {

// Whole numbers up to 2^bits − 1 and their sign, as a format: subnormals and the one binade above
// them, all one apart. So the roundings of formats are those of integers, too.
constexpr NumberFormat WholeNumbers(int bits) {
  return {.name = "whole number",
          .exponent_bits = 1,
          .fraction_bits = bits - 1,
          .bias = 2 - bits,
          .specials = Specials::kNone};
}

// Wide enough that what it cannot hold is beyond all codes, wherever zero lies.
NumberFormat QuotientFormat(const IntegerCodes& codes) {
  return WholeNumbers(codes.bits + 1);
}

int WholeNumberOf(std::uint64_t code, const NumberFormat& format) {
  const auto magnitude = static_cast<int>(code & MagnitudeMask(format));
  return code == (code & MagnitudeMask(format)) ? magnitude : -magnitude;
}

int NumberOf(std::byte code, const IntegerCodes& codes) {
  const int number = std::to_integer<int>(code);
  const bool negative = codes.is_signed && (number >> (codes.bits - 1)) != 0;
  return negative ? number - (1 << codes.bits) : number;
}

std::byte CodeOf(int number, const IntegerCodes& codes) {
  return static_cast<std::byte>(number & ((1 << codes.bits) - 1));
}

}  // namespace

int SmallestCode(const IntegerCodes& codes) {
  if (!codes.is_signed) {
    return 0;
  }
  return codes.asymmetric ? -(1 << (codes.bits - 1)) : 1 - (1 << (codes.bits - 1));
}

int LargestCode(const IntegerCodes& codes) {
  return (1 << (codes.is_signed ? codes.bits - 1 : codes.bits)) - 1;
}

IntegerCodes IntegerCodesOf(const BlockFormat& format) {
  return {format.element_bits, format.element.front() != 'u', format.asymmetric};
}

ValueRange RangeOf(std::span<const float> values, Subnormals subnormals) {
  std::uint32_t below = 0;
  std::uint32_t above = 0;
  for (const float value : values) {
    std::uint32_t& side = std::signbit(value) ? below : above;
    side = std::max(side, MagnitudeOf(value));
  }
  const std::uint32_t limit =
      subnormals == Subnormals::kFlushedOnInput ? kFloat32SmallestNormal : 0;
  if (std::max(below, above) >= kFloat32Infinity) {
    return {std::bit_cast<float>(kFloat32Nan), std::bit_cast<float>(kFloat32Nan)};
  }
  return {std::bit_cast<float>(below < limit ? 0 : below),
          std::bit_cast<float>(above < limit ? 0 : above)};
}

ValueRange Union(const ValueRange& a, const ValueRange& b) {
  return {std::bit_cast<float>(std::max(MagnitudeOf(a.below), MagnitudeOf(b.below))),
          std::bit_cast<float>(std::max(MagnitudeOf(a.above), MagnitudeOf(b.above)))};
}

IntegerScale IntegerScaleOf(const ValueRange& range, const IntegerCodes& codes) {
  if (!IsFinite(range.above)) {
    return {codes, std::bit_cast<float>(kFloat32Nan), 0};
  }
  if (!codes.asymmetric) {
    const float largest = Union({range.below, 0}, {range.above, 0}).below;
    return {codes, Narrow(QuotientToOdd(Widen(largest), LargestCode(codes))), 0};
  }
  // A sum that float32 cannot hold is exact in a double: both are 2^103 or more.
  const double sum = Widen(range.above) + Widen(range.below);
  const double span = IsFinite(Narrow(sum)) ? Widen(SumInFloat32(range.above, range.below)) : sum;
  IntegerScale scale = {codes, Narrow(QuotientToOdd(span, (1 << codes.bits) - 1)), 0};
  const NumberFormat quotient = QuotientFormat(codes);
  const double zero =
      MagnitudeOf(scale.scale) == 0 ? 0 : QuotientToOdd(Widen(range.below), Widen(scale.scale));
  const int steps = WholeNumberOf(Encode(zero, quotient, Overflow::kSaturate).code, quotient);
  scale.zero_point = std::min(SmallestCode(codes) + steps, LargestCode(codes));
  return scale;
}

void EncodeIntegers(std::span<const float> values, const IntegerScale& scale,
                    const Conversion& conversion, std::uint64_t first_index,
                    std::span<std::byte> codes) {
  if (!IsFinite(scale.scale) || MagnitudeOf(scale.scale) == 0) {
    std::ranges::fill(codes, CodeOf(scale.zero_point, scale.codes));
    return;
  }
  Conversion rounding = conversion;
  rounding.overflow = Overflow::kSaturate;
  rounding.subnormals = Subnormals::kKept;  // integers have none
  const NumberFormat quotient = QuotientFormat(scale.codes);
  const double divisor = Widen(scale.scale);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double exact = QuotientToOdd(InputOf(values[i], conversion.subnormals), divisor);
    const std::uint64_t code = Encode(exact, quotient, rounding, first_index + i).code;
    const int number = std::clamp(WholeNumberOf(code, quotient) + scale.zero_point,
                                  SmallestCode(scale.codes), LargestCode(scale.codes));
    codes[i] = CodeOf(number, scale.codes);
  }
}

void DecodeIntegers(std::span<const std::byte> codes, const IntegerScale& scale,
                    std::span<float> values) {
  const double factor = Widen(scale.scale);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values[i] = Narrow((NumberOf(codes[i], scale.codes) - scale.zero_point) * factor);
  }
}

IntegerScale ReadIntegerScale(const BlockTensor& tensor, std::size_t index) {
  IntegerScale scale = {.codes = IntegerCodesOf(tensor.format),
                        .scale = ReadFloat(tensor.scales, index)};
  if (scale.codes.asymmetric) {
    scale.zero_point = NumberOf(tensor.zero_points[index], scale.codes);
  }
  return scale;
}

void WriteIntegerScale(const IntegerScale& scale, std::size_t index, BlockTensor& tensor) {
  WriteFloat(tensor.scales, index, scale.scale);
  if (scale.codes.asymmetric) {
    tensor.zero_points[index] = CodeOf(scale.zero_point, scale.codes);
  }
}

void EncodeInteger(std::span<const float> values, const Conversion& conversion,
                   BlockTensor& tensor) {
  const IntegerCodes kind = IntegerCodesOf(tensor.format);
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    const ValueRange range = RangeOf(values.subspan(run.first, run.count), conversion.subnormals);
    const IntegerScale scale = IntegerScaleOf(range, kind);
    WriteIntegerScale(scale, run.scale, tensor);
    EncodeRun(values, run, tensor,
              [&](std::span<const float> piece, std::uint64_t first, std::span<std::byte> codes) {
                EncodeIntegers(piece, scale, conversion, first, codes);
              });
  });
}

void DecodeInteger(const BlockTensor& tensor, std::span<float> values) {
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    const IntegerScale scale = ReadIntegerScale(tensor, run.scale);
    DecodeRun(tensor, run, values, [&](std::span<const std::byte> codes, std::span<float> piece) {
      DecodeIntegers(codes, scale, piece);
    });
  });
}

}  // namespace fourpiles
