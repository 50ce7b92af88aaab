#pragma once

// The elements of a tensor of a checkpoint, in ranges and in row-major order, however they lie in
// the file: strided, big-endian, deflated, in blocks, in pieces.
//
//   TRY(const TensorValues values, TensorValues::Of(checkpoint, tensor, cache));
//   TRY_VOID(values.Read(0, std::span<float>(buffer)));

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "audit/piece_reader.h"
#include "audit/storage_cache.h"
#include "formats/stored_type.h"
#include "fourpiles/formats.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

// May be read from several threads at once. One that lies plainly in its file takes no memory and
// needs one pread a call; else the bytes that it spans are held in memory as long as it lives, so
// open one when it is its turn.
class TensorValues {
 public:
  // Errors (kInput): a type that is not known, holds no real numbers (complex) or cannot be decoded
  // here; a file that cannot be opened; a tensor that does not lie in order, or is deflated, of
  // more than kMostHeldBytes; a view that repeats its elements to more than kMostRepeatedBytes and
  // more than its file has.
  static Result<TensorValues> Of(const Checkpoint& checkpoint, const FileTensor& tensor,
                                 StorageCache& cache);
  // The same for a single tensor.
  static Result<TensorValues> Of(const Checkpoint& checkpoint, const FileTensor& tensor);

  std::int64_t Elements() const { return elements_; }
  const StoredType& Type() const { return *type_; }
  // The format of the elements; nothing of integers and of block types.
  const std::optional<NumberFormat>& Format() const { return format_; }
  // Bytes that ReadCodes gives for so many elements: one, two, four or eight each; of block types
  // those of whole blocks.
  std::int64_t CodeBytesOf(std::int64_t count) const;

  // Elements as they are stored, in the processor's byte order, each in bytes of its own, as
  // ConstCodes takes them; of block types whole blocks as they lie. The range is within the tensor,
  // `codes` has CodeBytesOf(count); of block types it begins at a block, and ends at one or with
  // the tensor. Errors (kInput): the file cannot be read, or has become shorter.
  [[nodiscard]] Result<void> ReadCodes(std::int64_t first, std::int64_t count,
                                       std::span<std::byte> codes) const;

  // The values of as many elements from `first` on. Exact, but that float64 and integers of more
  // bits than the result has are rounded to nearest-even; a bool is 0 or 1. NaN and infinities stay
  // what they are. The rules and errors of ReadCodes hold.
  [[nodiscard]] Result<void> Read(std::int64_t first, std::span<float> values) const;
  [[nodiscard]] Result<void> Read(std::int64_t first, std::span<double> values) const;

 private:
  enum class Kind { kFormat, kSigned, kUnsigned, kBlocks };

  TensorValues() = default;
  Result<void> TakeType(const FileTensor& tensor, const std::string& where);
  Result<void> TakePieces(const Checkpoint& checkpoint, const FileTensor& tensor,
                          const std::string& where);
  Result<void> TakeHeld(const FileTensor& tensor, const HeldPlace& place, StorageCache& cache);
  template <class Value>
  Result<void> ReadAny(std::int64_t first, std::span<Value> values) const;
  template <class Value>
  void Widen(std::span<const std::byte> codes, std::span<Value> values) const;
  Result<void> ReadBlocks(std::int64_t first, std::span<float> values) const;
  Result<void> ReadPacked(std::int64_t first, std::span<std::byte> codes) const;
  Result<void> ReadBytes(std::int64_t place, std::span<std::byte> bytes) const;
  void Gather(std::int64_t first, std::span<std::byte> codes) const;

  Kind kind_ = Kind::kFormat;
  const StoredType* type_ = nullptr;
  std::optional<NumberFormat> format_ = {};
  std::optional<BlockFormat> blocks_ = {};
  int code_bytes_ = 0;  // of one element; of block types 0
  std::int64_t elements_ = 0;
  std::int64_t offset_ = 0;  // of the first element, in the file or in what is held
  bool big_endian_ = false;
  std::shared_ptr<const ByteSource> source_ = {};
  std::shared_ptr<const std::string> held_ = {};    // else it is read from the file
  std::shared_ptr<const PieceReader> pieces_ = {};  // of one that lies in several places
  std::vector<std::int64_t> shape_ = {};            // of one that does not lie in order …
  std::vector<std::int64_t> strides_ = {};          // … in elements
};

// The bytes that a tensor looks at: of tied weights they are the same.
using TensorView = std::tuple<std::int32_t, std::int64_t, std::int64_t, std::vector<std::int64_t>,
                              std::vector<std::int64_t>>;
inline TensorView ViewOf(const FileTensor& tensor) {
  return {tensor.file, tensor.storage, tensor.offset, tensor.shape, tensor.strides};
}

// Whether its elements are real numbers, single or in blocks: no integers, bool, complex.
bool HoldsRealNumbers(const FileTensor& tensor);

// Whether it is looked at by its codes, of at most 16 bits: there are few different values.
inline bool HasFewCodes(const TensorValues& values) {
  return values.Format().has_value() && values.CodeBytesOf(1) <= 2;
}
// Whether its values are looked at in float64, else in float32.
inline bool HasDoubles(const TensorValues& values) {
  return values.Type().name == "float64";
}

// Of a view that repeats its elements (torch.expand): more bytes, and more than its file has, are
// not read.
inline constexpr std::int64_t kMostRepeatedBytes = std::int64_t{256} << 20;
bool RepeatsTooMuch(const Checkpoint& checkpoint, const FileTensor& tensor);

}  // namespace fourpiles
