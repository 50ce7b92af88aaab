#include "audit/audit_format.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(AuditFormat, NamesAreWhole) {
  EXPECT_EQ(FindAuditFormat("fp16")->name, "float16");
  EXPECT_EQ(FindAuditFormat("e4m3")->name, "float8_e4m3fn");
  EXPECT_EQ(FindAuditFormat("mxfp4")->name, "mxfp4:scale=floor");
}

TEST(AuditFormat, OneValueCanBeScaled) {
  const auto scaled = FindAuditFormat("e4m3:scaled");
  ASSERT_TRUE(scaled.has_value());
  EXPECT_EQ(scaled->name, "float8_e4m3fn:scaled");
  EXPECT_TRUE(scaled->scaled);
  EXPECT_FALSE(FindAuditFormat("mxfp4:scaled").has_value());
  EXPECT_FALSE(FindAuditFormat("nonsense").has_value());
}

}  // namespace
}  // namespace fourpiles
