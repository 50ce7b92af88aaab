#pragma once

// What one rank holds of a network: a stage of its layers, and of every tensor that tensor or
// expert parallelism cuts its share. Sharding cuts shapes; everything that counts a network counts
// a rank's.

#include <cstdint>
#include <vector>

#include "model/network.h"
#include "plan/serving_job.h"

namespace fourpiles {

// Consecutive layers, and whether what stands before and behind them belongs to it.
struct LayerStage {
  std::int64_t first = 0;
  std::int64_t layers = 0;
  bool begins = true;  // with the embedding
  bool ends = true;    // with the last norm and the output layer
};

// Layers ÷ stages each; what remains goes to the stages before the last, one each
// (vllm/distributed/utils.py, get_pp_indices). 30 layers in 4 stages: 7, 8, 8, 7. A network without
// layers is one stage.
std::vector<LayerStage> LayerStagesOf(const Network& network, std::int64_t stages);

// The network of one rank of the stage. Heads are spread whole; ranks past them keep copies, so
// that 8 heads over 16 ranks are one each (vllm/config/model.py, get_num_kv_heads). An output layer
// that is the embedding stands in the first and in the last stage.
Network RankNetwork(const Network& network, const LayerStage& stage, const ServingLayout& layout);

// Whether so many ranks can share the heads of every layer: their number divides the heads of
// queries, and divides those of keys and values or is a multiple of them.
bool HeadsDivide(const Network& network, std::int64_t ranks);

// Routed experts of a layer, of the first that has some; 0: no layer has.
std::int64_t ExpertsOf(const Network& network);

}  // namespace fourpiles
