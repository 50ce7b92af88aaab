// float32 to codes.

#include <cstring>

#include "kernels/array_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/encode_kernels.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void EncodeFloats(const EncodeTask& /*task*/, const EncodePlan& /*plan*/) {}
#else

// Four vectors of codes make whole vectors of codes of any size.
constexpr std::size_t kVectors = 4;
constexpr std::size_t kLanes = HWY_LANES(float);
constexpr std::size_t kGroup = kVectors * kLanes;

template <class D>
HWY_INLINE void StoreVector(hn::Vec<D> v, D d, hn::TFromD<D>* to, bool streams) {
  if (streams) {
    hn::Stream(v, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

template <typename Code>
HWY_INLINE auto Narrow(CodeVector v) {
  return hn::TruncateTo(hn::Rebind<Code, Bits32>(), hn::BitCast(Bits32(), v));
}

HWY_INLINE void StoreGroup(const CodeVector (&v)[kVectors], std::uint8_t* to, bool streams) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::Half<decltype(d)> half;
  const auto low = hn::Combine(half, Narrow<std::uint8_t>(v[1]), Narrow<std::uint8_t>(v[0]));
  const auto high = hn::Combine(half, Narrow<std::uint8_t>(v[3]), Narrow<std::uint8_t>(v[2]));
  StoreVector(hn::Combine(d, high, low), d, to, streams);
}

HWY_INLINE void StoreGroup(const CodeVector (&v)[kVectors], std::uint16_t* to, bool streams) {
  const hn::ScalableTag<std::uint16_t> d;
  for (std::size_t i = 0; i < kVectors; i += 2) {
    const auto both = hn::Combine(d, Narrow<std::uint16_t>(v[i + 1]), Narrow<std::uint16_t>(v[i]));
    StoreVector(both, d, to + i * kLanes, streams);
  }
}

HWY_INLINE void StoreGroup(const CodeVector (&v)[kVectors], std::uint32_t* to, bool streams) {
  const Bits32 d;
  for (std::size_t i = 0; i < kVectors; ++i) {
    StoreVector(hn::BitCast(d, v[i]), d, to + i * kLanes, streams);
  }
}

// Rounds a group with `Rounder` and stores its codes.
template <class Rounder>
struct EncodeGroup {
  EncodePlan plan;
  Rounder rounder;

  template <typename Code>
  HWY_INLINE void operator()(const float* from, const std::uint32_t* random, Code* to,
                             bool streams) const {
    const Codes32 d;
    CodeVector bits[kVectors];
    CodeVector most = hn::Zero(d);
    for (std::size_t i = 0; i < kVectors; ++i) {
      bits[i] = hn::BitCast(d, hn::LoadU(Floats(), from + i * kLanes));
      most = hn::Max(most, hn::And(bits[i], hn::Set(d, kMagnitudeMask)));
    }
    const bool has_specials = !hn::AllFalse(d, IsSpecial(most));
    CodeVector codes[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) {
      const CodeVector words =
          plan.stochastic ? hn::BitCast(d, hn::LoadU(Bits32(), random + i * kLanes)) : hn::Zero(d);
      codes[i] = rounder(bits[i], words, plan).code;
    }
    if (HWY_UNLIKELY(has_specials)) {
      for (std::size_t i = 0; i < kVectors; ++i) {
        codes[i] = WithSpecials(codes[i], bits[i], plan);
      }
    }
    if constexpr (sizeof(Code) == sizeof(std::uint32_t)) {
      for (CodeVector& code : codes) {
        code = hn::ShiftLeftSame(code, plan.unused_bits);
      }
    }
    StoreGroup(codes, to, streams);
  }
};

// bfloat16 and its like: half a place less one, and one more where the kept bits are odd, carry
// into them, the sign and infinity included.
struct EncodeShortGroup {
  EncodePlan plan;

  template <typename Code>
  HWY_INLINE void operator()(const float* from, const std::uint32_t* random, Code* to,
                             bool streams) const {
    const Codes32 d;
    const CodeVector below_half = hn::Set(d, (1 << (plan.shift - 1)) - 1);
    CodeVector carried[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) {
      const FloatVector value = hn::LoadU(Floats(), from + i * kLanes);
      if (HWY_UNLIKELY(!hn::AllFalse(Floats(), hn::IsNaN(value)))) {
        return EncodeGroup<NearestEven>{plan, {}}(from, random, to, streams);
      }
      const CodeVector bits = hn::BitCast(d, value);
      const CodeVector odd = hn::And(ShiftDown(bits, plan.shift), hn::Set(d, 1));
      carried[i] = hn::Add(hn::Add(bits, below_half), odd);
    }
    StoreTop(carried, to, streams);
  }

 private:
  // The upper halves, where those are the codes; what is left after a shift otherwise.
  HWY_INLINE void StoreTop(const CodeVector (&v)[kVectors], std::uint16_t* to, bool streams) const {
    const hn::ScalableTag<std::uint16_t> d;
    if (plan.shift != 16 || plan.unused_bits != 0) {
      return StoreShifted(v, to, streams);
    }
    for (std::size_t i = 0; i < kVectors; i += 2) {
      const auto both = hn::ConcatOdd(d, hn::BitCast(d, v[i + 1]), hn::BitCast(d, v[i]));
      StoreVector(both, d, to + i * kLanes, streams);
    }
  }
  template <typename Code>
  HWY_INLINE void StoreTop(const CodeVector (&v)[kVectors], Code* to, bool streams) const {
    StoreShifted(v, to, streams);
  }
  template <typename Code>
  HWY_INLINE void StoreShifted(const CodeVector (&v)[kVectors], Code* to, bool streams) const {
    CodeVector codes[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) {
      codes[i] = hn::ShiftLeftSame(ShiftDown(v[i], plan.shift), plan.unused_bits);
    }
    StoreGroup(codes, to, streams);
  }
};

#undef FOURPILES_HAS_HALF
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define FOURPILES_HAS_HALF 1
// float16 by the processor's own instruction, told in its code to round to nearest-even.
struct EncodeHalfGroup {
  HWY_INLINE void operator()(const float* from, const std::uint32_t* /*random*/, std::uint16_t* to,
                             bool streams) const {
    const hn::ScalableTag<std::int16_t> d;
    const hn::ScalableTag<std::uint16_t> du;
    const hn::Rebind<hwy::float16_t, Floats> half;
    const hn::Rebind<std::int16_t, Floats> half_bits;
    for (std::size_t i = 0; i < kVectors; i += 2) {
      const auto low = hn::DemoteTo(half, hn::LoadU(Floats(), from + i * kLanes));
      const auto high = hn::DemoteTo(half, hn::LoadU(Floats(), from + (i + 1) * kLanes));
      auto both = hn::Combine(d, hn::BitCast(half_bits, high), hn::BitCast(half_bits, low));
      const auto nan = hn::Gt(hn::And(both, hn::Set(d, 0x7fff)), hn::Set(d, 0x7c00));
      if (HWY_UNLIKELY(!hn::AllFalse(d, nan))) {
        both = hn::IfThenElse(nan, hn::Set(d, 0x7e00), both);
      }
      StoreVector(hn::BitCast(du, both), du, to + i * kLanes, streams);
    }
  }
};
#else
#define FOURPILES_HAS_HALF 0
#endif

// A part of a group: less than kGroup elements.
template <typename Code, class Group>
HWY_NOINLINE void EncodePart(const EncodeTask& task, std::size_t first, std::size_t count,
                             const Group& group) {
  HWY_ALIGN float values[kGroup] = {};
  HWY_ALIGN std::uint32_t random[kGroup] = {};
  HWY_ALIGN Code codes[kGroup];
  std::memcpy(values, task.values + first, count * sizeof(float));
  if (task.random != nullptr) {
    std::memcpy(random, task.random + first, count * sizeof(std::uint32_t));
  }
  group(values, random, codes, false);
  std::memcpy(task.codes + first * sizeof(Code), codes, count * sizeof(Code));
}

// Elements before the first that may be streamed to: whole vectors, aligned.
template <typename Code>
std::size_t UnalignedHead(const EncodeTask& task) {
  const auto address = reinterpret_cast<std::uintptr_t>(task.codes);
  const std::size_t misplaced = address % HWY_LANES(std::uint8_t);
  const std::size_t head = misplaced == 0 ? 0 : HWY_LANES(std::uint8_t) - misplaced;
  return head / sizeof(Code) < task.count ? head / sizeof(Code) : task.count;
}

template <typename Code, class Group>
void EncodeAll(const EncodeTask& task, const Group& group) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(task.codes) % sizeof(Code) == 0;
  const bool streams = task.streams && aligned;
  std::size_t i = streams ? UnalignedHead<Code>(task) : 0;
  if (i > 0) {
    EncodePart<Code>(task, 0, i, group);
  }
  auto* const codes = reinterpret_cast<Code*>(task.codes);
  const float* const values = task.values;
  const std::uint32_t* const random = task.random;
  const std::size_t count = task.count;
  const Group in_registers = group;  // what is stored to may be anything but this
  for (; i + kGroup <= count; i += kGroup) {
    in_registers(values + i, random == nullptr ? nullptr : random + i, codes + i, streams);
  }
  if (i < task.count) {
    EncodePart<Code>(task, i, task.count - i, group);
  }
  if (streams) {
    hwy::FlushStream();
  }
}

template <class Group>
void EncodeToBytes(const EncodeTask& task, const Group& group) {
  switch (task.code_bytes) {
    case 1:
      return EncodeAll<std::uint8_t>(task, group);
    case 2:
      return EncodeAll<std::uint16_t>(task, group);
    default:
      return EncodeAll<std::uint32_t>(task, group);
  }
}

void EncodeFloats(const EncodeTask& task, const EncodePlan& plan) {
#if FOURPILES_HAS_HALF
  if (plan.is_ieee_half) {
    return EncodeAll<std::uint16_t>(task, EncodeHalfGroup{});
  }
#endif
  if (plan.is_short_float) {
    return EncodeToBytes(task, EncodeShortGroup{plan});
  }
  if (plan.is_nearest_even) {
    return EncodeToBytes(task, EncodeGroup<NearestEven>{plan, {}});
  }
  EncodeToBytes(task, EncodeGroup<AnyRounding>{plan, {hn::Zero(Codes32())}});
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(EncodeFloats);
void EncodeFloats(const EncodeTask& task, const EncodePlan& plan) {
  HWY_DYNAMIC_DISPATCH(EncodeFloats)(task, plan);
}
}  // namespace fourpiles
#endif
