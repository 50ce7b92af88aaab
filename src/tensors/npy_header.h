#pragma once

// The header of an array as NumPy saves it: eight bytes of magic and version, a length, and a
// Python dict of literals (NumPy 2.3, numpy/lib/_format_impl.py, NEP 1):
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// NumPy gives it to Python's parser of literals. Here the few forms that a header can have are read
// by hand, and nothing is evaluated.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_type.h"
#include "fourpiles/result.h"

namespace fourpiles {

// What "descr" says of one element.
struct NpyType {
  // As safetensors calls it: "F32", "BOOL"; "STRUCT"; "VOID2" of raw bytes; else NumPy's word
  // without the order of bytes: "U3", "M8[ns]".
  std::string dtype = {};
  const StoredType* type = nullptr;  // nullptr: none of ours
  std::int64_t bytes = 0;            // of one element
  bool big_endian = false;
  bool has_objects = false;  // of Python, which lie in the file as a pickle
  std::string warning = {};  // what is not told by the file and was assumed
};

struct NpyHeader {
  std::int64_t version = 0;     // 1, 2 or 3
  std::int64_t data_start = 0;  // bytes from the start of the array
  NpyType type = {};
  bool fortran_order = false;
  std::vector<std::int64_t> shape = {};
};

// Enough to know how long the header is.
inline constexpr std::int64_t kNpyPrefixBytes = 12;

bool StartsAsNpy(std::string_view bytes);

// Where the data starts, of an array that begins with these bytes, kNpyPrefixBytes of them or all.
// `where` is how errors call the array: "a.npy".
Result<std::int64_t> NpyDataStart(std::string_view bytes, std::string_view where);

// The header that these bytes are, up to the data.
Result<NpyHeader> ParseNpyHeader(std::string_view bytes, std::string_view where);

}  // namespace fourpiles
