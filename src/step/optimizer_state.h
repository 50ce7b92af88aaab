#pragma once

// What one state of an optimizer comes to, over all parameters that are trained.

#include <string>
#include <vector>

#include "model/network.h"
#include "step/memory.h"
#include "step/optimizer.h"

namespace fourpiles {

// Of all tensors that keep it in the same way.
struct StateAmount {
  std::string what = {};   // "exp_avg", "exp_avg scales"
  std::string words = {};  // what the elements are: "trainable parameters"
  ElementType type = {};
  Place place = Place::kDevice;
  std::int64_t elements = 0;
};

// The amounts of a state, in the order of the network; `usual` is the format of the recipe's
// states.
std::vector<StateAmount> AmountsOf(const Network& network, const Optimizer& optimizer,
                                   const OptimizerState& state, const NumberFormat& usual);

}  // namespace fourpiles
