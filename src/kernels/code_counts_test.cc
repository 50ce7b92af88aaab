#include "kernels/code_counts.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

using Codes = std::vector<std::uint16_t>;

struct Counted {
  std::vector<std::uint16_t> recent = std::vector<std::uint16_t>(CodeCounts::kCodes);
  CodeCounts counts = {};

  void Take(const Codes& codes, std::uint32_t place) {
    CountCodes(codes, place, recent, counts);
    TakeCounts(recent, place, counts);
  }
};

TEST(CodeCounts, CountEachAndKnowTheFirstPlace) {
  Counted all;
  all.Take({7, 7, 0x8007, 65535, 0, 7}, 5);
  all.Take({7, 65535}, 4);
  all.Take({0}, 6);
  EXPECT_EQ(all.counts.totals[7], 4);
  EXPECT_EQ(all.counts.totals[0x8007], 1);
  EXPECT_EQ(all.counts.totals[65535], 2);
  EXPECT_EQ(all.counts.totals[0], 2);
  EXPECT_EQ(all.counts.totals[1], 0);
  EXPECT_EQ(all.counts.firsts[7], 4);
  EXPECT_EQ(all.counts.firsts[0x8007], 5);
  EXPECT_EQ(all.counts.firsts[0], 5);
  EXPECT_EQ(all.counts.firsts[1], CodeCounts::kNowhere);
  EXPECT_EQ(std::ranges::count(all.recent, 0), 65536);
}

TEST(CodeCounts, HaveRoomForMoreThan16Bits) {
  Counted all;
  all.Take(Codes(65535, 8), 0);
  all.Take(Codes(65536, 9), 1);
  all.Take(Codes(200000, 10), 2);
  EXPECT_EQ(all.counts.totals[8], 65535);
  EXPECT_EQ(all.counts.totals[9], 65536);
  EXPECT_EQ(all.counts.totals[10], 200000);
  EXPECT_EQ(all.counts.firsts[9], 1);
  EXPECT_EQ(all.counts.firsts[10], 2);
  EXPECT_TRUE(all.counts.used[0]);
  EXPECT_EQ(std::ranges::count(all.counts.used, true), 1);
}

TEST(CodeCounts, AreMovedAndCleared) {
  Counted one;
  Counted other;
  one.Take({1, 2, 3000}, 3);
  other.Take({1, 40000}, 2);
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
