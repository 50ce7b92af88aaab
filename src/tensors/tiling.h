#pragma once

// Boxes within a box: whether the chunks of a tensor, as several ranks have saved them, are the
// whole tensor, each element once.

#include <cstdint>
#include <string>
#include <vector>

namespace fourpiles {

struct TensorBox {
  std::vector<std::int64_t> start = {};  // a number for each dimension, from 0 on
  std::vector<std::int64_t> shape = {};
};

// Whether the box lies within a tensor of that shape: as many dimensions, no negative number, and
// none that reaches beyond.
bool LiesWithin(const TensorBox& box, const std::vector<std::int64_t>& shape);

// "" where the boxes hold each element of the tensor once; else what is wrong with them. Each lies
// within the shape, of which the product is at most 2^53.
std::string TilingFault(const std::vector<TensorBox>& boxes,
                        const std::vector<std::int64_t>& shape);

}  // namespace fourpiles
