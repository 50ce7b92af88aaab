#pragma once

// Checkpoints of DeepSpeed's ZeRO: a folder global_stepN, in which every rank has its own files.
//
//   mp_rank_00_model_states.pt                 the module, as torch.save writes it (ZeRO 1 and 2)
//   zero_pp_rank_D_mp_rank_00_model_states.pt  the same of ZeRO 3, whose weights are empty
//   zero_pp_rank_D_mp_rank_00_optim_states.pt  what the optimizer of data rank D keeps; "bf16_" may
//                                              stand before the name
//
// An optimizer keeps flat vectors: the float32 parameters of a group one behind the other, and its
// moments alike. With ZeRO 1 and 2 the vector of a group is cut into a part for each rank, which is
// padded so that each is even; with ZeRO 3 every parameter is cut, and padded, by itself. Which
// parameters these are stands in the model's file (`param_shapes`), in order.
// (deepspeed/utils/zero_to_fp32.py)

#include <string>
#include <vector>

#include "tensors/open_checkpoint.h"

namespace fourpiles {

// The files of one folder, each the states of a rank, as one checkpoint: the tensors of the model's
// files under their names; in place of the flat vectors "optimizer.state.NAME.master", the float32
// parameter, and "optimizer.state.NAME.MOMENT", each with the parameter's shape, of which a rank
// has a piece. With several model ranks names begin with "mp_rank_01.". Where ranks are missing or
// disagree, or vectors do not have the length of the shapes, that is a finding, and the flat
// vectors stay as they are.
Checkpoint OpenDeepSpeed(const std::string& folder, const std::vector<std::string>& names);

}  // namespace fourpiles
