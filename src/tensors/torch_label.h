#pragma once

// Keys of dicts as names have them.

#include <string>

#include "tensors/pickle.h"

namespace fourpiles {

// As str() of Python prints a key: "weight", "0", "True", "2.5", "(1, 'a')". Of other values what
// they are: "<an object>". At most 64 KiB of a text.
std::string TorchLabelOf(const Pickle& pickle, PickleRef key);

}  // namespace fourpiles
