#include "formats/block_rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/try.h"
#include "formats/block_codebook.h"
#include "formats/block_codec.h"
#include "formats/block_facts.h"
#include "formats/block_integer.h"
#include "formats/block_layout.h"
#include "formats/block_microscaling.h"
#include "formats/float32.h"
#include "formats/packing.h"

namespace fourpiles {
namespace {

float InFloat32(const TypedNumber& number) {
  static const NumberFormat float32 = FindFormat("float32").value();
  return std::bit_cast<float>(static_cast<std::uint32_t>(Encode(number.AsReal(), float32).code));
}

// A value, and its place in the tensor.
struct Input {
  float value = 0;
  std::size_t index = 0;
};

// Whether value ÷ scale rounds past the largest of an element that has an exponent.
bool Saturates(const Input& input, const BlockScale& scale, const BlockTensor& tensor,
               const Conversion& conversion) {
  const BlockFormat& format = tensor.format;
  const bool floating =
      format.kind == BlockKind::kMicroscaling || format.kind == BlockKind::kTwoLevel;
  if (!floating || *scale.value == 0) {
    return false;
  }
  const double value = InputOf(input.value, conversion.subnormals);
  const bool divides = format.tensor_scale == TensorScale::kDivisor;
  const double tensor_scale = Widen(tensor.tensor_scale);
  const double element = divides ? QuotientToOdd(value * tensor_scale, *scale.value)
                                 : QuotientToOdd(value, *scale.value * tensor_scale);
  Conversion saturating = conversion;
  saturating.overflow = Overflow::kSaturate;
  const NumberFormat of = format.kind == BlockKind::kMicroscaling
                              ? MicroscalingOf(format).element
                              : FindFormat(format.element).value();
  return Encode(element, of, saturating, input.index).status == RoundingStatus::kSaturated;
}

BlockScale ScaleOf(const BlockTensor& tensor, const Run& run) {
  BlockScale scale = {.first = run.first, .count = run.count};
  const BlockFormat& format = tensor.format;
  if (ScaleBytes(format) == 1) {
    scale.code = std::to_integer<std::uint64_t>(tensor.scales[run.scale]);
  }
  if (format.kind == BlockKind::kCodeBook) {
    scale.value = Widen(CodeBookScaleOf(tensor, run.scale));
  } else if (format.kind == BlockKind::kInteger) {
    const IntegerScale integer = ReadIntegerScale(tensor, run.scale);
    scale.value = Widen(integer.scale);
    scale.zero_point = format.asymmetric ? std::optional(integer.zero_point) : std::nullopt;
  } else {
    scale.value = Decode(*scale.code, FindFormat(ScaleFormatName(format)).value());
  }
  return scale;
}

std::vector<BlockScale> ScalesOf(const BlockTensor& tensor, std::size_t typed) {
  std::vector<BlockScale> scales;
  if (tensor.format.kind != BlockKind::kGgml) {
    ForEachRun(tensor.shape, tensor.format,
               [&](const Run& run) { scales.push_back(ScaleOf(tensor, run)); });
    return scales;
  }
  const auto elements = static_cast<std::size_t>(tensor.format.block_elements);
  const auto bytes = static_cast<std::size_t>(tensor.format.block_bits / 8);
  for (std::size_t first = 0; first < typed; first += elements) {
    const auto begin = tensor.codes.begin() + static_cast<std::ptrdiff_t>(first / elements * bytes);
    scales.push_back({.first = first,
                      .count = std::min(elements, typed - first),
                      .bytes = {begin, begin + static_cast<std::ptrdiff_t>(bytes)}});
  }
  return scales;
}

// The value that it comes back as, and what that says.
BlockElement ElementOf(const TypedNumber& input, float value) {
  BlockElement element = {.input = input, .value = Widen(value)};
  if (std::isnan(element.value) || !input.finite) {
    const bool same = input.nearest == element.value;
    element.status = same ? RoundingStatus::kExact : RoundingStatus::kNan;
    return element;
  }
  if (std::isinf(element.value)) {
    element.status = RoundingStatus::kOverflow;
    return element;
  }
  const Decimal error = Decimal::Of(element.value) - input.exact;
  element.error = error.IsZero() ? 0.0 : error.Nearest();
  if (!error.IsZero()) {
    element.status = element.value == 0 ? RoundingStatus::kUnderflow : RoundingStatus::kRounded;
  }
  return element;
}

// The code of an element, and whether it saturated.
void AddCode(const Input& input, const BlockScale& scale, const BlockTensor& tensor,
             const Conversion& conversion, BlockElement& element) {
  element.code =
      std::to_integer<std::uint64_t>(CodeAt(tensor.codes, input.index, PackingOf(tensor.format)));
  if (element.status == RoundingStatus::kRounded && Saturates(input, scale, tensor, conversion)) {
    element.status = RoundingStatus::kSaturated;
  }
}

}  // namespace

Result<BlockRounding> RoundInBlocks(std::span<const TypedNumber> inputs, const BlockFormat& format,
                                    const Conversion& conversion) {
  TRY_VOID(CheckConversion(conversion, format));
  std::vector<float> values(inputs.size());
  std::ranges::transform(inputs, values.begin(), InFloat32);
  BlockRounding rounding;
  if (format.kind == BlockKind::kGgml) {
    const auto block = static_cast<std::size_t>(format.block_elements);
    values.resize((values.size() + block - 1) / block * block);
    rounding.zeros = static_cast<std::int64_t>(values.size() - inputs.size());
  }
  BlockTensor& tensor = rounding.tensor;
  tensor.format = format;
  tensor.shape = {1, static_cast<std::int64_t>(values.size())};
  TRY_VOID(EncodeTensor(values, conversion, tensor));
  std::vector<float> back(values.size());
  DecodeTensor(tensor, back);
  rounding.scales = ScalesOf(tensor, inputs.size());
  for (const BlockScale& scale : rounding.scales) {
    for (std::size_t i = scale.first; i < scale.first + scale.count; ++i) {
      BlockElement element = ElementOf(inputs[i], back[i]);
      if (format.kind != BlockKind::kGgml) {
        AddCode({values[i], i}, scale, rounding.tensor, conversion, element);
      }
      rounding.elements.push_back(std::move(element));
    }
  }
  return rounding;
}

}  // namespace fourpiles
