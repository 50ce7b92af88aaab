#pragma once

// What holds for every reading of a GGUF file, whatever its bytes: for tests and the fuzz target.

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "tensors/checkpoint.h"
#include "tensors/finding_list.h"

namespace fourpiles {

// "" or the rule that the tensor breaks.
inline std::string_view BrokenRule(const FileTensor& tensor, std::int64_t file_bytes) {
  const Checked elements = ElementsOf(tensor.shape);
  if (!elements.ok() || elements.value() != tensor.elements) {
    return "elements are the product of the shape";
  }
  if (tensor.offset < 0 || tensor.bytes < 0 || tensor.bytes > file_bytes - tensor.offset) {
    return "tensors lie within the file";
  }
  if (tensor.type && StorageBytes(tensor.elements, *tensor.type).value() != tensor.bytes) {
    return "bytes are those of the type";
  }
  return tensor.dtype.empty() ? "each tensor has a dtype" : "";
}

inline std::string_view BrokenRule(const FileReading& reading, std::int64_t file_bytes) {
  std::vector<const FileTensor*> order;
  for (const FileTensor& tensor : reading.tensors) {
    if (const std::string_view rule = BrokenRule(tensor, file_bytes); !rule.empty()) {
      return rule;
    }
    if (!tensor.type && WorstOf(reading.findings) != FileVerdict::kRefuse) {
      return "unknown types are refused";
    }
    if (tensor.bytes > 0) {
      order.push_back(&tensor);
    }
  }
  std::ranges::sort(order, {}, [](const FileTensor* tensor) { return tensor->offset; });
  const auto overlap = [](const FileTensor* a, const FileTensor* b) {
    return b->offset < a->offset + a->bytes;
  };
  if (std::ranges::adjacent_find(order, overlap) != order.end()) {
    return "no two tensors overlap";
  }
  const auto is_empty = [](const Finding& finding) {
    return finding.text.where.empty() || finding.text.found.empty();
  };
  if (std::ranges::any_of(reading.findings, is_empty)) {
    return "findings say where and what";
  }
  const auto most = static_cast<std::size_t>(3 * (FindingList::kMostKept + 1));
  return reading.findings.size() > most ? "findings are few" : "";
}

}  // namespace fourpiles
