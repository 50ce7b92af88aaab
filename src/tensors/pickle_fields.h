#pragma once

// Objects of a pickle, by the names of their fields.

#include <string_view>

#include "tensors/pickle.h"

namespace fourpiles {

// The value of a key in a dict, an OrderedDict or in the state of an object, which are its
// attributes; the last one where there are several, as Python has it. kNoValue: there is none, or
// more than `most` keys, as no class of those that are read has.
PickleRef FieldOf(const Pickle& pickle, PickleRef object, std::string_view name,
                  std::size_t most = 64);

}  // namespace fourpiles
