#include "model/text_file.h"

#include <cstdint>

#include "base/byte_source.h"

namespace fourpiles {
namespace {

// Real ones have less than 1 MiB; and a document takes some twenty times its size in memory.
constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  return ReadWholeFile(path, kMostBytes);
}

}  // namespace fourpiles
