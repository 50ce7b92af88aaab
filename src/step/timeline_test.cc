#include "step/timeline.h"

#include <gtest/gtest.h>

#include "step/play.h"
#include "step/test_networks.h"

namespace fourpiles {
namespace {

Tape PlaySeven(bool every_layer) {
  const std::shared_ptr<const Network> network = SevenLayers();
  return Play({.network = network,
               .schedule = TrainingSchedule(*network, {.every_layer = every_layer}),
               .batch = {.micro_batch_size = 2, .sequence_length = 5}},
              FindProfile("pytorch").value())
      .value();
}

TEST(Timeline, HasAPointForEveryMoment) {
  const Tape tape = PlaySeven(true);
  EXPECT_EQ(TimelineOf(tape, Place::kDevice).size(), tape.moments.size());
}

TEST(Timeline, PilesAreThoseOfTheMoment) {
  const Tape tape = PlaySeven(true);
  const std::vector<TimelinePoint> points = TimelineOf(tape, Place::kDevice);
  for (std::size_t moment = 0; moment < points.size(); ++moment) {
    Bytes sum(0);
    for (const auto& [pile, bytes] : PilesAt(tape, Place::kDevice, static_cast<Moment>(moment))) {
      EXPECT_EQ(points[moment].piles[static_cast<std::size_t>(pile)], bytes);
      sum += bytes;
    }
    EXPECT_EQ(points[moment].bytes, sum);
  }
}

// The largest point is the peak, of this play and of the one that folds layers alike.
TEST(Timeline, TheLargestPointIsThePeak) {
  const Tape whole = PlaySeven(true);
  const Peak peak = PeakOf(whole, Place::kDevice);
  Bytes largest(0);
  for (const TimelinePoint& point : TimelineOf(whole, Place::kDevice)) {
    largest = std::max(largest, point.bytes);
  }
  EXPECT_EQ(largest, peak.bytes);
  EXPECT_EQ(TimelineOf(whole, Place::kDevice)[static_cast<std::size_t>(peak.moment)].bytes,
            largest);
  EXPECT_EQ(PeakOf(PlaySeven(false), Place::kDevice).bytes, peak.bytes);
}

// Worked by hand, 10 tokens: at the first moment the embedding's output, 10 × 8 × 4 bytes.
TEST(Timeline, BeginsWithTheFirstTensor) {
  const TimelinePoint first = TimelineOf(PlaySeven(true), Place::kDevice).front();
  EXPECT_EQ(first.bytes, Bytes(320));
}

TEST(Timeline, LeavesOverheadOutOfTheSum) {
  Tape tape;
  tape.moments = {{}, {}};
  tape.storages = {{.pile = Pile::kOverhead, .bytes = Exactly(Bytes(7)), .dies = 1},
                   {.pile = Pile::kWeights, .bytes = Exactly(Bytes(5)), .copies = 2}};
  const std::vector<TimelinePoint> points = TimelineOf(tape, Place::kDevice);
  EXPECT_EQ(points[0].bytes, Bytes(10));
  EXPECT_EQ(points[0].piles[static_cast<std::size_t>(Pile::kOverhead)], Bytes(7));
  EXPECT_EQ(points[1].piles[static_cast<std::size_t>(Pile::kOverhead)], Bytes(0));
}

}  // namespace
}  // namespace fourpiles
