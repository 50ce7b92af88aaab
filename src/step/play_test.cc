#include "step/play.h"

#include <gtest/gtest.h>

#include "step/lines.h"
#include "step/test_networks.h"

namespace fourpiles {
namespace {

// --- Lower bound: of each layer its output ---

// Three layers of width 8 with 10 parameters each, and an embedding of 100.
std::shared_ptr<const Network> PlainNetwork() {
  Network network;
  network.hidden_size = 8;
  network.blocks = {
      {.name = "embed", .parameters = {{.name = "weight", .shape = {100}}}},
      {.name = "layers.{}", .repeat = 3, .parameters = {{.name = "w", .shape = {10}}}}};
  return std::make_shared<const Network>(network);
}

Part PlainPart(std::int64_t micro_batches) {
  Resident resident;
  resident.Add({.bytes = Exactly(Bytes(520))}, {.what = "weights"});
  Part part = {.network = PlainNetwork(),
               .resident = std::make_shared<const Resident>(resident),
               .batch = {.micro_batch_size = 2, .sequence_length = 4},
               .activation_format = {"float16", 16},
               .gradients = GradientUse::kDirect};
  part.schedule = TrainingSchedule(*part.network, {.micro_batches = micro_batches});
  return part;
}

Tape PlainPlay(const Part& part) {
  return Play(part, LowerBound()).value();
}

TEST(Schedule, RunsForwardBackwardAndOneStep) {
  const Tape tape = PlainPlay(PlainPart(1));
  std::vector<std::string> names;
  for (Moment moment = 0; moment < std::ssize(tape.moments); ++moment) {
    names.push_back(MomentName(tape, moment));
  }
  const std::vector<std::string> expected = {
      "forward of embed",     "forward of layers.0",  "forward of layers.1",
      "forward of layers.2",  "backward of layers.2", "backward of layers.1",
      "backward of layers.0", "backward of embed",    "optimizer step"};
  EXPECT_EQ(names, expected);
}

TEST(Schedule, PlaysAlikeMicroBatchesOnce) {
  const std::shared_ptr<const Network> kept = PlainNetwork();
  const Network& network = *kept;
  EXPECT_EQ(TrainingSchedule(network, {.micro_batches = 3}).size(), 3 * 8 + 1U);
  EXPECT_EQ(TrainingSchedule(network, {.micro_batches = 1'000'000}).size(), 3 * 8 + 1U);
}

// FSDP2: a layer's parameters are copied out as it begins and let go of as it ends, but those of
// the last; backward the next buffer is asked for ahead, and parameters go before their gradients
// are sent. What stands beside layers comes first and goes last.
TEST(Schedule, Fsdp2GathersALayerAtATime) {
  const std::shared_ptr<const Network> network = PlainNetwork();
  const std::vector<Action> actions = TrainingSchedule(
      *network,
      {.gather = {.gathers = true, .reduces = true, .root_apart = false, .copies_out = true}});
  using enum ActionKind;
  struct Expected {
    ActionKind kind;
    std::int64_t block;
    std::int64_t layer;
  };
  constexpr Expected kExpected[] = {
      {kGather, 0, 0},   {kForward, 0, 0},  {kGather, 1, 0},  {kForward, 1, 0},  {kRelease, 1, 0},
      {kGather, 1, 1},   {kForward, 1, 1},  {kRelease, 1, 1}, {kGather, 1, 2},   {kForward, 1, 2},
      {kPrefetch, 1, 1}, {kBackward, 1, 2}, {kRelease, 1, 2}, {kReduce, 1, 2},   {kGather, 1, 1},
      {kPrefetch, 1, 0}, {kBackward, 1, 1}, {kRelease, 1, 1}, {kReduce, 1, 1},   {kGather, 1, 0},
      {kBackward, 1, 0}, {kRelease, 1, 0},  {kReduce, 1, 0},  {kBackward, 0, 0}, {kRelease, 0, 0},
      {kReduce, 0, 0},   {kStep, 0, 0}};
  ASSERT_EQ(actions.size(), std::size(kExpected));
  for (std::size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(actions[i].kind, kExpected[i].kind) << i;
    EXPECT_EQ(actions[i].block, kExpected[i].block) << i;
    EXPECT_EQ(actions[i].layer, kExpected[i].layer) << i;
  }
}

// Each layer keeps 2 × 4 × 8 elements of 2 bytes; all three are alive when forward ends.
TEST(Play, ActivationsLiveFromForwardToBackward) {
  const Tape tape = PlainPlay(PlainPart(1));
  const auto activations = [&](Moment moment) {
    return PilesAt(tape, Place::kDevice, moment).at(Pile::kActivations).value();
  };
  EXPECT_EQ(activations(0), 0);
  EXPECT_EQ(activations(1), 128);
  EXPECT_EQ(activations(3), 3 * 128);
  EXPECT_EQ(activations(4), 3 * 128);  // still used by the backward pass of the layer
  EXPECT_EQ(activations(5), 2 * 128);
  EXPECT_EQ(activations(8), 0);
  EXPECT_EQ(SavedActivations(tape).value(), 3 * 128);
}

TEST(Play, ThePeakIsTheFirstLargestMoment) {
  const Peak peak = PeakOf(PlainPlay(PlainPart(1)), Place::kDevice);
  EXPECT_EQ(peak.bytes.value(), 520 + 3 * 128);
  EXPECT_EQ(peak.moment, 3);
}

TEST(Play, GradientsAreBornInBackwardOfTheFirstMicroBatchAndStay) {
  Part part = PlainPart(2);
  part.gradients = GradientUse::kBorn;
  const Tape tape = PlainPlay(part);
  const auto gradients = [&](Moment moment) {
    return PilesAt(tape, Place::kDevice, moment).at(Pile::kGradients).value();
  };
  EXPECT_EQ(gradients(3), 0);
  EXPECT_EQ(gradients(4), 40);  // 10 parameters of layer 2 in float32
  EXPECT_EQ(gradients(7), 40 * 3 + 400);
  EXPECT_EQ(gradients(11), 40 * 3 + 400);  // the second micro-batch adds to the same buffers
  EXPECT_EQ(gradients(16), 40 * 3 + 400);  // the step reads them
}

TEST(Play, RefusesProductsPast2To53) {
  Part part = PlainPart(1);
  part.batch.micro_batch_size = std::int64_t{1} << 40;
  part.batch.sequence_length = std::int64_t{1} << 40;
  const Result<Tape> tape = Play(part, LowerBound());
  ASSERT_FALSE(tape);
  EXPECT_EQ(tape.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(tape.error().text.found, "the memory of forward of layers.0 passes 2^53 bytes");
}

TEST(Lines, StoragesAlikeStandInOne) {
  const Tape tape = PlainPlay(PlainPart(1));
  const std::vector<Line> lines = LinesAt(tape, Place::kDevice, 3);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].what, "layers.{} output of layer × 3");
  EXPECT_EQ(lines[1].elements.value(), 3 * 64);
}

// --- Operators ---

Part LlamaPart(const SmallSizes& sizes, bool every_layer = false) {
  Part part = {.network = std::make_shared<const Network>(SmallLlama(sizes)),
               .batch = {.micro_batch_size = 2, .sequence_length = 32}};
  part.schedule = TrainingSchedule(*part.network, {.every_layer = every_layer});
  return part;
}

Profile ProfileOf(const char* name, AttentionKind attention = AttentionKind::kSdpa) {
  return FindProfile(name, {.attention = attention}).value();
}

Tape Played(const Part& part, const Profile& profile = ProfileOf("pytorch")) {
  return Play(part, profile).value();
}

std::int64_t PeakBytes(const Tape& tape) {
  return PeakOf(tape, Place::kDevice).bytes.value();
}

std::int64_t SavedBytes(const Part& part) {
  return SavedActivations(Played(part)).value();
}

// The variants that the properties below are tried on.
std::vector<Part> Variants(const SmallSizes& sizes, bool every_layer) {
  std::vector<Part> parts;
  for (const bool autocast : {false, true}) {
    for (const Recompute& recompute : {Recompute(), Recompute{.kind = RecomputeKind::kLayers},
                                       Recompute{.kind = RecomputeKind::kLayers, .reentrant = true},
                                       Recompute{.kind = RecomputeKind::kAttention}}) {
      for (const GradientUse use :
           {GradientUse::kBorn, GradientUse::kAdded, GradientUse::kDirect}) {
        Part part = LlamaPart(sizes, every_layer);
        part.numbers = {.compute = autocast ? ElementType{"bfloat16", 16} : kFloat32,
                        .autocast = autocast};
        part.recompute = recompute;
        part.gradients = use;
        parts.push_back(part);
      }
    }
  }
  return parts;
}

TEST(Play, PilesSumToTheTotalAtEveryMomentAndNothingDiesTwice) {
  for (const Part& part : Variants({}, false)) {
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
    EXPECT_EQ(PeakBytes(tape), largest.value());
  }
}

// The backward pass lets go of everything that the forward pass kept.
TEST(Play, NoStorageIsUsedAfterItsDeathAndActivationsDoNotOutliveTheBackwardPass) {
  for (const Part& part : Variants({}, false)) {
    const Tape tape = Played(part);
    const Moment step = std::ssize(tape.moments) - 1;
    for (const Storage& storage : tape.storages) {
      EXPECT_LT(storage.born, storage.dies);
      if (storage.pile == Pile::kActivations) {
        EXPECT_LE(storage.dies, step) << storage.slot;
      }
    }
  }
}

// Of alike layers the first two and the last two are played for themselves, and one stands for the
// others.
TEST(Play, OfRepeatedLayersFiveArePlayedAndNothingChanges) {
  for (const std::int64_t layers : {6, 9}) {
    for (const bool tied : {false, true}) {
      const std::vector<Part> folded = Variants({.layers = layers, .tied = tied}, false);
      const std::vector<Part> whole = Variants({.layers = layers, .tied = tied}, true);
      for (std::size_t i = 0; i < folded.size(); ++i) {
        const Tape a = Played(folded[i]);
        const Tape b = Played(whole[i]);
        EXPECT_LT(a.moments.size(), b.moments.size());
        EXPECT_EQ(PeakBytes(a), PeakBytes(b)) << i;
        EXPECT_EQ(SavedActivations(a), SavedActivations(b)) << i;
        EXPECT_EQ(MomentName(a, PeakOf(a, Place::kDevice).moment),
                  MomentName(b, PeakOf(b, Place::kDevice).moment));
        for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
          EXPECT_EQ(PeakOf(a, Place::kDevice, kind).bytes, PeakOf(b, Place::kDevice, kind).bytes);
        }
      }
    }
  }
}

