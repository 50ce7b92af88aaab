#include "cli/progress.h"

#include <gtest/gtest.h>

namespace fourpiles::cli {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

TEST(Progress, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(ProgressText(kGib, 4 * kGib, 2), "25 %, 1.00 GiB of 4.00 GiB, 0.50 GiB/s, 0:06 left");
  EXPECT_EQ(ProgressText(kGib, 1025 * kGib, 4),
            "0 %, 1.00 GiB of 1025.00 GiB, 0.25 GiB/s, 1:08:16 left");
}

TEST(Progress, HasNoRateBeforeAnythingIsDone) {
  EXPECT_EQ(ProgressText(0, 4 * kGib, 2), "0 %, 0 bytes of 4.00 GiB");
}

TEST(Progress, IsAllOfNothing) {
  EXPECT_EQ(ProgressText(0, 0, 1), "100 %, 0 bytes of 0 bytes");
}

}  // namespace
}  // namespace fourpiles::cli
