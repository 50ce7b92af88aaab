#include "tests/exhaustive/nearest_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "formats/philox.h"
#include "formats/test_vectors.h"
#include "kernels/parallel.h"

namespace fourpiles::exhaustive {
namespace {

constexpr std::uint32_t kSign = 0x80000000;
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kAnyNan = 0xffffffff;  // as an expected code

// Floats from `first` to the next stretch's have the code; by chance the one of `away`, where
// `step` is not zero.
struct Stretch {
  std::uint32_t first = 0;  // the bits of the magnitude
  std::uint32_t code = 0;
  std::uint32_t away = 0;
  double below = 0;  // the value whose code `code` is
  double step = 0;   // to that of `away`
};

std::uint32_t BitsOf(double magnitude) {  // of a float32, or infinity past the largest
  return std::bit_cast<std::uint32_t>(static_cast<float>(magnitude));
}

// What lies between two values next to each other, or the largest and what would come next.
struct Gap {
  std::uint32_t inner = 0;
  std::uint32_t outer = 0;
  bool inner_is_odd = false;
  bool outer_is_past = false;
};

class Stretches {
 public:
  Stretches(const ValueTable& table, const Conversion& conversion, bool negative)
      : table_(table), conversion_(conversion), negative_(negative) {
    all_.reserve(4 * table.finite.size() + 3);
    for (std::size_t i = 0; i < table.finite.size(); ++i) {
      AddFrom(i);
    }
    Add({kInfinity, PastLargest(conversion.infinities)});
    Add({kInfinity + 1, NanOf()});
    CHECK(std::ranges::is_sorted(all_, {}, &Stretch::first));
  }

  std::span<const Stretch> All() const { return all_; }
  bool AreNegative() const { return negative_; }

 private:
  std::uint32_t CodeOf(std::size_t i) const {
    const ValueTable::Entry& entry = table_.finite[i];
    return negative_ ? entry.negative_code : entry.code;
  }

  std::uint32_t NanOf() const {
    if (table_.has_nan) {
      return kAnyNan;
    }
    return negative_ ? table_.finite.front().code : table_.finite.front().negative_code;
  }

  std::uint32_t PastLargest(Overflow overflow) const {
    if (overflow == Overflow::kIeee && table_.has_infinity) {
      return negative_ ? table_.negative_infinity : table_.infinity;
    }
    return overflow != Overflow::kSaturate && table_.has_nan ? kAnyNan
                                                             : CodeOf(table_.finite.size() - 1);
  }

  // A stretch of nothing gives way to the one that begins where it does.
  void Add(const Stretch& stretch) {
    if (!all_.empty() && all_.back().first == stretch.first) {
      all_.pop_back();
    }
    all_.push_back(stretch);
  }

  // The value, and the gap above it in three parts.
  void AddFrom(std::size_t i) {
    const double value = table_.finite[i].value;
    const bool last = i + 1 == table_.finite.size();
    // Past the largest the format would go on with the step it has there.
    const double step =
        last ? value - table_.finite[i - 1].value : table_.finite[i + 1].value - value;
    const Gap gap = {CodeOf(i), last ? PastLargest(conversion_.overflow) : CodeOf(i + 1),
                     (table_.finite[i].code & 1) != 0, last};
    Add({BitsOf(value), gap.inner});
    if (conversion_.rounding == RoundingMode::kStochastic) {
      Add({BitsOf(value) + 1, gap.inner, gap.outer, value, step});
    } else {
      const std::uint32_t middle = BitsOf(value + step / 2);
      Add({BitsOf(value) + 1, InGap(gap, -1)});
      Add({middle, InGap(gap, 0)});
      Add({middle + 1, InGap(gap, 1)});
    }
    if (last) {
      Add({BitsOf(value + step), InGap(gap, 2)});
    }
  }

  // side: before the middle −1, in it 0, after it 1, past the gap's outer end 2.
  std::uint32_t InGap(const Gap& gap, int side) const {
    bool outward = false;
    switch (conversion_.rounding) {
      case RoundingMode::kNearestEven:
        outward = side > 0 || (side == 0 && gap.inner_is_odd);
        break;
      case RoundingMode::kNearestAway:
        outward = side >= 0;
        break;
      case RoundingMode::kTowardZero:
        break;
      case RoundingMode::kUp:
        outward = !negative_;
        break;
      case RoundingMode::kDown:
        outward = negative_;
        break;
      case RoundingMode::kToOdd:
        outward = !gap.inner_is_odd && !gap.outer_is_past;
        break;
      case RoundingMode::kStochastic:
        outward = true;  // past the outer end; within the gap chance decides
        break;
    }
    return outward ? gap.outer : gap.inner;
  }

