#include "step/play.h"

#include <gtest/gtest.h>

#include "step/lines.h"

namespace fourpiles {
namespace {

NumberFormat Format(const char* name) {
  return FindFormat(name).value();
}

// Three layers of width 8 with 10 parameters each, and an embedding of 100.
Network SmallNetwork() {
  Network network;
  network.hidden_size = 8;
  network.blocks = {
      {.name = "embed", .parameters = {{.name = "weight", .shape = {100}}}},
      {.name = "layers.{}", .repeat = 3, .parameters = {{.name = "w", .shape = {10}}}}};
  AddLayerOperators(network);
  return network;
}

Part SmallPart(std::int64_t micro_batches) {
  Part part;
  part.network = SmallNetwork();
  part.schedule = TrainingSchedule(part.network, micro_batches);
  part.shapes = {.micro_batch_size = 2, .sequence_length = 4, .activation_format = Format("fp16")};
  part.resident = {{.what = "weights", .bytes = Exactly(Bytes(520))}};
  return part;
}

Tape Played(const Part& part) {
  return Play(part, kLowerBound).value();
}

TEST(Schedule, RunsForwardBackwardAndOneStep) {
  const Tape tape = Played(SmallPart(1));
  const std::vector<std::string> expected = {
      "forward of embed",     "forward of layers.0",  "forward of layers.1",
      "forward of layers.2",  "backward of layers.2", "backward of layers.1",
      "backward of layers.0", "backward of embed",    "optimizer step"};
  EXPECT_EQ(tape.moments, expected);
}

TEST(Schedule, PlaysAlikeMicroBatchesOnce) {
  const Network network = SmallNetwork();
  EXPECT_EQ(TrainingSchedule(network, 3).size(), 3 * 8 + 1U);
  EXPECT_EQ(TrainingSchedule(network, 1'000'000).size(), 3 * 8 + 1U);
}

// Each layer keeps 2 × 4 × 8 elements of 2 bytes; all three are alive when forward ends.
TEST(Play, ActivationsLiveFromForwardToBackward) {
  const Tape tape = Played(SmallPart(1));
  const auto activations = [&](Moment moment) {
    return PilesAt(tape, Place::kDevice, moment).at(Pile::kActivations).value();
  };
  EXPECT_EQ(activations(0), 0);
  EXPECT_EQ(activations(1), 128);
  EXPECT_EQ(activations(3), 3 * 128);
  EXPECT_EQ(activations(4), 3 * 128);  // still used by the backward pass of the layer
  EXPECT_EQ(activations(5), 2 * 128);
  EXPECT_EQ(activations(8), 0);
}

TEST(Play, ThePeakIsTheFirstLargestMoment) {
  const Peak peak = PeakOf(Played(SmallPart(1)), Place::kDevice);
  EXPECT_EQ(peak.bytes.value(), 520 + 3 * 128);
  EXPECT_EQ(peak.moment, 3);
}

TEST(Play, GradientsAreBornInBackwardOfTheFirstMicroBatchAndStay) {
  Part part = SmallPart(2);
  part.born_gradients = Format("float32");
  const Tape tape = Played(part);
  const auto gradients = [&](Moment moment) {
    return PilesAt(tape, Place::kDevice, moment).at(Pile::kGradients).value();
  };
  EXPECT_EQ(gradients(3), 0);
  EXPECT_EQ(gradients(4), 40);  // 10 parameters of layer 2
  EXPECT_EQ(gradients(7), 40 * 3 + 400);
  EXPECT_EQ(gradients(11), 40 * 3 + 400);  // the second micro-batch adds to the same buffers
  EXPECT_EQ(gradients(16), 40 * 3 + 400);  // the step reads them
}

TEST(Play, PilesSumToTheTotalAtEveryMomentAndNothingDiesTwice) {
  Part part = SmallPart(3);
  part.born_gradients = Format("bfloat16");
  const Tape tape = Played(part);
  Bytes largest(0);
  for (Moment moment = 0; moment < std::ssize(tape.moments); ++moment) {
    Bytes piles(0);
    for (const auto& [pile, bytes] : PilesAt(tape, Place::kDevice, moment)) {
      piles += bytes;
    }
    Bytes lines(0);
    for (const Line& line : LinesAt(tape, Place::kDevice, moment)) {
      lines += line.bytes;
    }
    EXPECT_EQ(piles, lines) << moment;
    largest = std::max(largest, piles);
  }
  EXPECT_EQ(PeakOf(tape, Place::kDevice).bytes, largest);
  for (const Storage& storage : tape.storages) {
    EXPECT_LT(storage.born, storage.dies) << storage.what;
    EXPECT_TRUE(storage.dies == kAlways || storage.dies <= std::ssize(tape.moments));
  }
}

TEST(Play, RefusesProductsPast2To53) {
  Part part = SmallPart(1);
  part.shapes.micro_batch_size = std::int64_t{1} << 40;
  part.shapes.sequence_length = std::int64_t{1} << 40;
  const Result<Tape> tape = Play(part, kLowerBound);
  ASSERT_FALSE(tape);
  EXPECT_EQ(tape.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(tape.error().text.found, "layers.0 output passes 2^53 bytes");
}

TEST(Lines, StoragesAlikeStandInOne) {
  const Tape tape = Played(SmallPart(1));
  const std::vector<Line> lines = LinesAt(tape, Place::kDevice, 3);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].what, "layers.{} output × 3");
  EXPECT_EQ(lines[1].elements.value(), 3 * 64);
}

}  // namespace
}  // namespace fourpiles
