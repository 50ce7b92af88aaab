#include "plan/reserved.h"

#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

AllocatorRun StepOf(const std::vector<std::int64_t>& requests) {
  AllocatorRun run = {.steps = 3};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    run.step.push_back({.tensor = static_cast<std::int32_t>(i), .bytes = Bytes(requests[i])});
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    run.step.push_back({.tensor = static_cast<std::int32_t>(i)});
  }
  return run;
}

// What is asked for at once: 40 MiB, in segments of their own.
TEST(Reserved, OfStepsAlikeIsTheReplay) {
  const AllocatorRun run = StepOf({20 * kMiB, 20 * kMiB});
  const Band band = ReservedBand(std::span(&run, 1), {});
  EXPECT_EQ(band.expected.value(), 40 * kMiB);
  EXPECT_EQ(band.low.value(), 40 * kMiB);  // tensors have them
  EXPECT_EQ(band.high.value(), 48 * kMiB);
}

// 20, 40, 60, … MiB: one order alone, from the longest down, reserves no more than the longest
// step, and one, upwards, a segment for each.
TEST(Reserved, StepsThatGrowLeavePieces) {
  std::vector<AllocatorRun> runs;
  std::int64_t all = 0;
  for (std::int64_t length = 1; length <= 20; ++length) {
    runs.push_back(StepOf({20 * length * kMiB}));
    all += 20 * length;
  }
  const Band band = ReservedBand(runs, {});
  EXPECT_GT(band.expected.value(), 400 * kMiB);
  EXPECT_LT(band.expected.value(), all * kMiB);
  EXPECT_GE(band.low.value(), 400 * kMiB);
  // Pieces go back before the memory ends: so much there is, and the longest step fits it.
  const Band limited = ReservedBand(runs, {.memory = Bytes(410 * kMiB)});
  EXPECT_LE(limited.expected.value(), 410 * kMiB);
}

// In segments that grow by pages nothing is left behind.
TEST(Reserved, ExpandableSegmentsLeaveNoPieces) {
  const std::vector<AllocatorRun> runs = {StepOf({20 * kMiB}), StepOf({40 * kMiB}),
                                          StepOf({100 * kMiB})};
  EXPECT_EQ(ReservedBand(runs, {.expandable_segments = true}).expected.value(), 100 * kMiB);
}

}  // namespace
}  // namespace fourpiles