  const ValueTable& table_;
  const Conversion& conversion_;
  const bool negative_;
  std::vector<Stretch> all_;
};

// Which of the two codes: away iff the first 32 bits of the way, and random ones, carry.
std::uint32_t ByChance(const Stretch& stretch, std::uint32_t bits, std::uint32_t random) {
  const double way = static_cast<double>(std::bit_cast<float>(bits)) - stretch.below;
  const double parts = std::floor(std::ldexp(way / stretch.step, 32));  // step: a power of two
  return parts + static_cast<double>(random) >= 0x1p32 ? stretch.away : stretch.code;
}

// Inputs whose codes are made and compared at once: they stand in the second-level cache.
constexpr std::size_t kChunk = std::size_t{1} << 14;

std::uint32_t MagnitudeBits(float value) {
  return std::bit_cast<std::uint32_t>(value) & ~kSign;
}

void Merge(const SweepResult& part, SweepResult& whole) {
  whole.checked += part.checked;
  whole.wrong += part.wrong;
  if (whole.first_wrong.empty()) {
    whole.first_wrong = part.first_wrong;
  }
}

// Hands inputs of one sign to the encoder, in chunks whose magnitudes grow, and compares.
class Checker {
 public:
  Checker(const ValueTable& table, const Sweep& sweep, Encoder encoder, const Stretches& stretches)
      : table_(table),
        sweep_(sweep),
        encoder_(encoder),
        stretches_(stretches),
        sign_(stretches.AreNegative() ? kSign : 0),
        code_bytes_(static_cast<std::size_t>(CodeBytes(sweep.format))) {}

  // Every stride-th magnitude: those of the places begin … end in their order. The index of each,
  // for its random bits, is its place.
  SweepResult CheckPlaces(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t place = begin; place < end; place += kChunk) {
      values_.resize(std::min<std::uint64_t>(kChunk, end - place));
      auto bits = static_cast<std::uint32_t>(place * sweep_.stride) | sign_;
      for (float& value : values_) {
        value = std::bit_cast<float>(bits);
        bits += sweep_.stride;
      }
      CheckChunk(place);
    }
    return result_;
  }

  // The first of each stretch and the last before it.
  SweepResult CheckEnds() {
    std::vector<float> ends;
    for (const Stretch& stretch : stretches_.All()) {
      if (stretch.first > 0) {
        ends.push_back(std::bit_cast<float>((stretch.first - 1) | sign_));
      }
      ends.push_back(std::bit_cast<float>(stretch.first | sign_));
    }
    for (std::size_t i = 0; i < ends.size(); i += kChunk) {
      const auto chunk = std::span(ends).subspan(i, std::min(kChunk, ends.size() - i));
      values_.assign(chunk.begin(), chunk.end());
      CheckChunk(i);
    }
    return result_;
  }

 private:
  void CheckChunk(std::uint64_t first_index) {
    codes_.resize(values_.size() * code_bytes_);
    Conversion conversion = sweep_.conversion;
    conversion.first_index = first_index;
    encoder_(values_, {sweep_.format, codes_}, conversion, 1);
    const std::span<const Stretch> all = stretches_.All();
    auto next = std::ranges::upper_bound(all, MagnitudeBits(values_[0]), {}, &Stretch::first);
    for (std::size_t i = 0; i < values_.size(); ++next) {
      const std::size_t end = next == all.end() ? values_.size() : FirstFrom(i, next->first);
      CheckStretch(*(next - 1), i, end, first_index);
      i = end;
    }
    result_.checked += values_.size();
  }

  // The first of the chunk's values, from i on, whose magnitude is that or more.
  std::size_t FirstFrom(std::size_t i, std::uint32_t magnitude) const {
    const auto found =
        std::ranges::lower_bound(std::span(values_).subspan(i), magnitude, {}, MagnitudeBits);
    return i + static_cast<std::size_t>(found - std::span(values_).subspan(i).begin());
  }

