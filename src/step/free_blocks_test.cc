#include "step/free_blocks.h"

#include <algorithm>
#include <map>
#include <utility>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(FreeBlocks, FitsTheSmallestThatIsLargeEnoughAtTheLowestAddress) {
  FreeBlocks blocks;
  EXPECT_EQ(blocks.BestFit(1, FreeBlocks::kNone), FreeBlocks::kNone);
  blocks.Add({.bytes = 8, .address = 100, .number = 0});
  blocks.Add({.bytes = 8, .address = 0, .number = 1});
  blocks.Add({.bytes = 16, .address = 50, .number = 2});
  EXPECT_EQ(blocks.BestFit(5, FreeBlocks::kNone), 1);
  EXPECT_EQ(blocks.BestFit(5, 1), 0);
  blocks.Remove(8, 0);
  EXPECT_EQ(blocks.BestFit(5, 0), 2);
  EXPECT_EQ(blocks.BestFit(9, 2), 2);  // there is no other
  EXPECT_EQ(blocks.BestFit(17, FreeBlocks::kNone), FreeBlocks::kNone);
}

// Beside an ordered map of all: blocks come, go, and are asked for in no order.
TEST(FreeBlocks, IsAMapBySizeAndAddress) {
  FreeBlocks blocks;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> map;
  std::uint32_t random = 1;
  for (std::int32_t number = 0; number < 20'000; ++number) {
    random = random * 1'664'525 + 1'013'904'223;  // Numerical Recipes, section 7.1
    const std::int64_t bytes = 1 + random / 7 % 30;
    const std::int64_t address = random;
    blocks.Add({bytes, address, number});
    map.emplace(std::pair(bytes, address), number);
    auto fit = map.lower_bound({static_cast<std::int64_t>(random >> 26), 0});
    EXPECT_EQ(blocks.BestFit(random >> 26, FreeBlocks::kNone),
              fit == map.end() ? FreeBlocks::kNone : fit->second);
    if (fit != map.end() && random % 2 == 0) {
      std::advance(fit, std::min<std::ptrdiff_t>(3, std::distance(fit, map.end()) - 1));
      blocks.Remove(fit->first.first, fit->first.second);
      map.erase(fit);
    }
  }
  blocks.RemoveIf([](std::int32_t number) { return number % 3 != 0; });
  std::erase_if(map, [](const auto& block) { return block.second % 3 != 0; });
  for (const auto& [place, number] : map) {
    EXPECT_EQ(blocks.BestFit(1, FreeBlocks::kNone), number);
    blocks.Remove(place.first, place.second);
  }
}

}  // namespace
}  // namespace fourpiles
