#include "audit/findings.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "audit/audit_format.h"

namespace fourpiles {
namespace {

// A tensor of 10,000 values other than zero, which a format keeps as well as floats of 8 bits keep
// any: 31.5 dB.
Audit AuditOf(const std::vector<std::string>& formats) {
  Audit audit;
  audit.overflow = Overflow::kSaturate;
  TensorAudit tensor = {.name = "weight"};
  tensor.values = {.count = 10000, .smallest = 1e-3, .largest = 1, .kurtosis = 3};
  for (const std::string& name : formats) {
    audit.formats.push_back(*FindAuditFormat(name));
    FormatLosses in_format;
    in_format.losses = {.squared_values = 1, .squared_errors = 7e-4, .compared = 10000};
    tensor.formats.push_back(in_format);
  }
  audit.tensors.push_back(tensor);
  return audit;
}

// An error so many dB under the values.
Losses WithSqnr(double decibels) {
  return {.squared_values = 1, .squared_errors = std::pow(10, -decibels / 10), .compared = 10000};
}

std::vector<AuditFinding> FindingsOf(const Audit& audit) {
  return fourpiles::FindingsOf(audit, DefaultThresholds());
}

// "fault saturated", "": nothing was found.
std::string FirstOf(const Audit& audit) {
  const std::vector<AuditFinding> findings = FindingsOf(audit);
  return findings.empty() ? ""
                          : std::string(Name(findings.front().severity)) + " " +
                                std::string(findings.front().threshold.name);
}

TEST(Findings, GoodFormatsHaveNone) {
  EXPECT_EQ(FirstOf(AuditOf({"e4m3", "e4m3:scaled", "mxfp8", "int8", "q8_0"})), "");
}

TEST(Findings, ValuesThatAreNoNumbersAreFaultsOnce) {
  Audit audit = AuditOf({"e4m3", "mxfp8"});
  audit.tensors[0].values.nan = 10000;
  const auto findings = FindingsOf(audit);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].what, "all 10,000 values are NaN already");
  EXPECT_EQ(findings[0].severity, AuditSeverity::kFault);
  EXPECT_EQ(findings[0].format, -1);
}

TEST(Findings, ZerosAndInfinitiesAloneAreAMask) {
  Audit audit = AuditOf({"bfloat16"});
  audit.tensors[0].values = {.count = 64, .infinite = 28, .zero = 36};
  audit.tensors[0].formats[0].losses = {};
  EXPECT_EQ(FirstOf(audit), "note infinite");
  audit.tensors[0].values.largest = 1;
  EXPECT_EQ(FirstOf(audit), "fault infinite");
}

TEST(Findings, OneClippedValueOfTenThousandIsLookedAt) {
  Audit audit = AuditOf({"e4m3"});
  audit.tensors[0].values.largest = 600;
  audit.tensors[0].formats[0].losses.overflow = 1;
  audit.tensors[0].formats[0].losses.saturated = 1;
  audit.tensors[0].formats[0].fitting_scale = 448.0 / 600;
  EXPECT_EQ(FirstOf(audit), "warning overflow");
  const AuditFinding finding = FindingsOf(audit).front();
  EXPECT_EQ(finding.what, "1 of 10,000 values (0.01 %) are past 448 and are clipped to it");
  EXPECT_EQ(finding.remedy,
            "the largest is 600: multiply by at most 0.747 first, as float8_e4m3fn:scaled does");
  audit.tensors[0].formats[0].losses.saturated = 2;
  EXPECT_EQ(FirstOf(audit), "fault saturated");
}

TEST(Findings, AnInfinityThatTheFormatMakesIsAFault) {
  Audit audit = AuditOf({"float16"});
  audit.tensors[0].formats[0].losses = WithSqnr(70);
  audit.tensors[0].formats[0].losses.overflow = 1;
  audit.overflow = Overflow::kIeee;
  EXPECT_EQ(FirstOf(audit), "fault overflow");
  EXPECT_NE(FindingsOf(audit)[0].what.find("past 65504 and become infinity"), std::string::npos);
  // It has neither infinity nor NaN.
  Audit small = AuditOf({"float6_e2m3fn"});
  small.tensors[0].formats[0].losses.overflow = 1;
  small.overflow = Overflow::kIeee;
  EXPECT_EQ(FirstOf(small), "warning overflow");
}

TEST(Findings, BlocksClipByTheirRule) {
  Audit audit = AuditOf({"mxfp4"});
  audit.tensors[0].formats[0].losses = WithSqnr(18);
  audit.tensors[0].formats[0].losses.saturated = 400;
  audit.tensors[0].formats[0].losses.underflow = 1500;
  EXPECT_EQ(FirstOf(audit), "");
  audit.tensors[0].formats[0].scales = ScaleFacts{.scales = 313, .lost_blocks = 4};
  EXPECT_EQ(FirstOf(audit), "warning lost-blocks");
}

