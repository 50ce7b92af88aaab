#include "report/accuracy.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(AccuracyMarkdown, TextsOfRowsCannotBreakTheTable) {
  Validation validation;
  validation.rows.push_back({.id = "a|b\n| c",
                             .source = "repo x/y | z",
                             .measured_by = "x/y",
                             .metric = "allocated",
                             .unit = "Gi|B",
                             .measured = 1,
                             .predicted = 1});
  validation.rows.push_back({.metric = "allocated", .reason = "why\nnot|so"});
  const std::string page = AccuracyMarkdown(validation, AccuracyOf(validation));
  EXPECT_EQ(page.find("\n| c"), std::string::npos) << page;
  EXPECT_NE(page.find("a\\|b"), std::string::npos) << page;
  EXPECT_EQ(page.find("why\nnot"), std::string::npos) << page;
}

TEST(AccuracyMarkdown, NoRowsAreAPageToo) {
  const Validation validation;
  EXPECT_NE(AccuracyMarkdown(validation, AccuracyOf(validation)).find("0 rows"), std::string::npos);
}

}  // namespace
}  // namespace fourpiles
