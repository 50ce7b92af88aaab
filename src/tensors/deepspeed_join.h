#pragma once

// The flat vectors of DeepSpeed's ranks, cut into the parameters that they hold.

#include <cstdint>
#include <string>
#include <vector>

#include "tensors/checkpoint.h"
#include "tensors/deepspeed_ranks.h"

namespace fourpiles {

struct ZeroLayout {
  ZeroFacts facts = {};
  std::vector<std::vector<NamedShape>> groups = {};
};

// Why the vectors of one kind cannot be cut.
struct JoinFault {
  bool is_master = false;  // those of the parameters, without which nothing is joined
  std::string found = {};
  std::string expected = {};
};

struct JoinedVectors {
  std::vector<FileTensor> tensors = {};  // "optimizer.state.NAME.exp_avg"
  std::vector<std::int32_t> used = {};   // the vectors that they were, as indices of the tensors
  std::vector<JoinFault> faults = {};
};

// `files` are those of the ranks' optimizers, by rank; the vectors are found among the tensors by
// name. Those of which the parameters are not whole are faults, and stay as they are.
JoinedVectors JoinFlatVectors(const std::vector<FileTensor>& tensors,
                              const std::vector<std::int32_t>& files, const ZeroLayout& layout);

// The frozen parameters of ZeRO 3, which no optimizer has: each rank's file of the model has a
// fragment of each, "frozen_param_fragments.NAME". They become "module.NAME".
JoinedVectors JoinFragments(const std::vector<FileTensor>& tensors,
                            const std::vector<std::int32_t>& files,
                            const std::vector<NamedShape>& shapes);

}  // namespace fourpiles
