// Blocks of OCP MX and NVFP4, a byte a code, and the packing of those.

#include <bit>
#include <cstring>
#include <span>

#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/bytes-inl.h"
#include "kernels/largest-inl.h"
#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void EncodeMxBlocks(const MxTask& /*task*/, const MxPlan& /*plan*/) {}
void DecodeMxBlocks(const MxDecodeTask& /*task*/, const MxPlan& /*plan*/) {}
void EncodeNvFp4Blocks(const NvFp4Task& /*task*/, const NvFp4Plan& /*plan*/) {}
void DecodeNvFp4Blocks(const NvFp4DecodeTask& /*task*/, const NvFp4Scale& /*tensor*/) {}
float LargestFinite(const float* /*values*/, std::size_t /*count*/) {
  return 0;
}
#else

constexpr std::size_t kLanes = HWY_LANES(float);

// Blocks are looked at in three steps, so that none waits for the one before: the largest magnitude
// of each, their scales a vector at a time, then the elements, which are in the first-level cache.
constexpr std::size_t kMost = kChunk / kNvFp4Block;  // blocks

// Sign and magnitude, 8 bits, to two's complement.
HWY_INLINE CodeVector TwosComplement(CodeVector code) {
  const Codes32 d;
  const CodeVector magnitude = hn::And(code, hn::Set(d, 0x7f));
  return hn::IfThenElse(hn::Gt(code, hn::Set(d, 0x7f)), hn::Neg(magnitude), magnitude);
}

// What an MX block's scale is, or that it has none of the plain ones.
struct MxScales {
  HWY_ALIGN std::int32_t exponents[kMost];
  HWY_ALIGN std::int32_t unusual[kMost];  // other than 0: see below
};

HWY_INLINE void FindMxScales(const std::int32_t* largest, std::size_t blocks, const MxPlan& plan,
                             MxScales& scales) {
  const Codes32 d;
  for (std::size_t b = 0; b < blocks; b += kLanes) {
    const CodeVector magnitude = hn::Load(d, largest + b);
    const CodeVector field = ShiftDown(magnitude, 23);
    const CodeVector significand =
        hn::Or(hn::And(magnitude, hn::Set(d, 0x7fffff)), hn::Set(d, 0x800000));
    const CodeVector extra =
        hn::VecFromMask(d, hn::Gt(significand, hn::Set(d, plan.significand_kept)));
    const CodeVector exponent =
        hn::Sub(hn::Sub(field, extra), hn::Set(d, 127 + plan.highest_exponent));
    // Subnormal, infinite or NaN; or so small that an element that is subnormal in float32 may be
    // normal in the block.
    const auto unusual = hn::Or(hn::Or(hn::Eq(field, hn::Zero(d)), hn::Eq(field, hn::Set(d, 255))),
                                hn::Lt(exponent, hn::Set(d, -100)));
    hn::Store(hn::Min(exponent, hn::Set(d, 127)), d, scales.exponents + b);
    hn::Store(hn::VecFromMask(d, unusual), d, scales.unusual + b);
  }
}

// 2^−exponent; 2^−127 is subnormal.
HWY_INLINE float PowerOfTwo(std::int32_t exponent) {
  const auto field = static_cast<std::uint32_t>(127 + exponent);
  return std::bit_cast<float>(field == 0 ? 1U << 22 : field << 23);
}

// The code of an element, divided by 2^exponent.
template <bool kNearestEven>
HWY_INLINE CodeVector ElementCode(const MxTask& task, std::size_t i, std::int32_t exponent,
                                  const EncodePlan& plan) {
  const Codes32 d;
  const FloatVector value = hn::LoadU(Floats(), task.values + i);
  if constexpr (kNearestEven) {
    const FloatVector scaled = hn::Mul(value, hn::Set(Floats(), PowerOfTwo(-exponent)));
    return NearestEven()(hn::BitCast(d, scaled), hn::Zero(d), plan).code;
  } else {
    const CodeVector words =
        task.random == nullptr ? hn::Zero(d) : hn::BitCast(d, hn::LoadU(Bits32(), task.random + i));
    return AnyRounding{hn::Set(d, exponent)}(hn::BitCast(d, value), words, plan).code;
  }
}

