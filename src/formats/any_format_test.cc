#include "formats/any_format.h"

#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(AnyFormat, FindsBothKinds) {
  for (const std::string_view name : FormatNames()) {
    const Result<AnyFormat> found = FindAnyFormat(name);
    ASSERT_TRUE(found) << name;
    EXPECT_TRUE(std::holds_alternative<NumberFormat>(*found)) << name;
  }
  for (const std::string_view name : BlockFormatNames()) {
    const Result<AnyFormat> found = FindAnyFormat(name);
    ASSERT_TRUE(found) << name;
    EXPECT_TRUE(std::holds_alternative<BlockFormat>(*found)) << name;
  }
}

TEST(AnyFormat, ReadsChoicesInAnyCase) {
  const Result<AnyFormat> found = FindAnyFormat("NF4:block=128,double");
  ASSERT_TRUE(found);
  EXPECT_EQ(FullName(std::get<BlockFormat>(*found)), "nf4:block=128,double");
}

struct Refusal {
  std::string_view name;
  std::string_view found;
  std::string_view expected;
};

TEST(AnyFormat, NamesTheNearestOfEitherKind) {
  const Refusal refusals[] = {
      {"mxpf4", "unknown number format \"mxpf4\"", "did you mean \"mxfp4\"?"},
      {"bfloat61", "unknown number format \"bfloat61\"", "did you mean \"bfloat16\"?"},
      {"mxpf4:scale=ceil", "unknown number format \"mxpf4\"", "did you mean \"mxfp4\"?"},
      {"nf4:blok=64", "\"nf4\" has no choice \"blok\"", "did you mean \"block\"?"},
      {"fp16:scale=ceil", "\"float16\" has no choice \"scale=ceil\"", ""},
      {"mxfp6", "unknown number format \"mxfp6\"",
       "did you mean \"mxfp6_e2m3\" or \"mxfp6_e3m2\"?"},
      {"e99m1", "impossible number format \"e99m1\"",
       "expected eXmY with X from 2 to 11 and Y from 1 to 52"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<AnyFormat> format = FindAnyFormat(refusal.name, "--to");
    ASSERT_FALSE(format) << refusal.name;
    EXPECT_EQ(format.error().text.where, "--to");
    EXPECT_EQ(format.error().text.found, refusal.found);
    EXPECT_EQ(format.error().text.expected, refusal.expected);
  }
}

// No name means two things.
TEST(AnyFormat, KindsShareNoName) {
  for (const std::string_view name : BlockFormatNames()) {
    const Result<NumberFormat> format = FindFormat(name, "--to");
    ASSERT_FALSE(format) << name;
    EXPECT_EQ(format.error().text.found, "\"" + std::string(name) + "\" is a block format");
    EXPECT_EQ(format.error().text.expected, "expected a format of one value");
  }
}

}  // namespace
}  // namespace fourpiles
