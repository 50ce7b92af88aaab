#include "tensors/tiling.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(Tiling, TakesBoxesThatHoldEachElementOnce) {
  EXPECT_EQ(TilingFault({{{}, {}}}, {}), "");  // of no dimension
  EXPECT_EQ(TilingFault({{{0}, {3}}, {{3}, {2}}}, {5}), "");
  EXPECT_EQ(TilingFault({{{3, 0}, {2, 4}}, {{0, 0}, {3, 4}}}, {5, 4}), "");
  // Five around one, of which no cut goes through the whole.
  EXPECT_EQ(TilingFault({{{0, 0}, {1, 2}},
                         {{0, 2}, {2, 1}},
                         {{2, 1}, {1, 2}},
                         {{1, 0}, {2, 1}},
                         {{1, 1}, {1, 1}}},
                        {3, 3}),
            "");
  // Ranks without a part of it, and tensors without elements.
  EXPECT_EQ(TilingFault({{{0}, {5}}, {{5}, {0}}}, {5}), "");
  EXPECT_EQ(TilingFault({{{0, 0}, {0, 4}}}, {0, 4}), "");
  EXPECT_EQ(TilingFault({}, {0, 4}), "");
}

TEST(Tiling, SaysWhatIsWrong) {
  EXPECT_EQ(TilingFault({}, {5}), "chunks of 0 elements, the tensor has 5");
  EXPECT_EQ(TilingFault({{{0}, {3}}}, {5}), "chunks of 3 elements, the tensor has 5");
  EXPECT_EQ(TilingFault({{{0}, {3}}, {{2}, {3}}}, {5}), "chunks of 6 elements, the tensor has 5");
  EXPECT_EQ(TilingFault({{{0}, {2}}, {{0}, {2}}}, {4}),
            "chunks that overlap, and leave other elements out");
  EXPECT_EQ(TilingFault({{{0, 0}, {1, 2}}, {{0, 1}, {2, 1}}}, {2, 2}),
            "chunks that overlap, and leave other elements out");
  const std::vector<std::int64_t> deep(9, 2);
  TensorBox half = {.start = std::vector<std::int64_t>(9),
                    .shape = std::vector<std::int64_t>(9, 1)};
  EXPECT_EQ(TilingFault(std::vector<TensorBox>(512, half), deep),
            "512 chunks, cut along 9 dimensions");
}

// Every way to cut 2 × 3 into two boxes of a row-major grid, against counting the elements.
TEST(Tiling, AgreesWithCounting) {
  const std::vector<std::int64_t> shape = {2, 3};
  std::vector<TensorBox> all;
  for (std::int64_t code = 0; code < 144; ++code) {
    const TensorBox box = {.start = {code % 3, code / 3 % 4},
                           .shape = {code / 12 % 3, code / 36 % 4}};
    if (LiesWithin(box, shape)) {
      all.push_back(box);
    }
  }
  EXPECT_EQ(all.size(), 60U);  // (1 + 2 + 3) × (1 + 2 + 3 + 4)
  for (const TensorBox& a : all) {
    for (const TensorBox& b : all) {
      bool once = true;
      for (std::int64_t place = 0; place < 6; ++place) {
        int count = 0;
        for (const TensorBox* box : {&a, &b}) {
          const std::int64_t row = place / 3 - box->start[0];
          const std::int64_t column = place % 3 - box->start[1];
          count += static_cast<int>(0 <= row && row < box->shape[0] && 0 <= column &&
                                    column < box->shape[1]);
        }
        once = once && count == 1;
      }
      EXPECT_EQ(TilingFault({a, b}, shape).empty(), once);
    }
  }
}

TEST(Tiling, TellsBoxesThatReachBeyond) {
  EXPECT_TRUE(LiesWithin({{3, 0}, {2, 4}}, {5, 4}));
  EXPECT_TRUE(LiesWithin({{5}, {0}}, {5}));
  EXPECT_FALSE(LiesWithin({{3, 0}, {3, 4}}, {5, 4}));
  EXPECT_FALSE(LiesWithin({{-1}, {2}}, {5}));
  EXPECT_FALSE(LiesWithin({{1}, {-1}}, {5}));
  EXPECT_FALSE(LiesWithin({{INT64_MAX}, {INT64_MAX}}, {5}));
  EXPECT_FALSE(LiesWithin({{0}, {5}}, {5, 1}));
}

}  // namespace
}  // namespace fourpiles
