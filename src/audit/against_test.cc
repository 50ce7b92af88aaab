#include "audit/against.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/testing.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

struct Tensor {
  std::string name;
  std::string dtype;  // of safetensors
  std::vector<std::int64_t> shape;
  std::string bytes;
};

std::string Floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Codes of 16 bits.
std::string Halves(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const auto code = Encode(value, *FindFormat("float16")).code;
    bytes += static_cast<char>(code & 0xFFU);
    bytes += static_cast<char>(code >> 8);
  }
  return bytes;
}

std::string Safetensors(const std::vector<Tensor>& tensors) {
  std::string header;
  std::string data;
  for (const Tensor& tensor : tensors) {
    header +=
        fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                    header.empty() ? "" : ",", tensor.name, tensor.dtype,
                    fmt::join(tensor.shape, ","), data.size(), data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  const auto length = static_cast<std::uint64_t>(header.size());
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

class Against : public FolderTest {
 protected:
  Checkpoint Open(std::string_view name, const std::vector<Tensor>& tensors) const {
    Result<Checkpoint> checkpoint = OpenCheckpoint(MakeFile(name, Safetensors(tensors)));
    EXPECT_TRUE(checkpoint.has_value()) << ErrorLine(checkpoint);
    EXPECT_EQ(VerdictOf(*checkpoint), FileVerdict::kAccept);
    return *std::move(checkpoint);
  }
  // One tensor each: float32 here, float16 there.
  Comparison Compare(const std::vector<float>& before, const std::vector<double>& after) const {
    const auto count = static_cast<std::int64_t>(before.size());
    const Checkpoint first = Open("a", {{"w", "F32", {count}, Floats(before)}});
    const Checkpoint second = Open("b", {{"w", "F16", {count}, Halves(after)}});
    return *AuditAgainst(first, second, {});
  }
};

std::string FirstOf(const Comparison& comparison) {
  const auto findings = FindingsOf(comparison, DefaultThresholds());
  return findings.empty() ? "" : findings.front().what;
}

TEST_F(Against, NumbersThatAreNotRealAreLeftOut) {
  const Checkpoint first =
      Open("a", {{"w", "F32", {1}, Floats({1})}, {"c", "C64", {1}, Floats({1, 2})}});
  const auto comparison = AuditAgainst(first, first, {});
  ASSERT_TRUE(comparison.has_value()) << ErrorLine(comparison);
  EXPECT_EQ(comparison->audit.tensors.size(), 1U);
  EXPECT_EQ(comparison->audit.skipped.at(0).why, "is C64 here, C64 there: not real numbers");
}

// By PyTorch both names look at one storage, in either file.
TEST_F(Against, TiedWeightsAreInTheTotalsOnce) {
  const Checkpoint first = Open("a", {{"w", "F32", {4}, Floats({1, 2, 1e6F, 4})}});
  const Checkpoint second = Open("b", {{"w", "F16", {4}, Halves({1, 2, 65504, 4})}});
  const auto tied = [](Checkpoint checkpoint) {
    checkpoint.tensors.push_back(checkpoint.tensors.front());
    checkpoint.tensors.back().name = "head";
    return checkpoint;
  };
  const Checkpoint both = tied(first);
  const Checkpoint both_halves = tied(second);
  const Comparison comparison = *AuditAgainst(both, both_halves, {});
  ASSERT_EQ(comparison.audit.tensors.size(), 2U);
  EXPECT_TRUE(comparison.audit.tensors[1].is_repeated);
  EXPECT_EQ(comparison.audit.tensors[1].formats[0].losses.saturated, 1);
  EXPECT_EQ(comparison.audit.totals[0].losses.saturated, 1);
  EXPECT_EQ(comparison.audit.values.count, 4);
}

TEST_F(Against, ClippedValuesAreCounted) {
  const Comparison comparison = Compare({1, 1.5F, -3, 0, 70000}, {1, 1.5, -3, 0, 65504});
  ASSERT_EQ(comparison.audit.formats.size(), 1U);
  EXPECT_EQ(comparison.audit.formats[0].name, "float16");
  const FormatLosses& in_format = comparison.audit.tensors.at(0).formats.at(0);
  EXPECT_EQ(in_format.losses.saturated, 1);
  EXPECT_EQ(in_format.losses.changed, 1);
  EXPECT_EQ(in_format.losses.compared, 4);
  EXPECT_EQ(in_format.losses.largest_at, 4);
  EXPECT_NEAR(in_format.losses.largest_relative_error, 4496.0 / 70000, 1e-8);
  // 20 × log10(70000 ÷ 4496); the other values do not count beside it.
  EXPECT_NEAR(SignalToNoise(in_format.losses), 23.8454, 1e-3);
  EXPECT_EQ(comparison.audit.totals.at(0).losses.saturated, 1);
  EXPECT_EQ(comparison.audit.worst_tensors.at(0), 0);
  EXPECT_EQ(FirstOf(comparison), "1 of 5 values (20 %) are past 65504 and are clipped to it");
}

TEST_F(Against, ValuesThatAreNoNumbersAnyLongerAreSeen) {
  const Comparison comparison = Compare({1, 70000}, {1, INFINITY});
  EXPECT_EQ(comparison.audit.overflow, Overflow::kIeee);
  EXPECT_EQ(FirstOf(comparison), "1 of 2 values (50 %) are past 65504 and become infinity");
}

TEST_F(Against, AWrongScaleIsAFault) {
  const Comparison comparison = Compare({1, 2, -3, 0.5F}, {1.5, 3, -4.5, 0.75});
  const auto findings = FindingsOf(comparison, DefaultThresholds());
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].threshold.name, "sqnr-16-bit");  // 20 × log10(1 ÷ 0.5) = 6 dB
  EXPECT_EQ(findings[1].what, "the values are 1.5 times what they were, all alike");
}