// What doubling a size adds, tripling adds twice.
template <class Change>
void ExpectAffine(const char* what, Change change) {
  for (const AttentionKind attention : {AttentionKind::kEager, AttentionKind::kSdpa}) {
    std::vector<std::int64_t> saved;
    for (const std::int64_t times : {1, 2, 3}) {
      saved.push_back(
          SavedActivations(Played(change(times), ProfileOf("pytorch", attention))).value());
    }
    EXPECT_EQ(saved[1] - saved[0], saved[2] - saved[1]) << what;
    EXPECT_GT(saved[1], saved[0]) << what;
  }
}

TEST(Play, SavedBytesAreAffineInBatchLayersAndWidth) {
  ExpectAffine("batch", [](std::int64_t times) {
    Part part = LlamaPart({});
    part.batch.micro_batch_size = 2 * times;
    return part;
  });
  ExpectAffine("layers", [](std::int64_t times) { return LlamaPart({.layers = 7 * times}); });
  ExpectAffine("width of the feed-forward part",
               [](std::int64_t times) { return LlamaPart({.intermediate_size = 160 * times}); });
  // Heads of the same size: width and heads grow together.
  ExpectAffine("width", [](std::int64_t times) {
    return LlamaPart({.hidden_size = 64 * times, .heads = 4 * times, .key_value_heads = 2 * times});
  });
}