TEST(Findings, AnInfinityDecidesOverItsBlock) {
  Audit audit = AuditOf({"mxfp8"});
  audit.tensors[0].formats[0].losses.overflow = 31;
  audit.tensors[0].values.infinite = 1;
  const auto findings = FindingsOf(audit);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].what, "1 of 10,000 values (0.01 %) are infinite already");
  EXPECT_EQ(findings[1].what,
            "31 of 9,999 finite values (0.31 %) become NaN or infinite with others of their block");
  EXPECT_EQ(findings[1].severity, AuditSeverity::kFault);
}

// What stands beside it: torchao's test of a round trip, and the bound of half a step, 6.02 dB a
// bit.
TEST(Findings, FloorsFollowTheBits) {
  struct Row {
    const char* format;
    double decibels;
    const char* finding;
  };
  const Row rows[] = {
      {"mxfp4", 18, ""},
      {"mxfp4", 14.9, "warning sqnr-suspicious"},
      {"mxfp4", 12.9, "fault sqnr-4-bit"},
      {"nvfp4", 12.9, "fault sqnr-4-bit"},
      {"q5_0", 24, ""},
      {"mxfp8", 28, ""},
      {"mxfp8", 17.9, "fault sqnr-8-bit"},
      {"q8_0", 17.9, "fault sqnr-8-bit"},
      {"e4m3", 24.1, ""},
      {"e4m3", 24.0, "warning sqnr-in-range"},
      {"e5m2", 18.1, ""},
      {"bfloat16", 48.2, ""},
      {"bfloat16", 48.1, "warning sqnr-in-range"},
      {"float16", 66.1, "warning sqnr-in-range"},
      {"float16", 29.9, "fault sqnr-16-bit"},
  };
  for (const Row& row : rows) {
    Audit audit = AuditOf({row.format});
    audit.tensors[0].formats[0].losses = WithSqnr(row.decibels);
    EXPECT_EQ(FirstOf(audit), row.finding) << row.format << " " << row.decibels;
  }
}

TEST(Findings, NothingIsSaidOfPrecisionWhereThereAreOnlyZeros) {
  Audit audit = AuditOf({"e4m3", "mxfp4"});
  audit.tensors[0].values = {.count = 8, .zero = 8};
  for (FormatLosses& in_format : audit.tensors[0].formats) {
    in_format.losses = {};
  }
  EXPECT_EQ(FirstOf(audit), "");
  audit.tensors[0].values = {};  // of no elements
  EXPECT_EQ(FirstOf(audit), "");
}

TEST(Findings, OneScaleATensorMindsOutliers) {
  Audit audit = AuditOf({"int8:tensor", "int8:channel"});
  audit.tensors[0].channels = ChannelFacts{.channels = 64, .outliers = 2};
  ASSERT_EQ(FindingsOf(audit).size(), 1U);
  EXPECT_EQ(FindingsOf(audit)[0].what,
            "2 of 64 channels (3.12 %) are more than 20 times as large as the median one");
  EXPECT_EQ(FindingsOf(audit)[0].remedy, "give each channel a scale: int8:channel");
}

TEST(Findings, TheGravestStandsFirst) {
  Audit audit = AuditOf({"mxfp4", "e4m3"});
  audit.tensors.push_back(audit.tensors[0]);
  audit.tensors[0].formats[0].losses = WithSqnr(14);
  audit.tensors[0].formats[1].losses = WithSqnr(17);
  audit.tensors[1].formats[1].losses = WithSqnr(3);
  audit.tensors[1].values.nan = 1;
  const auto findings = FindingsOf(audit);
  ASSERT_EQ(findings.size(), 4U);
  EXPECT_EQ(findings[0].threshold.name, "nan");
  EXPECT_EQ(findings[1].tensor, 1);  // 15 dB short, the other 1
  EXPECT_EQ(findings[1].threshold.name, "sqnr-8-bit");
  EXPECT_EQ(findings[2].tensor, 0);
  EXPECT_EQ(findings[3].threshold.name, "sqnr-suspicious");
  EXPECT_EQ(findings[3].severity, AuditSeverity::kWarning);
}

TEST(Findings, AThresholdCanBeSet) {
  Audit audit = AuditOf({"mxfp4"});
  audit.tensors[0].formats[0].losses = WithSqnr(18);
  Thresholds thresholds = DefaultThresholds();
  ASSERT_TRUE(SetThreshold(thresholds, "sqnr-4-bit=20", "--threshold").has_value());
  ASSERT_EQ(fourpiles::FindingsOf(audit, thresholds).size(), 1U);
  EXPECT_EQ(fourpiles::FindingsOf(audit, thresholds)[0].limit, 20);
}

}  // namespace
}  // namespace fourpiles
