#include "tensors/tiling.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "tensors/checkpoint.h"

// A box is a product of steps: 1 from its start on, in each dimension, less 1 from its end on. So
// it is told by its corners, each with a sign: + for a corner with an even number of ends.
// Functions are equal where their corners are: boxes hold each element of a tensor once if and only
// if all their corners, added up by place, leave those of the tensor. Along a line of 5, [0, 3) and
// [3, 5) have +0 −3 +3 −5, which leaves +0 −5. No box is held against another one, so that a
// million takes no longer than sorting their corners.
//
// Dimensions that every box has whole are left out, for their corners would cancel in pairs alike.

namespace fourpiles {
namespace {

constexpr std::size_t kMostCutDimensions = 8;                 // 2^8 corners a box
constexpr std::size_t kMostCorners = std::size_t{16} << 20U;  // 256 MiB

struct Corner {
  std::int64_t place = 0;  // in a grid that has one point more than the tensor in each dimension
  std::int64_t sign = 0;
};

// The dimensions that some box has not whole.
std::vector<std::size_t> CutDimensions(const std::vector<TensorBox>& boxes,
                                       const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> cut;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (std::ranges::any_of(boxes,
                            [&](const TensorBox& box) { return box.shape[i] != shape[i]; })) {
      cut.push_back(i);
    }
  }
  return cut;
}

// With at most eight dimensions the grid has at most 2^8 times the elements of the tensor: 2^61.
void AddCorners(const TensorBox& box, const std::vector<std::int64_t>& shape,
                const std::vector<std::size_t>& cut, std::int64_t sign,
                std::vector<Corner>& corners) {
  for (std::size_t ends = 0; ends < std::size_t{1} << cut.size(); ++ends) {
    Corner corner = {.sign = sign};
    for (std::size_t i = 0; i < cut.size(); ++i) {
      const std::size_t dimension = cut[i];
      const bool is_end = (ends >> i & 1U) != 0;
      corner.place = corner.place * (shape[dimension] + 1) + box.start[dimension] +
                     (is_end ? box.shape[dimension] : 0);
      corner.sign *= is_end ? -1 : 1;
    }
    corners.push_back(corner);
  }
}

// Whether the signs at every place add up to nothing.
bool CancelOut(std::vector<Corner>& corners) {
  std::ranges::sort(corners, {}, &Corner::place);
  for (std::size_t i = 0; i < corners.size();) {
    const std::int64_t place = corners[i].place;
    std::int64_t sum = 0;
    for (; i < corners.size() && corners[i].place == place; ++i) {
      sum += corners[i].sign;
    }
    if (sum != 0) {
      return false;
    }
  }
  return true;
}

Checked ElementsOfAll(const std::vector<TensorBox>& boxes) {
  Checked elements = 0;
  for (const TensorBox& box : boxes) {
    elements = elements + ElementsOf(box.shape);
  }
  return elements;
}

}  // namespace

bool LiesWithin(const TensorBox& box, const std::vector<std::int64_t>& shape) {
  if (box.start.size() != shape.size() || box.shape.size() != shape.size()) {
    return false;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (box.start[i] < 0 || box.shape[i] < 0 || box.start[i] > shape[i] ||
        box.shape[i] > shape[i] - box.start[i]) {
      return false;
    }
  }
  return true;
}

std::string TilingFault(const std::vector<TensorBox>& boxes,
                        const std::vector<std::int64_t>& shape) {
  const std::int64_t wanted = ElementsOf(shape).value();
  const Checked elements = ElementsOfAll(boxes);
  if (!elements.ok() || elements.value() != wanted) {
    return fmt::format("chunks of {} elements, the tensor has {}", OrLargest(elements), wanted);
  }
  const std::vector<std::size_t> cut = CutDimensions(boxes, shape);
  if (wanted == 0 || cut.empty()) {
    return "";
  }
  if (cut.size() > kMostCutDimensions || boxes.size() + 1 > kMostCorners >> cut.size()) {
    return fmt::format("{} chunks, cut along {} dimensions", boxes.size(), cut.size());
  }
  std::vector<Corner> corners;
  corners.reserve((boxes.size() + 1) << cut.size());
  for (const TensorBox& box : boxes) {
    AddCorners(box, shape, cut, 1, corners);
  }
  AddCorners({.start = std::vector<std::int64_t>(shape.size()), .shape = shape}, shape, cut, -1,
             corners);
  return CancelOut(corners) ? "" : "chunks that overlap, and leave other elements out";
}

}  // namespace fourpiles
