// Codes of 4 and 6 bits, a byte each, to and from their packed form.

#include <cstring>

#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packing_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void PackBytes(const std::byte* /*codes*/, std::size_t /*count*/, const Packing& /*packing*/,
               std::byte* /*packed*/) {}
void UnpackBytes(const std::byte* /*packed*/, std::size_t /*count*/, const Packing& /*packing*/,
                 std::byte* /*codes*/) {}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Pairs = hn::RepartitionToWide<Bytes>;  // of codes
using HalfBytes = hn::Half<Bytes>;

// Two codes to a byte; `count` is even.
template <bool kHighFirst>
void PackNibbles(const std::uint8_t* codes, std::size_t count, std::uint8_t* packed) {
  const Bytes d;
  const Pairs wide;
  const HalfBytes half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto pairs = hn::BitCast(wide, hn::LoadU(d, codes + i));
    const auto both = kHighFirst ? hn::Or(hn::ShiftLeft<4>(pairs), hn::ShiftRight<8>(pairs))
                                 : hn::Or(pairs, hn::ShiftRight<4>(pairs));
    hn::StoreU(hn::TruncateTo(half, both), half, packed + i / 2);
  }
  for (; i < count; i += 2) {
    packed[i / 2] = static_cast<std::uint8_t>(codes[i + kHighFirst] | codes[i + !kHighFirst] << 4);
  }
}

template <bool kHighFirst>
void UnpackNibbles(const std::uint8_t* packed, std::size_t count, std::uint8_t* codes) {
  const Bytes d;
  const Pairs wide;
  const HalfBytes half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto both = hn::PromoteTo(wide, hn::LoadU(half, packed + i / 2));
    const auto pairs = kHighFirst ? hn::Or(hn::ShiftRight<4>(both), hn::ShiftLeft<8>(both))
                                  : hn::Or(both, hn::ShiftLeft<4>(both));
    hn::StoreU(hn::BitCast(d, hn::And(pairs, hn::Set(wide, 0x0f0f))), d, codes + i);
  }
  for (; i < count; i += 2) {
    codes[i + kHighFirst] = packed[i / 2] & 0xf;
    codes[i + !kHighFirst] = packed[i / 2] >> 4;
  }
}

using Words = hn::Repartition<std::uint32_t, Bytes>;  // of four codes of 6 bits

// The words of a vector, but for every fourth, and back.
alignas(64) constexpr std::int32_t kThreeOfFour[16] = {0,  1,  2,  4,  5, 6, 8, 9,
                                                       10, 12, 13, 14, 0, 0, 0, 0};
alignas(64) constexpr std::int32_t kFourOfThree[16] = {0, 1, 2, 0, 3, 4,  5,  0,
                                                       6, 7, 8, 0, 9, 10, 11, 0};
constexpr std::size_t kWords = HWY_LANES(std::uint32_t);

HWY_INLINE hn::Vec<Words> MoveWords(hn::Vec<Words> v, const std::int32_t* order) {
  const Words d;
  const hn::ScalableTag<std::int32_t> di;
  if constexpr (kWords == 4) {
    return v;  // the fourth is the last
  } else {
    const auto mask = hn::Set(di, static_cast<std::int32_t>(kWords - 1));
    return hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::And(hn::LoadU(di, order), mask)));
  }
}

