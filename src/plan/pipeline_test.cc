#include "plan/pipeline.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// Between forward and backward at a time, that which runs among them.
std::int64_t InFlight(const Layout& layout, std::int64_t stage, std::int64_t micro_batches) {
  const std::vector<std::int64_t> waiting = WaitingPasses(layout, stage, micro_batches);
  return 1 + std::accumulate(waiting.begin(), waiting.end(), std::int64_t{0});
}

// Narayanan et al. 2021, figure 4: 4 stages, 8 micro-batches; the first stage holds 4, the last 1.
TEST(Pipeline, OneForwardOneBackwardHoldsAsManyAsStagesFollow) {
  const Layout layout = {.devices = 4, .pipeline = 4};
  EXPECT_EQ(InFlight(layout, 0, 8), 4);
  EXPECT_EQ(InFlight(layout, 1, 8), 3);
  EXPECT_EQ(InFlight(layout, 2, 8), 2);
  EXPECT_EQ(InFlight(layout, 3, 8), 1);
  EXPECT_EQ(InFlight(layout, 0, 2), 2);  // no more than there are
}

TEST(Pipeline, GPipeHoldsAll) {
  const Layout layout = {.devices = 4, .pipeline = 4, .schedule = PipelineSchedule::kGPipe};
  EXPECT_EQ(InFlight(layout, 0, 8), 8);
  EXPECT_EQ(InFlight(layout, 3, 8), 8);
}

// Qi et al. 2023, table 2: ZB-H1 has p micro-batches on every stage, as 1F1B has on the first.
TEST(Pipeline, ZeroBubbleHoldsAsManyAsStagesOnEach) {
  const Layout layout = {.devices = 4, .pipeline = 4, .schedule = PipelineSchedule::kZeroBubble};
  EXPECT_EQ(InFlight(layout, 0, 8), 4);
  EXPECT_EQ(InFlight(layout, 3, 8), 4);
}

// Of 4 stages with 8 chunks of one layer and 4 micro-batches the last stage holds 7 × 4 + 1 = 29
// (the measured run of Megatron-LM, 32 layers, whose activations are those of 29 chunks).
TEST(Pipeline, InterleavedHoldsChunks) {
  const Layout layout = {.devices = 4, .pipeline = 4, .chunks = 8};
  EXPECT_EQ(InFlight(layout, 3, 4), 29);
  EXPECT_EQ(WaitingPasses(layout, 3, 4), (std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 0}));
  // 2 × 3 + 7 × 4 + 1 = 35 of 64 on the first; no more than 4 × 8 with four micro-batches.
  EXPECT_EQ(InFlight(layout, 0, 8), 35);
  EXPECT_EQ(InFlight(layout, 0, 4), 32);
}

TEST(Pipeline, InterleavedOrderIsMegatrons) {
  // 2 stages, 2 chunks, 4 micro-batches, stage 0: 2 × 1 + 1 × 2 = 4 forward passes before the first
  // one that is followed by a backward pass: chunk 0 twice, chunk 1 twice, then chunk 0 of
  // micro-batch 2 (schedules.py: groups of as many micro-batches as stages).
  const Layout layout = {.devices = 2, .pipeline = 2, .chunks = 2};
  EXPECT_EQ(WaitingPasses(layout, 0, 4), (std::vector<std::int64_t>{3, 1}));
}

}  // namespace
}  // namespace fourpiles
