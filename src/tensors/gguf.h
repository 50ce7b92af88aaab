#pragma once

// GGUF: keys and values, tensor infos, data (github.com/ggml-org/ggml d99724f2, docs/gguf.md and
// src/gguf.cpp), versions 1 to 3, little- and big-endian.

#include "base/byte_source.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// Reads keys and tensor infos. The facts are "version", "endian" ("little", "big"),
// "metadata_keys", "architecture" where it is named, "alignment", "data_start", "vocabulary" (the
// length of tokenizer.ggml.tokens) where there is one, and for a part of a split model "split_no",
// "split_count", "split_tensors". Kept in the metadata are scalars, strings up to 64 KiB and arrays
// of up to 65,536 numbers, 64 MiB in all; other arrays with their length alone.
//
// A warning stands where llama.cpp refuses a file that the text of the format allows, or where the
// text forbids what harms nobody: odd keys, strings that are no UTF-8, bytes that nothing uses.
// Strings in arrays are not looked at. Tensors of a type that is removed, unknown or a fork's are
// listed, with a refusal; their bytes reach up to the next tensor. Listed tensors lie within the
// file and do not overlap.
FileReading ReadGguf(const ByteSource& source);

}  // namespace fourpiles