// Four codes to three bytes, a vector at a time: it is stored whole and overwritten from where its
// three quarters end.
void PackSixBits(const std::uint8_t* codes, std::size_t count, std::uint8_t* packed) {
  const Bytes d;
  const Words words;
  alignas(16) static constexpr std::uint8_t kDense[16] = {0,  1,  2,  4,  5,   6,   8,   9,
                                                          10, 12, 13, 14, 128, 128, 128, 128};
  HWY_ALIGN std::uint8_t whole[kChunk + sizeof(hn::Vec<Bytes>)] = {};
  std::memcpy(whole, codes, count);
  HWY_ALIGN std::uint8_t dense[kChunk + sizeof(hn::Vec<Bytes>)];
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto v = hn::BitCast(words, hn::Load(d, whole + i));
    const auto part = [&](auto moved, std::uint32_t mask) {
      return hn::And(moved, hn::Set(words, mask));
    };
    const auto joined =
        hn::Or(hn::Or(part(v, 0x3f), part(hn::ShiftRight<2>(v), 0xfc0)),
               hn::Or(part(hn::ShiftRight<4>(v), 0x3f000), part(hn::ShiftRight<6>(v), 0xfc0000)));
    const auto bytes = hn::TableLookupBytesOr0(hn::BitCast(d, joined), hn::LoadDup128(d, kDense));
    const auto moved = hn::BitCast(d, MoveWords(hn::BitCast(words, bytes), kThreeOfFour));
    hn::StoreU(moved, d, dense + i / 4 * 3);
  }
  std::memcpy(packed, dense, count / 4 * 3);
}

void UnpackSixBits(const std::uint8_t* packed, std::size_t count, std::uint8_t* codes) {
  const Bytes d;
  const Words words;
  alignas(16) static constexpr std::uint8_t kSpread[16] = {0, 1, 2, 128, 3, 4,  5,  128,
                                                           6, 7, 8, 128, 9, 10, 11, 128};
  HWY_ALIGN std::uint8_t dense[kChunk + sizeof(hn::Vec<Bytes>)] = {};
  std::memcpy(dense, packed, count / 4 * 3);
  HWY_ALIGN std::uint8_t whole[kChunk + sizeof(hn::Vec<Bytes>)];
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto loaded = hn::BitCast(words, hn::LoadU(d, dense + i / 4 * 3));
    const auto blocks = hn::BitCast(d, MoveWords(loaded, kFourOfThree));
    const auto v = hn::BitCast(words, hn::TableLookupBytesOr0(blocks, hn::LoadDup128(d, kSpread)));
    const auto part = [&](auto moved, std::uint32_t mask) {
      return hn::And(moved, hn::Set(words, mask));
    };
    const auto spread =
        hn::Or(hn::Or(part(v, 0x3f), part(hn::ShiftLeft<2>(v), 0x3f00)),
               hn::Or(part(hn::ShiftLeft<4>(v), 0x3f0000), part(hn::ShiftLeft<6>(v), 0x3f000000)));
    hn::Store(hn::BitCast(d, spread), d, whole + i);
  }
  std::memcpy(codes, whole, count);
}

void PackBytes(const std::byte* codes, std::size_t count, const Packing& packing,
               std::byte* packed) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(codes);
  auto* const to = reinterpret_cast<std::uint8_t*>(packed);
  if (packing.bits == 6) {
    return PackSixBits(from, count, to);
  }
  const bool low_first = packing.order == NibbleOrder::kLowFirst;
  low_first ? PackNibbles<false>(from, count, to) : PackNibbles<true>(from, count, to);
}

void UnpackBytes(const std::byte* packed, std::size_t count, const Packing& packing,
                 std::byte* codes) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(packed);
  auto* const to = reinterpret_cast<std::uint8_t*>(codes);
  if (packing.bits == 6) {
    return UnpackSixBits(from, count, to);
  }
  const bool low_first = packing.order == NibbleOrder::kLowFirst;
  low_first ? UnpackNibbles<false>(from, count, to) : UnpackNibbles<true>(from, count, to);
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(PackBytes);
HWY_EXPORT(UnpackBytes);

void PackBytes(const std::byte* codes, std::size_t count, const Packing& packing,
               std::byte* packed) {
  HWY_DYNAMIC_DISPATCH(PackBytes)(codes, count, packing, packed);
}
void UnpackBytes(const std::byte* packed, std::size_t count, const Packing& packing,
                 std::byte* codes) {
  HWY_DYNAMIC_DISPATCH(UnpackBytes)(packed, count, packing, codes);
}
}  // namespace fourpiles
#endif
