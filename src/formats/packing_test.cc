#include "formats/packing.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

std::vector<std::byte> Bytes(const std::vector<int>& numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) {
    bytes.push_back(static_cast<std::byte>(number));
  }
  return bytes;
}

std::vector<std::byte> Packed(const std::vector<int>& codes, int bits, NibbleOrder order) {
  std::vector<std::byte> packed((codes.size() * static_cast<std::size_t>(bits) + 7) / 8,
                                std::byte{0xff});
  PackCodes(Bytes(codes), bits, packed, order);
  return packed;
}

TEST(Packing, FourBitsHaveTheFirstInTheLowHalf) {
  // torchao's pack_uint4 and NVFP4: element 2i in the low half.
  EXPECT_EQ(Packed({1, 2, 3}, 4, NibbleOrder::kLowFirst), Bytes({0x21, 0x03}));
}

TEST(Packing, BitsandbytesHasTheFirstInTheHighHalf) {
  EXPECT_EQ(Packed({1, 2, 3}, 4, NibbleOrder::kHighFirst), Bytes({0x12, 0x30}));
}

TEST(Packing, SixBitsAreAStream) {
  // 0x3f = 111111 and 0x01 = 000001, lowest bits first: 111111|10 0000|0000 …
  EXPECT_EQ(Packed({0x3f, 0x01, 0x00, 0x3f}, 6, NibbleOrder::kLowFirst), Bytes({0x7f, 0x00, 0xfc}));
  EXPECT_EQ(Packed({0x15}, 6, NibbleOrder::kLowFirst), Bytes({0x15}));
}

TEST(Packing, UnpacksWhatItPacks) {
  for (const int bits : {4, 6}) {
    for (const NibbleOrder order : {NibbleOrder::kLowFirst, NibbleOrder::kHighFirst}) {
      for (int count = 0; count <= 70; ++count) {
        std::vector<int> codes;
        for (int i = 0; i < count; ++i) {
          codes.push_back((i * 37 + 11) & ((1 << bits) - 1));
        }
        std::vector<std::byte> back(codes.size());
        UnpackCodes(Packed(codes, bits, order), bits, back, order);
        EXPECT_EQ(back, Bytes(codes)) << bits << " bits, " << count;
      }
    }
  }
}

TEST(Packing, WritesOneCodeAndLeavesItsNeighbours) {
  for (const int bits : {4, 6}) {
    const Packing packing = {.bits = bits};
    for (std::size_t k = 0; k < 8; ++k) {
      std::vector<std::byte> packed(6, std::byte{0xff});
      PutCode(packed, k, packing, std::byte{0});
      for (std::size_t other = 0; other < 8; ++other) {
        const std::byte all = static_cast<std::byte>((1 << bits) - 1);
        EXPECT_EQ(CodeAt(packed, other, packing), other == k ? std::byte{0} : all);
      }
    }
  }
}

}  // namespace
}  // namespace fourpiles