TEST_F(Against, ACleanConversionHasNoFinding) {
  const Comparison comparison = Compare({1, 0.1F, -3}, {1, 0.1, -3});
  EXPECT_EQ(FirstOf(comparison), "");
}

TEST_F(Against, WhatHasNoPartnerIsNamed) {
  const Checkpoint first = Open("a", {{"both", "F32", {2}, Floats({1, 2})},
                                      {"here", "F32", {1}, Floats({1})},
                                      {"shape", "F32", {2, 1}, Floats({1, 2})},
                                      {"whole", "I32", {1}, Floats({1})},
                                      {"none", "F32", {0}, ""}});
  const Checkpoint second = Open("b", {{"both", "F16", {2}, Halves({1, 2})},
                                       {"there", "F16", {1}, Halves({1})},
                                       {"shape", "F16", {2}, Halves({1, 2})},
                                       {"whole", "I32", {1}, Floats({1})},
                                       {"none", "F32", {0}, ""}});
  const Comparison comparison = *AuditAgainst(first, second, {});
  EXPECT_EQ(comparison.only_first, std::vector<std::string>({"here"}));
  EXPECT_EQ(comparison.only_second, std::vector<std::string>({"there"}));
  ASSERT_EQ(comparison.audit.skipped.size(), 2U);
  EXPECT_EQ(comparison.audit.skipped[0].why, "is [2, 1] here, [2] there");
  EXPECT_EQ(comparison.audit.skipped[1].why, "int32 here, int32 there: whole numbers");
  ASSERT_EQ(comparison.audit.tensors.size(), 2U);
  ASSERT_EQ(comparison.audit.formats.size(), 2U);  // float16 and, of no values, float32
  EXPECT_EQ(comparison.audit.tensors[0].formats[1].not_possible, "is stored as float16");
  EXPECT_NE(FirstOf(comparison).find("2 of 4 tensors are not there"), std::string::npos);
  const Comparison filtered = *AuditAgainst(first, second, {.filters = {"h?re"}});
  EXPECT_EQ(filtered.only_first.size(), 1U);
  EXPECT_TRUE(filtered.audit.tensors.empty());
}

TEST_F(Against, ThreadsDoNotMatter) {
  std::vector<Tensor> before;
  std::vector<Tensor> after;
  for (int i = 0; i < 7; ++i) {
    std::vector<float> values(70000);  // more than one block
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] = std::sin(static_cast<float>(j) * 0.37F + static_cast<float>(i));
    }
    before.push_back({fmt::format("w{}", i), "F32", {70000}, Floats(values)});
    after.push_back({fmt::format("w{}", i),
                     "F16",
                     {70000},
                     Halves(std::vector<double>(values.begin(), values.end()))});
  }
  const Checkpoint first = Open("a", before);
  const Checkpoint second = Open("b", after);
  std::vector<std::int64_t> seen;
  const Comparison one =
      *AuditAgainst(first, second, {.progress = [&](const AuditProgress& progress) {
                      EXPECT_EQ(progress.bytes, 7 * 70000 * 6);
                      seen.push_back(progress.bytes_done);
                    }});
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(seen.back(), 7 * 70000 * 6);
  const Comparison many = *AuditAgainst(first, second, {.threads = 3});
  ASSERT_EQ(many.audit.tensors.size(), 7U);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(many.audit.tensors[i].name, fmt::format("w{}", i));
    EXPECT_EQ(many.audit.tensors[i].formats[0].losses.squared_errors,
              one.audit.tensors[i].formats[0].losses.squared_errors);
  }
  EXPECT_EQ(many.audit.totals[0].losses.squared_errors, one.audit.totals[0].losses.squared_errors);
  EXPECT_EQ(many.audit.totals[0].losses.relative_error_p99,
            one.audit.totals[0].losses.relative_error_p99);
}

TEST_F(Against, AFileThatShrinksIsAnError) {
  const Checkpoint first = Open("a", {{"w", "F32", {2}, Floats({1, 2})}});
  const Checkpoint second = Open("b", {{"w", "F16", {2}, Halves({1, 2})}});
  std::filesystem::resize_file(PathTo("b"), 20);
  const auto comparison = AuditAgainst(first, second, {.threads = 2});
  ASSERT_FALSE(comparison.has_value());
  EXPECT_EQ(comparison.error().kind, ErrorKind::kInput);
}

}  // namespace
}  // namespace fourpiles
