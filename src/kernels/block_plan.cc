// What the block kernels need to know, worked out once a tensor.

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "formats/codes.h"
#include "formats/float32.h"
#include "kernels/block_tasks.h"
#include "kernels/scalar_arrays.h"

namespace fourpiles {
namespace {

float NextUp(float magnitude) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) + 1);
}
float NextDown(float magnitude) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) - 1);
}

// The smallest float32 x ≥ 0 with x ÷ t above `middle` × `scale`, or on it where a tie goes up.
float FirstAbove(double middle, bool tie_goes_up, const NvFp4Ratio& ratio) {
  const double bound = middle * ratio.under;
  const auto is_above = [&](float x) {
    const double product = static_cast<double>(x) * ratio.over;
    return tie_goes_up ? product >= bound : product > bound;
  };
  const double quotient = bound / ratio.over;
  if (quotient > std::numeric_limits<float>::max()) {
    return std::numeric_limits<float>::infinity();
  }
  auto x = static_cast<float>(quotient);  // at most one off
  while (!is_above(x)) {
    x = NextUp(x);
  }
  while (x != 0 && is_above(NextDown(x))) {
    x = NextDown(x);
  }
  return x;
}

}  // namespace

MxPlan PlanMx(const Microscaling& format, const Conversion& conversion) {
  MxPlan plan;
  plan.format = format;
  plan.conversion = conversion;
  plan.conversion.overflow = plan.conversion.infinities = Overflow::kSaturate;
  if (format.is_integer && conversion.subnormals == Subnormals::kFlushedOnOutput) {
    plan.conversion.subnormals = Subnormals::kKept;  // an integer has none
  }
  plan.encode = PlanEncode(format.element, plan.conversion, kFloat32Format);
  plan.decode = PlanDecode(format.element);
  plan.significand_kept = SignificandKept(format);
  plan.highest_exponent = HighestExponent(format.element);
  return plan;
}

namespace {

// Halfway from the code before to this one.
double Middle(std::size_t code, const NumberFormat& format) {
  return (Decode(code - 1, format) + Decode(code, format)) / 2;
}

// What of NVFP4's bounds does not depend on the tensor.
struct NvFp4Middles {
  NvFp4Middles() {
    const NumberFormat element = FindFormat("float4_e2m1fn").value();
    const NumberFormat scale = FindFormat("float8_e4m3fn").value();
    for (std::size_t code = 1; code < 8; ++code) {
      elements[code] = Middle(code, element);
    }
    for (std::size_t code = 1; code <= 16; ++code) {
      scales[code] = Middle(code, scale);
    }
    encode = PlanEncode(scale, NearestEven(Overflow::kSaturate), kFloat32Format);
  }
  double elements[8] = {};
  double scales[17] = {};
  EncodePlan encode;
};

}  // namespace

// float8_e4m3fn repeats itself: eight codes on, everything is twice as large, ties included. So the
// bounds of one binade, and of the subnormals below it, give those of all.
NvFp4Plan PlanNvFp4(const NvFp4Scale& tensor) {
  static const NvFp4Middles middles;
  constexpr std::size_t kBinade = 8;
  NvFp4Plan plan;
  const NvFp4Ratio ratio = RatioOf(tensor);
  plan.scale_encode = middles.encode;
  plan.scale_estimate = static_cast<float>(ratio.over / (6 * ratio.under));
  for (std::size_t s = 1; s < NvFp4Plan::kScales; ++s) {
    plan.scale_from[s] = s <= 2 * kBinade ? FirstAbove(6 * middles.scales[s], s % 2 == 0, ratio)
                                          : 2 * plan.scale_from[s - kBinade];
  }
  plan.scale_from[NvFp4Plan::kScales] = std::numeric_limits<float>::infinity();
  for (std::size_t c = 1; c < 8; ++c) {
    plan.code_from[0][c] = std::numeric_limits<float>::infinity();
    for (std::size_t s = 1; s < NvFp4Plan::kScales; ++s) {
      const double scale = static_cast<double>(s) / 512;  // of the first two binades
      plan.code_from[s][c] = s < 2 * kBinade
                                 ? FirstAbove(middles.elements[c] * scale, c % 2 == 0, ratio)
                                 : 2 * plan.code_from[s - kBinade][c];
    }
  }
  constexpr float kLittleLess = 1 - 0x1p-21F;  // more than what three roundings to float32 add
  for (std::size_t s = 1; s < NvFp4Plan::kScales; ++s) {
    plan.twice_element[s] = 2 * 0.25F * kLittleLess / plan.code_from[s][1];  // from 0.25 on
  }
  plan.is_plain = std::isnormal(plan.scale_estimate) && std::isnormal(plan.code_from[1][1]) &&
                  std::isnormal(plan.scale_from[1]);
  return plan;
}

CodeBookPlan PlanCodeBook(const CodeBook& book) {
  CodeBookPlan plan;
  plan.book = &book;
  plan.is_short = book.values.size() <= std::size(plan.codes);
  std::ranges::fill(plan.bounds, std::numeric_limits<float>::infinity());
  std::ranges::copy(book.thresholds, plan.bounds + 1);
  for (std::size_t i = 1; i < std::size(plan.coarse); ++i) {
    plan.coarse[i] = plan.bounds[i * std::size(plan.coarse)];
  }
  std::ranges::copy(book.values, plan.values);
  if (plan.is_short) {
    std::ranges::copy(book.order, plan.codes);
  } else {
    CHECK(std::ranges::is_sorted(book.order));  // entries are codes
  }
  if (book.sign_bit != 0) {
    CHECK(book.sign_bit == book.order.size());  // so that an entry with it is behind all entries
    plan.value_mask = static_cast<std::int32_t>(kFloat32Magnitude);
    plan.sign_bit = book.sign_bit;
    std::ranges::transform(book.order, plan.codes + book.sign_bit, [&](std::uint8_t code) {
      return static_cast<std::uint8_t>(code | book.sign_bit);
    });
  }
  return plan;
}

}  // namespace fourpiles
