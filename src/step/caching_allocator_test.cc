#include "step/caching_allocator.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

// Expected figures are worked by hand from the constants of PyTorch's
// c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize 512 bytes, kSmallSize 1 MiB, kSmallBuffer 2 MiB,
// kLargeBuffer 20 MiB, kMinLargeAlloc 10 MiB, kRoundLarge 2 MiB.

namespace fourpiles {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

AllocatorEvent New(std::int32_t tensor, std::int64_t bytes) {
  return {.tensor = tensor, .bytes = Bytes(bytes)};
}
AllocatorEvent Free(std::int32_t tensor) {
  return {.tensor = tensor};
}

AllocatorPeaks Replay(const std::vector<AllocatorEvent>& events,
                      const AllocatorSettings& settings = {}) {
  return ReplayAllocator({.step = events}, settings);
}

constexpr AllocatorSettings kExpandable = {.expandable_segments = true};

TEST(CachingAllocator, RoundsRequestsTo512Bytes) {
  EXPECT_EQ(RoundedRequest(Bytes(1)).value(), 512);
  EXPECT_EQ(RoundedRequest(Bytes(512)).value(), 512);
  EXPECT_EQ(RoundedRequest(Bytes(513)).value(), 1024);
}

// PyTorch's notes on CUDA memory (docs, notes/cuda.rst, roundup_power2_divisions): "if we need to
// round-up size of 1200 and if number of divisions is 4, … the values are 1024, 1280, 1536, and
// 1792. So, allocation size of 1200 will be rounded to 1280". In KiB here, as round_size leaves
// requests alone that are not above 512 bytes × 4.
TEST(CachingAllocator, RoundsToDivisionsOfPowersOfTwoWhereAsked) {
  EXPECT_EQ(RoundedRequest(Bytes(1200 << 10), 4).value(), 1280 << 10);
  EXPECT_EQ(RoundedRequest(Bytes(1024 << 10), 4).value(), 1024 << 10);
  EXPECT_EQ(RoundedRequest(Bytes(1200), 4).value(), 1536);
}

TEST(CachingAllocator, SegmentsDependOnTheRequest) {
  struct Case {
    std::int64_t request;
    std::int64_t reserved;
  };
  for (const auto& [request, reserved] : {Case{1, 2 * kMiB},
                                          {kMiB, 2 * kMiB},
                                          {kMiB + 1, 20 * kMiB},
                                          {10 * kMiB - 512, 20 * kMiB},
                                          {10 * kMiB, 10 * kMiB},
                                          {10 * kMiB + 1, 12 * kMiB}}) {
    EXPECT_EQ(Replay({New(0, request)}).reserved.value(), reserved) << request;
  }
}

TEST(CachingAllocator, AnEmptyTensorTakesNothing) {
  const AllocatorPeaks peaks = Replay({New(0, 0), Free(0)});
  EXPECT_EQ(peaks.reserved.value(), 0);
  EXPECT_EQ(peaks.allocated.value(), 0);
}

TEST(CachingAllocator, TensorsShareASegmentWhileItHasRoom) {
  // 8 + 8 of 20 MiB; the 4 that are left do not hold a third.
  EXPECT_EQ(Replay({New(0, 8 * kMiB), New(1, 8 * kMiB)}).reserved.value(), 20 * kMiB);
  EXPECT_EQ(Replay({New(0, 8 * kMiB), New(1, 8 * kMiB), New(2, 8 * kMiB)}).reserved.value(),
            40 * kMiB);
}

TEST(CachingAllocator, SmallAndLargeRequestsDoNotShare) {
  EXPECT_EQ(Replay({New(0, 2 * kMiB), New(1, kMiB)}).reserved.value(), 22 * kMiB);
}

// Of the segment of 12 MiB is left 1 MiB, which is not more than kSmallSize.
TEST(CachingAllocator, ATensorKeepsARemainderThatIsNotWorthSplitting) {
  const AllocatorPeaks peaks = Replay({New(0, 11 * kMiB)});
  EXPECT_EQ(peaks.requested.value(), 11 * kMiB);
  EXPECT_EQ(peaks.allocated.value(), 12 * kMiB);
  EXPECT_EQ(Replay({New(0, 11 * kMiB - 512)}).allocated.value(), 11 * kMiB - 512);
  EXPECT_EQ(Replay({New(0, 11 * kMiB)}, kExpandable).allocated.value(), 11 * kMiB);
}

TEST(CachingAllocator, FreedNeighboursMerge) {
  for (const std::int32_t first : {0, 1}) {
    EXPECT_EQ(Replay({New(0, 8 * kMiB), New(1, 8 * kMiB), Free(first), Free(1 - first),
                      New(2, 20 * kMiB)})
                  .reserved.value(),
              20 * kMiB);
  }
}

// Of 20 MiB are free 8 and 4, which do not touch: 9 do not fit, so reserved is 40 where never more
// than 17 are allocated.
TEST(CachingAllocator, PiecesThatDoNotTouchDoNotHoldALargerTensor) {
  const AllocatorPeaks peaks =
      Replay({New(0, 8 * kMiB), New(1, 8 * kMiB), Free(0), New(2, 9 * kMiB)});
  EXPECT_EQ(peaks.allocated.value(), 17 * kMiB);
  EXPECT_EQ(peaks.reserved.value(), 40 * kMiB);
}

// 12 and 30 are free: 12 − 1/2 takes the first, so 30 is there for the next.
TEST(CachingAllocator, TakesTheSmallestBlockThatFits) {
  const AllocatorPeaks peaks = Replay({New(0, 30 * kMiB), New(1, 12 * kMiB), Free(0), Free(1),
                                       New(2, 12 * kMiB - kMiB / 2), New(3, 30 * kMiB)});
  EXPECT_EQ(peaks.reserved.value(), 42 * kMiB);
}

// Pages of 20 MiB: 16 need one, 24 two. Freed they are one block of 40, where segments of 20 are
// two and a third must be asked for.
TEST(CachingAllocator, AnExpandableSegmentGrows) {
  const std::vector<AllocatorEvent> events = {New(0, 8 * kMiB), New(1, 8 * kMiB), New(2, 8 * kMiB),
                                              Free(0),          Free(1),          Free(2),
                                              New(3, 40 * kMiB)};
  EXPECT_EQ(Replay(events, kExpandable).reserved.value(), 40 * kMiB);
  EXPECT_EQ(Replay(events).reserved.value(), 80 * kMiB);
}

// The end of the segment, 4 MiB, can grow; the hole of 8 MiB is taken first, though it is larger,
// and 12 MiB then fit after growing by one page: 20 + 20.
TEST(CachingAllocator, AHoleIsBetterThanTheEndOfAnExpandableSegment) {
  const AllocatorPeaks peaks = Replay({New(0, 8 * kMiB), New(1, 8 * kMiB), Free(0),
                                       New(2, 4 * kMiB), New(3, 4 * kMiB), New(4, 24 * kMiB)},
                                      kExpandable);
  EXPECT_EQ(peaks.allocated.value(), 40 * kMiB);
  EXPECT_EQ(peaks.reserved.value(), 40 * kMiB);
}

// The cached segment of 30 goes back before the memory ends; a living one does not.
// get_free_block takes none of another stream: 20 MiB that one gave back do not serve the other.
TEST(CachingAllocator, StreamsDoNotShareFreeBlocks) {
  for (const AllocatorSettings& settings : {AllocatorSettings(), kExpandable}) {
    AllocatorEvent other = New(0, 20 * kMiB);
    other.stream = 1;
    AllocatorEvent again = New(2, 20 * kMiB);
    again.stream = 1;
    const AllocatorPeaks peaks =
        Replay({other, Free(0), New(1, 20 * kMiB), Free(1), again, New(3, 20 * kMiB)}, settings);
    EXPECT_EQ(peaks.reserved.value(), 40 * kMiB);
    EXPECT_EQ(peaks.allocated.value(), 40 * kMiB);
  }
}

TEST(CachingAllocator, GivesFreeSegmentsBackBeforeTheMemoryEnds) {
  const AllocatorSettings settings = {.memory = Bytes(50 * kMiB)};
  const AllocatorPeaks freed = Replay({New(0, 30 * kMiB), Free(0), New(1, 40 * kMiB)}, settings);
  EXPECT_EQ(freed.reserved.value(), 40 * kMiB);
  EXPECT_FALSE(freed.out_of_memory);
  const AllocatorPeaks alive = Replay({New(0, 30 * kMiB), New(1, 40 * kMiB)}, settings);
  EXPECT_EQ(alive.reserved.value(), 70 * kMiB);
  EXPECT_TRUE(alive.out_of_memory);
}

// A step that asks for nothing new is not replayed again; every step spelled out has the same
// peaks.
TEST(CachingAllocator, RepeatsStepsUntilNothingChanges) {
  AllocatorRun run = {
      .before = {New(0, 4 * kMiB)},
      .step = {New(1, 12 * kMiB), New(2, 3 * kMiB), Free(1), New(3, 9 * kMiB), Free(3), Free(2)},
      .born = {New(4, 8 * kMiB), New(5, 512)},
      .born_at = 3};
  std::vector<AllocatorEvent> spelled = run.before;
  for (run.steps = 1; run.steps < 6; ++run.steps) {
    spelled.insert(spelled.end(), run.step.begin(), run.step.end());
    if (run.steps == 1) {
      spelled.insert(spelled.end() - 3, run.born.begin(), run.born.end());
    }
    for (const AllocatorSettings& settings :
         {AllocatorSettings{}, kExpandable, AllocatorSettings{.memory = Bytes(30 * kMiB)}}) {
      const AllocatorPeaks peaks = ReplayAllocator(run, settings);
      EXPECT_EQ(peaks.reserved, Replay(spelled, settings).reserved) << run.steps;
      EXPECT_EQ(peaks.allocated, Replay(spelled, settings).allocated) << run.steps;
    }
  }
}

// The second segment passes 40 MiB; the third is not asked for.
TEST(CachingAllocator, EndsWhereEnoughIsReserved) {
  const std::vector<AllocatorEvent> events = {New(0, 30 * kMiB), New(1, 30 * kMiB),
                                              New(2, 30 * kMiB)};
  const AllocatorRun run = {.before = events, .step = events, .steps = 3};
  EXPECT_EQ(ReplayAllocator(run, {.enough = Bytes(40 * kMiB)}).reserved.value(), 60 * kMiB);
  EXPECT_EQ(Replay(events, {.enough = Bytes(40 * kMiB)}).reserved.value(), 60 * kMiB);
  EXPECT_EQ(Replay(events, {.enough = Bytes(90 * kMiB)}).reserved.value(), 90 * kMiB);
}

// One of each run after the other is the same as all their events in a row.
TEST(CachingAllocator, PlaysStepsThatDiffer) {
  const AllocatorRun first = {.before = {New(0, 4 * kMiB)},
                              .step = {New(2, 12 * kMiB), Free(2)},
                              .born = {New(1, 8 * kMiB)},
                              .born_at = 2};
  AllocatorRun second = first;
  second.step = {New(2, 30 * kMiB), New(3, 3 * kMiB), Free(2), Free(3)};
  const AllocatorRun* const steps[] = {&first, &second, &first};
  const std::vector<AllocatorEvent> spelled = {
      New(0, 4 * kMiB), New(2, 12 * kMiB), Free(2), New(1, 8 * kMiB),  New(2, 30 * kMiB),
      New(3, 3 * kMiB), Free(2),           Free(3), New(2, 12 * kMiB), Free(2)};
  EXPECT_EQ(ReplayAllocator(steps).reserved, Replay(spelled).reserved);
  EXPECT_EQ(ReplayAllocator(steps).allocated.value(), 45 * kMiB);
}

// Many tensors of many sizes that live for many lengths: what is reserved holds what is allocated,
// and when all is free again, each pool holds a tensor of its largest segment.
TEST(CachingAllocator, HoldsWhatIsAllocated) {
  for (const AllocatorSettings& settings : {AllocatorSettings{}, kExpandable}) {
    std::vector<AllocatorEvent> events;
    std::uint32_t random = 1;
    for (std::int32_t tensor = 0; tensor < 50'000; ++tensor) {
      random = random * 1'664'525 + 1'013'904'223;  // Numerical Recipes, section 7.1
      events.push_back(New(tensor, std::int64_t{1} << (random >> 27)));
      if (tensor >= 1000) {
        events.push_back(Free(tensor - 1000));
      }
    }
    const AllocatorPeaks peaks = Replay(events, settings);
    EXPECT_LE(peaks.requested, peaks.allocated);
    EXPECT_LE(peaks.allocated, peaks.reserved);
    for (std::int32_t tensor = 49'000; tensor < 50'000; ++tensor) {
      events.push_back(Free(tensor));
    }
    events.push_back(
        New(50'000, settings.expandable_segments ? peaks.reserved.value() / 2 : 20 * kMiB));
    EXPECT_EQ(Replay(events, settings).reserved, peaks.reserved);
  }
}

}  // namespace
}  // namespace fourpiles
