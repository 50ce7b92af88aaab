#include "formats/philox.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// The rows "philox4x32 10" of Random123 1.14, examples/kat_vectors.
TEST(Philox, GivesTheKnownAnswers) {
  constexpr std::uint32_t kAll = 0xFFFFFFFF;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, FourElementsShareACounter) {
  EXPECT_EQ(RandomBits(0, 0), 0x6627e8d5U);
  EXPECT_EQ(RandomBits(0, 1), 0xe169c58dU);
  EXPECT_EQ(RandomBits(0, 3), 0x9b00dbd8U);
  constexpr std::uint64_t kSeed = 0x299f31d0a4093822;
  constexpr std::uint64_t kIndex = (std::uint64_t{0x1234} << 34) + 4 * 7 + 2;
  EXPECT_EQ(RandomBits(kSeed, kIndex), Philox4x32({7, 0x1234, 0, 0}, {0xa4093822, 0x299f31d0})[2]);
}

}  // namespace
}  // namespace fourpiles
