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

struct DecodeAny {
  const DecodePlan& plan;
  template <typename Code>
  HWY_INLINE FloatVector operator()(const Code* from) const {
    return DecodeVector(LoadCodes(from), plan);
  }
};

#undef FOURPILES_HAS_HALF
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define FOURPILES_HAS_HALF 1
// float16 by the processor's own instruction, which is exact; NaN as everywhere.
struct DecodeHalf {
  HWY_INLINE FloatVector operator()(const std::uint16_t* from) const {
    const Floats df;
    const hn::Rebind<std::uint16_t, Floats> half_bits;
    const hn::Rebind<hwy::float16_t, Floats> half;
    const FloatVector value = hn::PromoteTo(df, hn::BitCast(half, hn::LoadU(half_bits, from)));
    const auto nan = hn::IsNaN(value);
    if (HWY_UNLIKELY(!hn::AllFalse(df, nan))) {
      return hn::IfThenElse(nan, hn::BitCast(df, hn::Set(Bits32(), 0x7fc00000U)), value);
    }
    return value;
  }
};
#else
#define FOURPILES_HAS_HALF 0
#endif

template <typename Code, class Decoder>
HWY_NOINLINE void DecodePart(const DecodeTask& task, std::size_t first, std::size_t count,
                             const Decoder& decoder) {
  HWY_ALIGN Code codes[kLanes] = {};
  HWY_ALIGN float values[kLanes];
  std::memcpy(codes, task.codes + first * sizeof(Code), count * sizeof(Code));
  hn::Store(decoder(codes), Floats(), values);
  std::memcpy(task.values + first, values, count * sizeof(float));
}

template <typename Code, class Decoder>
void DecodeAll(const DecodeTask& task, const Decoder& decoder) {
  const Floats df;
  const auto address = reinterpret_cast<std::uintptr_t>(task.values);
  const bool streams = task.streams && address % sizeof(float) == 0;
  const std::size_t misplaced = address % sizeof(FloatVector) / sizeof(float);
  std::size_t i = streams && misplaced > 0 ? kLanes - misplaced : 0;
  i = i < task.count ? i : task.count;
  if (i > 0) {
    DecodePart<Code>(task, 0, i, decoder);
  }
  const auto* const codes = reinterpret_cast<const Code*>(task.codes);
  if (streams) {
    for (; i + kLanes <= task.count; i += kLanes) {
      hn::Stream(decoder(codes + i), df, task.values + i);
    }
    hwy::FlushStream();
  }
  for (; i + kLanes <= task.count; i += kLanes) {
    hn::StoreU(decoder(codes + i), df, task.values + i);
  }
  if (i < task.count) {
    DecodePart<Code>(task, i, task.count - i, decoder);
  }
}

void DecodeFloats(const DecodeTask& task, const DecodePlan& plan) {
#if FOURPILES_HAS_HALF
  if (plan.is_ieee_half) {
    return DecodeAll<std::uint16_t>(task, DecodeHalf());
  }
#endif
  switch (task.code_bytes) {
    case 1:
      return DecodeAll<std::uint8_t>(task, DecodeAny{plan});
    case 2:
      return DecodeAll<std::uint16_t>(task, DecodeAny{plan});
    default:
      return DecodeAll<std::uint32_t>(task, DecodeAny{plan});
  }
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