template <bool kNearestEven>
void EncodeMx(const MxTask& shared_task, const MxPlan& plan) {
  HWY_ALIGN std::int32_t largest[kMost];
  MxScales scales;
  StoreLargestMagnitudes({shared_task.values, shared_task.blocks, kMxBlock}, largest);
  FindMxScales(largest, shared_task.blocks, plan, scales);
  const EncodePlan encode = plan.encode;  // what is stored to may be anything but these
  const bool is_integer = plan.format.is_integer;
  const MxTask task = shared_task;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const std::size_t first = b * kMxBlock;
    PrefetchAhead<kMxBlock>(task.values + first, kChunk);
    if (HWY_UNLIKELY(scales.unusual[b] != 0)) {
      task.scales[b] = static_cast<std::byte>(
          EncodeMxBlock(std::span(task.values + first, kMxBlock), plan.format, plan.conversion,
                        task.first + first, std::span(task.codes + first, kMxBlock)));
      continue;
    }
    task.scales[b] = static_cast<std::byte>(scales.exponents[b] + 127);
    for (std::size_t i = first; i < first + kMxBlock; i += kLanes) {
      const CodeVector code = ElementCode<kNearestEven>(task, i, scales.exponents[b], encode);
      StoreBytes(is_integer ? TwosComplement(code) : code, task.codes + i);
    }
  }
}

void EncodeMxBlocks(const MxTask& task, const MxPlan& plan) {
  plan.encode.is_nearest_even ? EncodeMx<true>(task, plan) : EncodeMx<false>(task, plan);
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

template <bool kStreams>
void DecodeMx(const MxDecodeTask& task, const MxPlan& shared_plan) {
  const MxPlan plan = shared_plan;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const FloatVector factor = hn::Set(Floats(), MxFactor(task.scales[b]));
    for (std::size_t i = b * kMxBlock; i < (b + 1) * kMxBlock; i += kLanes) {
      const FloatVector element = MxElements(LoadBytes(task.codes + i), plan);
      StoreFloats<kStreams>(hn::Mul(element, factor), task.values + i);
    }
  }
}

void DecodeMxBlocks(const MxDecodeTask& task, const MxPlan& plan) {
  Streams(task) ? DecodeMx<true>(task, plan) : DecodeMx<false>(task, plan);
}

// The codes of scales: what a float32 product says. It is less than four places off, so where four
// places less and more give another code, a comparison tells.
HWY_INLINE void FindNvFp4Scales(const std::int32_t* largest, std::size_t blocks,
                                const NvFp4Plan& plan, std::int32_t* scales) {
  const Codes32 d;
  const Floats df;
  const auto code_of = [&](CodeVector bits) {
    return hn::Min(NearestEven()(bits, hn::Zero(d), plan.scale_encode).code, hn::Set(d, 126));
  };
  const CodeVector places = hn::Set(d, 4);
  for (std::size_t b = 0; b < blocks; b += kLanes) {
    const FloatVector magnitude = hn::BitCast(df, hn::Load(d, largest + b));
    const CodeVector about = hn::BitCast(d, hn::Mul(magnitude, hn::Set(df, plan.scale_estimate)));
    CodeVector code = code_of(hn::Max(hn::Sub(about, places), hn::Zero(d)));
    const CodeVector most = code_of(hn::Add(about, places));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(code, most)))) {
      const FloatVector bound = hn::GatherIndex(df, plan.scale_from, most);
      code = hn::IfThenElse(hn::RebindMask(d, hn::Ge(magnitude, bound)), most, code);
    }
    hn::Store(code, d, scales + b);
  }
}

// How many of the seven bounds of a scale a magnitude reaches.
HWY_INLINE CodeVector CountReached(FloatVector magnitude, const NvFp4Plan& plan,
                                   std::size_t scale) {
  const Codes32 d;
  const Floats df;
  const float* const bounds = plan.code_from[scale];
  if constexpr (kLanes >= 8) {  // the bounds fit a vector: a product tells which one decides
    // By twice the element, rounded: the code that its bound decides, or the one below. Of 4, which
    // is 2, the 5th; of 5, which is from 2.25 to 2.75, too: its bound is 2.5.
    alignas(16) static constexpr std::uint8_t kCode[16] = {1, 2, 3, 4, 5, 5, 6, 6,
                                                           7, 7, 7, 7, 7, 7, 7, 7};
    const hn::Repartition<std::uint8_t, Codes32> bytes;
    const FloatVector twice = hn::Mul(magnitude, hn::Set(df, plan.twice_element[scale]));
    const auto place = hn::BitCast(bytes, NearestAt<0>(hn::Min(twice, hn::Set(df, 15))));
    const auto found = hn::TableLookupBytes(hn::LoadDup128(bytes, kCode), place);
    const CodeVector code = hn::And(hn::BitCast(d, found), hn::Set(d, 7));  // the lowest byte
    const FloatVector bound =
        hn::TableLookupLanes(hn::LoadU(df, bounds), hn::IndicesFromVec(df, code));
    return hn::Add(code, hn::VecFromMask(d, hn::RebindMask(d, hn::Lt(magnitude, bound))));
  } else {
    CodeVector code = hn::Zero(d);
    for (std::size_t c = 1; c < 8; ++c) {
      const auto reached = hn::RebindMask(d, hn::Ge(magnitude, hn::Set(df, bounds[c])));
      code = hn::Sub(code, hn::VecFromMask(d, reached));
    }
    return code;
  }
}

