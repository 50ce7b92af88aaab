// The table of words in docs/RUNS.md is the vocabulary itself. UPDATE_GOLDEN=1 writes it anew.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/run_words.h"
#include "report/markdown.h"

namespace fourpiles {
namespace {

constexpr const char* kPage = FOURPILES_TEST_DATA "/../../docs/RUNS.md";
constexpr std::string_view kBegin = "<!-- the vocabulary, by run_words_table_test -->\n\n";
constexpr std::string_view kEnd = "\n<!-- end -->\n";

std::string ReadPage() {
  std::ifstream file(kPage);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "`recipe=bf16` `base-format=nf4`", or why it cannot be expressed.
std::string MeaningOf(const RunWord& word) {
  if (!word.why_not.empty()) {
    return fmt::format("not expressible: {}", word.why_not);
  }
  return word.means.empty() ? "nothing that counts" : fmt::format("`{}`", word.means);
}

// Words of a field that mean the same stand together.
std::string TableOfWords() {
  std::vector<std::vector<std::string>> rows = {{"field", "words", "mean"}};
  for (const RunWord& word : RunWords()) {
    const std::string meaning = MeaningOf(word);
    const auto same = std::ranges::find_if(rows, [&](const std::vector<std::string>& row) {
      return row[0] == word.field && row[2] == meaning;
    });
    if (same != rows.end()) {
      (*same)[1] += fmt::format(", `{}`", word.word);
    } else {
      rows.push_back({std::string(word.field), fmt::format("`{}`", word.word), meaning});
    }
  }
  return MarkdownRows(rows, {});
}

TEST(RunWordsTable, StandsInTheDocumentAsItIsInTheCode) {
  std::string page = ReadPage();
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t from = begin + kBegin.size();
  ASSERT_LE(from, end);
  const std::string wanted = TableOfWords();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    page.replace(from, end - from, wanted);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(page.substr(from, end - from), wanted)
      << "UPDATE_GOLDEN=1 report_test --gtest_filter='RunWordsTable*' writes it anew";
}

}  // namespace
}  // namespace fourpiles
