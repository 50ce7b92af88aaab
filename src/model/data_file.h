#pragma once

// The records of data/ that are compiled in: data/embed.cmake makes each function below.

#include <span>
#include <string_view>

namespace fourpiles {

struct DataFile {
  std::string_view name;  // of the file, without its ending; the id, where a file is one record
  std::string_view text;  // JSON
};

std::span<const DataFile> ModelFiles();  // sorted by name, as the next
std::span<const DataFile> DeviceFiles();
std::span<const DataFile> RecipeFiles();  // one file, an array of records, as the next
std::span<const DataFile> OptimizerFiles();

}  // namespace fourpiles
