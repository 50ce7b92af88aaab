#include "base/utf8.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(Utf8, PrefixEndsBeforeTheFirstIllFormedByte) {
  EXPECT_EQ(Utf8Prefix(""), 0U);
  EXPECT_EQ(Utf8Prefix("a\u00e9\u20ac\U0001f600"), 10U);
  EXPECT_EQ(Utf8Prefix("ab\xff"), 2U);
  EXPECT_EQ(Utf8Prefix("a\xe2\x82"), 1U);      // cut
  EXPECT_EQ(Utf8Prefix("\xc0\xaf"), 0U);       // overlong
  EXPECT_EQ(Utf8Prefix("a\xed\xa0\x80"), 1U);  // a surrogate
}

}  // namespace
}  // namespace fourpiles
