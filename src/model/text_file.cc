#include "model/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "base/json.h"
#include "base/try.h"

namespace fourpiles {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> CannotRead(const std::string& path, const std::error_code& reason) {
  return BadInput({.where = path,
                   .found = reason.message(),
                   .expected = "expected a readable file",
                   .hint = reason == std::errc::permission_denied ? "ls -l shows who may read it"
                                                                  : "check the path"});
}

std::error_code LastError() {
  return {errno, std::generic_category()};
}

// Its size in bytes.
Result<std::size_t> CheckRegularFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error) {
    return CannotRead(path, error);
  }
  if (!fs::is_regular_file(status)) {
    return BadInput({.where = path, .found = "not a file", .expected = "expected a JSON file"});
  }
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) {
    return CannotRead(path, error);
  }
  if (size > static_cast<std::uintmax_t>(JsonLimits().bytes)) {
    return BadInput({.where = path,
                     .found = fmt::format("{} bytes", size),
                     .expected = fmt::format("expected at most {}", JsonLimits().bytes)});
  }
  return static_cast<std::size_t>(size);
}

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  TRY(const std::size_t size, CheckRegularFile(path));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) {
    return CannotRead(path, LastError());
  }
  std::string text(size, '\0');
  text.resize(std::fread(text.data(), 1, size, file.get()));
  if (std::ferror(file.get()) != 0) {
    return CannotRead(path, LastError());
  }
  return text;
}

Result<std::string> ConfigPath(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return path;
  }
  const std::string config = (fs::path(path) / "config.json").string();
  if (!fs::exists(config, error) && !error) {
    return BadInput({.where = path,
                     .found = "no config.json in this folder",
                     .expected = "expected the folder of a Hugging Face model",
                     .hint = "name the folder that holds the model's files"});
  }
  return config;
}

}  // namespace fourpiles
