#include <concepts>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include "base/check.h"
#include "fourpiles/units.h"

namespace fourpiles {
namespace {

template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtracts = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};

// Compiling is the test.
static_assert(Adds<Bytes, Bytes> && Subtracts<Bytes, Bytes> && Compares<Bytes, Bytes>);
static_assert(!Adds<Bytes, Elements> && !Subtracts<Bytes, Elements> && !Compares<Bytes, Elements>);
static_assert(!Adds<Bytes, int> && !Subtracts<int, Bytes> && !Compares<Bytes, int>);
static_assert(!std::convertible_to<std::int64_t, Bytes> && !std::convertible_to<Bytes, int>);
static_assert(!std::is_constructible_v<Bytes, Elements>);

TEST(Amount, HeadroomMayBeNegative) {
  const Bytes headroom = Bytes(80) - Bytes(112);
  EXPECT_EQ(headroom, Bytes(-32));
  EXPECT_LT(headroom, Bytes(0));
  EXPECT_EQ(headroom + Bytes(112), Bytes(80));
}

TEST(Amount, IsOrderedByValue) {
  EXPECT_LT(Bytes(-1), Bytes());
  EXPECT_LT(Bytes(), Bytes(1));
  EXPECT_GE(Elements(5), Elements(5));
  EXPECT_NE(Elements(5), Elements(6));
}

TEST(Amount, SumsUp) {
  Bytes total;
  total += Bytes(2);
  total += Bytes(3);
  EXPECT_EQ(total.value(), 5);
}

TEST(Amount, ChecksThatASumStaysWithin64Bits) {
  const Bytes most(std::numeric_limits<std::int64_t>::max());
  const Bytes least(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(most + least, Bytes(-1));
  EXPECT_THROW(most + Bytes(1), CheckFailure);
  EXPECT_THROW(least - Bytes(1), CheckFailure);
  EXPECT_THROW(Bytes(0) - least, CheckFailure);
}

}  // namespace
}  // namespace fourpiles
