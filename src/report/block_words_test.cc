#include "report/block_words.h"

#include <algorithm>
#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(BlockWords, EveryFormatHasAllOfThem) {
  for (const BlockFormat& format : BlockFormats()) {
    for (const auto text : {ElementText, ValueText, SharedText, ScaleText, RuleText, PackingText,
                            NanText, ChoicesText, BitsText}) {
      EXPECT_FALSE(text(format).empty()) << format.name;
    }
    EXPECT_FALSE(PackingText(format).ends_with(": ")) << format.name;
  }
}

// A part of a layout in words, and the bits that each of the things it counts takes.
struct PartWords {
  const char* pattern;
  int bits;
};
constexpr PartWords kParts[] = {
    {"(d|m|d × sum of q)", 16},
    {"d of float32", 32},
    {"s", 8},
    {"([0-9]+) (bits|high bits|signs)", 1},
    {"([0-9]+) (bytes.*|int8|s of int8|float8_e4m3fn s)", 8},
    {"([0-9]+) sums of int16", 16},
    {"(four in a byte|five in a byte|the first lowest)", 0},
};

int BitsOf(const std::string& part) {
  std::smatch found;
  if (std::regex_match(part, found, std::regex("([0-9]+) q of three values"))) {
    return (std::stoi(found[1]) + 4) / 5 * 8;  // five in a byte, as the next part says
  }
  if (std::regex_match(part, found, std::regex("([0-9]+) ([^0-9]*)of ([0-9]+) bits.*"))) {
    const bool both = found[2].str().find(" and ") != std::string::npos;
    return std::stoi(found[1]) * std::stoi(found[3]) * (both ? 2 : 1);
  }
  for (const auto& [pattern, bits] : kParts) {
    if (std::regex_match(part, found, std::regex(pattern))) {
      const bool counted = part.front() >= '0' && part.front() <= '9';
      return bits * (counted ? std::stoi(found[1]) : 1);
    }
  }
  ADD_FAILURE() << "how many bits has \"" << part << "\"?";
  return 0;
}

// The words come from ggml-common.h, and add up to the size of the block that the record has.
TEST(BlockWords, LayoutsOfGgmlAddUpToTheirBlock) {
  for (const BlockFormat& format : BlockFormats()) {
    if (format.kind != BlockKind::kGgml) {
      continue;
    }
    const std::string words = PackingText(format);  // "18 bytes a block: d, 16 bytes: …; …"
    const std::size_t begin = words.find(": ") + 2;
    const std::string layout = words.substr(begin, words.find_first_of(":;", begin) - begin);
    int bits = 0;
    for (std::size_t at = 0; at < layout.size();) {
      const std::size_t end = std::min(layout.find(", ", at), layout.size());
      bits += BitsOf(layout.substr(at, end - at));
      at = end + 2;
    }
    EXPECT_EQ(bits, format.block_bits) << format.name << ": " << words;
  }
}

TEST(BlockWords, TheRuleFollowsTheChoice) {
  const auto rule = [](std::string_view name) { return RuleText(FindBlockFormat(name).value()); };
  EXPECT_EQ(rule("mxfp4"), "2^k, k = floor(log2 largest) − 2");
  EXPECT_EQ(rule("mxint8"), "2^k, k = floor(log2 largest)");
  EXPECT_EQ(rule("mxfp8:scale=rceil"), "2^k, k = ceil(log2 (largest ÷ 448))");
  EXPECT_EQ(rule("int4:asymmetric"), "(largest − smallest, zero among them) ÷ 15");
  EXPECT_EQ(rule("int8"), "largest magnitude ÷ 127");
}

}  // namespace
}  // namespace fourpiles
