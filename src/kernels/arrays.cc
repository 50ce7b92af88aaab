// Arrays of one-value formats: pieces for the kernels, threads, and the scalar way for the rest.

#include "fourpiles/arrays.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "formats/codes.h"
#include "kernels/array_tasks.h"
#include "kernels/parallel.h"
#include "kernels/scalar_arrays.h"

namespace fourpiles {
namespace {

// Values that stand in the first-level cache between two kernels.
constexpr std::size_t kPieceValues = 2048;

bool HasKernels(const NumberFormat& format) {
  return HasPlan(format) && HasVectors();
}

std::size_t CodeSize(const NumberFormat& format) {
  return static_cast<std::size_t>(CodeBytes(format));
}

// The random words of pieces of an array, where its rounding needs any.
class PieceRandom {
 public:
  PieceRandom(const EncodePlan& plan, const Conversion& conversion)
      : seed_(conversion.seed), first_(conversion.first_index), needed_(plan.stochastic) {}

  bool IsNeeded() const { return needed_; }
  // Those of elements from `begin` on, at most kPieceValues; nullptr where none are needed.
  const std::uint32_t* Words(std::size_t begin, std::size_t count) {
    if (!needed_) {
      return nullptr;
    }
    FillRandom({.seed = seed_, .first = first_ + begin}, words_.data(), count);
    return words_.data();
  }

 private:
  std::uint64_t seed_;
  std::uint64_t first_;
  bool needed_;
  std::array<std::uint32_t, kPieceValues> words_;
};

// Calls step(begin, count, random) over a range: at once, or in pieces where random words are made.
template <class Step>
void ForPieces(std::size_t begin, std::size_t end, PieceRandom& random, const Step& step) {
  const std::size_t most = random.IsNeeded() ? kPieceValues : end - begin;
  for (std::size_t i = begin; i < end; i += most) {
    const std::size_t count = std::min(most, end - i);
    step(i, count, random.Words(i, count));
  }
}

// One conversion of an array, and the ways to do a range of it.
struct ArrayConversion {
  ConstCodes from;
  Codes to;
  const Conversion& conversion;
  EncodePlan plan = {};

  void Scalar(std::size_t begin, std::size_t end) const {
    ConvertScalar(from, to, conversion, {begin, end});
  }

  // To float32.
  void Decode(std::size_t begin, std::size_t end) const {
    const std::size_t size = CodeSize(from.format);
    DecodeFloats({.codes = from.bytes.data() + begin * size,
                  .code_bytes = static_cast<int>(size),
                  .count = end - begin,
                  .values = reinterpret_cast<float*>(to.bytes.data()) + begin,
                  .streams = to.bytes.size() >= kStreamedBytes},
                 PlanDecode(from.format));
  }

  // From float32.
  void Encode(std::size_t begin, std::size_t end) const {
    const auto* const values = reinterpret_cast<const float*>(from.bytes.data());
    PieceRandom random(plan, conversion);
    ForPieces(begin, end, random,
              [&](std::size_t i, std::size_t count, const std::uint32_t* words) {
                EncodePiece(values + i, i, count, words);
              });
  }

  // Through float32, which holds both.
  void Recode(std::size_t begin, std::size_t end) const {
    const DecodePlan decode = PlanDecode(from.format);
    const std::size_t size = CodeSize(from.format);
    std::array<float, kPieceValues> values;
    PieceRandom random(plan, conversion);
    for (std::size_t i = begin; i < end; i += kPieceValues) {
      const std::size_t count = std::min(kPieceValues, end - i);
      DecodeFloats({.codes = from.bytes.data() + i * size,
                    .code_bytes = static_cast<int>(size),
                    .count = count,
                    .values = values.data()},
                   decode);
      EncodePiece(values.data(), i, count, random.Words(i, count));
    }
  }

 private:
  void EncodePiece(const float* values, std::size_t begin, std::size_t count,
                   const std::uint32_t* words) const {
    const std::size_t size = CodeSize(to.format);
    EncodeFloats({.values = values,
                  .count = count,
                  .random = words,
                  .codes = to.bytes.data() + begin * size,
                  .code_bytes = static_cast<int>(size),
                  .streams = to.bytes.size() >= kStreamedBytes && words == nullptr},
                 plan);
  }
};

using ConvertRange = void (ArrayConversion::*)(std::size_t begin, std::size_t end) const;

// The fastest way that the kernels have.
ConvertRange WayOf(const ArrayConversion& array) {
  const bool keeps_all = array.conversion.subnormals == Subnormals::kKept &&
                         array.conversion.infinities == Overflow::kIeee;
  if (HasKernels(array.from.format) && IsFloat32(array.to.format) && keeps_all) {
    return &ArrayConversion::Decode;
  }
  if (HasKernels(array.to.format) && IsFloat32(array.from.format)) {
    return &ArrayConversion::Encode;
  }
  if (HasKernels(array.to.format) && HasKernels(array.from.format)) {
    return &ArrayConversion::Recode;
  }
  return &ArrayConversion::Scalar;
}

void Merge(const RoundingStatistics& part, RoundingStatistics& whole) {
  whole.count += part.count;
  whole.nan += part.nan;
  whole.infinite += part.infinite;
  whole.zero += part.zero;
  whole.overflow += part.overflow;
  whole.saturated += part.saturated;
  whole.underflow += part.underflow;
  whole.subnormal += part.subnormal;
  whole.changed += part.changed;
  whole.largest = std::max(whole.largest, part.largest);
  if (part.smallest != 0 && (whole.smallest == 0 || part.smallest < whole.smallest)) {
    whole.smallest = part.smallest;
  }
  whole.sum_of_squares += part.sum_of_squares;
  whole.sum_of_squared_errors += part.sum_of_squared_errors;
  whole.sum_of_rounded_squares += part.sum_of_rounded_squares;
  whole.sum_of_products += part.sum_of_products;
}

// Rounds and counts a block of at most kSumBlock values that begins at element `first`.
class BlockRounder {
 public:
  BlockRounder(const NumberFormat& format, const Conversion& conversion)
      : format_(format), conversion_(conversion), has_kernels_(HasKernels(format)) {
    if (has_kernels_) {
      encode_ = PlanEncode(format, conversion, kFloat32Format);
      decode_ = PlanDecode(format);
      random_.resize(encode_.stochastic ? kSumBlock : 0);
    }
  }