TEST(Play, RecomputationNeverRaisesSavedBytes) {
  for (const AttentionKind attention : {AttentionKind::kEager, AttentionKind::kSdpa}) {
    const Profile profile = ProfileOf("pytorch", attention);
    Part part = LlamaPart({.layers = 8}, true);
    const Bytes all = SavedActivations(Played(part, profile));
    part.recompute = {.kind = RecomputeKind::kAttention};
    const Bytes selective = SavedActivations(Played(part, profile));
    part.recompute = {.kind = RecomputeKind::kLayers, .every = 2};
    const Bytes every_second = SavedActivations(Played(part, profile));
    part.recompute = {.kind = RecomputeKind::kLayers};
    const Bytes full = SavedActivations(Played(part, profile));
    EXPECT_LT(full, every_second);
    EXPECT_LT(every_second, all);
    EXPECT_LE(selective, all);
  }
}

// Of every layer that is run again its input is kept: 8 × 2 × 32 × 64 × 4 bytes, and the first
// layer's input is the embedding's output. The rest stands outside the layers.
TEST(Play, FullRecomputationKeepsOneInputALayer) {
  const auto saved = [](std::int64_t layers) {
    Part part = LlamaPart({.layers = layers});
    part.recompute = {.kind = RecomputeKind::kLayers};
    return SavedBytes(part);
  };
  EXPECT_EQ(saved(8) - saved(7), std::int64_t{2} * 32 * 64 * 4);
}

