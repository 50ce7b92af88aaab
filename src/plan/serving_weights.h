#pragma once

// Weights that one rank serves: from shapes and a format or scheme, or a file's tensors.

#include "plan/rank_network.h"
#include "plan/serving_job.h"
#include "step/play.h"

namespace fourpiles {

// What the weights of a rank are counted from.
struct WeightsOfRank {
  const Model* model = nullptr;      // whole
  const Network* network = nullptr;  // the rank's
  LayerStage stage = {};
};

// All weights of a network in a scheme, which is called `name`.
Result<Resident> SchemeWeights(const Network& network, const WeightScheme& scheme,
                               std::string_view name);

// In the job's format. `gguf_types` of a mixture are llama.cpp's (gguf_tensors.h), here they stand
// for every engine that reads GGUF. Errors: bytes past 2^53; a mixture of an architecture that
// llama.cpp has no names for.
Result<Resident> RankWeights(const ServingJob& serving, const WeightsOfRank& of);

// Low-rank adapters that stay loaded, in the format that is computed in, cut as the weights are;
// none: nothing.
Result<Resident> AdapterWeights(const ServingJob& serving, const Network& network);

// Elements that one token's values take where one layer has most of them, beside the residual: what
// the projections of a block put out and take in, of the experts those that a token passes.
// Llama-3-8B: 2 × 4,096 + 2 × 14,336 + 14,336 = 51,200.
Checked LargestLayerElements(const Network& network);

}  // namespace fourpiles
