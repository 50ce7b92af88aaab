#pragma once

// What packed tensors mean. A quantised layer keeps one weight in several tensors: codes, scales,
// zero points, and what a kernel needs beside them. The file's shapes are those of the codes; the
// weight that they stand for has another shape and another number of parameters.

#include <cstdint>
#include <string>
#include <vector>

#include "tensors/open_checkpoint.h"

namespace fourpiles {

enum class TensorRole {
  kPlain,       // values as they are
  kCodes,       // packed values of a weight
  kScales,      // of a weight's groups, blocks, rows, or of all of it
  kZeroPoints,  // or biases, where a group is scale × code + bias
  kOther,       // order of the rows, true shape, code book, state of the quantiser
};

// One weight, as the layer sees it.
struct StoredWeight {
  std::string name = {};    // "model.layers.0.mlp.down_proj.weight"
  std::string scheme = {};  // "gptq", "awq", "bitsandbytes", "compressed-tensors", …
  std::string format = {};  // of one value: "int4", "float4_e2m1fn", "nf4"
  // Values that share a scale; 0: a row or the whole tensor does. Blocks of rows and columns have
  // rows as well.
  std::int64_t group_size = 0;
  std::int64_t group_rows = 1;
  std::vector<std::int64_t> shape = {};  // the slowest dimension first, as a plain weight has it
  std::int64_t parameters = 0;
  std::int64_t code_bytes = 0;
  std::int64_t scale_bytes = 0;
  std::int64_t zero_point_bytes = 0;
  std::int64_t other_bytes = 0;
  std::string evidence = {};  // what the logical shape was read from: "config.json, g_idx"
};

// Of the tensor of the same index in the checkpoint.
struct TensorMeaning {
  TensorRole role = TensorRole::kPlain;
  std::int32_t weight = -1;  // which of the weights it belongs to
  // Logical ones: all of the weight's at its codes, none at scales and the like; the elements where
  // it is plain.
  std::int64_t parameters = 0;
};

struct StoredWeights {
  std::vector<TensorMeaning> tensors = {};  // one for each tensor of the checkpoint
  std::vector<StoredWeight> weights = {};   // the packed ones only
  // What could not be told: "aqlm: packed, the logical number of parameters is not known".
  std::vector<std::string> notes = {};
};

// The evidence: the checkpoint's config files, the shapes of the tensors beside each other, their
// names. Each layer is judged by the tensors that it has, so that lists of modules that stay as
// they are need no matching; where the shapes prove something else than the config files declare,
// they count. Tensors of float types alone, with nothing declared, cost no look at a name.
StoredWeights StoredWeightsOf(const Checkpoint& checkpoint);

}  // namespace fourpiles
