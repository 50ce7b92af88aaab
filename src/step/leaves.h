#pragma once

#include <cstdint>
#include <vector>

#include "model/network.h"
#include "step/memory.h"

namespace fourpiles {

// The edges of a block's parameters, in all its layers: they are made when they are first needed.
class Leaves {
 public:
  explicit Leaves(const Block& block) {
    for (const Parameter& parameter : block.parameters) {
      offsets_.push_back(in_layer_);
      in_layer_ += At(parameter.copies);
    }
    edges_.resize(in_layer_ * At(block.repeat), kNothing);
  }

  std::int32_t& Edge(std::int64_t layer, std::int32_t parameter, std::int64_t copy) {
    return edges_[in_layer_ * At(layer) + offsets_[At(parameter)] + At(copy)];
  }

 private:
  static std::size_t At(std::int64_t number) { return static_cast<std::size_t>(number); }

  std::vector<std::size_t> offsets_ = {};
  std::size_t in_layer_ = 0;
  std::vector<std::int32_t> edges_ = {};
};

}  // namespace fourpiles