  RoundingStatistics operator()(std::span<const float> values, std::span<float> rounded,
                                std::size_t first) {
    if (!has_kernels_) {
      return RoundAndCountScalar(values, format_, conversion_, rounded, first);
    }
    if (encode_.stochastic) {
      FillRandom({.seed = conversion_.seed, .first = conversion_.first_index + first},
                 random_.data(), values.size());
    }
    return RoundAndCount({.values = values.data(),
                          .count = values.size(),
                          .random = encode_.stochastic ? random_.data() : nullptr,
                          .rounded = rounded.empty() ? nullptr : rounded.data()},
                         encode_, decode_);
  }

 private:
  const NumberFormat& format_;
  const Conversion& conversion_;
  bool has_kernels_;
  EncodePlan encode_;
  DecodePlan decode_;
  std::vector<std::uint32_t> random_;
};

}  // namespace

RoundingStatistics Merged(std::span<const RoundingStatistics> blocks) {
  // A processor that takes subnormals for zero compares them so too.
  const DefaultFloatEnvironment mode;
  RoundingStatistics whole;
  for (const RoundingStatistics& block : blocks) {
    Merge(block, whole);
  }
  return whole;
}

int CodeBytes(const NumberFormat& format) {
  const int bits = StorageBits(format);
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

void EncodeArray(std::span<const float> values, Codes codes, const Conversion& conversion,
                 int threads) {
  ConvertArray({kFloat32Format, std::as_bytes(values)}, codes, conversion, threads);
}

void DecodeArray(ConstCodes codes, std::span<float> values, int threads) {
  ConvertArray(codes, {kFloat32Format, std::as_writable_bytes(values)}, {}, threads);
}

void ConvertArray(ConstCodes from, Codes to, const Conversion& conversion, int threads) {
  const std::size_t count = from.bytes.size() / CodeSize(from.format);
  CHECK(from.bytes.size() % CodeSize(from.format) == 0 &&
        to.bytes.size() == count * CodeSize(to.format));
  ArrayConversion array = {.from = from, .to = to, .conversion = conversion};
  const ConvertRange way = WayOf(array);
  if (way == &ArrayConversion::Encode || way == &ArrayConversion::Recode) {
    array.plan = PlanEncode(to.format, conversion, from.format);
  }
  ForRanges(count, kSumBlock, threads,
            [&](std::size_t begin, std::size_t end) { (array.*way)(begin, end); });
}

double SignalToNoise(const RoundingStatistics& statistics) {
  if (statistics.sum_of_squared_errors == 0) {
    return std::numeric_limits<double>::infinity();
  }
  return 10 * std::log10(statistics.sum_of_squares / statistics.sum_of_squared_errors);
}

RoundingStatistics RoundArray(std::span<const float> values, const NumberFormat& format,
                              const Conversion& conversion, std::span<float> rounded, int threads) {
  CHECK(rounded.empty() || rounded.size() == values.size());
  std::vector<RoundingStatistics> blocks((values.size() + kSumBlock - 1) / kSumBlock);
  ForRanges(values.size(), kSumBlock, threads, [&](std::size_t begin, std::size_t end) {
    BlockRounder round(format, conversion);
    for (std::size_t i = begin; i < end; i += kSumBlock) {
      const std::size_t count = std::min(kSumBlock, end - i);
      blocks[i / kSumBlock] =
          round(values.subspan(i, count), rounded.empty() ? rounded : rounded.subspan(i, count), i);
    }
  });
  return Merged(blocks);
}

void RoundTripArray(std::span<const float> values, const NumberFormat& format,
                    const Conversion& conversion, std::span<float> rounded, int threads) {
  CHECK(rounded.size() == values.size());
  if (!HasKernels(format)) {
    RoundArray(values, format, conversion, rounded, threads);
    return;
  }
  const EncodePlan encode = PlanEncode(format, conversion, kFloat32Format);
  const DecodePlan decode = PlanDecode(format);
  // Where the input is the output, its lines are in the cache already.
  const bool streams = rounded.size_bytes() >= kStreamedBytes && rounded.data() != values.data() &&
                       !encode.stochastic;
  ForRanges(values.size(), kSumBlock, threads, [&](std::size_t begin, std::size_t end) {
    PieceRandom random(encode, conversion);
    ForPieces(begin, end, random,
              [&](std::size_t i, std::size_t count, const std::uint32_t* words) {
                RoundFloats({.values = values.data() + i,
                             .count = count,
                             .random = words,
                             .rounded = rounded.data() + i,
                             .streams = streams},
                            encode, decode);
              });
  });
}

}  // namespace fourpiles
