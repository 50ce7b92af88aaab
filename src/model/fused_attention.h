#pragma once

// Networks whose queries, keys and values come from one linear layer.

#include "model/network.h"

namespace fourpiles {

// Puts one linear layer "qkv" in place of those that are called q_proj, k_proj and v_proj and read
// the same value, as LitGPT does whatever the checkpoint has (litgpt/model.py,
// CausalSelfAttention). Adapters of some of the three become one of the whole: a matrix A of all
// their ranks, and a matrix B with the outputs of those that have one (litgpt/lora.py,
// LoRAQKVLinear). Other networks, and layers with other adapters or trained copies, stay as they
// are.
Network WithFusedAttention(Network network);

}  // namespace fourpiles
