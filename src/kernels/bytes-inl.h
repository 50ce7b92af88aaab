// Vectors to and from codes, one a byte, and values. Included once for each instruction set.

// clang-format off: Highway's guard, which is switched for each instruction set
#if defined(FOURPILES_KERNELS_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOURPILES_KERNELS_BYTES_INL_H_
#undef FOURPILES_KERNELS_BYTES_INL_H_
#else
#define FOURPILES_KERNELS_BYTES_INL_H_
#endif
// clang-format on

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

HWY_INLINE void StoreBytes(CodeVector codes, std::byte* to) {
  const hn::Rebind<std::uint8_t, Bits32> bytes;
  hn::StoreU(hn::TruncateTo(bytes, hn::BitCast(Bits32(), codes)), bytes,
             reinterpret_cast<std::uint8_t*>(to));
}

HWY_INLINE CodeVector LoadBytes(const std::byte* from) {
  const hn::Rebind<std::uint8_t, Bits32> bytes;
  const auto codes = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from));
  return hn::BitCast(Codes32(), hn::PromoteTo(Bits32(), codes));
}

// The nearest whole numbers, of few bits, from bit kBit on, in two's complement; what is above them
// is no part of the result. The addition of a number whose last place is 1 moves them there, or is
// 2^-kBit, for values that are whole. (Highway's conversions look for numbers too large, which
// takes longer than the conversion.)
template <int kBit>
HWY_INLINE CodeVector NearestAt(FloatVector values) {
  const FloatVector anchor = hn::Set(Floats(), 1.5F * static_cast<float>(1 << (23 - kBit)));
  return hn::BitCast(Codes32(), hn::Add(values, anchor));
}

template <bool kStreams>
HWY_INLINE void StoreFloats(FloatVector v, float* to) {
  if constexpr (kStreams) {
    hn::Stream(v, Floats(), to);
  } else {
    hn::StoreU(v, Floats(), to);
  }
}

// Whether the values of a task may be written past the caches.
template <class Task>
HWY_INLINE bool Streams(const Task& task) {
  return task.streams && reinterpret_cast<std::uintptr_t>(task.values) % sizeof(FloatVector) == 0;
}

#endif  // HWY_SCALAR
}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FOURPILES_KERNELS_BYTES_INL_H_
