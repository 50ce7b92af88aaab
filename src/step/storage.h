#pragma once

// One allocation of a training step or a serving pass. A budget is a list of these, and every
// answer is a view of the list.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/units.h"

namespace fourpiles {

enum class Pile {
  kWeights,         // parameters, frozen ones and buffers too
  kGradients,       // of parameters
  kOptimizerState,  // moments, and the float32 master copy
  kActivations,     // everything kept for the backward pass
  kKvCache,         // what serving keeps for its requests
  kWorkspace,       // what lives for a moment
  kOverhead,        // what no tensor holds
};
inline constexpr Pile kPiles[] = {Pile::kWeights,     Pile::kGradients, Pile::kOptimizerState,
                                  Pile::kActivations, Pile::kKvCache,   Pile::kWorkspace,
                                  Pile::kOverhead};

enum class Place { kDevice, kHostPinned, kHost };

std::string_view Name(Pile pile);    // "optimizer_state"
std::string_view Name(Place place);  // "host_pinned"

// Bytes as well as they are known; all three alike: exact.
struct Band {
  Bytes low = Bytes(0);
  Bytes expected = Bytes(0);
  Bytes high = Bytes(0);
};
constexpr Band Exactly(Bytes bytes) {
  return {bytes, bytes, bytes};
}

// The number of an action in the schedule.
using Moment = std::int64_t;
inline constexpr Moment kAlways = INT64_MAX;  // dies: never

struct Storage {
  std::string what = {};  // "model.layers.{}.mlp.up_proj.weight × 32", "Adam exp_avg"
  Pile pile = Pile::kWeights;
  Place place = Place::kDevice;
  std::string format = {};  // as in the tables of number formats; empty where there are no elements
  Elements elements = Elements(0);
  Band bytes = {};
  Moment born = 0;           // alive from this moment …
  Moment dies = kAlways;     // … until before this one
  std::string formula = {};  // in the field's words: "32 × 4096 × 14336"
  std::string source = {};   // of the formula
  // What is the same in every layer of a block, "model.layers.{} output": such storages are shown
  // in one line. Empty: stands alone.
  std::string pattern = {};
};

constexpr bool IsAlive(const Storage& storage, Moment moment) {
  return storage.born <= moment && moment < storage.dies;
}

}  // namespace fourpiles
