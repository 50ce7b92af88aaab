#include <set>

#include <gtest/gtest.h>

#include "formats/codes.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

std::string NameOf(std::string_view name) {
  return std::string(FindFormat(name).value().name);
}

TEST(FormatTable, EveryRecordHasASourceAndADoubleForEveryValue) {
  std::set<std::string_view> names;
  for (const NumberFormat& format : Formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name << " stands twice";
    EXPECT_FALSE(format.source.empty()) << format.name;
    EXPECT_LE(Bits(format), 64);
    EXPECT_GT(SmallestPositive(format), 0.0) << format.name;
  }
}

TEST(FormatTable, FindsTheNamesPeopleType) {
  EXPECT_EQ(NameOf("fp32"), "float32");
  EXPECT_EQ(NameOf("BF16"), "bfloat16");
  EXPECT_EQ(NameOf("half"), "float16");
  EXPECT_EQ(NameOf("F8_E4M3"), "float8_e4m3fn");  // as safetensors writes it
  EXPECT_EQ(NameOf("tf32"), "tfloat32");
}

TEST(FormatTable, APairThatIsAnAliasIsTheAlias) {
  EXPECT_EQ(NameOf("e4m3"), "float8_e4m3fn");
  EXPECT_EQ(NameOf("e5m2"), "float8_e5m2");
  EXPECT_EQ(NameOf("float8_e4m3"), "float8_e4m3");
  EXPECT_EQ(NameOf("e5m10"), "float16");
  EXPECT_EQ(NameOf("e8m7"), "bfloat16");
  EXPECT_EQ(NameOf("e11m52"), "float64");
  EXPECT_EQ(NameOf("e2m1fn"), "float4_e2m1fn");
}

TEST(FormatTable, FreePairsAreIeeeLikeOrFn) {
  const NumberFormat ieee = FindFormat("e6m9").value();
  EXPECT_EQ(ieee.name, "e6m9");
  EXPECT_EQ(ieee.bias, 31);
  // Sony's and IBM's "DLFloat" aside, 1-6-9 has 2^31 × (2 − 2^-9) as its largest value.
  EXPECT_EQ(Largest(ieee), 0x1.ff8p31);
  const NumberFormat fn = FindFormat("E3M3FN").value();
  EXPECT_EQ(fn.name, "e3m3fn");
  EXPECT_EQ(Largest(fn), 28.0);  // 2^4 × 1.75: 1.875 is the NaN
  EXPECT_EQ(Nans(fn), 2U);
  EXPECT_EQ(Infinities(fn), 0U);
}

TEST(FormatTable, EveryPossiblePairComesBackFromItsCodes) {
  for (int e = 2; e <= 11; ++e) {
    for (int m = 1; m <= 52; ++m) {
      for (const char* const ending : {"", "fn"}) {
        const std::string name = "e" + std::to_string(e) + "m" + std::to_string(m) + ending;
        const Result<NumberFormat> format = FindFormat(name);
        if (e == 11 && std::string_view(ending) == "fn") {
          EXPECT_FALSE(format) << name;
          continue;
        }
        ASSERT_TRUE(format) << name;
        for (const std::uint64_t code : {std::uint64_t{1}, SmallestNormalCode(*format) - 1,
                                         SmallestNormalCode(*format), LargestCode(*format)}) {
          EXPECT_EQ(Encode(Decode(code, *format), *format).code, code) << name << " " << code;
        }
      }
    }
  }
}

std::string Message(std::string_view name) {
  const Error error = FindFormat(name, "--to").error();
  EXPECT_EQ(error.kind, ErrorKind::kUsage);
  return error.text.where + ": " + error.text.found + ", " + error.text.expected;
}

TEST(FormatTable, RefusesUnknownNamesWithTheNearest) {
  EXPECT_EQ(Message("float17"),
            "--to: unknown number format \"float17\", did you mean \"float16\"?");
  EXPECT_EQ(Message("bfloat61"),
            "--to: unknown number format \"bfloat61\", did you mean \"bfloat16\"?");
}

TEST(FormatTable, RefusesImpossiblePairs) {
  const std::string ieee = ", expected eXmY with X from 2 to 11 and Y from 1 to 52";
  for (const char* const name : {"e0m3", "e1m2", "e12m3", "e5m0", "e5m53", "e99m99"}) {
    EXPECT_EQ(Message(name), "--to: impossible number format \"" + std::string(name) + "\"" + ieee);
  }
  EXPECT_EQ(Message("e11m2fn"),
            "--to: impossible number format \"e11m2fn\", "
            "expected eXmYfn with X from 2 to 10 and Y from 0 to 52");
}

TEST(FormatTable, DoesNotTakeHalfAPairForOne) {
  for (const char* const name : {"e", "e4", "e4m", "e-4m3", "e4m-3", "e4m3x", "em3", "e4 m3",
                                 "e4m99999999999999999999", ""}) {
    EXPECT_FALSE(FindFormat(name)) << name;
  }
}

}  // namespace
}  // namespace fourpiles
