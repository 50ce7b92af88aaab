#pragma once

// Which kind of file it is, told by its first bytes; the ending of its name breaks ties.

#include <string_view>

#include "base/byte_source.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// The first bytes of a file, as many as any row looks at.
struct FileBeginning {
  std::string_view bytes = {};
  std::int64_t size = 0;       // of the whole file
  std::string_view name = {};  // in lower case
};

// One kind of file: a row of the table.
struct FileFormat {
  std::string_view name = {};                          // "safetensors"
  std::string_view ending = {};                        // ".safetensors"; empty: none of its own
  bool (*recognises)(const FileBeginning&) = nullptr;  // by content
  FileReading (*read)(const ByteSource&) = nullptr;    // nullptr: not in this version
  std::string_view hint = {};                          // what to do with one that is not read
};

// What a message expects in place of a file that is not read.
inline constexpr std::string_view kExpectedFile = "expected safetensors, GGUF, PyTorch or NumPy";

// The kind of the file; nullptr: unknown.
const FileFormat* FormatOf(const ByteSource& source);

// Reads the file by the reader of its kind. One that has none is refused by name.
FileReading ReadTensorFile(const ByteSource& source);

}  // namespace fourpiles
