#pragma once

// Integer arithmetic that remembers an overflow. A formula is written as on paper and asked once at
// the end:
//
//   Checked elements = Checked(batch) * sequence * width;
//   if (!elements.ok()) …
//
// Results are limited to ±2^53, so that every program that reads our JSON sees the same digits
// (a double holds each whole number up to there).

#include <cstdint>

#include "base/check.h"

namespace fourpiles {

// The largest amount that fourpiles reads, computes or prints: 2^53.
inline constexpr std::int64_t kLargestAmount = std::int64_t{1} << 53;

class Checked;
// The result, or the largest amount where a step left ±2^53: for a count that only says how large
// something is, of which an error is told elsewhere.
constexpr std::int64_t OrLargest(const Checked& amount);

class Checked {
 public:
  constexpr Checked(std::int64_t value)  // NOLINT(google-explicit-constructor): reads as a number
      : Checked(value, true) {}

  // False once any step of the computation left ±2^53, or divided by zero.
  constexpr bool ok() const { return ok_; }  // NOLINT(readability-identifier-naming): an accessor
  // The result. Ask ok() first.
  constexpr std::int64_t value() const {  // NOLINT(readability-identifier-naming)
    CHECK(ok_);
    return value_;
  }

  friend constexpr Checked operator+(Checked a, Checked b) {
    return {a.value_ + b.value_, a.ok_ && b.ok_};
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    return {a.value_ - b.value_, a.ok_ && b.ok_};
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    std::int64_t product = 0;
    const bool wraps = __builtin_mul_overflow(a.value_, b.value_, &product);
    return {product, a.ok_ && b.ok_ && !wraps};
  }
  // a / b rounded up; both at least 0, b at least 1.
  friend constexpr Checked DivideRoundingUp(Checked a, Checked b) {
    const bool ok = a.ok_ && b.ok_ && a.value_ >= 0 && b.value_ > 0;
    return {ok ? (a.value_ + b.value_ - 1) / b.value_ : 0, ok};
  }

 private:
  // Within ±2^53 always, 0 where it is not ok: so no sum of two wraps around.
  constexpr Checked(std::int64_t value, bool ok)
      : value_(0), ok_(ok && value >= -kLargestAmount && value <= kLargestAmount) {
    value_ = ok_ ? value : 0;
  }

  std::int64_t value_;
  bool ok_;
};

constexpr std::int64_t OrLargest(const Checked& amount) {
  return amount.ok() ? amount.value() : kLargestAmount;
}

}  // namespace fourpiles
