// ggml's q8_0 and q4_0: a float16 scale and 32 codes, as src/formats/ggml_legacy.cc has them.

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "formats/float32.h"
#include "formats/ggml_blocks.h"
#include "formats/half.h"
#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/bytes-inl.h"
#include "kernels/largest-inl.h"
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

// Blocks whose inverse scale is below 2^100, and not 0, are plain: no infinity, NaN, infinite
// inverse nor, by far, a subnormal scale. Others go the scalar way; zeros too, whose inverse is
// infinite here.
constexpr std::uint32_t kPlainInverse = (127U + 100U) << 23;

// Blocks are encoded in three steps, so that none waits for the one before: the value that decides
// the scale of each, scales and their inverses a vector at a time, then the codes.
constexpr std::size_t kMost = 64;  // blocks

struct Scales {
  HWY_ALIGN float largest[kMost];  // magnitudes, or values with their sign
  HWY_ALIGN float inverses[kMost];
  HWY_ALIGN std::uint16_t stored[kMost];
};

// The first value of the largest magnitude; NaN is larger than infinity.
HWY_INLINE float FirstLargest(const float* values) {
  return *std::ranges::max_element(std::span(values, kBlock), {}, [](float value) {
    return std::bit_cast<std::uint32_t>(value) & kFloat32Magnitude;
  });
}

// The value of the largest magnitude of each block, with its sign; the first of several.
HWY_INLINE void FindLargestSigned(const Blocks& blocks, float* largest) {
  const Codes32 d;
  HWY_ALIGN std::int32_t positive[kMost];
  HWY_ALIGN std::int32_t negative[kMost];
  StoreLargestOfSigns(blocks, positive, negative);
  for (std::size_t b = 0; b < blocks.count; b += kLanes) {
    const CodeVector above = hn::Load(d, positive + b);
    const CodeVector below = hn::Load(d, negative + b);
    const CodeVector sign = hn::IfThenElseZero(hn::Lt(above, below), hn::Set(d, ~kMagnitudeMask));
    hn::Store(hn::BitCast(Floats(), hn::Or(hn::Max(above, below), sign)), Floats(), largest + b);
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Eq(above, below)))) {
      for (std::size_t i = b; i < std::min(b + kLanes, blocks.count); ++i) {
        if (positive[i] == negative[i]) {
          largest[i] = FirstLargest(blocks.values + i * kBlock);
        }
      }
    }
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// By the processor's own instruction; NaN, which differs from HalfCode's, is not plain.
HWY_INLINE void StoreHalves(const float* scales, std::size_t blocks, std::uint16_t* stored) {
  const hn::Rebind<hwy::float16_t, Floats> half;
  const hn::Rebind<std::uint16_t, Floats> bits;
  for (std::size_t b = 0; b < blocks; b += kLanes) {
    const auto code = hn::DemoteTo(half, hn::Load(Floats(), scales + b));
    hn::Store(hn::BitCast(bits, code), bits, stored + b);
  }
}
#else
HWY_INLINE void StoreHalves(const float* scales, std::size_t blocks, std::uint16_t* stored) {
  for (std::size_t b = 0; b < blocks; ++b) {
    stored[b] = HalfCode(scales[b]);
  }
}
#endif

// largest ÷ by of all blocks, its inverse, and its float16.
HWY_INLINE void FindScales(std::size_t blocks, float by, Scales& scales) {
  const Floats df;
  for (std::size_t b = 0; b < blocks; b += kLanes) {
    const FloatVector scale = hn::Div(hn::Load(df, scales.largest + b), hn::Set(df, by));
    hn::Store(hn::Div(hn::Set(df, 1), scale), df, scales.inverses + b);
    hn::Store(scale, df, scales.largest + b);
  }
  StoreHalves(scales.largest, blocks, scales.stored);
}

HWY_INLINE bool IsPlain(float inverse) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(inverse) & 0x7fffffff;
  return magnitude != 0 && magnitude < kPlainInverse;
}

