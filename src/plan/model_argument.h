#pragma once

// What the word MODEL on a command line stands for.

#include <optional>
#include <string_view>

#include "model/catalogue.h"

namespace fourpiles {

struct ModelArgument {
  Model model = {};
  // A number of parameters, or the tensors of a file and no more.
  bool bare_count = false;
  bool from_file = false;  // a file or a folder
};

// What --layers and --width say of a bare count.
struct CountShape {
  std::optional<std::int64_t> layers = {};
  std::optional<std::int64_t> width = {};
};

// Tried in this order: an existing path (a config.json, safetensors, a GGUF, or the folder of one),
// a parameter count ("1.5B"), the catalogue. Errors: kInput for a path that cannot be read, kUsage
// else.
Result<ModelArgument> OpenModelArgument(std::string_view text, const CountShape& shape);

}  // namespace fourpiles
