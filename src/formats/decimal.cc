#include "formats/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"

namespace fourpiles {
namespace {

// digits × 10^shift, as digits.
std::string Shifted(const std::string& digits, std::int64_t shift) {
  return digits + std::string(static_cast<std::size_t>(shift), '0');
}

void PadLeft(std::string& digits, std::size_t length) {
  if (digits.size() < length) {
    digits.insert(0, length - digits.size(), '0');
  }
}

// Of two digit strings of one length.
std::string SumOfDigits(const std::string& a, const std::string& b) {
  std::string sum(a.size() + 1, '0');
  int carry = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    const int digit = (a[i] - '0') + (b[i] - '0') + carry;
    carry = digit / 10;
    sum[i + 1] = static_cast<char>('0' + digit % 10);
  }
  sum[0] = static_cast<char>('0' + carry);
  return sum;
}

// a − b of two digit strings of one length; a is not smaller.
std::string DifferenceOfDigits(const std::string& a, const std::string& b) {
  std::string difference(a.size(), '0');
  int borrow = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    int digit = a[i] - b[i] - borrow;
    borrow = digit < 0 ? 1 : 0;
    digit += 10 * borrow;
    difference[i] = static_cast<char>('0' + digit);
  }
  return difference;
}

}  // namespace

Decimal::Decimal(bool negative, std::string_view digits, std::int64_t exponent)
    : negative_(negative), digits_(digits), exponent_(exponent) {
  Trim();
}

Decimal::Decimal(std::int64_t value)
    : Decimal(value < 0, fmt::to_string(value).substr(value < 0 ? 1 : 0), 0) {}

Decimal Decimal::Of(double value) {
  CHECK(std::isfinite(value));
  // 1,074 digits behind the point hold every double, the smallest being 2^-1074; 309 stand before
  // it.
  constexpr int kPlaces = 1074;
  std::string text(kPlaces + 310, '\0');
  const auto result = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                                    std::chars_format::fixed, kPlaces);
  CHECK(result.ec == std::errc());
  text.resize(static_cast<std::size_t>(result.ptr - text.data()));
  text.erase(text.find('.'), 1);
  return {std::signbit(value), text, -kPlaces};
}

void Decimal::Trim() {
  digits_.erase(0, std::min(digits_.find_first_not_of('0'), digits_.size()));
  const std::size_t end = digits_.find_last_not_of('0') + 1;  // 0 when there is no digit
  exponent_ += static_cast<std::int64_t>(digits_.size() - end);
  digits_.resize(end);
  if (digits_.empty()) {
    negative_ = false;
    exponent_ = 0;
  }
}

std::int64_t Decimal::LeadingExponent() const {
  return exponent_ + static_cast<std::int64_t>(digits_.size()) - 1;
}

Decimal operator+(const Decimal& a, const Decimal& b) {
  if (a.IsZero() || b.IsZero()) {
    return a.IsZero() ? b : a;
  }
  const std::int64_t exponent = std::min(a.exponent_, b.exponent_);
  std::string x = Shifted(a.digits_, a.exponent_ - exponent);
  std::string y = Shifted(b.digits_, b.exponent_ - exponent);
  PadLeft(x, y.size());
  PadLeft(y, x.size());
  if (a.negative_ == b.negative_) {
    return {a.negative_, SumOfDigits(x, y), exponent};
  }
  return x < y ? Decimal(b.negative_, DifferenceOfDigits(y, x), exponent)
               : Decimal(a.negative_, DifferenceOfDigits(x, y), exponent);
}

Decimal operator-(const Decimal& a, const Decimal& b) {
  return a + Decimal(!b.negative_, b.digits_, b.exponent_);
}

Decimal operator*(const Decimal& a, const Decimal& b) {
  std::string product(a.digits_.size() + b.digits_.size(), '0');
  for (std::size_t i = a.digits_.size(); i-- > 0;) {
    int carry = 0;
    for (std::size_t j = b.digits_.size(); j-- > 0;) {
      const int digit =
          (product[i + j + 1] - '0') + (a.digits_[i] - '0') * (b.digits_[j] - '0') + carry;
      carry = digit / 10;
      product[i + j + 1] = static_cast<char>('0' + digit % 10);
    }
    product[i] = static_cast<char>('0' + carry);
  }
  return {a.negative_ != b.negative_, product, a.exponent_ + b.exponent_};
}

bool operator<(const Decimal& a, const Decimal& b) {
  return (a - b).IsNegative();
}

double Decimal::Nearest() const {
  if (IsZero()) {
    return 0.0;
  }
  const std::string text = fmt::format("{}e{}", digits_, exponent_);
  double magnitude = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), magnitude);
  if (result.ec == std::errc::result_out_of_range) {
    magnitude = LeadingExponent() > 0 ? HUGE_VAL : 0.0;
  }
  return negative_ ? -magnitude : magnitude;
}

std::string Decimal::WholeDigits() const {
  if (exponent_ >= 0) {
    return Shifted(digits_, exponent_);
  }
  const std::int64_t count = static_cast<std::int64_t>(digits_.size()) + exponent_;
  return digits_.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
}

std::string Decimal::Text() const {
  constexpr std::int64_t kLongest = 40;
  if (IsZero()) {
    return "0";
  }
  const std::string sign = negative_ ? "-" : "";
  const auto length = static_cast<std::int64_t>(digits_.size());
  const std::int64_t point = length + exponent_;  // digits before the point
  if (std::max(point, length - std::min<std::int64_t>(point, 0)) > kLongest) {
    const std::string rest = length > 1 ? "." + digits_.substr(1) : "";
    return fmt::format("{}{}{}e{}", sign, digits_[0], rest, LeadingExponent());
  }
  if (exponent_ >= 0) {
    return sign + Shifted(digits_, exponent_);
  }
  if (point <= 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + digits_;
  }
  const auto split = static_cast<std::size_t>(point);
  return sign + digits_.substr(0, split) + "." + digits_.substr(split);
}

double RelativeError(double value, const Decimal& exact) {
  if (!std::isfinite(value)) {
    return std::abs(value);
  }
  const Decimal error = Decimal::Of(value) - exact;
  if (error.IsZero() || exact.IsZero()) {
    return error.IsZero() ? 0 : std::numeric_limits<double>::infinity();
  }
  // Brought near 1 first: the numbers may lie past the range of doubles.
  const Decimal scale(false, "1", -exact.LeadingExponent());
  return std::abs((error * scale).Nearest() / (exact * scale).Nearest());
}

}  // namespace fourpiles
