#pragma once

// Amounts with their unit in the type: bytes and elements do not mix.
//
//   Bytes total = weights + gradients;      compiles
//   Bytes wrong = weights + Elements(7);    does not
//
// Amounts are signed, because headroom may be negative.

#include <compare>
#include <cstdint>

namespace fourpiles {

template <class Unit>
class Amount {
 public:
  constexpr Amount() = default;
  constexpr explicit Amount(std::int64_t value) : value_(value) {}

  constexpr std::int64_t value() const { return value_; }

  friend constexpr Amount operator+(Amount a, Amount b) { return Amount(a.value_ + b.value_); }
  friend constexpr Amount operator-(Amount a, Amount b) { return Amount(a.value_ - b.value_); }
  constexpr Amount& operator+=(Amount other) { return *this = *this + other; }
  friend constexpr auto operator<=>(Amount, Amount) = default;

 private:
  std::int64_t value_ = 0;
};

using Bytes = Amount<struct BytesUnit>;
using Elements = Amount<struct ElementsUnit>;

}  // namespace fourpiles
