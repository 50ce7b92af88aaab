#pragma once

// Exact decimal numbers of any length: what a person types, and what sums of it come to. Every
// finite double is one too, so the error of a rounding can be told without a rounding.

#include <cstdint>
#include <string>
#include <string_view>

namespace fourpiles {

class Decimal {
 public:
  // Zero.
  Decimal() = default;
  // (-1)^negative × digits × 10^exponent; digits are '0' to '9'.
  Decimal(bool negative, std::string_view digits, std::int64_t exponent);
  // Exactly that whole number.
  explicit Decimal(std::int64_t value);
  // Exactly that double, which must be finite.
  static Decimal Of(double value);

  bool IsZero() const { return digits_.empty(); }
  bool IsNegative() const { return negative_; }
  // floor(log10 |value|); the value is not zero.
  std::int64_t LeadingExponent() const;

  friend Decimal operator+(const Decimal& a, const Decimal& b);
  friend Decimal operator-(const Decimal& a, const Decimal& b);
  friend Decimal operator*(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) = default;
  friend bool operator<(const Decimal& a, const Decimal& b);

  // The nearest double; infinite beyond the largest, zero below half of the smallest.
  double Nearest() const;
  // The digits of ⌊|value|⌋; none of zero.
  std::string WholeDigits() const;
  // All digits: "2", "-0.0001"; with an exponent where plain notation would need more than 40
  // characters: "1.25e-300".
  std::string Text() const;

 private:
  void Trim();

  bool negative_ = false;
  std::string digits_;         // most significant first, without zeros at either end; empty: zero
  std::int64_t exponent_ = 0;  // of the last digit; 0 for zero
};

// |value − exact| ÷ |exact|; 0 where they are equal, else infinite where exact is 0; NaN of NaN.
double RelativeError(double value, const Decimal& exact);

}  // namespace fourpiles
