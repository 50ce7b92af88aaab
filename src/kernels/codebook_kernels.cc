// Blocks of a table's entries, a byte a code, as src/formats/block_codebook.cc has them.

#include <cstring>
#include <span>

#include "formats/block_codebook.h"
#include "formats/float32.h"
#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/codebook_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/bytes-inl.h"
#include "kernels/largest-inl.h"
#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void EncodeCodeBookBlocks(const CodeBookTask& /*task*/, const CodeBookPlan& /*plan*/) {}
void DecodeCodeBookBlocks(const CodeBookDecodeTask& /*task*/, const CodeBookPlan& /*plan*/) {}
void AddToAll(float /*addend*/, float* /*values*/, std::size_t /*count*/) {}
void DecodeCodeBookCodes(std::span<const std::byte> /*codes*/, float /*scale*/,
                         const CodeBookPlan& /*plan*/, float* /*values*/) {}
#else

constexpr std::size_t kLanes = HWY_LANES(float);
constexpr std::size_t kMostBlocks = kPiece / kShortestBlock;

// A table of 16 numbers, in registers where they fit.
class ShortTable {
 public:
  HWY_INLINE explicit ShortTable(const float* numbers)
      : numbers_(numbers),
        low_(hn::Load(Floats(), numbers)),
        high_(hn::Load(Floats(), numbers + 16 - kLanes)) {}

  HWY_INLINE FloatVector operator()(CodeVector index) const {
    const Codes32 d;
    const Floats df;
    if constexpr (kLanes >= 16) {
      return hn::TableLookupLanes(low_, hn::IndicesFromVec(df, index));
    } else if constexpr (kLanes == 8) {
      const auto place = hn::IndicesFromVec(df, hn::And(index, hn::Set(d, 7)));
      const auto is_high = hn::RebindMask(df, hn::Gt(index, hn::Set(d, 7)));
      return hn::IfThenElse(is_high, hn::TableLookupLanes(high_, place),
                            hn::TableLookupLanes(low_, place));
    } else {
      return hn::GatherIndex(df, numbers_, index);
    }
  }

 private:
  const float* numbers_;
  FloatVector low_;
  FloatVector high_;
};

// A table of 256 numbers, in the first-level cache.
class LongTable {
 public:
  HWY_INLINE explicit LongTable(const float* numbers) : numbers_(numbers) {}
  HWY_INLINE FloatVector operator()(CodeVector index) const {
    return hn::GatherIndex(Floats(), numbers_, index);
  }

 private:
  const float* numbers_;
};

// The entry of values: as many of the sorted bounds as they are above, found by halving, from
// `entry` on. Sixteen entries are told apart.
template <class Table>
HWY_INLINE CodeVector EntryOf(FloatVector value, const Table& bounds, CodeVector entry) {
  const Codes32 d;
  for (std::int32_t step = 8; step > 0; step /= 2) {
    const CodeVector next = hn::Or(entry, hn::Set(d, step));
    entry = hn::IfThenElse(hn::RebindMask(d, hn::Gt(value, bounds(next))), next, entry);
  }
  return entry;
}

struct ShortBook {
  ShortTable bounds;
  CodeVector value_mask;
  CodeVector sign_bit;
  hn::Vec<hn::ScalableTag<std::uint8_t>> codes;

  HWY_INLINE explicit ShortBook(const CodeBookPlan& plan)
      : bounds(plan.bounds),
        value_mask(hn::Set(Codes32(), plan.value_mask)),
        sign_bit(hn::Set(Codes32(), plan.sign_bit)),
        codes(hn::LoadDup128(hn::ScalableTag<std::uint8_t>(), plan.codes)) {}

  HWY_INLINE CodeVector operator()(FloatVector value) const {
    const Codes32 d;
    const Floats df;
    const hn::ScalableTag<std::uint8_t> bytes;
    const CodeVector looked_up = hn::And(hn::BitCast(d, value), value_mask);
    const CodeVector entry = EntryOf(hn::BitCast(df, looked_up), bounds, hn::Zero(d));
    const auto negative = hn::RebindMask(d, hn::Lt(value, hn::Zero(df)));  // and not −0
    const CodeVector place = hn::Or(entry, hn::IfThenElseZero(negative, sign_bit));
    return hn::BitCast(d, hn::TableLookupBytes(codes, hn::BitCast(bytes, place)));
  }
};

struct LongBook {
  ShortTable coarse;
  LongTable bounds;
  HWY_INLINE explicit LongBook(const CodeBookPlan& plan)
      : coarse(plan.coarse), bounds(plan.bounds) {}
  HWY_INLINE CodeVector operator()(FloatVector value) const {
    const CodeVector sixteen = EntryOf(value, coarse, hn::Zero(Codes32()));
    return EntryOf(value, bounds, hn::ShiftLeft<4>(sixteen));
  }
};

// The scale of a block that has no NaN nor infinity and whose scale is no subnormal has an inverse.
HWY_INLINE bool IsPlain(std::int32_t largest) {
  return largest >= static_cast<std::int32_t>(kFloat32SmallestNormal) &&
         largest < kInfiniteMagnitude;
}

HWY_NOINLINE void EncodeScalar(const CodeBookTask& task, std::size_t b, const CodeBook& book) {
  const std::span values(task.values + b * task.block_elements, task.block_elements);
  task.scales[b] = CodeBookScale(values, task.subnormals);
  EncodeCodeBookBlock(values, task.scales[b], book,
                      std::span(task.codes + b * task.block_elements, task.block_elements));
}

