#include "tests/exhaustive/nearest_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "formats/philox.h"
#include "formats/test_vectors.h"

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
    for (std::size_t i = 0; i < table.finite.size(); ++i) {
      AddFrom(i);
    }
    all_.push_back({kInfinity, PastLargest(conversion.infinities)});
    all_.push_back({kInfinity + 1, NanOf()});
  }

  std::span<const Stretch> All() const { return all_; }

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

  // The value, and the gap above it in three parts.
  void AddFrom(std::size_t i) {
    const double value = table_.finite[i].value;
    const bool last = i + 1 == table_.finite.size();
    // Past the largest the format would go on with the step it has there.
    const double step =
        last ? value - table_.finite[i - 1].value : table_.finite[i + 1].value - value;
    const Gap gap = {CodeOf(i), last ? PastLargest(conversion_.overflow) : CodeOf(i + 1),
                     (table_.finite[i].code & 1) != 0, last};
    all_.push_back({BitsOf(value), gap.inner});
    if (conversion_.rounding == RoundingMode::kStochastic) {
      all_.push_back({BitsOf(value) + 1, gap.inner, gap.outer, value, step});
    } else {
      const std::uint32_t middle = BitsOf(value + step / 2);
      all_.push_back({BitsOf(value) + 1, InGap(gap, -1)});
      all_.push_back({middle, InGap(gap, 0)});
      all_.push_back({middle + 1, InGap(gap, 1)});
    }
    if (last) {
      all_.push_back({BitsOf(value + step), InGap(gap, 2)});
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

// Hands inputs of one sign to the encoder, in chunks, and compares.
class Checker {
 public:
  Checker(const ValueTable& table, const Sweep& sweep, Encoder encoder, bool negative)
      : table_(table),
        sweep_(sweep),
        encoder_(encoder),
        sign_(negative ? kSign : 0),
        stretches_(table, sweep.conversion, negative) {}

  std::span<const Stretch> All() const { return stretches_.All(); }

  void Add(std::uint32_t magnitude) {
    bits_.push_back(magnitude);
    if (bits_.size() == kChunk) {
      Check();
    }
  }

  SweepResult Finish() {
    Check();
    return result_;
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 14;

  void Check() {
    values_.resize(bits_.size());
    codes_.resize(bits_.size());
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      values_[i] = std::bit_cast<float>(bits_[i] | sign_);
    }
    encoder_(values_, sweep_.format, sweep_.conversion, result_.checked, codes_);
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      const std::uint32_t expected = Expected(bits_[i], result_.checked + i);
      const std::uint32_t code = codes_[i];
      const bool right = expected == kAnyNan ? code < table_.is_nan.size() && table_.is_nan[code]
                                             : code == expected;
      if (!right) {
        Report(bits_[i] | sign_, code, expected);
      }
    }
    result_.checked += bits_.size();
    bits_.clear();
  }

  // Inputs mostly follow the one before.
  std::uint32_t Expected(std::uint32_t bits, std::uint64_t index) {
    const std::span<const Stretch> all = stretches_.All();
    if (bits < all[at_].first) {
      at_ = 0;
    }
    while (at_ + 1 < all.size() && all[at_ + 1].first <= bits) {
      ++at_;
    }
    const Stretch& stretch = all[at_];
    return stretch.step == 0 ? stretch.code
                             : ByChance(stretch, bits, RandomBits(sweep_.conversion.seed, index));
  }

  void Report(std::uint32_t bits, std::uint32_t code, std::uint32_t expected) {
    if (result_.wrong++ == 0) {
      char text[64];
      std::snprintf(text, sizeof text, "%08x -> %x, expected %x", bits, code, expected);
      result_.first_wrong = text;
    }
  }

  const ValueTable& table_;
  const Sweep& sweep_;
  const Encoder encoder_;
  const std::uint32_t sign_;
  const Stretches stretches_;
  std::vector<std::uint32_t> bits_;
  std::vector<float> values_;
  std::vector<std::uint32_t> codes_;
  std::size_t at_ = 0;
  SweepResult result_;
};

SweepResult SweepSign(const ValueTable& table, const Sweep& sweep, Encoder encoder, bool negative) {
  Checker checker(table, sweep, encoder, negative);
  if (sweep.stride > 1) {
    for (const Stretch& stretch : checker.All()) {
      if (stretch.first > 0) {
        checker.Add(stretch.first - 1);
      }
      checker.Add(stretch.first);
    }
  }
  for (std::uint64_t bits = 0; bits < kSign; bits += sweep.stride) {
    checker.Add(static_cast<std::uint32_t>(bits));
  }
  return checker.Finish();
}

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
  SweepResult result = SweepSign(table, sweep, encoder, false);
  const SweepResult negative = SweepSign(table, sweep, encoder, true);
  result.checked += negative.checked;
  result.wrong += negative.wrong;
  if (result.first_wrong.empty()) {
    result.first_wrong = negative.first_wrong;
  }
  return result;
}

}  // namespace fourpiles::exhaustive
