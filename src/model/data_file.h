#pragma once

// The records of data/ that are compiled in: data/embed.cmake makes the function below, and
// those that step and plan declare where they read them.

#include <span>
#include <string_view>

namespace fourpiles {

struct DataFile {
  std::string_view name;  // of the file, without its ending; the id, where a file is one record
  std::string_view text;  // JSON
};

std::span<const DataFile> ModelFiles();  // sorted by name

}  // namespace fourpiles
