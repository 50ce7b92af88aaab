#include "step/tiny_plays.h"

#include <utility>

namespace fourpiles {

Part TinyPart(Network network, const Batch& batch) {
  const ElementType bfloat16 = TypeOf(FindFormat("bfloat16").value());
  Part part;
  part.rank = "rank 0";
  part.network = std::make_shared<const Network>(std::move(network));
  part.schedule = TrainingSchedule(*part.network, {.every_layer = true});
  part.batch = batch;
  part.numbers = {.weights = bfloat16, .compute = bfloat16};
  part.gradients = GradientUse::kAdded;
  return part;
}

Tape Played(const Part& part, std::string_view implementation, const ProfileChoices& choices) {
  return Play(part, FindProfile(implementation, choices).value()).value();
}

std::int64_t KeptByLayer(Network (*make)(const TinySizes&), TinySizes sizes, const Batch& batch,
                         std::string_view implementation, const Variant& variant) {
  const auto kept = [&](std::int64_t layers) {
    sizes.layers = layers;
    Part part = TinyPart(make(sizes), batch);
    part.recompute = variant.recompute;
    return SavedActivations(Played(part, implementation, {.attention = variant.attention})).value();
  };
  return kept(4) - kept(3);
}

}  // namespace fourpiles
