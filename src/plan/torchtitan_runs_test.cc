// Runs of torchtitan against what it measured: tables of its benchmarks and messages of its commits
// (tests/data/runs/torchtitan.jsonl has the sources). Reserved memory, in GiB.

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "plan/validate_training.h"

namespace fourpiles {
namespace {

std::map<std::string, ValidatedRun> Runs() {
  std::ifstream file(FOURPILES_TEST_DATA "/runs/torchtitan.jsonl");
  const std::string rows = {std::istreambuf_iterator<char>(file), {}};
  std::map<std::string, ValidatedRun> runs;
  for (const ValidatedRun& run : Validate(rows, "runs.jsonl", TrainingRunKinds(), {}).rows) {
    runs.emplace(run.id, run);
  }
  return runs;
}

TEST(TorchtitanRuns, StandInTheBandWhichIsNarrow) {
  const std::map<std::string, ValidatedRun> runs = Runs();
  EXPECT_EQ(runs.size(), 12U);
  for (const auto& [id, run] : runs) {
    ASSERT_TRUE(run.predicted && run.band) << id << " " << run.reason;
    EXPECT_TRUE(run.in_band) << id;
    EXPECT_LE(run.band->high, 1.36 * run.band->low) << id;
    EXPECT_NEAR(*run.predicted, run.measured, 0.12 * run.measured) << id;
  }
}

// One switch at a time, of Llama-3-8B over eight devices, which differ in one cause. never: what 31
// layers have gathered stays, 31 × 218,112,000 parameters × 2 bytes, 12.59 GiB. step1: no moments,
// 8 × 8,030,261,248 ÷ 8 bytes, 7.48 GiB. chunked: float32 of one of eight chunks of the logits, not
// of all. t1: 8,192 tokens more.
TEST(TorchtitanRuns, DifferByTheirSwitch) {
  const std::map<std::string, ValidatedRun> runs = Runs();
  struct Case {
    const char* more;
    const char* less;
    double within;  // of the difference measured
  };
  constexpr Case kCases[] = {
      {"titan-reshard-never", "titan-reshard-default", 0.02},
      {"titan-reshard-default", "titan-reshard-default-step1", 0.02},
      {"titan-ce-plain", "titan-ce-chunked", 0.02},
      {"titan-t1-fsdp", "titan-reshard-default", 0.12},
      {"titan-t1-fsdp", "titan-t3-fsdp", 0.1},
  };
  for (const Case& pair : kCases) {
    const ValidatedRun& more = runs.at(pair.more);
    const ValidatedRun& less = runs.at(pair.less);
    const double measured = more.measured - less.measured;
    EXPECT_NEAR(*more.predicted - *less.predicted, measured, pair.within * measured) << pair.more;
  }
}

}  // namespace
}  // namespace fourpiles