HWY_NOINLINE void EncodeScalar(const char* type, const float* values, std::byte* bytes,
                               std::size_t size) {
  EncodeGgmlBlocks(*FindGgmlCodec(type), std::span(values, kBlock), std::span(bytes, size));
}

// Calls encode(block, scales) for each block that is plain, at most kMost.
template <class Block>
HWY_INLINE void ForPlain(const char* type, const GgmlTask& shared_task, const Scales& scales,
                         std::size_t size, const Block& encode) {
  const GgmlTask task = shared_task;  // what is stored to may be anything but this
  for (std::size_t b = 0; b < task.blocks; ++b) {
    std::byte* const to = task.bytes + b * size;
    PrefetchAhead<kBlock>(task.values + b * kBlock, kMost * kBlock);
    if (HWY_UNLIKELY(!IsPlain(scales.inverses[b]))) {
      EncodeScalar(type, task.values + b * kBlock, to, size);
      continue;
    }
    std::memcpy(to, scales.stored + b, kScaleBytes);
    encode(task.values + b * kBlock, hn::Set(Floats(), scales.inverses[b]), to + kScaleBytes);
  }
}

void EncodeSomeQ80(const GgmlTask& task) {
  const Floats df;
  Scales scales;
  HWY_ALIGN std::int32_t largest[kMost];
  StoreLargestMagnitudes({task.values, task.blocks, kBlock}, largest);
  std::memcpy(scales.largest, largest, sizeof largest);
  FindScales(task.blocks, 127, scales);
  // To the nearest, halves away from zero: the float32 below a half is added and the rest cut off.
  const FloatVector below_half = hn::Set(df, 0x1.fffffep-2F);
  ForPlain("q8_0", task, scales, kQ80Bytes,
           [&](const float* values, FloatVector inverse, std::byte* to) {
             for (std::size_t i = 0; i < kBlock; i += kLanes) {
               const FloatVector code = hn::Mul(hn::LoadU(df, values + i), inverse);
               const FloatVector moved = hn::Add(code, hn::CopySign(below_half, code));
               StoreBytes(NearestAt<0>(hn::Trunc(moved)), to + i);
             }
           });
}

void EncodeSomeQ40(const GgmlTask& task) {
  const Floats df;
  Scales scales;
  FindLargestSigned({task.values, task.blocks, kBlock}, scales.largest);
  FindScales(task.blocks, -8, scales);
  const auto code_of = [&](const float* value, FloatVector inverse) {
    const FloatVector moved = hn::Add(hn::Mul(hn::LoadU(df, value), inverse), hn::Set(df, 8.5F));
    return hn::Min(hn::Trunc(moved), hn::Set(df, 15));
  };
  ForPlain("q4_0", task, scales, kQ40Bytes,
           [&](const float* values, FloatVector inverse, std::byte* to) {
             for (std::size_t i = 0; i < kBlock / 2; i += kLanes) {
               const CodeVector low = NearestAt<0>(code_of(values + i, inverse));
               const CodeVector high = NearestAt<4>(code_of(values + kBlock / 2 + i, inverse));
               StoreBytes(hn::Or(low, high), to + i);
             }
           });
}

template <class Some>
void EncodeAll(const GgmlTask& task, std::size_t size, const Some& encode_some) {
  for (std::size_t b = 0; b < task.blocks; b += kMost) {
    encode_some(GgmlTask{.values = task.values + b * kBlock,
                         .blocks = task.blocks - b < kMost ? task.blocks - b : kMost,
                         .bytes = task.bytes + b * size});
  }
}

void EncodeQ80Blocks(const GgmlTask& task) {
  EncodeAll(task, kQ80Bytes, EncodeSomeQ80);
}
void EncodeQ40Blocks(const GgmlTask& task) {
  EncodeAll(task, kQ40Bytes, EncodeSomeQ40);
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

void DecodeQ80Blocks(const GgmlDecodeTask& task) {
  Streams(task) ? DecodeQ80<true>(task) : DecodeQ80<false>(task);
}

void DecodeQ40Blocks(const GgmlDecodeTask& task) {
  Streams(task) ? DecodeQ40<true>(task) : DecodeQ40<false>(task);
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
