#pragma once

// Whether the tensors of a file are those of a network.

#include <cstdint>
#include <string>
#include <vector>

#include "model/network.h"

namespace fourpiles {

// A tensor as a layer sees it: of a packed weight, the weight.
struct LogicalTensor {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  bool shape_known = true;  // false: packed in a way that does not tell it
  bool trainable = true;    // false: a buffer of whole numbers or truth values
  bool packed = false;      // which may turn a matrix on its side
};

enum class ShapeRule {
  kExact,  // a checkpoint of PyTorch
  // A GGUF, whose names are those of CheckpointName(): dimensions may change their places, and what
  // the checkpoint has in one tensor may be in several.
  kElements,
};

// What a person should know, in a few lines: tensors that are missing, that are there without a
// place in the network, that have another shape. Layers that are alike are told together:
//   "3 tensors are missing: model.layers.{0..2}.mlp.up_proj.weight"
//
// No differences are: another prefix of all names ("model.", "language_model."), buffers that old
// checkpoints keep, the output layer beside tied embeddings, and the parts that network.left_out
// names.
std::vector<std::string> DifferencesFrom(const Network& network,
                                         const std::vector<LogicalTensor>& tensors,
                                         ShapeRule rule = ShapeRule::kExact);

}  // namespace fourpiles
