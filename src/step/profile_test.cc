#include "step/profile.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error_text.h"
#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};

TEST(Profile, EveryImplementationHasSummaryAndSource) {
  for (const std::string_view name : ImplementationNames()) {
    const Profile profile = FindProfile(name).value();
    EXPECT_EQ(profile.name, name);
    EXPECT_GE(profile.summary.size(), 10U) << name;
    EXPECT_GE(profile.source.size(), 10U) << name;
  }
}

// Every implementation runs both networks but where it lacks them: llm.c has no Llama, LitGPT no
// learned positions.
TEST(Profile, RunsGptAndLlama) {
  for (const std::string_view name : ImplementationNames()) {
    const Profile profile = FindProfile(name).value();
    const bool llmc = name.starts_with("llm.c");
    EXPECT_EQ(Play(TinyPart(TinyGpt({}), kBatch), profile).has_value(), name != "litgpt") << name;
    EXPECT_EQ(Play(TinyPart(TinyLlama({}), kBatch), profile).has_value(), !llmc) << name;
  }
}

// Whatever is chosen, all that is kept is let go of again.
TEST(Profile, NothingIsKeptWhenTheStepIsOver) {
  for (const std::string_view name : ImplementationNames()) {
    for (Network (*make)(const TinySizes&) : {TinyGpt, TinyLlama}) {
      const Result<Tape> tape =
          Play(TinyPart(make({.layers = 7}), kBatch), FindProfile(name).value());
      if (!tape || name.starts_with("llm.c")) {
        continue;
      }
      const Moment last = std::ssize(tape->moments) - 1;
      EXPECT_EQ(PilesAt(*tape, Place::kDevice, last).at(Pile::kActivations), Bytes(0)) << name;
    }
  }
}

// An action that stands for several layers sums up to what they do each for themselves.
TEST(Profile, LayersAlikeSumUp) {
  for (const std::string_view name : ImplementationNames()) {
    for (Network (*make)(const TinySizes&) : {TinyGpt, TinyLlama}) {
      Part part = TinyPart(make({.layers = 9, .dropout = true}), kBatch);
      const Result<Tape> each = Play(part, FindProfile(name).value());
      part.schedule = TrainingSchedule(*part.network, {});
      const Result<Tape> folded = Play(part, FindProfile(name).value());
      ASSERT_EQ(each.has_value(), folded.has_value()) << name;
      if (each) {
        EXPECT_EQ(SavedActivations(*each), SavedActivations(*folded)) << name;
        EXPECT_EQ(PeakOf(*each, Place::kDevice).bytes, PeakOf(*folded, Place::kDevice).bytes)
            << name;
      }
    }
  }
}

template <class T>
std::string Message(const Result<T>& result) {
  return result ? "no error" : ErrorMessage(result.error());
}

TEST(Profile, RefusesAnUnknownImplementation) {
  EXPECT_EQ(
      Message(FindProfile("megatronn")),
      "error: --implementation: unknown implementation \"megatronn\", did you mean "
      "\"megatron\"?\n"
      "hint: known: pytorch, pytorch-2.1, pytorch-1, pytorch-1.13-cpu, pytorch-compile, "
      "pytorch-fsdp1, "
      "liger, torchtune, "
      "torchtune-compile, torchtitan, torchtitan-compile, torchtitan-2024, "
      "torchtitan-2024-compile, megatron, megatron-separate-gradients, llm.c, llm.c-r0, llm.c-r2, "
      "litgpt\n");
}

TEST(Profile, RefusesAttentionThatTheImplementationLacks) {
  EXPECT_EQ(Message(FindProfile("llm.c", {.attention = AttentionKind::kEager})),
            "error: --attention: llm.c has no eager attention, expected flash\n"
            "hint: leave it out for that of llm.c, or choose another implementation\n");
}

TEST(Profile, RefusesALossThatTheImplementationLacks) {
  EXPECT_EQ(Message(FindProfile("megatron", {.loss = LossKind::kChunked})),
            "error: --loss: megatron has no chunked loss, expected plain\n"
            "hint: leave it out for that of megatron, or choose another implementation\n");
}

TEST(Profile, RefusesANetworkThatTheImplementationLacks) {
  EXPECT_EQ(Message(Play(TinyPart(TinyLlama({}), kBatch), FindProfile("llm.c").value())),
            "error: --implementation: llm.c has no rule for norm_1 of layers.0, expected an "
            "implementation that runs this network\n"
            "hint: --implementation pytorch has rules for all\n");
}

TEST(Profile, RefusesToRunLayersAgainWhereAllIsAllocatedOnce) {
  Part part = TinyPart(TinyGpt({}), kBatch);
  part.recompute = {.kind = RecomputeKind::kLayers};
  EXPECT_EQ(Message(Play(part, FindProfile("llm.c").value())),
            "error: --recompute: llm.c does not run layers again, expected none\n"
            "hint: --implementation llm.c-r2 computes GELU and layer norms again\n");
}

}  // namespace
}  // namespace fourpiles