  // Values begin … end of the chunk, which lie in the stretch.
  void CheckStretch(const Stretch& stretch, std::size_t begin, std::size_t end,
                    std::uint64_t first_index) {
    if (begin == end ||
        (stretch.step == 0 && AreAlike(begin, end) && IsRight(CodeAt(begin), stretch.code))) {
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t expected =
          stretch.step == 0 ? stretch.code
                            : ByChance(stretch, MagnitudeBits(values_[i]),
                                       RandomBits(sweep_.conversion.seed, first_index + i));
      if (!IsRight(CodeAt(i), expected)) {
        Report(values_[i], CodeAt(i), expected);
      }
    }
  }

  // Codes begin … end are one and the same: each is the one after it.
  bool AreAlike(std::size_t begin, std::size_t end) const {
    const std::byte* const first = codes_.data() + begin * code_bytes_;
    return std::memcmp(first, first + code_bytes_, (end - begin - 1) * code_bytes_) == 0;
  }

  std::uint32_t CodeAt(std::size_t i) const {
    return code_bytes_ == 1 ? std::to_integer<std::uint32_t>(codes_[i])
                            : std::to_integer<std::uint32_t>(codes_[2 * i]) |
                                  std::to_integer<std::uint32_t>(codes_[2 * i + 1]) << 8;
  }

  bool IsRight(std::uint32_t code, std::uint32_t expected) const {
    return expected == kAnyNan ? code < table_.is_nan.size() && table_.is_nan[code]
                               : code == expected;
  }

  void Report(float value, std::uint32_t code, std::uint32_t expected) {
    if (result_.wrong++ == 0) {
      char text[64];
      std::snprintf(text, sizeof text, "%08x -> %x, expected %x",
                    std::bit_cast<std::uint32_t>(value), code, expected);
      result_.first_wrong = text;
    }
  }

  const ValueTable& table_;
  const Sweep& sweep_;
  const Encoder encoder_;
  const Stretches& stretches_;
  const std::uint32_t sign_;
  const std::size_t code_bytes_;
  std::vector<float> values_;
  std::vector<std::byte> codes_;
  SweepResult result_;
};

}  // namespace

ValueTable ReadValueTable(const std::string& file) {
  ValueTable table;
  const auto rows = ReadVectors("decode_" + file + ".csv");
  table.is_nan.resize(rows.size());
  std::vector<std::pair<double, std::uint32_t>> negative;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto code = static_cast<std::uint32_t>(Hex(rows[i][0]));
    if (rows[i][1] == "nan") {
      table.is_nan[code] = true;
      table.has_nan = true;
      continue;
    }
    const double value = std::bit_cast<float>(static_cast<std::uint32_t>(Hex(rows[i][1])));
    if (std::isinf(value)) {
      table.has_infinity = true;
      (value < 0 ? table.negative_infinity : table.infinity) = code;
    } else if (std::signbit(value)) {
      negative.emplace_back(-value, code);
    } else {
      table.finite.push_back({value, code, code});
    }
  }
  std::ranges::sort(table.finite, {}, &ValueTable::Entry::value);
  for (const auto& [magnitude, code] : negative) {
    std::ranges::lower_bound(table.finite, magnitude, {}, &ValueTable::Entry::value)
        ->negative_code = code;
  }
  return table;
}

SweepResult SweepFloat32(const ValueTable& table, const Sweep& sweep, Encoder encoder) {
  const std::uint64_t places = (std::uint64_t{kSign} + sweep.stride - 1) / sweep.stride;
  SweepResult result;
  std::mutex result_mutex;
  const auto merge = [&](const SweepResult& part) {
    const std::scoped_lock lock(result_mutex);
    Merge(part, result);
  };
  for (const bool negative : {false, true}) {
    const Stretches stretches(table, sweep.conversion, negative);
    if (sweep.stride > 1) {
      merge(Checker(table, sweep, encoder, stretches).CheckEnds());
    }
    ForRanges(places, kChunk, sweep.threads, [&](std::uint64_t begin, std::uint64_t end) {
      merge(Checker(table, sweep, encoder, stretches).CheckPlaces(begin, end));
    });
  }
  return result;
}

}  // namespace fourpiles::exhaustive
