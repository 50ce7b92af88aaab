#pragma once

// How elements lie in a file or in memory, singly or in blocks that share their scales. A format
// that only the emulation knows has a NumberFormat; whatever a tensor can be stored in has one of
// these.

#include <span>
#include <string_view>

#include "base/checked.h"

namespace fourpiles {

struct StoredType {
  std::string_view name = {};  // "bfloat16", "int8", "q4_k"
  std::string_view alias = {};
  int block_elements = 1;
  int block_bits = 0;  // of one block, its scales included
  std::string_view source = {};
};

// All of them: the named NumberFormats, integers, bool, complex, and the blocks of ggml.
std::span<const StoredType> StoredTypes();

// The type of that name or alias, whatever the case; nullptr: there is none.
const StoredType* FindStoredType(std::string_view name);

// Bytes of so many elements, the last one filled up once. Elements are a multiple of the block's.
Checked StorageBytes(Checked elements, const StoredType& type);

}  // namespace fourpiles
