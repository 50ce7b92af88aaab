#include "base/json_view.h"

#include <string>

#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

std::string ErrorOf(std::string_view text) {
  return ErrorLine(JsonDocument::Read(text, "x", {.bytes = 1000, .depth = 3}));
}

TEST(JsonView, ShowsMembersInTheirOrder) {
  const auto document =
      JsonDocument::Read(R"({"b": [1, -2, 3.0, 18446744073709551615], "a": "\u0041"})", "x");
  ASSERT_TRUE(document.has_value());
  std::string seen;
  document->Root().ForEachMember([&](std::string_view key, JsonView value) {
    seen += std::string(key) + "=" + value.Description() + ";";
    value.ForEachElement([&](JsonView element) {
      const auto number = element.WholeNumber();
      seen += number ? std::to_string(*number) + "," : "no whole number,";
    });
  });
  EXPECT_EQ(seen, "b=an array;1,-2,no whole number,no whole number,a=the string \"A\";");
  EXPECT_EQ(document->Root().Count(), 2U);
}

TEST(JsonView, RefusesWhatReadJsonRefuses) {
  EXPECT_EQ(ErrorOf("{\"a\": }"),
            "x: byte 6 | unexpected '}' | expected '[', '{', or a literal | ");
  EXPECT_EQ(ErrorOf(R"({"a": 1, "\u0061": 2})"),
            "x | the string \"a\" as a key twice in one object | expected each key once | ");
  EXPECT_EQ(ErrorOf(R"([{"k0":0,"k1":0,"k2":0,"k3":0,"k4":0,"k5":0,"k6":0,"k7":0,"k8":0,"k3":1}])"),
            "x | the string \"k3\" as a key twice in one object | expected each key once | ");
  EXPECT_EQ(ErrorOf("[[[1]]]"), "no error");
  EXPECT_EQ(ErrorOf("[[[[1]]]]"),
            "x | an array or object inside too many | expected at most 3 one "
            "inside the other | ");
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF{}").substr(0, 31), "x: byte 0 | a byte order mark |");
  EXPECT_NE(ErrorOf("{} {}"), "no error");
  EXPECT_NE(ErrorOf("{\"a\\ud800\": 1}"), "no error");
  EXPECT_NE(ErrorOf(std::string("{}\0", 3)), "no error");
  EXPECT_NE(ErrorOf("[NaN]"), "no error");
  EXPECT_NE(ErrorOf("[01]"), "no error");
  EXPECT_NE(ErrorOf("\"\xff\""), "no error");
  EXPECT_NE(ErrorOf(""), "no error");
  EXPECT_NE(ErrorOf(std::string(1001, ' ')), "no error");
}

}  // namespace
}  // namespace fourpiles