void EncodeNvFp4Blocks(const NvFp4Task& task, const NvFp4Plan& plan) {
  const Codes32 d;
  const Floats df;
  HWY_ALIGN std::int32_t largest[kMost];
  HWY_ALIGN std::int32_t scales[kMost];
  StoreLargestMagnitudes({task.values, task.blocks, kNvFp4Block}, largest);
  FindNvFp4Scales(largest, task.blocks, plan, scales);
  const float* values = task.values;  // what is stored to may be anything but these
  std::byte* codes = task.codes;
  std::byte* const scale_codes = task.scales;
  const std::size_t blocks = task.blocks;
  for (std::size_t b = 0; b < blocks; ++b, values += kNvFp4Block, codes += kNvFp4Block) {
    PrefetchAhead<kNvFp4Block>(values, kChunk);
    if (HWY_UNLIKELY(largest[b] >= kInfiniteMagnitude)) {
      scale_codes[b] = std::byte{kNvFp4Nan};
      std::memset(codes, 0, kNvFp4Block);
      continue;
    }
    scale_codes[b] = static_cast<std::byte>(scales[b]);
    const auto scale = static_cast<std::size_t>(scales[b]);
    for (std::size_t i = 0; i < kNvFp4Block; i += kLanes) {
      const FloatVector value = hn::LoadU(df, values + i);
      const CodeVector sign = ShiftDown(hn::BitCast(d, value), 28);
      const CodeVector code = CountReached(hn::Abs(value), plan, scale);
      StoreBytes(hn::OrAnd(code, sign, hn::Set(d, 8)), codes + i);
    }
  }
}

// What codes of float4_e2m1fn and float8_e4m3fn are worth.
struct NvFp4Values {
  NvFp4Values() {
    const NumberFormat scale = FindFormat("float8_e4m3fn").value();
    for (std::uint64_t code = 0; code < 256; ++code) {
      scales[code] = static_cast<float>(Decode(code, scale));
    }
    element = PlanDecode(FindFormat("float4_e2m1fn").value());
  }
  float scales[256];
  DecodePlan element;
};

template <bool kStreams>
void DecodeNvFp4(const NvFp4DecodeTask& task, const NvFp4Scale& scale, const NvFp4Values& known) {
  const Floats df;
  const DecodePlan element = known.element;
  const FloatVector tensor = hn::Set(df, scale.value);
  const bool multiplies = scale.kind == TensorScale::kMultiplier;
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const FloatVector factor =
        hn::Set(df, known.scales[std::to_integer<std::size_t>(task.scales[b])]);
    for (std::size_t i = b * kNvFp4Block; i < (b + 1) * kNvFp4Block; i += kLanes) {
      // Six bits times four are exact; the tensor's scale is the one rounding.
      const FloatVector scaled = hn::Mul(DecodeVector(LoadBytes(task.codes + i), element), factor);
      const FloatVector value = multiplies ? hn::Mul(scaled, tensor) : hn::Div(scaled, tensor);
      StoreFloats<kStreams>(value, task.values + i);
    }
  }
}

void DecodeNvFp4Blocks(const NvFp4DecodeTask& task, const NvFp4Scale& tensor) {
  static const NvFp4Values known;
  Streams(task) ? DecodeNvFp4<true>(task, tensor, known) : DecodeNvFp4<false>(task, tensor, known);
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
  const auto largest_of_step = [&](const float* from) {
    return hn::Max(hn::Max(magnitudes(from), magnitudes(from + kLanes)),
                   hn::Max(magnitudes(from + 2 * kLanes), magnitudes(from + 3 * kLanes)));
  };
  CodeVector most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    most = hn::Max(most, largest_of_step(values + i));
  }
  HWY_ALIGN float rest[kStep] = {};
  std::memcpy(rest, values + i, (count - i) * sizeof(float));
  most = hn::Max(most, largest_of_step(rest));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(d, most)));
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
void DecodeNvFp4Blocks(const NvFp4DecodeTask& task, const NvFp4Scale& tensor) {
  HWY_DYNAMIC_DISPATCH(DecodeNvFp4Blocks)(task, tensor);
}
float LargestFinite(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestFinite)(values, count);
}
}  // namespace fourpiles
#endif
