#pragma once

// Elements of a tensor that lies in several places: boxes of it, as the ranks of a distributed run
// have saved them, or runs of the flattened tensor.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

class PieceReader {
 public:
  // Of a tensor with pieces, whose elements have `code_bytes` whole bytes each. Errors (kInput): a
  // piece outside the tensor, of another size than its shape has, or whose elements do not lie in
  // order; a file that cannot be opened.
  static Result<PieceReader> Of(const Checkpoint& checkpoint, const FileTensor& tensor,
                                std::int64_t code_bytes);

  // The elements from `first` on in row-major order, as they are stored. One pread for each run of
  // elements that lie one behind the other in both. Errors (kInput): a file that cannot be read or
  // has become shorter.
  [[nodiscard]] Result<void> Read(std::int64_t first, std::span<std::byte> codes) const;

 private:
  // A piece as runs of so many elements; they begin in the tensor at `begin` and, row-major over
  // `counts`, so many `steps` further.
  struct Piece {
    std::shared_ptr<const ByteSource> source = {};
    std::int64_t offset = 0;
    std::int64_t begin = 0;
    std::int64_t run = 1;
    std::int64_t runs = 1;
    std::vector<std::int64_t> counts = {};
    std::vector<std::int64_t> steps = {};

    std::int64_t BeginOf(std::int64_t number) const;
    std::int64_t FirstRunBehind(std::int64_t element) const;
  };
  static Result<Piece> PieceOf(const TensorPiece& piece, const std::vector<std::int64_t>& shape,
                               std::int64_t code_bytes, const std::string& where);
  Result<void> ReadPiece(const Piece& piece, std::int64_t first, std::span<std::byte> codes) const;

  std::int64_t code_bytes_ = 1;
  std::vector<Piece> pieces_ = {};
};

}  // namespace fourpiles
