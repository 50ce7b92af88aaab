// The tables of docs/FORMATS.md are what `formats --markdown` prints. UPDATE_GOLDEN=1 writes them
// anew.

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "report/numbers.h"

namespace fourpiles {
namespace {

constexpr const char* kPage = FOURPILES_TEST_DATA "/../../docs/FORMATS.md";
constexpr std::string_view kBegin = "<!-- fourpiles formats --markdown -->\n\n";
constexpr std::string_view kEnd = "\n<!-- end -->\n";

TEST(FormatsPage, TablesStandInItAsInTheRecords) {
  std::ifstream file(kPage);
  std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t from = page.find(kBegin) + kBegin.size();
  const std::size_t end = page.find(kEnd);
  ASSERT_NE(page.find(kBegin), std::string::npos);
  ASSERT_NE(end, std::string::npos);
  ASSERT_LE(from, end);
  const std::string wanted = FormatsMarkdown();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    page.replace(from, end - from, wanted);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(page.substr(from, end - from), wanted)
      << "UPDATE_GOLDEN=1 report_test --gtest_filter='FormatsPage*' writes them anew";
}

}  // namespace
}  // namespace fourpiles
