// Codes to float32.

#include <cstring>

#include "kernels/array_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/decode_kernels.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void DecodeFloats(const DecodeTask& /*task*/, const DecodePlan& /*plan*/) {}
#else

constexpr std::size_t kLanes = HWY_LANES(float);

template <typename Code>
HWY_INLINE CodeVector LoadCodes(const Code* from) {
  if constexpr (sizeof(Code) == sizeof(std::uint32_t)) {
    return hn::BitCast(Codes32(), hn::LoadU(Bits32(), from));
  } else {
    const hn::Rebind<Code, Bits32> narrow;
    return hn::BitCast(Codes32(), hn::PromoteTo(Bits32(), hn::LoadU(narrow, from)));
  }
}

// Two vectors at a time: each decoder says whether one of their codes is NaN, which is rare and
// made one and the same afterwards.
constexpr std::size_t kPair = 2 * kLanes;

struct DecodeAny {
  DecodePlan plan;
  template <typename Code>
  HWY_INLINE FloatVector operator()(const Code* from) const {
    return DecodeVector(ShiftDown(LoadCodes(from), plan.unused_bits), plan);
  }
  template <typename Code>
  HWY_INLINE bool HasNan(const Code* /*from*/) const {
    return false;  // has been seen to
  }
};

HWY_INLINE bool HasMagnitudeAbove(const std::uint16_t* from, std::int16_t infinity) {
  const hn::ScalableTag<std::int16_t> d;
  const auto codes = hn::BitCast(d, hn::LoadU(hn::ScalableTag<std::uint16_t>(), from));
  const auto magnitudes = hn::And(codes, hn::Set(d, 0x7fff));
  return !hn::AllFalse(d, hn::Gt(magnitudes, hn::Set(d, infinity)));
}

// bfloat16: the bits that a float32 begins with.
struct DecodeBfloat {
  HWY_INLINE FloatVector operator()(const std::uint16_t* from) const {
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(LoadCodes(from)));
  }
  HWY_INLINE bool HasNan(const std::uint16_t* from) const {
    return HasMagnitudeAbove(from, 0x7f80);
  }
};

#undef FOURPILES_HAS_HALF
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define FOURPILES_HAS_HALF 1
// float16 by the processor's own instruction, which is exact.
struct DecodeHalf {
  HWY_INLINE FloatVector operator()(const std::uint16_t* from) const {
    const hn::Rebind<std::uint16_t, Floats> half_bits;
    const hn::Rebind<hwy::float16_t, Floats> half;
    return hn::PromoteTo(Floats(), hn::BitCast(half, hn::LoadU(half_bits, from)));
  }
  HWY_INLINE bool HasNan(const std::uint16_t* from) const {
    return HasMagnitudeAbove(from, 0x7c00);
  }
};
#else
#define FOURPILES_HAS_HALF 0
#endif

// NaN loses its sign and payload.
HWY_INLINE FloatVector WithOneNan(FloatVector v) {
  const Floats df;
  return hn::IfThenElse(hn::IsNaN(v), hn::BitCast(df, hn::Set(Bits32(), 0x7fc00000U)), v);
}

// A part of a pair.
template <typename Code, class Decoder>
HWY_NOINLINE void DecodePart(const DecodeTask& task, std::size_t first, std::size_t count,
                             const Decoder& decoder) {
  HWY_ALIGN Code codes[kPair] = {};
  HWY_ALIGN float values[kPair];
  std::memcpy(codes, task.codes + first * sizeof(Code), count * sizeof(Code));
  hn::Store(WithOneNan(decoder(codes)), Floats(), values);
  hn::Store(WithOneNan(decoder(codes + kLanes)), Floats(), values + kLanes);
  std::memcpy(task.values + first, values, count * sizeof(float));
}

// Whole pairs from element i on; returns where it ends.
template <bool kStreams, typename Code, class Decoder>
std::size_t DecodePairs(const DecodeTask& task, std::size_t i, const Decoder& decoder) {
  const Floats df;
  const auto* const codes = reinterpret_cast<const Code*>(task.codes);
  float* const values = task.values;
  const std::size_t count = task.count;
  const Decoder in_registers = decoder;  // what is stored to may be anything but this
  for (; i + kPair <= count; i += kPair) {
    FloatVector first = in_registers(codes + i);
    FloatVector second = in_registers(codes + i + kLanes);
    if (HWY_UNLIKELY(in_registers.HasNan(codes + i))) {
      first = WithOneNan(first);
      second = WithOneNan(second);
    }
    if constexpr (kStreams) {
      hn::Stream(first, df, values + i);
      hn::Stream(second, df, values + i + kLanes);
    } else {
      hn::StoreU(first, df, values + i);
      hn::StoreU(second, df, values + i + kLanes);
    }
  }
  return i;
}

template <typename Code, class Decoder>
void DecodeAll(const DecodeTask& task, const Decoder& decoder) {
  const auto address = reinterpret_cast<std::uintptr_t>(task.values);
  std::size_t i = 0;
  if (task.streams && address % sizeof(float) == 0) {
    const std::size_t misplaced = address % sizeof(FloatVector) / sizeof(float);
    i = misplaced == 0 ? 0 : kLanes - misplaced;
    i = i < task.count ? i : task.count;
    DecodePart<Code>(task, 0, i, decoder);
    i = DecodePairs<true, Code>(task, i, decoder);
    hwy::FlushStream();
  } else {
    i = DecodePairs<false, Code>(task, i, decoder);
  }
  if (i < task.count) {
    DecodePart<Code>(task, i, task.count - i, decoder);
  }
}

template <class Decoder>
void DecodeFromBytes(const DecodeTask& task, const Decoder& decoder) {
  switch (task.code_bytes) {
    case 1:
      return DecodeAll<std::uint8_t>(task, decoder);
    case 2:
      return DecodeAll<std::uint16_t>(task, decoder);
    default:
      return DecodeAll<std::uint32_t>(task, decoder);
  }
}

void DecodeFloats(const DecodeTask& task, const DecodePlan& plan) {
#if FOURPILES_HAS_HALF
  if (plan.is_ieee_half) {
    return DecodeAll<std::uint16_t>(task, DecodeHalf());
  }
#endif
  if (plan.is_bfloat) {
    return DecodeAll<std::uint16_t>(task, DecodeBfloat());
  }
  DecodeFromBytes(task, DecodeAny{plan});
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(DecodeFloats);
void DecodeFloats(const DecodeTask& task, const DecodePlan& plan) {
  HWY_DYNAMIC_DISPATCH(DecodeFloats)(task, plan);
}
}  // namespace fourpiles
#endif
