#pragma once

// What the containers of a checkpoint's pickle hold, and under which keys.

#include <cstdint>
#include <vector>

#include "tensors/pickle.h"

namespace fourpiles {

// A value of a container, and what it is called there: by a key, a number, or not at all.
struct TorchChild {
  static constexpr std::int64_t kNoNumber = -1;
  static constexpr std::int64_t kAttributes = -2;  // no item: what is set on the container itself

  PickleRef value = kNoValue;
  PickleRef key = kNoValue;
  std::int64_t number = kNoNumber;
};

struct TorchChildren {
  std::vector<TorchChild> list = {};
  std::size_t visits = 0;    // work that it took: one a value, more for those of long keys
  bool has_repeats = false;  // a key stood twice: as in Python, the last value has its first place
  bool is_unclear = false;   // an OrderedDict of what is no list of pairs and no dict
};

// Whether it may hold other values: a tuple, list, dict, set, or an object.
bool IsTorchContainer(const Pickle& pickle, PickleRef value);

// Whether it is an object but no dict by another name: it has attributes, and may know its parents.
bool IsTorchInstance(const Pickle& pickle, PickleRef value);

TorchChildren TorchChildrenOf(const Pickle& pickle, PickleRef container);

}  // namespace fourpiles
