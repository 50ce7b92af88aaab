#pragma once

// Amounts with their unit in the type: bytes and elements do not mix.
//
//   Bytes total = weights + gradients;      compiles
//   Bytes wrong = weights + Elements(7);    does not
//
// Amounts are signed, because headroom may be negative. What is read or computed from input is
// limited to ±2^53 (base/checked.h), so that a handful of amounts adds up within 64 bits; a sum
// that leaves them all the same is a fault of ours and fails a CHECK. Where input decides how many
// amounts are added or multiplied, use Checked.

#include <compare>
#include <cstdint>

namespace fourpiles {

// Throws CheckFailure (base/check.h).
[[noreturn]] void FailAmount();

template <class Unit>
class Amount {
 public:
  constexpr Amount() = default;
  constexpr explicit Amount(std::int64_t value) : value_(value) {}

  // NOLINTNEXTLINE(readability-identifier-naming): an accessor
  constexpr std::int64_t value() const { return value_; }

  friend constexpr Amount operator+(Amount a, Amount b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &sum)) {
      FailAmount();
    }
    return Amount(sum);
  }
  friend constexpr Amount operator-(Amount a, Amount b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.value_, b.value_, &difference)) {
      FailAmount();
    }
    return Amount(difference);
  }
  constexpr Amount& operator+=(Amount other) { return *this = *this + other; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 within for a pointer
  friend constexpr auto operator<=>(Amount, Amount) = default;

 private:
  std::int64_t value_ = 0;
};

using Bytes = Amount<struct BytesUnit>;
using Elements = Amount<struct ElementsUnit>;

}  // namespace fourpiles
