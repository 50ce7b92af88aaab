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
constexpr std::size_t kPiece = 2048;

// An output this large is not read again from the caches: it is written past them, which saves
// reading the lines first.
constexpr std::size_t kStreamedBytes = std::size_t{4} << 20;

bool HasKernels(const NumberFormat& format) {
  return HasPlan(format) && HasVectors();
}

std::size_t CodeSize(const NumberFormat& format) {
  return static_cast<std::size_t>(CodeBytes(format));
}

// Calls step(begin, count, random) over a range, in pieces where there are random words to make.
template <class Step>
void ForPieces(std::size_t begin, std::size_t end, const RandomWords* words, const Step& step) {
  if (words == nullptr) {
    step(begin, end - begin, nullptr);
    return;
  }
  std::array<std::uint32_t, kPiece + kRandomPadding> random = {};
  for (std::size_t i = begin; i < end; i += kPiece) {
    const std::size_t count = std::min(kPiece, end - i);
    FillRandom({.seed = words->seed, .first = words->first + i}, random.data(), count);
    step(i, count, random.data());
  }
}

// The random words of an array, where its plan needs any.
struct MaybeRandom {
  RandomWords words;
  bool needed = false;
  const RandomWords* Get() const { return needed ? &words : nullptr; }
};

MaybeRandom RandomOf(const EncodePlan& plan, const Conversion& conversion, const Span& span) {
  return {.words = {.seed = conversion.seed, .first = span.first_index}, .needed = plan.stochastic};
}

// Codes that float32 holds exactly and the kernels know, through float32 in pieces.
void ConvertPieces(ConstCodes from, Codes to, const EncodePlan& encode, const MaybeRandom& random,
                   std::size_t begin, std::size_t end) {
  const DecodePlan decode = PlanDecode(from.format);
  const std::size_t from_size = CodeSize(from.format);
  const std::size_t to_size = CodeSize(to.format);
  std::array<float, kPiece> values;
  std::array<std::uint32_t, kPiece + kRandomPadding> words = {};
  for (std::size_t i = begin; i < end; i += kPiece) {
    const std::size_t count = std::min(kPiece, end - i);
    DecodeFloats({.codes = from.bytes.data() + i * from_size,
                  .code_bytes = static_cast<int>(from_size),
                  .count = count,
                  .values = values.data()},
                 decode);
    if (random.needed) {
      FillRandom({.seed = random.words.seed, .first = random.words.first + i}, words.data(), count);
    }
    EncodeFloats({.values = values.data(),
                  .count = count,
                  .random = random.needed ? words.data() : nullptr,
                  .codes = to.bytes.data() + i * to_size,
                  .code_bytes = static_cast<int>(to_size)},
                 encode);
  }
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
                 const Span& span) {
  ConvertArray({kFloat32, std::as_bytes(values)}, codes, conversion, span);
}

void DecodeArray(ConstCodes codes, std::span<float> values, const Span& span) {
  ConvertArray(codes, {kFloat32, std::as_writable_bytes(values)}, {}, span);
}

void ConvertArray(ConstCodes from, Codes to, const Conversion& conversion, const Span& span) {
  const std::size_t count = from.bytes.size() / CodeSize(from.format);
  const std::size_t to_size = CodeSize(to.format);
  CHECK(from.bytes.size() % CodeSize(from.format) == 0 && to.bytes.size() == count * to_size);
  const bool streams = to.bytes.size() >= kStreamedBytes;
  const bool decodes =
      HasKernels(from.format) && IsFloat32(to.format) && conversion.subnormals == Subnormals::kKept;
  const bool encodes = HasKernels(to.format) && (IsFloat32(from.format) || HasKernels(from.format));
  const EncodePlan plan = encodes ? PlanEncode(to.format, conversion, from.format) : EncodePlan();
  const MaybeRandom random = RandomOf(plan, conversion, span);
  ForRanges(count, kSumBlock, span.threads, [&](std::size_t begin, std::size_t end) {
    if (decodes) {
      const std::size_t size = CodeSize(from.format);
      DecodeFloats({.codes = from.bytes.data() + begin * size,
                    .code_bytes = static_cast<int>(size),
                    .count = end - begin,
                    .values = reinterpret_cast<float*>(to.bytes.data()) + begin,
                    .streams = streams},
                   PlanDecode(from.format));
    } else if (encodes && IsFloat32(from.format)) {
      const auto* const values = reinterpret_cast<const float*>(from.bytes.data());
      ForPieces(begin, end, random.Get(),
                [&](std::size_t i, std::size_t n, const std::uint32_t* words) {
                  EncodeFloats({.values = values + i,
                                .count = n,
                                .random = words,
                                .codes = to.bytes.data() + i * to_size,
                                .code_bytes = static_cast<int>(to_size),
                                .streams = streams && words == nullptr},
                               plan);
                });
    } else if (encodes) {
      ConvertPieces(from, to, plan, random, begin, end);
    } else {
      ConvertScalar(from, to, conversion, {begin, end, span.first_index});
    }
  });
}

