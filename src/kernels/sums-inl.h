// Sums in float64 that every instruction set makes in the same order. Included once for each
// instruction set.

#include <cstddef>
#include <cstdint>

// clang-format off: Highway's guard, which is switched for each instruction set
#if defined(FOURPILES_KERNELS_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOURPILES_KERNELS_SUMS_INL_H_
#undef FOURPILES_KERNELS_SUMS_INL_H_
#else
#define FOURPILES_KERNELS_SUMS_INL_H_
#endif
// clang-format on

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// Eight partial sums, element i of a block in the sum i % 8, whatever the vector's width: so every
// instruction set adds the same numbers in the same order.
constexpr std::size_t kPartialSums = 8;
using Doubles = hn::CappedTag<double, kPartialSums>;
constexpr std::size_t kDoubles =
    HWY_LANES(double) < kPartialSums ? HWY_LANES(double) : kPartialSums;
constexpr std::size_t kSumVectors = kPartialSums / kDoubles;
using DoubleVector = hn::Vec<Doubles>;
using DoubleSums = DoubleVector[kSumVectors];

// Elements are taken in groups of whole vectors and whole sets of partial sums.
constexpr std::size_t kSummed = HWY_LANES(float) < kPartialSums ? kPartialSums : HWY_LANES(float);

HWY_INLINE DoubleVector DoublesAt(const float* from) {
  return hn::PromoteTo(Doubles(), hn::LoadU(hn::Rebind<float, Doubles>(), from));
}

HWY_INLINE void Clear(DoubleSums& sums) {
  for (DoubleVector& sum : sums) {
    sum = hn::Zero(Doubles());
  }
}

// The eight partial sums as a tree: neighbours, then pairs of them. See PartialSum.
HWY_INLINE double Total(const DoubleSums& partial) {
  HWY_ALIGN double p[kPartialSums];
  for (std::size_t i = 0; i < kSumVectors; ++i) {
    hn::Store(partial[i], Doubles(), p + i * kDoubles);
  }
  return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

HWY_INLINE std::int64_t CountOf(CodeMaskVector mask) {
  return static_cast<std::int64_t>(hn::CountTrue(Codes32(), mask));
}

#endif  // HWY_SCALAR
}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FOURPILES_KERNELS_SUMS_INL_H_
