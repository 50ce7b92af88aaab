// Blocks of OCP MX and NVFP4, a byte a code, and the packing of those.

#include <bit>
#include <cstring>
#include <span>

#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void EncodeMxBlocks(const MxTask& /*task*/, const MxPlan& /*plan*/) {}
void DecodeMxBlocks(const MxDecodeTask& /*task*/, const MxPlan& /*plan*/) {}
void EncodeNvFp4Blocks(const NvFp4Task& /*task*/, const NvFp4Plan& /*plan*/) {}
void DecodeNvFp4Blocks(const NvFp4DecodeTask& /*task*/, const NvFp4Plan& /*plan*/) {}
float LargestFinite(const float* /*values*/, std::size_t /*count*/) {
  return 0;
}
#else

constexpr std::size_t kLanes = HWY_LANES(float);

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

template <std::size_t kCount>
HWY_INLINE std::uint32_t LargestMagnitude(const float* values) {
  const Codes32 d;
  CodeVector largest = hn::Zero(d);
  for (std::size_t i = 0; i < kCount; i += kLanes) {
    const CodeVector bits = hn::BitCast(d, hn::LoadU(Floats(), values + i));
    largest = hn::Max(largest, hn::And(bits, hn::Set(d, kMagnitudeMask)));
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, largest)));
}

// Sign and magnitude, 8 bits, to two's complement.
HWY_INLINE CodeVector TwosComplement(CodeVector code) {
  const Codes32 d;
  const CodeVector magnitude = hn::And(code, hn::Set(d, 0x7f));
  return hn::IfThenElse(hn::Gt(code, hn::Set(d, 0x7f)), hn::Neg(magnitude), magnitude);
}

struct MxBlockPlace {
  const float* values;
  const std::uint32_t* random;
  std::byte* codes;
};

// The elements of a block, each divided by 2^exponent.
HWY_INLINE void EncodeElements(const MxBlockPlace& at, int exponent, const MxPlan& plan) {
  const Codes32 d;
  // 2^−127 is subnormal.
  const std::uint32_t field = static_cast<std::uint32_t>(127 - exponent);
  const float inverse = std::bit_cast<float>(field == 0 ? 1U << 22 : field << 23);
  for (std::size_t i = 0; i < kMxBlock; i += kLanes) {
    const FloatVector value = hn::LoadU(Floats(), at.values + i);
    CodeVector code;
    if (plan.encode.is_nearest_even) {
      const FloatVector scaled = hn::Mul(value, hn::Set(Floats(), inverse));
      code = NearestEven()(hn::BitCast(d, scaled), hn::Zero(d), plan.encode).code;
    } else {
      const CodeVector words =
          at.random == nullptr ? hn::Zero(d) : hn::BitCast(d, hn::LoadU(Bits32(), at.random + i));
      code = AnyRounding{hn::Set(d, exponent)}(hn::BitCast(d, value), words, plan.encode).code;
    }
    StoreBytes(plan.format.is_integer ? TwosComplement(code) : code, at.codes + i);
  }
}

void EncodeMxBlocks(const MxTask& task, const MxPlan& shared_plan) {
  const MxPlan plan = shared_plan;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const std::size_t first = b * kMxBlock;
    const std::uint32_t largest = LargestMagnitude<kMxBlock>(task.values + first);
    const auto field = static_cast<int>(largest >> 23);
    const std::uint32_t significand = (largest & 0x7fffff) | 0x800000;
    const int extra = significand > plan.significand_kept ? 1 : 0;
    int exponent = field - 127 + extra - plan.highest_exponent;
    exponent = exponent > 127 ? 127 : exponent;
    // Subnormal, infinite or NaN; or so small that an element that is subnormal in float32 may be
    // normal in the block.
    if (HWY_UNLIKELY(field == 0 || field == 255 || exponent < -100)) {
      task.scales[b] = static_cast<std::byte>(
          EncodeMxBlock(std::span(task.values + first, kMxBlock), plan.format, plan.conversion,
                        task.first_index + first, std::span(task.codes + first, kMxBlock)));
      continue;
    }
    task.scales[b] = static_cast<std::byte>(exponent + 127);
    EncodeElements({task.values + first, task.random == nullptr ? nullptr : task.random + first,
                    task.codes + first},
                   exponent, plan);
  }
}

// 2^(scale − 127); of 255 NaN.
HWY_INLINE float MxFactor(std::byte scale) {
  const auto field = std::to_integer<std::uint32_t>(scale);
  const std::uint32_t nan = 0x7fc00000;
  return std::bit_cast<float>(field == 255 ? nan : field == 0 ? 1U << 22 : field << 23);
}

HWY_INLINE FloatVector MxElements(CodeVector code, const MxPlan& plan) {
  if (!plan.format.is_integer) {
    return DecodeVector(code, plan.decode);
  }
  const Codes32 d;
  const CodeVector number = hn::ShiftRight<24>(hn::ShiftLeft<24>(code));
  return hn::Mul(hn::ConvertTo(Floats(), number), hn::Set(Floats(), 1.0F / 64));
}

void DecodeMxBlocks(const MxDecodeTask& task, const MxPlan& shared_plan) {
  const MxPlan plan = shared_plan;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const FloatVector factor = hn::Set(Floats(), MxFactor(task.scales[b]));
    for (std::size_t i = b * kMxBlock; i < (b + 1) * kMxBlock; i += kLanes) {
      const FloatVector element = MxElements(LoadBytes(task.codes + i), plan);
      hn::StoreU(hn::Mul(element, factor), Floats(), task.values + i);
    }
  }
}