template <class Book>
void EncodeBook(const CodeBookTask& shared_task, const CodeBookPlan& plan) {
  const Floats df;
  HWY_ALIGN std::int32_t largest[kMostBlocks];
  HWY_ALIGN float inverses[kMostBlocks];
  const CodeBookTask task = shared_task;  // what is stored to may be anything but these
  const Book book(plan);
  StoreLargestMagnitudes({task.values, task.blocks, task.block_elements}, largest);
  for (std::size_t b = 0; b < task.blocks; b += kLanes) {
    const FloatVector scale = hn::BitCast(df, hn::Load(Codes32(), largest + b));
    hn::Store(hn::Div(hn::Set(df, 1), scale), df, inverses + b);
  }
  for (std::size_t b = 0; b < task.blocks; ++b) {
    if (HWY_UNLIKELY(!IsPlain(largest[b]))) {
      EncodeScalar(task, b, *plan.book);
      continue;
    }
    std::memcpy(task.scales + b, largest + b, sizeof(float));
    const FloatVector inverse = hn::Set(df, inverses[b]);
    const std::size_t end = (b + 1) * task.block_elements;
    for (std::size_t i = b * task.block_elements; i < end; i += kLanes) {
      StoreBytes(book(hn::Mul(hn::LoadU(df, task.values + i), inverse)), task.codes + i);
    }
  }
}

void EncodeCodeBookBlocks(const CodeBookTask& task, const CodeBookPlan& plan) {
  plan.is_short ? EncodeBook<ShortBook>(task, plan) : EncodeBook<LongBook>(task, plan);
}

template <bool kStreams, class Table>
void DecodeBook(const CodeBookDecodeTask& shared_task, const CodeBookPlan& plan) {
  const CodeBookDecodeTask task = shared_task;
  const Table table(plan.values);
  for (std::size_t b = 0; b < task.blocks; ++b) {
    const std::size_t first = b * task.block_elements;
    if (HWY_UNLIKELY(!IsFinite(task.scales[b]))) {
      DecodeCodeBookBlock(std::span(task.codes + first, task.block_elements), task.scales[b],
                          *plan.book, std::span(task.values + first, task.block_elements));
      continue;
    }
    const FloatVector scale = hn::Set(Floats(), task.scales[b]);
    for (std::size_t i = first; i < first + task.block_elements; i += kLanes) {
      StoreFloats<kStreams>(hn::Mul(table(LoadBytes(task.codes + i)), scale), task.values + i);
    }
  }
}

template <class Table>
void DecodeWith(const CodeBookDecodeTask& task, const CodeBookPlan& plan) {
  Streams(task) ? DecodeBook<true, Table>(task, plan) : DecodeBook<false, Table>(task, plan);
}

void DecodeCodeBookBlocks(const CodeBookDecodeTask& task, const CodeBookPlan& plan) {
  plan.is_short ? DecodeWith<ShortTable>(task, plan) : DecodeWith<LongTable>(task, plan);
}

void AddToAll(float addend, float* values, std::size_t count) {
  const Floats df;
  const FloatVector most = hn::BitCast(df, hn::Set(Codes32(), kInfiniteMagnitude - 1));
  const auto sum = [&](const float* from) {
    const FloatVector added = hn::Add(hn::LoadU(df, from), hn::Set(df, addend));
    const FloatVector limited = hn::IfThenElse(hn::Gt(added, most), most, added);
    return hn::IfThenElse(hn::Lt(limited, hn::Neg(most)), hn::Neg(most), limited);
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(sum(values + i), df, values + i);
  }
  if (i < count) {
    HWY_ALIGN float rest[kLanes] = {};
    std::memcpy(rest, values + i, (count - i) * sizeof(float));
    hn::Store(sum(rest), df, rest);
    std::memcpy(values + i, rest, (count - i) * sizeof(float));
  }
}

void DecodeCodeBookCodes(std::span<const std::byte> codes, float scale, const CodeBookPlan& plan,
                         float* values) {
  const Floats df;
  const LongTable table(plan.values);
  const auto decode = [&](const std::byte* from) {
    return hn::Mul(table(LoadBytes(from)), hn::Set(df, scale));
  };
  std::size_t i = 0;
  for (; i + kLanes <= codes.size(); i += kLanes) {
    hn::StoreU(decode(codes.data() + i), df, values + i);
  }
  if (i < codes.size()) {
    HWY_ALIGN float rest[kLanes];
    std::byte last[kLanes] = {};
    std::memcpy(last, codes.data() + i, codes.size() - i);
    hn::Store(decode(last), df, rest);
    std::memcpy(values + i, rest, (codes.size() - i) * sizeof(float));
  }
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(EncodeCodeBookBlocks);
HWY_EXPORT(DecodeCodeBookBlocks);
HWY_EXPORT(AddToAll);
HWY_EXPORT(DecodeCodeBookCodes);

void EncodeCodeBookBlocks(const CodeBookTask& task, const CodeBookPlan& plan) {
  HWY_DYNAMIC_DISPATCH(EncodeCodeBookBlocks)(task, plan);
}
void DecodeCodeBookBlocks(const CodeBookDecodeTask& task, const CodeBookPlan& plan) {
  HWY_DYNAMIC_DISPATCH(DecodeCodeBookBlocks)(task, plan);
}
void AddToAll(float addend, float* values, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AddToAll)(addend, values, count);
}
void DecodeCodeBookCodes(std::span<const std::byte> codes, float scale, const CodeBookPlan& plan,
                         float* values) {
  HWY_DYNAMIC_DISPATCH(DecodeCodeBookCodes)(codes, scale, plan, values);
}
}  // namespace fourpiles
#endif
