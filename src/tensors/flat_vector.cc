#include "tensors/flat_vector.h"

#include <algorithm>

namespace fourpiles {

void FlatVector::Add(const FileTensor& tensor) {
  if (tensor.elements > 0) {
    runs_.push_back({tensor.file, tensor.offset});
    ends_.push_back(OrLargest(Checked(Elements()) + tensor.elements));
  }
}

void FlatVector::Cut(const Range& range, std::int64_t element_bytes,
                     std::vector<TensorPiece>& pieces) const {
  const std::int64_t end = range.begin + range.count;
  auto run = static_cast<std::size_t>(std::ranges::upper_bound(ends_, range.begin) - ends_.begin());
  for (std::int64_t place = range.begin; place < end; ++run) {
    const std::int64_t run_begin = run == 0 ? 0 : ends_[run - 1];
    const std::int64_t count = std::min(end, ends_[run]) - place;
    pieces.push_back({.file = runs_[run].file,
                      .offset = runs_[run].offset + (place - run_begin) * element_bytes,
                      .bytes = count * element_bytes,
                      .start = {range.start + place - range.begin},
                      .shape = {count}});
    place += count;
  }
}

}  // namespace fourpiles
