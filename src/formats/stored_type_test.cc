#include "formats/stored_type.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(StoredType, IsFoundByNameAndAlias) {
  EXPECT_EQ(FindStoredType("Q4_K")->name, "q4_k");
  EXPECT_EQ(FindStoredType("I8")->name, "int8");
  EXPECT_EQ(FindStoredType("BF16")->name, "bfloat16");
  EXPECT_EQ(FindStoredType("f4_e2m1")->name, "float4_e2m1fn");
  EXPECT_EQ(FindStoredType("q4_9"), nullptr);
}

// ggml-common.h: sizeof(block_q4_K) == 2 * sizeof(ggml_half) + K_SCALE_SIZE + QK_K / 2 = 144.
TEST(StoredType, TakesWholeBlocksAndFillsTheLastByteOnce) {
  EXPECT_EQ(StorageBytes(512, *FindStoredType("q4_k")).value(), 288);
  EXPECT_EQ(StorageBytes(3, *FindStoredType("int4")).value(), 2);
  EXPECT_EQ(StorageBytes(4, *FindStoredType("float6_e2m3fn")).value(), 3);
  EXPECT_EQ(StorageBytes(5, *FindStoredType("complex64")).value(), 40);
}

}  // namespace
}  // namespace fourpiles
