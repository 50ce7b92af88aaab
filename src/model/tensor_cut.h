#pragma once

// What tensor, sequence and expert parallelism leave of a network on one rank (Shoeybi et al. 2019,
// Megatron-LM, arXiv 1909.08053, section 3; Korthikanti et al. 2022, arXiv 2205.05198,
// section 4.2). Sharding cuts shapes: a layer that is cut by its outputs makes a part of them, the
// layer behind it is cut by its inputs, and the sums of all ranks are added up.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/network.h"

namespace fourpiles {

struct TensorCut {
  std::int64_t tensor = 1;         // ranks that share every layer
  bool sequence_parallel = false;  // what stands between the cut parts is cut by tokens
  std::int64_t context = 1;        // ranks that share every sequence: keys and values are gathered
  std::int64_t expert = 1;         // ranks that whole experts are spread over
  std::int64_t expert_tensor = 1;  // ranks that share every expert
};

// Parameters and widths of one rank, with operators where tokens are gathered and scattered.
// Lengths that do not divide are rounded up, as frameworks pad a vocabulary. Heads of keys and
// values past their number are copies.
Network CutByTensors(Network network, const TensorCut& cut);

// The consecutive layers of one stage of a pipeline, or of one of its chunks.
struct LayerSpan {
  std::int64_t first = 0;
  std::int64_t layers = 0;
};

// A stage, and which of its blocks each chunk runs: from the first until before the second number.
struct StageNetwork {
  Network network = {};
  std::vector<std::pair<std::size_t, std::size_t>> chunks = {};
};

// What stands before the layers belongs to the stage that begins, what stands behind to the one
// that ends. An output layer that is the embedding stands in both.
StageNetwork CutByLayers(const Network& network, const std::vector<LayerSpan>& chunks, bool begins,
                         bool ends);

// Query heads of the first attention; 0: there is none.
std::int64_t HeadsOf(const Network& network);

}  // namespace fourpiles
