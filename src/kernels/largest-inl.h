// The largest of each block of values, four blocks at a time. Included once for each instruction
// set.

// clang-format off: Highway's guard, which is switched for each instruction set
#if defined(FOURPILES_KERNELS_LARGEST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOURPILES_KERNELS_LARGEST_INL_H_
#undef FOURPILES_KERNELS_LARGEST_INL_H_
#else
#define FOURPILES_KERNELS_LARGEST_INL_H_
#endif
// clang-format on

#include <algorithm>

#include <hwy/cache_control.h>

#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// The larger of the two halves, and of theirs, until four lanes are left.
template <class D>
HWY_INLINE void StoreFour(hn::Vec<D> v, D d, std::int32_t* to) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    StoreFour(hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), half, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

// The largest lanes of four vectors: they are woven into one another, so that one comparison serves
// all.
struct FourVectors {
  CodeVector v0, v1, v2, v3;
};

HWY_INLINE void StoreLargest(const FourVectors& of, std::int32_t* to) {
  const Codes32 d;
  const hn::RepartitionToWide<Codes32> wide;
  const auto weave = [&](CodeVector a, CodeVector b) {
    return hn::Max(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  const auto low = hn::BitCast(wide, weave(of.v0, of.v1));
  const auto high = hn::BitCast(wide, weave(of.v2, of.v3));
  const CodeVector even = hn::BitCast(d, hn::InterleaveLower(wide, low, high));
  const CodeVector odd = hn::BitCast(d, hn::InterleaveUpper(wide, low, high));
  StoreFour(hn::Max(even, odd), d, to);
}

// Asks for the kSize values of the block that is `ahead` values further on: the codes of one chunk
// are made while the next comes from memory. Past the end of the array it does nothing.
template <std::size_t kSize>
HWY_INLINE void PrefetchAhead(const float* block, std::size_t ahead) {
  constexpr std::size_t kLine = 64 / sizeof(float);
  for (std::size_t i = 0; i < kSize; i += kLine) {
    hwy::Prefetch(block + ahead + i);
  }
}

// Blocks that lie one after another, each of so many values: a vector or more.
struct Blocks {
  const float* values = nullptr;
  std::size_t count = 0;
  std::size_t size = 0;
};

// Results of blocks are stored by so many; the last ones are repeated.
inline constexpr std::size_t kStored = HWY_LANES(float) < 4 ? 4 : HWY_LANES(float);

// Calls largest_of(float vector as bits, largest so far) over the values of each block, and stores
// the largest lane; `to` has room for a multiple of kStored, and is filled to there. The last
// vector of a block may overlap the one before.
template <class LargestOf>
HWY_INLINE void StoreLargestOfBlocks(const Blocks& blocks, std::int32_t* to,
                                     const LargestOf& largest_of) {
  const Codes32 d;
  const std::size_t last = blocks.size - HWY_LANES(float);
  const auto largest_of_block = [&](std::size_t b) {
    const float* const block = blocks.values + std::min(b, blocks.count - 1) * blocks.size;
    CodeVector largest = largest_of(hn::BitCast(d, hn::LoadU(Floats(), block + last)), hn::Zero(d));
    for (std::size_t i = 0; i < last; i += HWY_LANES(float)) {
      largest = largest_of(hn::BitCast(d, hn::LoadU(Floats(), block + i)), largest);
    }
    return largest;
  };
  const std::size_t end = (blocks.count + kStored - 1) / kStored * kStored;
  for (std::size_t b = 0; b < end; b += 4) {
    StoreLargest({largest_of_block(b), largest_of_block(b + 1), largest_of_block(b + 2),
                  largest_of_block(b + 3)},
                 to + b);
  }
}

// The bits of the largest magnitude of each block; NaN is larger than infinity.
HWY_INLINE void StoreLargestMagnitudes(const Blocks& blocks, std::int32_t* to) {
  const CodeVector mask = hn::Set(Codes32(), kMagnitudeMask);
  StoreLargestOfBlocks(blocks, to, [mask](CodeVector bits, CodeVector largest) {
    return hn::Max(largest, hn::And(bits, mask));
  });
}

// … of those with either sign; 0 where there is none. Bits as integers: those of the other sign are
// below zero.
HWY_INLINE void StoreLargestOfSigns(const Blocks& blocks, std::int32_t* positive,
                                    std::int32_t* negative) {
  const CodeVector sign = hn::Set(Codes32(), ~kMagnitudeMask);
  StoreLargestOfBlocks(blocks, positive,
                       [](CodeVector bits, CodeVector largest) { return hn::Max(largest, bits); });
  StoreLargestOfBlocks(blocks, negative, [sign](CodeVector bits, CodeVector largest) {
    return hn::Max(largest, hn::Xor(bits, sign));
  });
}

#endif  // HWY_SCALAR
}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FOURPILES_KERNELS_LARGEST_INL_H_
