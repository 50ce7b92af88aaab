#include "report/file_text.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(FileText, ShortNamesKeepTheirEnd) {
  EXPECT_EQ(ShortName("model.layers.31.mlp.weight", 26), "model.layers.31.mlp.weight");
  EXPECT_EQ(ShortName("model.layers.31.mlp.weight", 11), "…mlp.weight");
  EXPECT_EQ(ShortName("äöü.weight", 10), "…ü.weight");
  EXPECT_EQ(ShortName("", 10), "\"\"");
}

TEST(FileText, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(Shown("äöü", 3), "ä…");
  EXPECT_EQ(Shown("a\x1b[1m", 9), "a\\x1b[1m");
}

TEST(FileText, CellsAreQuotedWhereTheyMust) {
  EXPECT_EQ(CsvCell("a.b"), "a.b");
  EXPECT_EQ(CsvCell("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(CsvCell("=1+1"), "'=1+1");
}

}  // namespace
}  // namespace fourpiles
