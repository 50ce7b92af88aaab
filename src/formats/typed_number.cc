#include "formats/typed_number.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/ascii.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLongestText = 1000;
constexpr std::int64_t kLargestExponent = 9999;

// Digits with at most one point, and where the point stood.
struct Mantissa {
  std::string digits;
  std::int64_t behind_point = 0;
};

std::optional<Mantissa> TakeMantissa(std::string_view& text, int (*is_digit)(int)) {
  Mantissa mantissa;
  bool point = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
    } else if (is_digit(static_cast<unsigned char>(c)) != 0) {
      mantissa.digits.push_back(c);
      mantissa.behind_point += point ? 1 : 0;
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  return mantissa.digits.empty() ? std::nullopt : std::optional(mantissa);
}

// The rest of the text: nothing, or the letter and a whole number.
std::optional<std::int64_t> Exponent(std::string_view text, char letter) {
  if (text.empty()) {
    return 0;
  }
  if (text.front() != letter) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  if (text.starts_with('+') && !text.starts_with("+-")) {
    text.remove_prefix(1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= -kLargestExponent && value <= kLargestExponent ? std::optional(value)
                                                                          : std::nullopt;
}

std::optional<Decimal> ParseDecimal(std::string_view text, bool negative) {
  const std::optional<Mantissa> mantissa = TakeMantissa(text, std::isdigit);
  const std::optional<std::int64_t> exponent = Exponent(text, 'e');
  if (!mantissa || !exponent) {
    return std::nullopt;
  }
  return Decimal(negative, mantissa->digits, *exponent - mantissa->behind_point);
}

// 2^exponent, exactly: 2^-3 is 5^3 × 10^-3.
Decimal PowerOfTwo(std::int64_t exponent) {
  Decimal power(false, "1", std::min<std::int64_t>(exponent, 0));
  Decimal square(exponent < 0 ? 5 : 2);
  for (std::int64_t rest = std::abs(exponent); rest != 0; rest /= 2) {
    if (rest % 2 != 0) {
      power = power * square;
    }
    if (rest > 1) {
      square = square * square;
    }
  }
  return power;
}

std::optional<Decimal> ParseHexadecimal(std::string_view text, bool negative) {
  const std::optional<Mantissa> mantissa = TakeMantissa(text, std::isxdigit);
  const std::optional<std::int64_t> exponent = Exponent(text, 'p');
  if (!mantissa || !exponent) {
    return std::nullopt;
  }
  Decimal value;
  for (const char c : mantissa->digits) {
    const int digit = std::isdigit(static_cast<unsigned char>(c)) != 0 ? c - '0' : c - 'a' + 10;
    value = value * Decimal(16) + Decimal(digit);
  }
  value = value * PowerOfTwo(*exponent - 4 * mantissa->behind_point);
  return negative ? Decimal() - value : value;
}

tl::unexpected<Error> NotANumber(std::string_view text, std::string_view where) {
  const std::string shown(text.substr(0, 40));
  return WrongUsage(
      {.where = std::string(where),
       .found = "\"" + shown + (shown.size() < text.size() ? "…" : "") + "\" is not a number",
       .expected = "expected one such as 0.1, -3, 1e-8, 0x1.8p3, inf or nan",
       .hint = "up to 1,000 characters, and an exponent within ±9,999"});
}

}  // namespace

Real RealOf(const Decimal& value) {
  const bool negative = value.IsNegative();
  if (value.IsZero()) {
    return {};
  }
  const std::int64_t decimal_exponent = value.LeadingExponent();
  if (std::abs(decimal_exponent) > 400) {
    // Past the range of doubles, and so of every format: any magnitude there will do.
    return {.kind = Real::Kind::kFinite,
            .negative = negative,
            .significand = std::uint64_t{1} << 63,
            .exponent = decimal_exponent > 0 ? 2000 : -2000,
            .more = true};
  }
  // As a whole number of 2^exponent, from 2^123 to below 2^128: |value| is 10^decimal_exponent or
  // more, and less than 2^3.33 of it.
  const int exponent =
      static_cast<int>(std::floor(static_cast<double>(decimal_exponent) * std::log2(10.0))) - 123;
  const Decimal scaled = value * PowerOfTwo(-exponent);
  const std::string digits = scaled.WholeDigits();
  Magnitude128 whole = {.exponent = exponent, .more = scaled != Decimal(negative, digits, 0)};
  for (const char c : digits) {
    whole.value = whole.value * 10 + static_cast<unsigned>(c - '0');
  }
  return RealOf(whole, negative);
}

Real TypedNumber::AsReal() const {
  if (!finite) {
    return RealOf(nearest);
  }
  Real real = RealOf(exact);
  real.negative = text.starts_with('-');  // −0 too
  return real;
}

double Round(const TypedNumber& number, const NumberFormat& format) {
  return Decode(Encode(number.AsReal(), format).code, format);
}

Result<TypedNumber> ParseNumber(std::string_view text, std::string_view where) {
  if (text.empty() || text.size() > kLongestText) {
    return NotANumber(text, where);
  }
  const std::string lower = LowerCase(text);
  std::string_view magnitude = lower;
  const bool negative = magnitude.starts_with('-');
  if (negative || magnitude.starts_with('+')) {
    magnitude.remove_prefix(1);
  }
  TypedNumber number;
  number.text = text;
  if (magnitude == "nan") {
    number.nearest = std::numeric_limits<double>::quiet_NaN();
    number.finite = false;
    return number;
  }
  if (magnitude == "inf" || magnitude == "infinity") {
    number.nearest = negative ? -HUGE_VAL : HUGE_VAL;
    number.finite = false;
    return number;
  }
  const std::optional<Decimal> value = magnitude.starts_with("0x")
                                           ? ParseHexadecimal(magnitude.substr(2), negative)
                                           : ParseDecimal(magnitude, negative);
  if (!value) {
    return NotANumber(text, where);
  }
  number.exact = *value;
  number.nearest = value->IsZero() && negative ? -0.0 : value->Nearest();
  return number;
}

Result<TypedNumber> ParseFiniteNumber(std::string_view text, std::string_view where) {
  Result<TypedNumber> number = ParseNumber(text, where);
  if (number && !number->finite) {
    return WrongUsage({.where = std::string(where),
                       .found = "\"" + std::string(text) + "\" is not finite",
                       .expected = "expected a number such as 0.1 or 1e-8"});
  }
  return number;
}

}  // namespace fourpiles
