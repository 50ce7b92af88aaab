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
void PackBytes(const std::byte* /*codes*/, std::size_t /*count*/, int /*bits*/,
               std::byte* /*packed*/) {}
void UnpackBytes(const std::byte* /*packed*/, std::size_t /*count*/, int /*bits*/,
                 std::byte* /*codes*/) {}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Pairs = hn::RepartitionToWide<Bytes>;  // of codes
using HalfBytes = hn::Half<Bytes>;

// Two codes to a byte; `count` is even.
void PackNibbles(const std::uint8_t* codes, std::size_t count, std::uint8_t* packed) {
  const Bytes d;
  const Pairs wide;
  const HalfBytes half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto pairs = hn::BitCast(wide, hn::LoadU(d, codes + i));
    const auto both = hn::Or(pairs, hn::ShiftRight<4>(pairs));
    hn::StoreU(hn::TruncateTo(half, both), half, packed + i / 2);
  }
  for (; i < count; i += 2) {
    packed[i / 2] = static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4);
  }
}

void UnpackNibbles(const std::uint8_t* packed, std::size_t count, std::uint8_t* codes) {
  const Bytes d;
  const Pairs wide;
  const HalfBytes half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto both = hn::PromoteTo(wide, hn::LoadU(half, packed + i / 2));
    const auto pairs = hn::Or(both, hn::ShiftLeft<4>(both));
    hn::StoreU(hn::BitCast(d, hn::And(pairs, hn::Set(wide, 0x0f0f))), d, codes + i);
  }
  for (; i < count; i += 2) {
    codes[i] = packed[i / 2] & 0xf;
    codes[i + 1] = packed[i / 2] >> 4;
  }
}

// Four codes to three bytes, eight at a time in a 64-bit number; `count` is a multiple of 8.
void PackSixBits(const std::uint8_t* codes, std::size_t count, std::uint8_t* packed) {
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t v = 0;
    std::memcpy(&v, codes + i, 8);
    v = (v & 0x003f003f003f003fU) | (v & 0x3f003f003f003f00U) >> 2;  // 12 bits in each 16
    v = (v & 0x00000fff00000fffU) | (v & 0x0fff00000fff0000U) >> 4;  // 24 in each 32
    v = (v & 0x0000000000ffffffU) | (v & 0x00ffffff00000000U) >> 8;
    std::memcpy(packed + i / 4 * 3, &v, 6);
  }
}

void UnpackSixBits(const std::uint8_t* packed, std::size_t count, std::uint8_t* codes) {
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t v = 0;
    std::memcpy(&v, packed + i / 4 * 3, 6);
    v = (v & 0x0000000000ffffffU) | (v & 0x0000ffffff000000U) << 8;
    v = (v & 0x00000fff00000fffU) | (v & 0x00fff00000fff000U) << 4;
    v = (v & 0x003f003f003f003fU) | (v & 0x0fc00fc00fc00fc0U) << 2;
    std::memcpy(codes + i, &v, 8);
  }
}

void PackBytes(const std::byte* codes, std::size_t count, int bits, std::byte* packed) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(codes);
  auto* const to = reinterpret_cast<std::uint8_t*>(packed);
  bits == 4 ? PackNibbles(from, count, to) : PackSixBits(from, count, to);
}

void UnpackBytes(const std::byte* packed, std::size_t count, int bits, std::byte* codes) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(packed);
  auto* const to = reinterpret_cast<std::uint8_t*>(codes);
  bits == 4 ? UnpackNibbles(from, count, to) : UnpackSixBits(from, count, to);
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(PackBytes);
HWY_EXPORT(UnpackBytes);

void PackBytes(const std::byte* codes, std::size_t count, int bits, std::byte* packed) {
  HWY_DYNAMIC_DISPATCH(PackBytes)(codes, count, bits, packed);
}
void UnpackBytes(const std::byte* packed, std::size_t count, int bits, std::byte* codes) {
  HWY_DYNAMIC_DISPATCH(UnpackBytes)(packed, count, bits, codes);
}
}  // namespace fourpiles
#endif
