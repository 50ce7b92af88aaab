#include "step/allocator_run.h"

#include <memory>

#include <gtest/gtest.h>

#include "step/test_networks.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A moment each of the forward pass, the backward pass and the optimizer's step.
Tape ThreeMoments(std::shared_ptr<const Network> network) {
  Tape tape;
  tape.network = std::move(network);
  tape.actions = {
      {.kind = ActionKind::kForward}, {.kind = ActionKind::kBackward}, {.kind = ActionKind::kStep}};
  tape.moments = {{.action = 0}, {.action = 1}, {.action = 2}};
  return tape;
}

Storage Resident(Pile pile, std::int64_t elements, std::int64_t bytes) {
  return {.pile = pile, .elements = Elements(elements), .bytes = Exactly(Bytes(bytes)), .text = 0};
}

Storage Activation(std::int64_t bytes) {
  return {
      .pile = Pile::kActivations, .bytes = Exactly(Bytes(bytes)), .made = 0, .born = 0, .dies = 2};
}

// The weight and the activation share a segment of 20 MiB. When the activation is freed, the state
// is born in its place; so in the second step the activation needs a segment of its own.
TEST(AllocatorRun, StatesOfTheOptimizerAreBornWhereActivationsWere) {
  Tape tape = ThreeMoments(std::make_shared<const Network>());
  tape.storages = {Resident(Pile::kWeights, 0, 4 * kMiB),
                   Resident(Pile::kOptimizerState, 0, 8 * kMiB), Activation(12 * kMiB)};
  const AllocatorPeaks peaks = ReplayAllocator(AllocatorRunOf(tape, {}));
  EXPECT_EQ(peaks.allocated.value(), 24 * kMiB);
  EXPECT_EQ(peaks.reserved.value(), 32 * kMiB);
}

// 12 MiB of one stream until the last moment, 8 of another in it: never 20 at once, and yet
// reserved.
TEST(AllocatorRun, ReservesThePeakOfEachStream) {
  Tape tape = ThreeMoments(std::make_shared<const Network>());
  Storage gathered = Activation(8 * kMiB);
  gathered.stream = Stream::kGather;
  gathered.born = 2;
  gathered.dies = 3;
  tape.storages = {Activation(12 * kMiB), gathered};
  EXPECT_EQ(PeakOf(tape, Place::kDevice).bytes.value(), 12 * kMiB);
  EXPECT_EQ(PeaksOfStreams(tape).value(), 20 * kMiB);
  EXPECT_GE(ReplayAllocator(AllocatorRunOf(tape, {})).reserved, PeaksOfStreams(tape));
}

TEST(AllocatorRun, LibrariesAskFirst) {
  const Bytes libraries[] = {Bytes(3), Bytes(4)};
  const Tape tape = ThreeMoments(std::make_shared<const Network>());
  const std::vector<AllocatorEvent> events = AllocatorRunOf(tape, libraries).before;
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].bytes, Bytes(3));
  EXPECT_EQ(events[1].bytes, Bytes(4));
}

TEST(AllocatorRun, LeavesOverheadAndTheHostOut) {
  Tape tape = ThreeMoments(std::make_shared<const Network>());
  tape.storages = {Resident(Pile::kOverhead, 0, kMiB), Resident(Pile::kWeights, 0, kMiB)};
  tape.storages.back().place = Place::kHost;
  const AllocatorRun run = AllocatorRunOf(tape, {});
  EXPECT_TRUE(run.before.empty());
  EXPECT_TRUE(run.step.empty());
}

// SevenLayers: in each layer a matrix of 8 × 32 and one of 32 × 8.
TEST(AllocatorRun, AStorageOfAllLayersIsATensorInEach) {
  Tape tape = ThreeMoments(SevenLayers());
  tape.storages = {Resident(Pile::kWeights, 7 * 8 * 32, 4 * 7 * 8 * 32)};
  const std::vector<AllocatorEvent> events = AllocatorRunOf(tape, {}).before;
  ASSERT_EQ(events.size(), 7U);
  for (const AllocatorEvent& event : events) {
    EXPECT_EQ(event.bytes, Bytes(4 * 8 * 32));
  }
}

// SevenLayers: 100 × 8 twice, and in each layer two of 8 × 32; 5184 parameters in all.
TEST(AllocatorRun, TemporariesOverAllParametersAreATensorForEach) {
  Tape tape = ThreeMoments(SevenLayers());
  tape.storages = {{.pile = Pile::kWorkspace,
                    .bytes = Exactly(Bytes(4 * 5184)),
                    .made = 2,
                    .born = 2,
                    .dies = 3}};
  const AllocatorRun run = AllocatorRunOf(tape, {});
  const std::vector<AllocatorEvent>& events = run.step;
  ASSERT_EQ(events.size(), 2U * 16);  // asked for and freed
  EXPECT_TRUE(run.before.empty());
  EXPECT_EQ(events.front().bytes, Bytes(4 * 800));
  EXPECT_EQ(events[15].bytes, Bytes(4 * 800));
  EXPECT_EQ(events[1].bytes, Bytes(4 * 256));
  EXPECT_FALSE(events[16].bytes);
}

}  // namespace
}  // namespace fourpiles
