// Against decode_fp16.csv and encode_fp16.csv, which agree with numpy 1.24 on every row but for the
// NaNs, which are the quiet one without a sign here.

#include "formats/half.h"

#include <cmath>

#include <gtest/gtest.h>

#include "formats/test_vectors.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

float FloatOf(const std::string& hex) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(Hex(hex)));
}

TEST(Half, EveryCodeHasItsValue) {
  const auto rows = ReadVectors("decode_fp16.csv");
  ASSERT_EQ(rows.size(), 65537U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto bits =
        std::bit_cast<std::uint32_t>(HalfValue(static_cast<std::uint16_t>(Hex(rows[i][0]))));
    EXPECT_EQ(bits, rows[i][1] == "nan" ? kFloat32Nan : Hex(rows[i][1])) << rows[i][0];
  }
}

TEST(Half, EveryInputGetsTheNearestCode) {
  const auto rows = ReadVectors("encode_fp16.csv");
  ASSERT_GT(rows.size(), 4000U);
  ASSERT_EQ(rows[0][1], "ref_rne_nosat");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(HalfCode(FloatOf(rows[i][0])), Hex(rows[i][1])) << rows[i][0];
  }
}

// 1 in 4093 of all float32 values, a prime, so that all their bits vary.
TEST(Half, IsWhatTheRecordGives) {
  const NumberFormat format = FindFormat("float16").value();
  for (std::uint64_t bits = 0; bits <= 0xffffffffU; bits += 4093) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(HalfCode(value), Encode(value, format).code) << bits;
  }
}

}  // namespace
}  // namespace fourpiles
