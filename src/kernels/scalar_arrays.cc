#include "kernels/scalar_arrays.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "formats/codes.h"
#include "kernels/loss_tasks.h"

namespace fourpiles {
namespace {

// Where a format has no NaN, the sign of one decides its code: a float32 keeps it.
double ValueOf(std::uint64_t code, const NumberFormat& format) {
  return IsFloat32(format)
             ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code)))
             : Decode(code, format);
}

double Flushed(double value, const NumberFormat& source, const Conversion& conversion) {
  const bool flushes = conversion.subnormals == Subnormals::kFlushedOnInput;
  return flushes ? FlushSubnormal(value, source) : value;
}

float SmallestOf(float smallest, float magnitude) {
  return smallest == 0 || magnitude < smallest ? magnitude : smallest;
}

// Counts one value that is no NaN.
void Count(float value, RoundingStatus status, double result, RoundingStatistics& to) {
  const float magnitude = std::abs(value);
  const bool was_finite = std::isfinite(value);
  const bool is_finite = std::isfinite(result);
  to.infinite += was_finite ? 0 : 1;
  to.zero += magnitude == 0 ? 1 : 0;
  to.overflow += was_finite && !is_finite ? 1 : 0;
  to.saturated += status == RoundingStatus::kSaturated ? 1 : 0;
  to.underflow += magnitude != 0 && result == 0 ? 1 : 0;
  to.subnormal += status == RoundingStatus::kSubnormal ? 1 : 0;
  to.changed += result == static_cast<double>(value) ? 0 : 1;
  if (was_finite) {
    to.largest = std::max(to.largest, magnitude);
    to.smallest = magnitude == 0 ? to.smallest : SmallestOf(to.smallest, magnitude);
  }
}

// Counts values one after another, and what they became.
class Counter {
 public:
  void Add(float value, float result, RoundingStatus status) {
    ++statistics_.count;
    if (std::isnan(value)) {
      ++statistics_.nan;
    } else {
      Count(value, status, result, statistics_);
    }
    if (std::isfinite(value) && std::isfinite(result)) {
      const double x = value;
      const double r = result;
      const auto i = static_cast<std::size_t>(statistics_.count - 1);
      squares_.Add(i, x * x);
      errors_.Add(i, (r - x) * (r - x));
      rounded_squares_.Add(i, r * r);
      products_.Add(i, x * r);
    }
  }
  RoundingStatistics Total() const {
    RoundingStatistics statistics = statistics_;
    statistics.sum_of_squares = squares_.Total();
    statistics.sum_of_squared_errors = errors_.Total();
    statistics.sum_of_rounded_squares = rounded_squares_.Total();
    statistics.sum_of_products = products_.Total();
    return statistics;
  }

 private:
  RoundingStatistics statistics_;
  PartialSum squares_;
  PartialSum errors_;
  PartialSum rounded_squares_;
  PartialSum products_;
};

}  // namespace

bool IsFloat32(const NumberFormat& format) {
  return format.exponent_bits == 8 && format.fraction_bits == 23 && format.bias == 127 &&
         format.specials == Specials::kIeee && format.has_sign && format.has_subnormals;
}

std::uint64_t LoadCode(const std::byte* codes, std::size_t i, const NumberFormat& format) {
  const auto size = static_cast<std::size_t>(CodeBytes(format));
  std::uint64_t code = 0;
  for (std::size_t byte = size; byte-- > 0;) {
    code = code << 8 | std::to_integer<std::uint64_t>(codes[i * size + byte]);
  }
  return code >> format.unused_bits;
}

void StoreCode(std::byte* codes, std::size_t i, const NumberFormat& format, std::uint64_t code) {
  const auto size = static_cast<std::size_t>(CodeBytes(format));
  code <<= format.unused_bits;
  for (std::size_t byte = 0; byte < size; ++byte) {
    codes[i * size + byte] = static_cast<std::byte>(code >> (8 * byte));
  }
}

void ConvertScalar(ConstCodes from, Codes to, const Conversion& conversion,
                   const ScalarRange& range) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const double value = ValueOf(LoadCode(from.bytes.data(), i, from.format), from.format);
    const Encoded encoded =
        Encode(Flushed(value, from.format, conversion), to.format, conversion, i);
    StoreCode(to.bytes.data(), i, to.format, encoded.code);
  }
}

RoundingStatistics RoundAndCountScalar(std::span<const float> values, const NumberFormat& format,
                                       const Conversion& conversion, std::span<float> rounded,
                                       std::size_t first) {
  Counter counter;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Encoded encoded =
        Encode(Flushed(values[i], kFloat32Format, conversion), format, conversion, first + i);
    const auto result = static_cast<float>(Decode(encoded.code, format));
    counter.Add(values[i], result, encoded.status);
    if (!rounded.empty()) {
      rounded[i] = result;
    }
  }
  return counter.Total();
}

RoundingStatistics CompareAndCountScalar(std::span<const float> values,
                                         std::span<const float> rounded) {
  Counter counter;
  for (std::size_t i = 0; i < values.size(); ++i) {
    counter.Add(values[i], rounded[i], RoundingStatus::kRounded);
  }
  return counter.Total();
}

}  // namespace fourpiles
