#pragma once

// NumPy's words for types: an order of bytes, a kind, a size: "<f4", ">i8", "|b1", "<U3".

#include <optional>
#include <string_view>

#include "tensors/npy_header.h"

namespace fourpiles {

// Nothing: a word that NumPy does not write.
std::optional<NpyType> NpyTypeOf(std::string_view descr);

}  // namespace fourpiles
