// ggml's q8_0 and q4_0: a float16 scale and 32 codes, as src/formats/ggml_legacy.cc has them.

#include <bit>
#include <cstring>
#include <span>

#include "formats/ggml_blocks.h"
#include "formats/half.h"
#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml_kernels.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void EncodeQ80Blocks(const GgmlTask& /*task*/) {}
void EncodeQ40Blocks(const GgmlTask& /*task*/) {}
void DecodeQ80Blocks(const GgmlDecodeTask& /*task*/) {}
void DecodeQ40Blocks(const GgmlDecodeTask& /*task*/) {}
#else

constexpr std::size_t kLanes = HWY_LANES(float);
constexpr std::size_t kBlock = 32;
constexpr std::size_t kVectors = kBlock / kLanes;
constexpr std::size_t kScaleBytes = 2;
constexpr std::size_t kQ80Bytes = kScaleBytes + kBlock;
constexpr std::size_t kQ40Bytes = kScaleBytes + kBlock / 2;

// Magnitudes for which every step of an encoder is plain arithmetic: no infinity, NaN, infinite
// inverse, nor (2^−100 is far above them) subnormal scale. Others go the scalar way.
constexpr std::uint32_t kPlainFrom = (127U - 100U) << 23;
constexpr std::uint32_t kPlainBelow = 0x7f800000U;

HWY_INLINE bool IsPlain(std::uint32_t largest) {
  return largest >= kPlainFrom && largest < kPlainBelow;
}

HWY_INLINE void LoadBlock(const float* from, FloatVector (&v)[kVectors]) {
  for (std::size_t i = 0; i < kVectors; ++i) {
    v[i] = hn::LoadU(Floats(), from + i * kLanes);
  }
}

HWY_INLINE std::uint32_t LargestMagnitude(const FloatVector (&v)[kVectors]) {
  const Codes32 d;
  CodeVector largest = hn::Zero(d);
  for (const FloatVector& each : v) {
    largest = hn::Max(largest, hn::BitCast(d, hn::Abs(each)));
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, largest)));
}

HWY_INLINE void StoreScale(float scale, std::byte* to) {
  const std::uint16_t code = HalfCode(scale);
  std::memcpy(to, &code, sizeof code);
}

HWY_NOINLINE void EncodeScalar(const char* type, const float* values, std::byte* bytes,
                               std::size_t size) {
  EncodeGgmlBlocks(*FindGgmlCodec(type), std::span(values, kBlock), std::span(bytes, size));
}

HWY_INLINE void StoreBytes(CodeVector codes, std::byte* to) {
  const hn::Rebind<std::uint8_t, Bits32> bytes;
  hn::StoreU(hn::TruncateTo(bytes, hn::BitCast(Bits32(), codes)), bytes,
             reinterpret_cast<std::uint8_t*>(to));
}

void EncodeQ80Blocks(const GgmlTask& task) {
  const Codes32 d;
  const Floats df;
  // To the nearest, halves away from zero: the float32 below a half is added and the rest cut off.
  const FloatVector below_half = hn::Set(df, 0x1.fffffep-2F);
  FloatVector v[kVectors];
  for (std::size_t b = 0; b < task.blocks; ++b) {
    std::byte* const to = task.bytes + b * kQ80Bytes;
    LoadBlock(task.values + b * kBlock, v);
    const std::uint32_t largest = LargestMagnitude(v);
    if (HWY_UNLIKELY(!IsPlain(largest))) {
      EncodeScalar("q8_0", task.values + b * kBlock, to, kQ80Bytes);
      continue;
    }
    const float scale = std::bit_cast<float>(largest) / 127;
    StoreScale(scale, to);
    const FloatVector inverse = hn::Set(df, 1.0F / scale);
    for (std::size_t i = 0; i < kVectors; ++i) {
      const FloatVector code = hn::Mul(v[i], inverse);
      const FloatVector moved = hn::Add(code, hn::CopySign(below_half, code));
      StoreBytes(hn::ConvertTo(d, moved), to + kScaleBytes + i * kLanes);
    }
  }
}

// The first value of the largest magnitude, with its sign.
HWY_INLINE float LargestSigned(const float* values, const FloatVector (&v)[kVectors]) {
  const Floats df;
  FloatVector most = v[0];
  FloatVector least = v[0];
  for (const FloatVector& each : v) {
    most = hn::Max(most, each);
    least = hn::Min(least, each);
  }
  const float positive = hn::GetLane(hn::MaxOfLanes(df, most));
  const float negative = hn::GetLane(hn::MinOfLanes(df, least));
  if (positive != -negative) {
    return positive > -negative ? positive : negative;
  }
  std::size_t i = 0;
  while (values[i] != positive && values[i] != negative) {
    ++i;
  }
  return values[i];
}

