#pragma once

// A vector whose elements lie in several files, one run behind the other: what the ranks of a
// trainer keep of a group of parameters.

#include <cstdint>
#include <vector>

#include "tensors/checkpoint.h"

namespace fourpiles {

class FlatVector {
 public:
  // Behind what there is: the elements of a tensor, which lie in order.
  void Add(const FileTensor& tensor);

  std::int64_t Elements() const { return ends_.empty() ? 0 : ends_.back(); }

  // A range of it as pieces of a flattened tensor, of which it is the part from `start` on. The
  // range lies within the vector.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t start = 0;
  };
  void Cut(const Range& range, std::int64_t element_bytes, std::vector<TensorPiece>& pieces) const;

 private:
  struct Run {
    std::int32_t file = 0;
    std::int64_t offset = 0;
  };
  std::vector<Run> runs_ = {};
  std::vector<std::int64_t> ends_ = {};  // of each run, in elements of the vector
};

}  // namespace fourpiles
