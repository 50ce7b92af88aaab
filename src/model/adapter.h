#pragma once

// Low-rank adapters: beside a linear layer's weight W, which stays as it is, stand two small
// matrices A and B, and its output becomes W x + B A x (Hu et al. 2021, LoRA, arXiv 2106.09685,
// section 4.1). Only they are trained, so gradients and optimizer state shrink to theirs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"

namespace fourpiles {

struct LoraAdapter {
  std::int64_t rank = 8;
  // The last parts of the names of linear layers, "q_proj"; empty: every linear layer.
  std::vector<std::string> targets = {};
  // Kept in float32 whatever the recipe's format, as peft does (get_peft_model,
  // autocast_adapter_dtype).
  bool float32 = true;
  double dropout = 0;  // the probability; the input of A has dropout where it is not 0
};

// Freezes every parameter, puts A (rank × in) and B (out × rank) beside the weight of each targeted
// linear layer, under the names that peft gives them, and tells the operators of these layers. An
// adapter of rank 8 on a layer of 768 to 2304 has 8 × (768 + 2304) = 24,576 parameters.
//
// Targets are looked for in the numbered layers, never in the output layer, as peft's "all-linear"
// does (peft/tuners/tuners_utils.py, _maybe_include_all_linear_layers); routed experts, which are
// run by a kernel of their own, and their router are left alone. Where the operators are not
// described a linear layer is a matrix that is no norm.
//
// Error, at `where`: a target that no linear layer is called.
Result<Network> WithAdapter(Network network, const LoraAdapter& adapter, std::string_view where);

}  // namespace fourpiles