void EncodeQ40Blocks(const GgmlTask& task) {
  const Codes32 d;
  const Floats df;
  FloatVector v[kVectors];
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const float* const values = task.values + b * kBlock;
    std::byte* const to = task.bytes + b * kQ40Bytes;
    LoadBlock(values, v);
    if (HWY_UNLIKELY(!IsPlain(LargestMagnitude(v)))) {
      EncodeScalar("q4_0", values, to, kQ40Bytes);
      continue;
    }
    const float scale = LargestSigned(values, v) / -8;
    StoreScale(scale, to);
    const FloatVector inverse = hn::Set(df, 1.0F / scale);
    const auto code_of = [&](FloatVector value) {
      const FloatVector moved = hn::Add(hn::Mul(value, inverse), hn::Set(df, 8.5F));
      return hn::Min(hn::ConvertTo(d, moved), hn::Set(d, 15));
    };
    for (std::size_t i = 0; i < kVectors / 2; ++i) {
      const CodeVector low = code_of(v[i]);
      const CodeVector high = code_of(v[i + kVectors / 2]);
      StoreBytes(hn::Or(low, hn::ShiftLeft<4>(high)), to + kScaleBytes + i * kLanes);
    }
  }
}

// Whether the scale of a block is a number.
HWY_INLINE bool LoadScale(const std::byte* from, float& scale) {
  std::uint16_t code = 0;
  std::memcpy(&code, from, sizeof code);
  scale = HalfValue(code);
  return (code & kHalfInfinity) != kHalfInfinity;
}

HWY_NOINLINE void DecodeScalar(const char* type, const std::byte* bytes, std::size_t size,
                               float* values) {
  DecodeGgmlBlocks(*FindGgmlCodec(type), std::span(bytes, size), std::span(values, kBlock));
}

HWY_INLINE CodeVector LoadBytes(const std::byte* from) {
  const hn::Rebind<std::uint8_t, Bits32> bytes;
  const auto codes = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from));
  return hn::BitCast(Codes32(), hn::PromoteTo(Bits32(), codes));
}

template <bool kStreams>
HWY_INLINE void StoreFloats(FloatVector v, float* to) {
  if constexpr (kStreams) {
    hn::Stream(v, Floats(), to);
  } else {
    hn::StoreU(v, Floats(), to);
  }
}

template <bool kStreams>
void DecodeQ80(const GgmlDecodeTask& task) {
  const Floats df;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const std::byte* const from = task.bytes + b * kQ80Bytes;
    float* const values = task.values + b * kBlock;
    float scale = 0;
    if (HWY_UNLIKELY(!LoadScale(from, scale))) {
      DecodeScalar("q8_0", from, kQ80Bytes, values);
      continue;
    }
    const hn::Rebind<std::int8_t, Floats> bytes;
    const auto* const codes = reinterpret_cast<const std::int8_t*>(from + kScaleBytes);
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      const CodeVector code = hn::PromoteTo(Codes32(), hn::LoadU(bytes, codes + i));
      StoreFloats<kStreams>(hn::Mul(hn::Set(df, scale), hn::ConvertTo(df, code)), values + i);
    }
  }
}

template <bool kStreams>
void DecodeQ40(const GgmlDecodeTask& task) {
  const Codes32 d;
  const Floats df;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const std::byte* const from = task.bytes + b * kQ40Bytes;
    float* const values = task.values + b * kBlock;
    float scale = 0;
    if (HWY_UNLIKELY(!LoadScale(from, scale))) {
      DecodeScalar("q4_0", from, kQ40Bytes, values);
      continue;
    }
    const auto value_of = [&](CodeVector code) {
      return hn::Mul(hn::Set(df, scale), hn::ConvertTo(df, hn::Sub(code, hn::Set(d, 8))));
    };
    for (std::size_t i = 0; i < kBlock / 2; i += kLanes) {
      const CodeVector both = LoadBytes(from + kScaleBytes + i);
      StoreFloats<kStreams>(value_of(hn::And(both, hn::Set(d, 0xf))), values + i);
      StoreFloats<kStreams>(value_of(hn::ShiftRight<4>(both)), values + kBlock / 2 + i);
    }
  }
}

HWY_INLINE bool Streams(const GgmlDecodeTask& task) {
  return task.streams && reinterpret_cast<std::uintptr_t>(task.values) % sizeof(FloatVector) == 0;
}

void DecodeQ80Blocks(const GgmlDecodeTask& task) {
  Streams(task) ? DecodeQ80<true>(task) : DecodeQ80<false>(task);
  hwy::FlushStream();
}

void DecodeQ40Blocks(const GgmlDecodeTask& task) {
  Streams(task) ? DecodeQ40<true>(task) : DecodeQ40<false>(task);
  hwy::FlushStream();
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(EncodeQ80Blocks);
HWY_EXPORT(EncodeQ40Blocks);
HWY_EXPORT(DecodeQ80Blocks);
HWY_EXPORT(DecodeQ40Blocks);

void EncodeQ80Blocks(const GgmlTask& task) {
  HWY_DYNAMIC_DISPATCH(EncodeQ80Blocks)(task);
}
void EncodeQ40Blocks(const GgmlTask& task) {
  HWY_DYNAMIC_DISPATCH(EncodeQ40Blocks)(task);
}
void DecodeQ80Blocks(const GgmlDecodeTask& task) {
  HWY_DYNAMIC_DISPATCH(DecodeQ80Blocks)(task);
}
void DecodeQ40Blocks(const GgmlDecodeTask& task) {
  HWY_DYNAMIC_DISPATCH(DecodeQ40Blocks)(task);
}
}  // namespace fourpiles
#endif