TEST(Play, FrozenLayersKeepLess) {
  Network network = SmallLlama({});
  for (Block& block : network.blocks) {
    for (Parameter& parameter : block.parameters) {
      parameter.trainable = block.name.empty();
    }
  }
  Part part = LlamaPart({});
  const std::int64_t all = SavedBytes(part);
  part.network = std::make_shared<const Network>(network);
  EXPECT_LT(SavedBytes(part), all);
  // Frozen from the input on, the layers need no gradient and keep nothing.
  network.blocks.front().parameters.front().trainable = false;
  part.network = std::make_shared<const Network>(network);
  const Tape tape = Played(part);
  for (const Storage& storage : tape.storages) {
    if (storage.pile == Pile::kActivations) {
      const Kernel& birth = tape.moments[static_cast<std::size_t>(storage.born)];
      EXPECT_NE(tape.actions[static_cast<std::size_t>(birth.action)].block, 1) << storage.slot;
    }
  }
}

TEST(Play, RefusesAnOperatorWithoutARule) {
  Profile profile = ProfileOf("pytorch");
  profile.rules[static_cast<std::size_t>(OperatorKind::kRotary)] = nullptr;
  const Result<Tape> tape = Play(LlamaPart({}), profile);
  ASSERT_FALSE(tape);
  EXPECT_EQ(tape.error().text.found, "pytorch has no rule for rotary of layers.0");
}

TEST(Play, RefusesABatchThatOverflows) {
  Part part = LlamaPart({});
  part.batch.micro_batch_size = std::int64_t{1} << 40;
  part.batch.sequence_length = std::int64_t{1} << 40;
  const Result<Tape> tape = Play(part, ProfileOf("pytorch"));
  ASSERT_FALSE(tape);
  EXPECT_EQ(tape.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(tape.error().text.found,
            "the memory of forward of embed.weight.embed passes 2^53 bytes");
}

}  // namespace
}  // namespace fourpiles
