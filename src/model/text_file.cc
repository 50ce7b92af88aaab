#include "model/text_file.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/byte_source.h"

namespace fourpiles {
namespace {

// Real ones have less than 1 MiB; and a document takes some twenty times its size in memory.
constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  return ReadWholeFile(path, kMostBytes);
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
