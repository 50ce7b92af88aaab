#pragma once

// What a file of tensors holds, as far as its header says: names, types, shapes, places. No tensor
// is read. The way of the data:
//
//   ByteSource → FileReading      one reader a file type (safetensors.h, gguf.h)
//   path → Checkpoint             files that belong together (open_checkpoint.h)
//   Checkpoint → StoredWeights    what packed tensors mean (quantised.h)

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "formats/stored_type.h"
#include "fourpiles/result.h"

namespace fourpiles {

// What a file deserves, better ones first.
enum class FileVerdict {
  kAccept,
  kAcceptWithWarning,  // it can be used; something is odd
  kReport,             // it can be listed; a person must look at it first
  kRefuse,             // part of it cannot be trusted
};

std::string_view Name(FileVerdict verdict);  // "accept", "accept-with-warning", "report", "refuse"

// Something that a person must know about a file.
struct Finding {
  FileVerdict verdict = FileVerdict::kAcceptWithWarning;
  ErrorText text = {};
};

// One of several places in which a tensor lies: a box of it, whose elements lie at `offset`.
// `start` and `shape` have a number for each dimension of the tensor; or one number each, and the
// piece is a run of the flattened tensor (row-major).
struct TensorPiece {
  std::int32_t file = 0;    // which file of the checkpoint
  std::int64_t offset = 0;  // of its first byte, from the start of the file
  std::int64_t bytes = 0;
  std::vector<std::int64_t> start = {};    // of its first element in the tensor
  std::vector<std::int64_t> shape = {};    // of the piece
  std::vector<std::int64_t> strides = {};  // as of a tensor
};

struct FileTensor {
  std::string name = {};  // as in the file: any bytes, to be escaped when printed
  // The file's own word for its type: "BF16", "Q4_K", "type 97"; of files of PyTorch and NumPy that
  // of safetensors.
  std::string dtype = {};
  const StoredType* type = nullptr;      // nullptr: unknown
  std::vector<std::int64_t> shape = {};  // the slowest dimension first; empty: one element
  std::int64_t elements = 0;
  std::int64_t bytes = 0;   // in the file
  std::int64_t offset = 0;  // of its first byte, from the start of the file
  std::int32_t file = 0;    // which file of the checkpoint
  // How the elements lie at `offset`, where it is not plainly.
  bool big_endian = false;
  bool packed = false;  // deflated: `bytes` are those unpacked, and only the archive reads them
  std::vector<std::int64_t> strides = {};  // in elements; empty: row-major, without gaps
  // Which storage of the checkpoint it looks at; -1: bytes of its own. Of a packed one, `offset`
  // counts from the start of the unpacked storage.
  std::int32_t storage = -1;
  // Where it lies, when it is in several places: together they hold each element once. `file` and
  // `offset` are then those of the first. Empty: in one place.
  std::vector<TensorPiece> pieces = {};
};

// Bytes that several tensors may look at: a storage of PyTorch. Tied weights share one, and so do a
// matrix and its transpose.
struct TensorStorage {
  std::string key = {};     // the file's own name for it
  std::int64_t bytes = 0;   // that tensors may look at
  std::int64_t offset = 0;  // from the start of the file
  bool packed = false;      // deflated, as of a tensor
  std::int32_t file = 0;    // which file of the checkpoint
};

// A key and a value that a file says of itself. Strings may be any bytes. Long arrays are left out:
// their value is null.
struct MetadataEntry {
  std::string key = {};
  Json value = {};
  std::int64_t array_length = -1;  // of an array; else -1
};

// nullptr: no entry has that whole key.
const MetadataEntry* FindEntry(const std::vector<MetadataEntry>& metadata, std::string_view key);

// What one file holds. A reader goes on behind a bad part where it can; the findings say what was
// wrong, and a tensor that cannot be trusted is not among the tensors.
struct FileReading {
  std::string_view format = {};          // "safetensors", "gguf"
  std::vector<FileTensor> tensors = {};  // in the order of the header
  std::vector<TensorStorage> storages = {};
  std::vector<MetadataEntry> metadata = {};
  // What is worth telling about the file as a whole: {"header_bytes", 112}.
  Json::Object facts = {};
  std::vector<Finding> findings = {};
};

// The worst of them.
FileVerdict WorstOf(const std::vector<Finding>& findings);

// The indices of names that stand before in the list, ascending.
std::vector<std::size_t> RepeatedNames(const std::vector<std::string_view>& names);

// Shapes of at most this many dimensions are read.
inline constexpr std::size_t kMostDimensions = 64;
inline constexpr std::int64_t kMostTensors = 10'000'000;

std::string ShapeText(const std::vector<std::int64_t>& shape);  // "[4096, 128]"

// The product of the dimensions, taken in order, so that one that overflows before a zero is told.
Checked ElementsOf(const std::vector<std::int64_t>& shape);

}  // namespace fourpiles