// The code of a block's scale: what a float32 product says, put right by comparisons.
HWY_INLINE std::size_t NvFp4ScaleOf(float largest, const NvFp4Plan& plan) {
  // float8_e4m3fn of a positive number: float32 bits with another bias, half a step added.
  const float about = largest * plan.scale_estimate;
  const std::int32_t bits = std::bit_cast<std::int32_t>(about) + (1 << 19);
  std::int32_t code = (bits >> 20) - (120 << 3);
  if (about < 0.015625F) {  // subnormal: steps of 2^−9
    code = static_cast<std::int32_t>(about * 512 + 0.5F);
  }
  code = code > 126 ? 126 : code;
  while (largest < plan.scale_from[code]) {
    --code;
  }
  while (largest >= plan.scale_from[code + 1]) {
    ++code;
  }
  return static_cast<std::size_t>(code);
}

void EncodeNvFp4Blocks(const NvFp4Task& task, const NvFp4Plan& plan) {
  const Codes32 d;
  const Floats df;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const float* const values = task.values + b * kNvFp4Block;
    std::byte* const codes = task.codes + b * kNvFp4Block;
    const std::uint32_t largest = LargestMagnitude<kNvFp4Block>(values);
    if (HWY_UNLIKELY(largest >= kInfiniteMagnitude)) {
      task.scales[b] = std::byte{kNvFp4Nan};
      std::memset(codes, 0, kNvFp4Block);
      continue;
    }
    const std::size_t scale = NvFp4ScaleOf(std::bit_cast<float>(largest), plan);
    task.scales[b] = static_cast<std::byte>(scale);
    const float* const from = plan.code_from[scale];
    for (std::size_t i = 0; i < kNvFp4Block; i += kLanes) {
      const FloatVector value = hn::LoadU(df, values + i);
      const FloatVector magnitude = hn::Abs(value);
      CodeVector code = hn::And(hn::ShiftRight<28>(hn::BitCast(d, value)), hn::Set(d, 8));
      for (std::size_t c = 1; c < 8; ++c) {
        const auto reached = hn::RebindMask(d, hn::Ge(magnitude, hn::Set(df, from[c])));
        code = hn::Sub(code, hn::VecFromMask(d, reached));
      }
      StoreBytes(code, codes + i);
    }
  }
}

void DecodeNvFp4Blocks(const NvFp4DecodeTask& task, const NvFp4Plan& plan) {
  const Floats df;
  const DecodePlan element = plan.element;
  const FloatVector tensor = hn::Set(df, plan.tensor.value);
  const bool multiplies = plan.tensor.kind == TensorScale::kMultiplier;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const auto scale = std::to_integer<std::size_t>(task.scales[b]);
    const FloatVector factor = hn::Set(df, plan.scale_values[scale]);
    for (std::size_t i = b * kNvFp4Block; i < (b + 1) * kNvFp4Block; i += kLanes) {
      // Six bits times four are exact; the tensor's scale is the one rounding.
      const FloatVector scaled = hn::Mul(DecodeVector(LoadBytes(task.codes + i), element), factor);
      const FloatVector value = multiplies ? hn::Mul(scaled, tensor) : hn::Div(scaled, tensor);
      hn::StoreU(value, df, task.values + i);
    }
  }
}

float LargestFinite(const float* values, std::size_t count) {
  const Codes32 d;
  const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
  const auto magnitudes = [&](const float* from) {
    const CodeVector bits = hn::BitCast(d, hn::LoadU(Floats(), from));
    const CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
    return hn::IfThenElseZero(hn::Lt(magnitude, infinity), magnitude);
  };
  constexpr std::size_t kStep = 4 * kLanes;
  CodeVector most[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (std::size_t j = 0; j < 4; ++j) {
      most[j] = hn::Max(most[j], magnitudes(values + i + j * kLanes));
    }
  }
  HWY_ALIGN float rest[kStep] = {};
  std::memcpy(rest, values + i, (count - i) * sizeof(float));
  for (std::size_t j = 0; j < 4; ++j) {
    most[0] = hn::Max(most[0], hn::Max(most[j], magnitudes(rest + j * kLanes)));
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(d, most[0])));
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(EncodeMxBlocks);
HWY_EXPORT(DecodeMxBlocks);
HWY_EXPORT(EncodeNvFp4Blocks);
HWY_EXPORT(DecodeNvFp4Blocks);
HWY_EXPORT(LargestFinite);

void EncodeMxBlocks(const MxTask& task, const MxPlan& plan) {
  HWY_DYNAMIC_DISPATCH(EncodeMxBlocks)(task, plan);
}
void DecodeMxBlocks(const MxDecodeTask& task, const MxPlan& plan) {
  HWY_DYNAMIC_DISPATCH(DecodeMxBlocks)(task, plan);
}
void EncodeNvFp4Blocks(const NvFp4Task& task, const NvFp4Plan& plan) {
  HWY_DYNAMIC_DISPATCH(EncodeNvFp4Blocks)(task, plan);
}
void DecodeNvFp4Blocks(const NvFp4DecodeTask& task, const NvFp4Plan& plan) {
  HWY_DYNAMIC_DISPATCH(DecodeNvFp4Blocks)(task, plan);
}
float LargestFinite(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestFinite)(values, count);
}
}  // namespace fourpiles
#endif
