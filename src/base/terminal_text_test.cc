#include "base/terminal_text.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

using namespace std::string_literals;

TEST(EscapeForTerminal, LeavesTextAlone) {
  for (const std::string text : {"", "model.layers.0.self_attn.q_proj.weight", "a\\b \"c\" ~",
                                 "é€😀 日本語 עברית", "\u00A0\uFFFD\U0010FFFF"}) {
    EXPECT_EQ(EscapeForTerminal(text), text);
  }
}

TEST(EscapeForTerminal, WritesOutWhatSteersOrHides) {
  EXPECT_EQ(EscapeForTerminal("\x1b[31mred\r\n\tx\0\x7f"s), "\\x1b[31mred\\x0d\\n\\tx\\x00\\x7f");
  EXPECT_EQ(EscapeForTerminal("\u009b2J"), "\\u009b2J") << "a C1 control";
  EXPECT_EQ(EscapeForTerminal("gnp\u202etxt.exe"), "gnp\\u202etxt.exe") << "right to left";
  EXPECT_EQ(EscapeForTerminal("a\u2066\u061c\u200b\ufeffz"), "a\\u2066\\u061c\\u200b\\ufeffz");
  EXPECT_EQ(EscapeForTerminal("\U000E0041"), "\\ue0041") << "a tag";
}

// The cases of Unicode 15, section 3.9, tables 3-8 to 3-11, and the ends of the ranges.
TEST(EscapeForTerminal, WritesOutBytesThatAreNoUtf8) {
  const struct {
    std::string text;
    std::string_view escaped;
  } cases[] = {
      {"a\x80z", "a\\x80z"},                         // continuation alone
      {"\xC0\xAF", "\\xc0\\xaf"},                    // overlong
      {"\xE0\x80\xBF", "\\xe0\\x80\\xbf"},           // overlong
      {"\xF0\x81\x82\x41", "\\xf0\\x81\\x82\x41"},   // overlong
      {"\xED\xA0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xF4\x91\x92\x93", "\\xf4\\x91\\x92\\x93"},  // beyond U+10FFFF
      {"\xF5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},  // no lead byte
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41",       // cut sequences
       "\\xe1\\x80\\xe2\\xf0\\x91\\x92\\xf1\\xbf\x41"},
      {"\xE2\x82", "\\xe2\\x82"},  // cut at the end
      {"\xFF\xFE", "\\xff\\xfe"},
  };
  for (const auto& [text, escaped] : cases) {
    EXPECT_EQ(EscapeForTerminal(text), escaped);
  }
  for (const std::string text : {"\u00A1", "\u07FF", "\u0800", "\uD7FF", "\uE000", "\U00010000"}) {
    EXPECT_EQ(EscapeForTerminal(text), text) << "the first and last of each length";
  }
}

}  // namespace
}  // namespace fourpiles
