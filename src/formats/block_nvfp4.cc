#include "formats/block_nvfp4.h"

#include <algorithm>
#include <limits>

#include "formats/block_layout.h"
#include "formats/float32.h"

namespace fourpiles {
namespace {

constexpr double kLargestElement = 6;
constexpr double kLargestScaled = 6 * 448;  // of the element and the block's scale

const NumberFormat& Element() {
  static const NumberFormat element = FindFormat("float4_e2m1fn").value();
  return element;
}

const NumberFormat& ScaleFormat() {
  static const NumberFormat scale = FindFormat("float8_e4m3fn").value();
  return scale;
}

}  // namespace

NvFp4Ratio RatioOf(const NvFp4Scale& scale) {
  return scale.kind == TensorScale::kMultiplier ? NvFp4Ratio{1, Widen(scale.value)}
                                                : NvFp4Ratio{Widen(scale.value), 1};
}

NvFp4Scale NvFp4TensorScale(float largest, TensorScale kind) {
  const double magnitude = Widen(largest);
  if (kind == TensorScale::kMultiplier) {
    return {Narrow(QuotientToOdd(magnitude, kLargestScaled)), kind};
  }
  if (magnitude == 0) {
    return {1, kind};
  }
  const float inverse = Narrow(QuotientToOdd(kLargestScaled, magnitude));
  return {IsFinite(inverse) ? inverse : std::numeric_limits<float>::max(), kind};
}

std::uint8_t NvFp4BlockScale(float largest, const NvFp4Scale& tensor) {
  if (!IsFinite(largest)) {
    return kNvFp4Nan;
  }
  const NvFp4Ratio ratio = RatioOf(tensor);
  if (ratio.under == 0) {
    return 0;
  }
  const double scale = QuotientToOdd(Widen(largest) * ratio.over, kLargestElement * ratio.under);
  return static_cast<std::uint8_t>(Encode(scale, ScaleFormat(), Overflow::kSaturate).code);
}

std::uint8_t EncodeNvFp4Block(std::span<const float> values, const NvFp4Scale& tensor,
                              const Conversion& conversion, std::uint64_t first_index,
                              std::span<std::byte> codes) {
  const std::uint8_t scale =
      NvFp4BlockScale(LargestMagnitude(values, conversion.subnormals), tensor);
  if (scale == kNvFp4Nan) {
    std::ranges::fill(codes, std::byte{0});
    return scale;
  }
  Conversion saturating = conversion;
  saturating.overflow = Overflow::kSaturate;
  NvFp4Ratio ratio = RatioOf(tensor);
  ratio.under *= Decode(scale, ScaleFormat());
  if (ratio.under == 0) {
    ratio = {0, 1};
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = InputOf(values[i], conversion.subnormals);
    const double element = QuotientToOdd(value * ratio.over, ratio.under);
    codes[i] = static_cast<std::byte>(Encode(element, Element(), saturating, first_index + i).code);
  }
  return scale;
}

void DecodeNvFp4Block(std::span<const std::byte> codes, std::uint8_t scale,
                      const NvFp4Scale& tensor, std::span<float> values) {
  const NvFp4Ratio ratio = RatioOf(tensor);
  const double factor = Decode(scale, ScaleFormat()) * ratio.under;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const double element = Decode(std::to_integer<std::uint64_t>(codes[i]), Element()) * factor;
    values[i] = Narrow(ratio.over == 1 ? element : QuotientToOdd(element, ratio.over));
  }
}

void EncodeNvFp4(std::span<const float> values, const Conversion& conversion, BlockTensor& tensor) {
  const NvFp4Scale scale = NvFp4TensorScale(LargestFiniteMagnitude(values, conversion.subnormals),
                                            tensor.format.tensor_scale);
  tensor.tensor_scale = scale.value;
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    EncodeRun(values, run, tensor,
              [&](std::span<const float> block, std::uint64_t first, std::span<std::byte> codes) {
                tensor.scales[run.scale] =
                    std::byte{EncodeNvFp4Block(block, scale, conversion, first, codes)};
              });
  });
}

void DecodeNvFp4(const BlockTensor& tensor, std::span<float> values) {
  const NvFp4Scale tensor_scale = {tensor.tensor_scale, tensor.format.tensor_scale};
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    const auto scale = std::to_integer<std::uint8_t>(tensor.scales[run.scale]);
    DecodeRun(tensor, run, values, [&](std::span<const std::byte> codes, std::span<float> block) {
      DecodeNvFp4Block(codes, scale, tensor_scale, block);
    });
  });
}

}  // namespace fourpiles
