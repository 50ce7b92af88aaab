#include "formats/block_codebook.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "formats/block_layout.h"
#include "formats/float32.h"

namespace fourpiles {
namespace {

__extension__ using Wide = unsigned __int128;

// What values are multiplied by before they are looked up.
struct Normalisation {
  double lift = 1;        // exact
  double reciprocal = 0;  // of the lifted scale, in float32
};

Normalisation NormalisationOf(float scale) {
  if (!IsFinite(scale) || MagnitudeOf(scale) == 0) {
    return {0, 0};
  }
  const double lift = MagnitudeOf(scale) < kFloat32SmallestNormal ? 0x1p32 : 1.0;
  return {lift, Widen(Narrow(QuotientToOdd(1, Widen(scale) * lift)))};
}

const CodeBook& ScaleBook() {
  return FindCodeBook("dynamic8");
}

// One group of scales less the offset: their common scale, and a code of the dynamic map for each.
float EncodeScales(std::span<const float> scales, float offset, std::span<std::byte> codes) {
  std::array<float, kScalesPerGroup> buffer;
  const std::span<float> rests = std::span<float>(buffer).first(scales.size());
  std::ranges::transform(scales, rests.begin(),
                         [&](float scale) { return DifferenceInFloat32(scale, offset); });
  const float common = CodeBookScale(rests, Subnormals::kKept);
  EncodeCodeBookBlock(rests, common, ScaleBook(), codes);
  return common;
}

}  // namespace

void QuantizeScales(float offset, BlockTensor& tensor) {
  std::vector<float>& scales = tensor.scale_scales;
  tensor.scale_offset = offset;
  std::size_t groups = 0;
  for (std::size_t first = 0; first < scales.size(); first += kScalesPerGroup) {
    const std::size_t count = std::min(kScalesPerGroup, scales.size() - first);
    scales[groups++] =
        EncodeScales(std::span<const float>(scales).subspan(first, count), tensor.scale_offset,
                     std::span<std::byte>(tensor.scales).subspan(first, count));
  }
  scales.resize(groups);
}

float CodeBookScale(std::span<const float> values, Subnormals subnormals) {
  const float largest = LargestMagnitude(values, subnormals);
  return IsFinite(largest) ? largest : std::numeric_limits<float>::quiet_NaN();
}

float CodeBookScaleOf(const BlockTensor& tensor, std::size_t index) {
  if (!tensor.format.double_quantized) {
    return ReadFloat(tensor.scales, index);
  }
  float rest = 0;
  DecodeCodeBookBlock(std::span<const std::byte>(tensor.scales).subspan(index, 1),
                      tensor.scale_scales[index / kScalesPerGroup], ScaleBook(), {&rest, 1});
  return SumInFloat32(rest, tensor.scale_offset);
}

void EncodeCodeBookBlock(std::span<const float> values, float scale, const CodeBook& book,
                         std::span<std::byte> codes) {
  const Normalisation normal = NormalisationOf(scale);
  if (normal.lift == 0) {
    std::ranges::fill(codes, std::byte{NearestCode(0, book)});
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float placed = Narrow(Widen(values[i]) * normal.lift * normal.reciprocal);
    codes[i] = std::byte{NearestCode(placed, book)};
  }
}

void DecodeCodeBookBlock(std::span<const std::byte> codes, float scale, const CodeBook& book,
                         std::span<float> values) {
  const double factor = Widen(scale);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values[i] = Narrow(Widen(book.values[std::to_integer<std::size_t>(codes[i])]) * factor);
  }
}

float MeanScale(std::span<const float> scales) {
  // Whole numbers of 2^(exponent of the largest − 23 − kWindow): their sum does not depend on the
  // order, and 2^48 of them fit.
  constexpr int kWindow = 56;
  const Binary largest = BinaryOf(LargestFiniteMagnitude(scales, Subnormals::kKept));
  Wide sum = 0;
  std::uint64_t count = 0;
  for (const float scale : scales) {
    if (!IsFinite(scale)) {
      continue;
    }
    ++count;
    const Binary binary = BinaryOf(scale);
    const int below = largest.exponent - binary.exponent;
    CHECK(below >= 0);
    sum += below < kWindow + 24 ? (Wide{binary.significand} << kWindow) >> below : 0;
  }
  if (sum == 0) {
    return 0;
  }
  const Wide mean = sum / count;
  const auto high = static_cast<std::uint64_t>(mean >> 64);
  const auto low = static_cast<std::uint64_t>(mean);
  const int width = high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(low);
  const int cut = std::max(0, width - 53);
  const auto kept = static_cast<std::uint64_t>(mean >> cut);
  const bool rest = Wide{kept} << cut != mean || mean * count != sum;
  return Narrow(std::ldexp(static_cast<double>(kept | (rest ? 1 : 0)),
                           largest.exponent - 23 - kWindow + cut));
}

void EncodeCodeBook(std::span<const float> values, const Conversion& conversion,
                    BlockTensor& tensor) {
  const CodeBook& book = FindCodeBook(tensor.format.element);
  const bool twice = tensor.format.double_quantized;
  if (twice) {
    tensor.scale_scales.resize(tensor.scales.size());  // the scales themselves, for now
  }
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    const float scale = CodeBookScale(values.subspan(run.first, run.count), conversion.subnormals);
    if (twice) {
      tensor.scale_scales[run.scale] = scale;
    } else {
      WriteFloat(tensor.scales, run.scale, scale);
    }
    EncodeRun(values, run, tensor,
              [&](std::span<const float> block, std::size_t, std::span<std::byte> codes) {
                EncodeCodeBookBlock(block, scale, book, codes);
              });
  });
  if (twice) {
    QuantizeScales(MeanScale(tensor.scale_scales), tensor);
  }
}

void DecodeCodeBook(const BlockTensor& tensor, std::span<float> values) {
  const CodeBook& book = FindCodeBook(tensor.format.element);
  ForEachRun(tensor.shape, tensor.format, [&](const Run& run) {
    const float scale = CodeBookScaleOf(tensor, run.scale);
    DecodeRun(tensor, run, values, [&](std::span<const std::byte> codes, std::span<float> block) {
      DecodeCodeBookBlock(codes, scale, book, block);
    });
  });
}

}  // namespace fourpiles
