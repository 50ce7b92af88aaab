// Kinds that train parameters of the network itself.

#include <algorithm>
#include <array>

#include "base/try.h"
#include "model/adapter_kinds.h"
#include "model/frozen.h"

namespace fourpiles {

Result<void> TrainBiases(Network& network, const Adapter&, std::string_view where) {
  const std::array<std::string, 1> parts = {"biases"};
  TRY(network, WithTrainedOnly(std::move(network), parts, where));
  return {};
}

// peft trains copies of the norms and keeps the originals (peft/tuners/ln_tuning/layer.py,
// LNTuningLayer). It casts the copies to float32 as well; in a model of a 16-bit format without
// autocast the layers behind them cannot read that, so here they have the format of the originals.
Result<void> TrainNorms(Network& network, const Adapter&, std::string_view where) {
  const std::array<std::string, 1> parts = {"norms"};
  TRY(network, WithTrainedOnly(std::move(network), parts, where));
  for (Block& block : network.blocks) {
    std::vector<std::size_t> norms;
    for (std::size_t i = 0; i < block.parameters.size(); ++i) {
      if (block.parameters[i].trainable) {
        norms.push_back(i);
      }
    }
    AddTrainedCopies(block, norms, "ln_tuning_layers");
  }
  return {};
}

}  // namespace fourpiles
