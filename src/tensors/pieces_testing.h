#pragma once

// The elements of a tensor, gathered from its pieces: for tests.

#include <bit>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/testing.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

inline float FloatAt(const ByteSource& source, std::int64_t offset) {
  std::uint32_t bits = 0;
  EXPECT_TRUE(source.ReadAt(offset, std::as_writable_bytes(std::span(&bits, 1))).has_value());
  return std::bit_cast<float>(bits);
}

// Of row-major strides where there are none.
inline std::vector<std::int64_t> RowMajor(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * shape[i];
  }
  return strides;
}

// Row-major, of a tensor of float32. An element that no piece has is -7.
inline std::vector<float> FloatsOf(const Checkpoint& checkpoint, const FileTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements), -7.0F);
  std::vector<TensorPiece> pieces = tensor.pieces;
  if (pieces.empty()) {
    pieces.push_back({.file = tensor.file,
                      .offset = tensor.offset,
                      .bytes = tensor.bytes,
                      .start = std::vector<std::int64_t>(tensor.shape.size()),
                      .shape = tensor.shape,
                      .strides = tensor.strides});
  }
  for (const TensorPiece& piece : pieces) {
    const ByteSource& source = *checkpoint.files[static_cast<std::size_t>(piece.file)].source;
    const bool is_run = piece.shape.size() != tensor.shape.size();
    const auto whole = is_run ? std::vector<std::int64_t>{1} : RowMajor(tensor.shape);
    const auto strides = piece.strides.empty() ? RowMajor(piece.shape) : piece.strides;
    const std::int64_t elements = ElementsOf(piece.shape).value();
    EXPECT_EQ(piece.bytes, 4 * elements);
    for (std::int64_t i = 0; i < elements; ++i) {
      std::int64_t rest = i;
      std::int64_t from = 0;
      std::int64_t to = 0;
      for (std::size_t d = piece.shape.size(); d-- > 0;) {
        const std::int64_t index = rest % piece.shape[d];
        rest /= piece.shape[d];
        from += index * strides[d];
        to += (piece.start[d] + index) * whole[d];
      }
      values[static_cast<std::size_t>(to)] = FloatAt(source, piece.offset + 4 * from);
    }
  }
  return values;
}

// The one of that name; fails the test when there is none.
inline const FileTensor& TensorNamed(const Checkpoint& checkpoint, std::string_view name) {
  static const FileTensor none;
  for (const FileTensor& tensor : checkpoint.tensors) {
    if (tensor.name == name) {
      return tensor;
    }
  }
  ADD_FAILURE() << "no tensor " << name;
  return none;
}

}  // namespace fourpiles
