#include "tensors/gguf_values.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tensors/gguf_testing.h"

namespace fourpiles {
namespace {

template <class Number>
std::uint64_t Bits(Number number) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}

TEST(Gguf, KeepsScalarsOfEachType) {
  Builder file(0, 13);
  file.Key("k0", kGgufUint8, 200, 1).Key("k1", kGgufInt8, 200, 1).Key("k2", kGgufUint16, 65535, 2);
  file.Key("k3", kGgufInt16, 65535, 2).Key("k4", kGgufUint32, 0xFFFFFFFF, 4);
  file.Key("k5", kGgufInt32, 0xFFFFFFFE, 4).Key("k6", kGgufFloat32, Bits(1.5F), 4);
  file.Key("k7", kGgufBool, 1, 1).Key("k8", "text").Key("k10", kGgufUint64, UINT64_MAX, 8);
  file.Key("k10.small", kGgufUint64, 7, 8).Key("k11", kGgufInt64, UINT64_MAX, 8);
  file.Key("k12", kGgufFloat64, Bits(-std::numeric_limits<double>::infinity()), 8);
  const FileReading reading = ReadText(file.Bytes());
  EXPECT_EQ(Lines(reading), LinesOf{});
  Json::Array values;
  for (const MetadataEntry& entry : reading.metadata) {
    values.push_back(entry.value);
    EXPECT_EQ(entry.array_length, -1);
  }
  EXPECT_EQ(WriteJson(values),
            WriteJson(Json::Array{200, -56, 65535, -1, std::int64_t{0xFFFFFFFF}, -2, 1.5, true,
                                  "text", 18446744073709551615.0, 7, -1, "-inf"}));
}

TEST(Gguf, KeepsShortArraysOfNumbersAndTheLengthOfOthers) {
  Builder file(0, 6);
  file.ArrayKey("shorts", kGgufInt16, 2).Number(1, 2).Number(0xFFFF, 2);
  file.ArrayKey("bools", kGgufBool, 2).Number(0, 1).Number(1, 1);
  file.ArrayKey("texts", kGgufString, 1).Text("a");
  file.ArrayKey("long", kGgufUint8, 65537);
  file.Zeros(65537);
  file.Key("chat_template", std::string(65537, 'a'));
  file.ArrayKey("empty", kGgufUint8, 0);
  const FileReading reading = ReadText(file.Bytes());
  EXPECT_EQ(Lines(reading), LinesOf{});
  std::string text;
  for (const MetadataEntry& entry : reading.metadata) {
    text += fmt::format("{} {} {}", entry.key, entry.array_length, WriteJson(entry.value));
  }
  EXPECT_EQ(text,
            "shorts 2 [\n  1,\n  -1\n]\nbools 2 [\n  false,\n  true\n]\ntexts 1 null\n"
            "long 65537 null\nchat_template -1 null\nempty 0 []\n");
}

// Kept numbers take forty times their room in the file.
TEST(Gguf, StopsKeepingArraysWhenThereAreManyLongOnes) {
  constexpr int kArrays = 30;
  Builder file(0, kArrays);
  for (int i = 0; i < kArrays; ++i) {
    file.ArrayKey(fmt::format("k{}", i), kGgufUint8, 65536);
    file.Zeros(65536);
  }
  const FileReading reading = ReadText(file.Bytes());
  EXPECT_EQ(Lines(reading), LinesOf{});
  const auto kept = std::ranges::count_if(
      reading.metadata, [](const MetadataEntry& entry) { return !entry.value.IsNull(); });
  EXPECT_EQ(static_cast<std::size_t>(kept), (std::size_t{64} << 20) / (65536 * sizeof(Json)));
}

std::string Nested(std::size_t depth) {
  Builder file(0, 1);
  file.Text("k").Number(kGgufArray, 4);
  for (std::size_t i = 1; i < depth; ++i) {
    file.Number(kGgufArray, 4).Count(1);
  }
  return file.Number(kGgufUint8, 4).Count(1).Number(7, 1).Bytes();
}

TEST(Gguf, ReadsNestedArraysWithoutRecursion) {
  EXPECT_EQ(Lines(ReadText(Nested(64))), LinesOf{});
  const std::string hint = " |  | no program writes such files; do not use it";
  const LinesOf refusal = {"refuse: x: byte 805 | array nesting deeper than 64 (of key \"k\")" +
                           hint};
  EXPECT_EQ(Lines(ReadText(Nested(65))), refusal);
  EXPECT_EQ(Lines(ReadText(Nested(20'000))), refusal);
}

// A large file of which only the start is in memory; the others are zeros.
class ZerosSource final : public ByteSource {
 public:
  ZerosSource(std::string start, std::int64_t size) : start_(std::move(start)), size_(size) {}
  std::string_view Name() const override { return "x"; }
  std::int64_t Size() const override { return size_; }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override {
    if (offset >= broken_at_) {
      return BadInput({.where = "x", .found = "broken"});
    }
    std::ranges::fill(bytes, std::byte{0});
    const auto from = static_cast<std::size_t>(offset);
    if (from < start_.size()) {
      std::memcpy(bytes.data(), start_.data() + from, std::min(bytes.size(), start_.size() - from));
    }
    return {};
  }
  ZerosSource& BreakAt(std::int64_t place) {
    broken_at_ = place;
    return *this;
  }

 private:
  std::string start_;
  std::int64_t size_;
  std::int64_t broken_at_ = INT64_MAX;
};

TEST(Gguf, RefusesAmountsPastItsLimits) {
  constexpr std::int64_t kSize = std::int64_t{1} << 40;
  const auto lines = [](const Builder& file) {
    return Lines(ReadGguf(ZerosSource(file.Bytes(), kSize)));
  };
  EXPECT_EQ(lines(Builder(0, 1'000'001)),
            LinesOf{"refuse: x: byte 16 | 1000001 keys | expected at most 1000000 | "});
  EXPECT_EQ(lines(Builder(10'000'001, 0)),
            LinesOf{"refuse: x: byte 8 | 10000001 tensors | expected at most 10000000 | "});
  EXPECT_EQ(lines(Builder(0, 1).Count(65'536)),
            LinesOf{"refuse: x: byte 24 | a key of 65536 bytes | expected at most 65535 | "});
  EXPECT_EQ(lines(Builder(0, 1).Text("k").Number(kGgufString, 4).Count(64'000'001)),
            LinesOf{"refuse: x: byte 37 | a string of 64000001 bytes (of key \"k\") | "
                    "expected at most 64000000 | "});
  EXPECT_EQ(lines(Builder(0, 1).ArrayKey("k", kGgufUint8, 16'000'001)),
            LinesOf{"refuse: x: byte 41 | an array of 16000001 elements (uint8) (of key \"k\") | "
                    "expected at most 16000000 | "});
  EXPECT_EQ(Lines(ReadGguf(ZerosSource(Builder(0, 2).Bytes(), kSize).BreakAt(0))),
            LinesOf{"refuse: x | broken |  | "});
}

// Counts, lengths and places that multiply or add past 64 bits.
TEST(Gguf, RefusesWhatWrapsAround) {
  EXPECT_EQ(Lines(ReadText(Builder(UINT64_MAX, 0).Data(0))).at(0),
            "refuse: x: byte 8 | 18446744073709551615 tensors, past the end of the file | "
            "expected at most 0 | " +
                kCut);
  EXPECT_EQ(Lines(ReadText(Builder(0, 1).Count(UINT64_MAX).Data(64))).at(0),
            "refuse: x: byte 24 | a key of 18446744073709551615 bytes, past the end of the file | "
            "expected at most 64 | " +
                kCut);
  EXPECT_EQ(
      Lines(ReadText(Builder(0, 1).ArrayKey("k", kGgufString, std::uint64_t{1} << 61).Data(8)))
          .at(0),
      "refuse: x: byte 41 | an array of 2305843009213693952 elements (string), past the end of "
      "the file (of key \"k\") | expected at most 2 in the 23 bytes that follow | " +
          kCut);
}

}  // namespace
}  // namespace fourpiles
