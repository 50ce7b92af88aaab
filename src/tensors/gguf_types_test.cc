#include "tensors/gguf_types.h"

#include <string_view>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// Names, blocks and bytes as ggml d99724f2 prints them from its own table.
TEST(GgufTypes, HaveTheBlocksOfGgml) {
  struct Row {
    std::uint32_t id;
    std::string_view dtype;
    int elements;
    int bytes;
  };
  constexpr Row kRows[] = {
      {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
      {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
      {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
      {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
      {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
      {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
      {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
      {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
  };
  GgufTypes types;
  std::size_t known = 0;
  for (std::uint32_t id = 0; id < 500; ++id) {
    known += types.Find(id).type != nullptr ? 1U : 0U;
  }
  EXPECT_EQ(known, std::size(kRows));
  for (const Row& row : kRows) {
    const GgufType& type = types.Find(row.id);
    EXPECT_EQ(type.dtype, row.dtype);
    ASSERT_NE(type.type, nullptr) << row.dtype;
    EXPECT_EQ(type.type->block_elements, row.elements) << row.dtype;
    EXPECT_EQ(type.type->block_bits, row.bytes * 8) << row.dtype;
  }
}

TEST(GgufTypes, NamesRemovedTypesAndThoseOfForks) {
  EXPECT_EQ(GgufTypeOf(4).dtype, "Q4_2 (removed)");
  EXPECT_EQ(GgufTypeOf(36).dtype, "I2_S (BitNet)");
  EXPECT_EQ(GgufTypeOf(139).dtype, "IQ4_K (ik_llama.cpp)");
  EXPECT_EQ(GgufTypeOf(203).dtype, "type 203");
  EXPECT_EQ(GgufTypeOf(203).description, "tensor type 203 (a number of ik_llama.cpp)");
  EXPECT_EQ(GgufTypeOf(96).description, "tensor type 96");
}

}  // namespace
}  // namespace fourpiles
