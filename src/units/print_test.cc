#include "units/print.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(PrintBytes, NamesTheUnit) {
  EXPECT_EQ(PrintBytes(Bytes(85'523'536'282)), "79.65 GiB");
  EXPECT_EQ(PrintBytes(Bytes(80'000'000'000), ByteUnit::kGb), "80.00 GB");
  EXPECT_EQ(PrintBytes(Bytes(53'687'091)), "51.2 MiB");
  EXPECT_EQ(PrintBytes(Bytes(512)), "512 bytes");
  EXPECT_EQ(PrintBytes(Bytes(0)), "0 bytes");
  EXPECT_EQ(PrintBytes(Bytes(1)), "1 byte");
  EXPECT_EQ(PrintBytes(Bytes(1500), ByteUnit::kGb), "1.5 kB");
}

TEST(PrintBytes, KeepsTheSign) {
  EXPECT_EQ(PrintBytes(Bytes(-85'523'536'282)), "-79.65 GiB");
  EXPECT_EQ(PrintBytes(Bytes(-512)), "-512 bytes");
}

TEST(PrintBytes, TakesTheNextUnitRatherThanAThousand) {
  EXPECT_EQ(PrintBytes(Bytes(1023)), "1023 bytes");
  EXPECT_EQ(PrintBytes(Bytes(1024)), "1.0 KiB");
  EXPECT_EQ(PrintBytes(Bytes((1 << 20) - 1)), "1.0 MiB");
  EXPECT_EQ(PrintBytes(Bytes(999'900), ByteUnit::kGb), "999.9 kB");
  EXPECT_EQ(PrintBytes(Bytes(999'999), ByteUnit::kGb), "1.0 MB");
  EXPECT_EQ(PrintBytes(Bytes(99'999'999), ByteUnit::kGb), "100.0 MB");
  EXPECT_EQ(PrintBytes(Bytes(100'000'000), ByteUnit::kGb), "0.10 GB");
  EXPECT_EQ(PrintBytes(Bytes(9'007'199'254'740'992)), "8388608.00 GiB");
}

TEST(PrintGrouped, SetsCommas) {
  EXPECT_EQ(PrintGrouped(8'030'261'248), "8,030,261,248");
  EXPECT_EQ(PrintGrouped(999), "999");
  EXPECT_EQ(PrintGrouped(-1000), "-1,000");
  EXPECT_EQ(PrintGrouped(-100), "-100");
}

TEST(PrintCount, KeepsThreeDigits) {
  EXPECT_EQ(PrintCount(8'030'261'248), "8.03 B");
  EXPECT_EQ(PrintCount(350'000'000), "350 M");
  EXPECT_EQ(PrintCount(4096), "4096");
  EXPECT_EQ(PrintCount(999'999), "999999");
  EXPECT_EQ(PrintCount(999'499'999), "999 M");
  EXPECT_EQ(PrintCount(999'999'999), "1 B");
  EXPECT_EQ(PrintCount(-1'500'000'000), "-1.5 B");
  EXPECT_EQ(PrintCount(9'007'199'254'740'992), "9007 T");
}

}  // namespace
}  // namespace fourpiles
