#include "plan/log_amount.h"

#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

using State = LoggedAmount::State;

struct AmountCase {
  std::string text;
  std::string_view unit;
  double value;
  double half;
};

TEST(LogAmount, ReadsWhatLogsPrint) {
  const double mib = 1024.0 * 1024.0;
  const double gib = 1024.0 * mib;
  const AmountCase cases[] = {
      {"1024.00 MiB", "?", 1024 * mib, 0.005 * mib},
      {"  512.00 MiB, V", "?", 512 * mib, 0.005 * mib},
      {"79.22GiB) x", "?", 79.22 * gib, 0.005 * gib},
      {"14.9888 GB and", "?", 14.9888 * gib, 0.00005 * gib},
      {"24077 = 23600", "MiB", 24077 * mib, 0.5 * mib},
      {"8347223347` to", "bytes", 8347223347.0, 0.5},
      {"32786058444 bytes.", "bytes", 32786058444.0, 0.5},
      {"216,496 tokens", "", 216496, 0.5},
      {"1,823,372 tokens", "", 1823372, 0.5},
      {"75840,", "", 75840, 0.5},
      {"2.48x", "", 2.48, 0.005},
      {"17,93 MiB", "?", 17.93 * mib, 0.005 * mib},
      {"1e3 x", "", 1000, 500},
      {"-0.00 GB", "?", 0, 0.005 * gib},
  };
  for (const AmountCase& one : cases) {
    const LoggedAmount read = ReadAmount(one.text, 0, one.unit);
    ASSERT_EQ(read.state, State::kFound) << one.text;
    EXPECT_DOUBLE_EQ(read.amount.value, one.value) << one.text;
    EXPECT_DOUBLE_EQ(read.amount.half, one.half) << one.text;
  }
}

TEST(LogAmount, TellsWhatCannotBeFromWhatIsNone) {
  for (const std::string text : {"", "MiB", "abc", "12.5 tokens", ",123 MiB", "12"}) {
    EXPECT_EQ(ReadAmount(text, 0, "?").state, State::kAbsent) << text;
  }
  for (const std::string text : {"1e400 MiB", "-1.86 GB", "9007199254740994 bytes", "1e300 GiB",
                                 "0e-512000GiB", "99999999999999999999999999 MiB"}) {
    EXPECT_EQ(ReadAmount(text, 0, "?").state, State::kImpossible) << text;
  }
  EXPECT_EQ(ReadAmount(std::string(1000, '9'), 0, "").state, State::kImpossible);
}

TEST(LogAmount, EndsBehindTheUnit) {
  EXPECT_EQ(ReadAmount("x 12.5 GiB.", 1, "?").end, 10u);
  EXPECT_EQ(ReadAmount("12,345", 0, "").end, 6u);
  EXPECT_EQ(ReadAmount("12,3456", 0, "").end, 2u);
}

}  // namespace
}  // namespace fourpiles