double SignalToNoise(const RoundingStatistics& statistics) {
  if (statistics.sum_of_squared_errors == 0) {
    return std::numeric_limits<double>::infinity();
  }
  return 10 * std::log10(statistics.sum_of_squares / statistics.sum_of_squared_errors);
}

RoundingStatistics RoundArray(std::span<const float> values, const NumberFormat& format,
                              const Conversion& conversion, std::span<float> rounded,
                              const Span& span) {
  CHECK(rounded.empty() || rounded.size() == values.size());
  const bool has_plan = HasKernels(format);
  const EncodePlan encode = has_plan ? PlanEncode(format, conversion, kFloat32) : EncodePlan();
  const DecodePlan decode = has_plan ? PlanDecode(format) : DecodePlan();
  const MaybeRandom random = RandomOf(encode, conversion, span);
  std::vector<RoundingStatistics> blocks((values.size() + kSumBlock - 1) / kSumBlock);
  ForRanges(values.size(), kSumBlock, span.threads, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> words(random.needed ? kSumBlock + kRandomPadding : 0);
    for (std::size_t i = begin; i < end; i += kSumBlock) {
      const std::size_t count = std::min(kSumBlock, end - i);
      RoundingStatistics& block = blocks[i / kSumBlock];
      const std::span<float> to = rounded.empty() ? rounded : rounded.subspan(i, count);
      if (!has_plan) {
        block = RoundAndCountScalar(values.subspan(i, count), format, conversion, to,
                                    span.first_index + i);
        continue;
      }
      if (random.needed) {
        FillRandom({.seed = random.words.seed, .first = random.words.first + i}, words.data(),
                   count);
      }
      block = RoundAndCount({.values = values.data() + i,
                             .count = count,
                             .random = random.needed ? words.data() : nullptr,
                             .rounded = to.empty() ? nullptr : to.data()},
                            encode, decode);
    }
  });
  return Merged(blocks);
}

void RoundTripArray(std::span<const float> values, const NumberFormat& format,
                    const Conversion& conversion, std::span<float> rounded, const Span& span) {
  CHECK(rounded.size() == values.size());
  if (!HasKernels(format)) {
    RoundArray(values, format, conversion, rounded, span);
    return;
  }
  const EncodePlan encode = PlanEncode(format, conversion, kFloat32);
  const DecodePlan decode = PlanDecode(format);
  const MaybeRandom random = RandomOf(encode, conversion, span);
  // Where the input is the output, its lines are in the cache already.
  const bool streams =
      rounded.size_bytes() >= kStreamedBytes && rounded.data() != values.data() && !random.needed;
  ForRanges(values.size(), kSumBlock, span.threads, [&](std::size_t begin, std::size_t end) {
    ForPieces(begin, end, random.Get(),
              [&](std::size_t i, std::size_t n, const std::uint32_t* words) {
                RoundFloats({.values = values.data() + i,
                             .count = n,
                             .random = words,
                             .rounded = rounded.data() + i,
                             .streams = streams},
                            encode, decode);
              });
  });
}

}  // namespace fourpiles
