#include "audit/thresholds.h"

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(Thresholds, AreToldApartAndHaveSources) {
  std::set<std::string_view> names;
  for (const Threshold& row : DefaultThresholds()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_FALSE(row.source.empty()) << row.name;
  }
}

TEST(Thresholds, StandOnTheirPage) {
  std::ifstream page(FOURPILES_TEST_DATA "/../../docs/AUDIT.md");
  const std::string text(std::istreambuf_iterator<char>(page), {});
  for (const Threshold& row : DefaultThresholds()) {
    EXPECT_NE(text.find("\n| `" + std::string(row.name) + "` | "), std::string::npos) << row.name;
  }
}

TEST(Thresholds, AreSetAsTyped) {
  Thresholds thresholds = DefaultThresholds();
  for (const char* typed : {"saturated=0.25%", "sqnr-4-bit=15 dB", "sqnr-8-bit=20dB",
                            "kurtosis=1e3", "underflow=0.5"}) {
    EXPECT_TRUE(SetThreshold(thresholds, typed, "--threshold").has_value()) << typed;
  }
  EXPECT_EQ(Of(thresholds, ThresholdId::kSaturated).value, 0.0025);
  EXPECT_EQ(Of(thresholds, ThresholdId::kSqnr4Bit).value, 15);
  EXPECT_EQ(Of(thresholds, ThresholdId::kSqnr8Bit).value, 20);
  EXPECT_EQ(Of(thresholds, ThresholdId::kKurtosis).value, 1000);
  EXPECT_EQ(Of(thresholds, ThresholdId::kUnderflow).value, 0.5);
}

TEST(Thresholds, RefusesWhatIsNoThreshold) {
  Thresholds thresholds = DefaultThresholds();
  const auto unknown = SetThreshold(thresholds, "saturate=1", "--threshold");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().text.found, "unknown threshold \"saturate\"");
  EXPECT_EQ(unknown.error().text.expected, "did you mean \"saturated\"?");
  for (const char* typed : {"saturated", "saturated=", "saturated=much", "saturated=2",
                            "saturated=-0.1", "sqnr-4-bit=15%", "sqnr-4-bit=nan", "=1"}) {
    EXPECT_FALSE(SetThreshold(thresholds, typed, "--threshold").has_value()) << typed;
  }
}

}  // namespace
}  // namespace fourpiles
