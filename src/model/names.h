#pragma once

// How a record of a catalogue is found: by its id or an alias, whatever the case.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

struct Names {
  std::string id = {};
  std::vector<std::string> aliases = {};
};

// What is looked for, for the error: `--device: unknown device "h100-sxn", did you mean …`.
struct Sought {
  std::string_view kind;   // "device"
  std::string_view where;  // "--device"
  std::string_view hint;   // "\"fourpiles devices\" lists them all"
};

// The index of the record that the name means. An alias that is a path, such as a Hugging Face
// repository, is also found by its last part. Error: kUsage, with the nearest name.
Result<std::size_t> FindName(std::string_view name, std::span<const Names> records,
                             const Sought& sought);

// Whether both are the same but for the case of ASCII letters.
bool SameName(std::string_view a, std::string_view b);
// Whether the name stands somewhere in the text, whatever the case.
bool HoldsName(std::string_view text, std::string_view name);

}  // namespace fourpiles
