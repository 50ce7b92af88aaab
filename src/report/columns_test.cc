#include "report/columns.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(Columns, PadsToTheWidestCellAndTrimsTheEnd) {
  EXPECT_EQ(InColumns({{"a", "bb", "c"}, {"aaa", "b", ""}}, {}),
            "a    bb  c\n"
            "aaa  b\n");
}

TEST(Columns, SetsNumbersToTheRight) {
  EXPECT_EQ(InColumns({{"x", "10"}, {"y", "9"}}, {.indent = "  ", .right = {1}}),
            "  x  10\n"
            "  y   9\n");
}

TEST(Columns, CountsCharactersAndNotBytes) {
  EXPECT_EQ(InColumns({{"×", "1"}, {"xx", "2"}}, {}),
            "×   1\n"
            "xx  2\n");
}

TEST(Columns, SentencesAreBrokenBetweenWords) {
  const std::string word(48, 'x');
  EXPECT_EQ(InLines("a b", "  - "), "  - a b\n");
  EXPECT_EQ(InLines("", "- "), "- \n");
  EXPECT_EQ(InLines(word + " " + word + " b ö", "  "), "  " + word + " " + word + "\n    b ö\n");
  EXPECT_EQ(InLines(word + word + word + " b", ""), word + word + word + "\n  b\n");
}

}  // namespace
}  // namespace fourpiles
