#pragma once

// What holds for every reading of .npy and .npz, whatever the bytes: for tests and the fuzz target.

#include <algorithm>
#include <string_view>
#include <vector>

#include "tensors/checkpoint.h"

namespace fourpiles {

// "" or the rule that the tensor breaks.
inline std::string_view BrokenNpyRule(const FileTensor& tensor, std::int64_t file_bytes) {
  const Checked elements = ElementsOf(tensor.shape);
  if (!elements.ok() || elements.value() != tensor.elements) {
    return "elements are the product of the shape";
  }
  const std::int64_t most = tensor.packed ? file_bytes * 1032 : file_bytes - tensor.offset;
  if (tensor.offset < 0 || tensor.bytes < 0 || tensor.bytes > most) {
    return "tensors lie within the file";
  }
  if (tensor.type && StorageBytes(tensor.elements, *tensor.type).value() != tensor.bytes) {
    return "bytes are those of the type";
  }
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size()) {
    return "each dimension has its stride";
  }
  return tensor.dtype.empty() ? "each tensor has a dtype" : "";
}

inline std::string_view BrokenNpyRule(const FileReading& reading, std::int64_t file_bytes) {
  for (const FileTensor& tensor : reading.tensors) {
    if (const std::string_view rule = BrokenNpyRule(tensor, file_bytes); !rule.empty()) {
      return rule;
    }
  }
  const auto is_empty = [](const Finding& finding) {
    return finding.text.where.empty() || finding.text.found.empty();
  };
  if (std::ranges::any_of(reading.findings, is_empty)) {
    return "findings say where and what";
  }
  const bool is_silent = reading.tensors.empty() && reading.findings.empty();
  return reading.format == "npy" && is_silent ? "an array is listed, or it is told why not" : "";
}

}  // namespace fourpiles
