#include "kernels/code_counts.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/each_target.h"

namespace fourpiles {
namespace {

using Codes = std::vector<std::uint16_t>;

constexpr FiniteCodes kBfloat = {.mask = 0x7fff, .limit = 0x7f80};

struct Counted {
  CodeCounters counters = {};
  CodeCounts counts = {};

  void Take(const std::vector<Codes>& pieces, std::uint32_t place) {
    for (const Codes& piece : pieces) {
      CountCodes(piece, kBfloat, counters);
      EndPiece(piece, counters);
    }
    TakeCounts(place, counters, counts);
  }
};

TEST(CodeCounts, CountEachAndKnowTheFirstPlace) {
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    Counted all;
    all.Take({{7, 7, 0x8007, 65535, 0, 7}}, 5);
    all.Take({{7}, {}, {65535}}, 4);
    all.Take({{0}}, 6);
    EXPECT_EQ(all.counts.totals[7], 4);
    EXPECT_EQ(all.counts.totals[0x8007], 1);
    EXPECT_EQ(all.counts.totals[65535], 2);
    EXPECT_EQ(all.counts.totals[0], 2);
    EXPECT_EQ(all.counts.totals[1], 0);
    EXPECT_EQ(all.counts.firsts[7], 4);
    EXPECT_EQ(all.counts.firsts[0x8007], 5);
    EXPECT_EQ(all.counts.firsts[0], 5);
    EXPECT_EQ(all.counts.firsts[1], CodeCounts::kNowhere);
    EXPECT_EQ(std::ranges::count(all.counts.used, true), 3);
  });
}

// One by one, and the counters are 0 again whatever was counted.
TEST(CodeCounts, AreThoseOfEachCode) {
  Codes piece;
  piece.reserve(65536);
  std::uint32_t word = 1;
  for (int i = 0; i < 65536; ++i) {
    word = word * 1664525 + 1013904223;  // Numerical Recipes' generator
    piece.push_back(static_cast<std::uint16_t>((word >> 16) & 0x8fff));
  }
  std::vector<std::uint64_t> expected(CodeCounts::kCodes);
  for (const std::uint16_t code : piece) {
    ++expected[code];
  }
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    Counted all;
    all.Take({piece}, 0);
    EXPECT_EQ(all.counts.totals, expected);
    EXPECT_EQ(std::ranges::count(all.counters.narrow, 0), 65536);
    EXPECT_EQ(std::ranges::count(all.counters.wide, 0), 65536);
  });
}

TEST(CodeCounts, HaveRoomForMoreThan8Bits) {
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    Counted all;
    all.Take({Codes(255, 8), Codes(255, 8)}, 0);
    all.Take({Codes(100, 9), Codes(256, 9), Codes(100, 9), Codes(65536, 9)}, 1);
    all.Take({{10}, Codes(200000, 10)}, 2);
    Codes runs(300, 11);  // then others between them
    runs.insert(runs.end(), 70, 12);
    runs.insert(runs.end(), 500, 11);
    runs[331] = 11;
    all.Take({runs}, 3);
    EXPECT_EQ(all.counts.totals[8], 510);
    EXPECT_EQ(all.counts.totals[9], 65992);
    EXPECT_EQ(all.counts.totals[10], 200001);
    EXPECT_EQ(all.counts.totals[11], 801);
    EXPECT_EQ(all.counts.totals[12], 69);
    EXPECT_EQ(all.counts.firsts[9], 1);
    EXPECT_EQ(all.counts.firsts[10], 2);
    EXPECT_TRUE(all.counts.used[0]);
    EXPECT_EQ(std::ranges::count(all.counts.used, true), 1);
    EXPECT_EQ(std::ranges::count(all.counters.narrow, 0), 65536);
    EXPECT_EQ(std::ranges::count(all.counters.wide, 0), 65536);
  });
}

TEST(CodeCounts, TellTheLargestOfFiniteOnes) {
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    CodeCounters counters;
    const auto largest = [&](const Codes& codes) { return CountCodes(codes, kBfloat, counters); };
    EXPECT_EQ(largest({7, 7, 0x8007, 65535, 0, 0x7f80, 0x3f80, 7}), 0x3f80);
    EXPECT_EQ(largest({}), 0);
    EXPECT_EQ(largest(Codes(70, 0xff81)), 0);
    EXPECT_EQ(largest(Codes(70, 0xff7f)), 0x7f7f);
    Codes many(99, 1);
    many[40] = 0x8002;
    EXPECT_EQ(largest(many), 2);
    many[98] = 3;
    EXPECT_EQ(largest(many), 3);
  });
}

TEST(CodeCounts, AreMovedAndCleared) {
  Counted one;
  Counted other;
  one.Take({{1, 2, 3000}}, 3);
  other.Take({{1, 40000}}, 2);
  MoveCounts(other.counts, one.counts);
  EXPECT_EQ(one.counts.totals[1], 2);
  EXPECT_EQ(one.counts.totals[2], 1);
  EXPECT_EQ(one.counts.totals[40000], 1);
  EXPECT_EQ(one.counts.firsts[1], 2);
  EXPECT_EQ(one.counts.firsts[3000], 3);
  ClearCounts(one.counts);
  for (const CodeCounts* const counts : {&one.counts, &other.counts}) {
    EXPECT_EQ(std::ranges::count(counts->totals, 0), 65536);
    EXPECT_EQ(std::ranges::count(counts->firsts, CodeCounts::kNowhere), 65536);
    EXPECT_EQ(std::ranges::count(counts->used, true), 0);
  }
}

}  // namespace
}  // namespace fourpiles
