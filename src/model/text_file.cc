#include "model/text_file.h"

#include <filesystem>
#include <system_error>

#include "base/byte_source.h"
#include "base/json.h"

namespace fourpiles {

Result<std::string> ReadTextFile(const std::string& path) {
  return ReadWholeFile(path, JsonLimits().bytes);
}

Result<std::string> ConfigPath(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return path;
  }
  const std::string config = (std::filesystem::path(path) / "config.json").string();
  if (!std::filesystem::exists(config, error) && !error) {
    return BadInput({.where = path,
                     .found = "no config.json in this folder",
                     .expected = "expected the folder of a Hugging Face model",
                     .hint = "name the folder that holds the model's files"});
  }
  return config;
}

}  // namespace fourpiles
