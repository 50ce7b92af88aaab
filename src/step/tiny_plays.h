#pragma once

// How tests of the profiles play the tiny networks.

#include "step/play.h"
#include "step/tiny_networks.h"

namespace fourpiles {

// Forward, backward and step of one micro-batch in bfloat16, without residents.
Part TinyPart(Network network, const Batch& batch);
Tape Played(const Part& part, std::string_view implementation, const ProfileChoices& choices = {});

// What one more layer keeps for the backward pass.
struct Variant {
  std::optional<AttentionKind> attention = {};
  Recompute recompute = {};
};
std::int64_t KeptByLayer(Network (*make)(const TinySizes&), TinySizes sizes, const Batch& batch,
                         std::string_view implementation, const Variant& variant = {});

}  // namespace fourpiles
