#include "base/nearest_name.h"

#include <array>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "float16", "bfloat16", "float32", "h100-sxm-80gb", "adam", "adamw", "fp16", "--zero"};

TEST(NearestName, FindsTheSlip) {
  const struct {
    std::string_view typed;
    std::string_view meant;
  } cases[] = {
      {"float17", "float16"},              // replaced
      {"flaot16", "float16"},              // swapped
      {"bfloa16", "bfloat16"},             // left out
      {"h100-sxn-80gb", "h100-sxm-80gb"},  // replaced
      {"h100sxm80gb", "h100-sxm-80gb"},    // two left out
      {"H100-SXM-80GB", "h100-sxm-80gb"},  // case alone
      {"ADAMW", "adamw"},                  // the same name wins over a near one
      {"fp61", "fp16"},                    // swapped, in a short name
      {"--zeroo", "--zero"},               // put in
      {"h1o0-sxn-8ogb", "h100-sxm-80gb"},  // three of thirteen
  };
  for (const auto& [typed, meant] : cases) {
    EXPECT_EQ(NearestName(typed, kNames), meant) << typed;
  }
}

TEST(NearestName, GivesNoAdviceWhenNothingIsClose) {
  for (const std::string_view typed :
       {"", "x", "16", "int8", "float", "fp4x", "h2oo-sxn-8ogb", "completely different"}) {
    EXPECT_EQ(NearestName(typed, kNames), std::nullopt) << typed;
  }
  EXPECT_EQ(NearestName("float16", {}), std::nullopt);
}

TEST(NearestName, TakesTheFirstOfEquals) {
  constexpr std::array<std::string_view, 2> kEquals = {"int4", "int8"};
  EXPECT_EQ(NearestName("int6", kEquals), "int4");
}

TEST(NearestName, AnswersAtOnceForMegabytes) {
  const std::string typed(10'000'000, 'x');  // NOLINT(bugprone-string-constructor): long on purpose
  EXPECT_EQ(NearestName(typed, kNames), std::nullopt);
}

TEST(DidYouMean, IsAQuestionOrNothing) {
  EXPECT_EQ(DidYouMean("float17", kNames), "did you mean \"float16\"?");
  EXPECT_EQ(DidYouMean("quaternion", kNames), "");
}

}  // namespace
}  // namespace fourpiles
