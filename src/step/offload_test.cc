// Activations that stand on the host between forward and backward pass.

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;

Tape PlayedOf(std::int64_t layers, bool offloads, const Recompute& recompute = {}) {
  Part part = TinyPart(TinyLlama({.layers = layers}), kBatch);
  part.offloads_activations = offloads;
  part.recompute = recompute;
  return Played(part, "pytorch");
}

Bytes PeakAt(const Tape& tape, Place place) {
  return PeakOf(tape, place).bytes;
}

// One more layer puts all that it keeps, and no more, on the host, and the device holds as much as
// before.
TEST(Offload, TheHostHoldsWhatALayerKeeps) {
  EXPECT_EQ(
      PeakAt(PlayedOf(4, true), Place::kHostPinned) - PeakAt(PlayedOf(3, true), Place::kHostPinned),
      Bytes(KeptByLayer(TinyLlama, {}, kBatch, "pytorch")));
  EXPECT_EQ(PeakAt(PlayedOf(4, true), Place::kDevice), PeakAt(PlayedOf(3, true), Place::kDevice));
  EXPECT_EQ(PeakAt(PlayedOf(4, false), Place::kHostPinned), Bytes(0));
}

// With layers that run again their inputs go, 2h a token and layer (torchtune's use of it).
TEST(Offload, OfLayersThatRunAgainInputsGo) {
  const Recompute layers = {.kind = RecomputeKind::kLayers};
  const auto on_host = [&](std::int64_t count) {
    return PeakAt(PlayedOf(count, true, layers), Place::kHostPinned);
  };
  EXPECT_EQ(on_host(4) - on_host(3), Bytes(kTokens * 2 * 64));
}

// What stands on the host is not on the device: what the forward pass leaves there is what the loss
// keeps, the same with any number of layers.
TEST(Offload, TheDeviceKeepsWhatTheLossKeeps) {
  EXPECT_EQ(SavedActivations(PlayedOf(4, true)), SavedActivations(PlayedOf(1, true)));
  EXPECT_LT(SavedActivations(PlayedOf(4, true)), SavedActivations(PlayedOf(4, false)));
}

}  // namespace
}  // namespace fourpiles
