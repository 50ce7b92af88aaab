#pragma once

// Frozen parts: parameters that no gradient is computed for, so that they have no optimizer state
// either, and layers below the first trained one keep nothing.

#include <span>
#include <string>
#include <string_view>

#include "model/network.h"

namespace fourpiles {

// How a part of a network is named:
//   embeddings | head | vision | norms | biases
//   last:K           the last K layers
//   all-but-last:K   what comes before them: embeddings and the other layers
//   PATTERN          parameters, or modules that hold them (module_pattern.h): "layers.0.*", "mlp"

// Freezes the parts, and leaves the rest as it is.
// Errors, at `where`: a part that the model does not have; nothing is left to be trained.
Result<Network> WithFrozen(Network network, std::span<const std::string> parts,
                           std::string_view where);

// Freezes all but the parts.
Result<Network> WithTrainedOnly(Network network, std::span<const std::string> parts,
                                std::string_view where);

// Whether the number'th parameter of the block is that of a norm.
bool IsOfNorm(const Block& block, std::size_t number);
bool IsBias(const Parameter& parameter);

}  // namespace fourpiles
