#include <cstddef>
#include <span>

#include "tensors/open_checkpoint.h"

namespace fourpiles {

std::optional<std::string> TensorBytes(const Checkpoint& checkpoint, const FileTensor& tensor,
                                       std::int64_t limit) {
  if (tensor.bytes < 0 || tensor.bytes > limit || tensor.file < 0 ||
      static_cast<std::size_t>(tensor.file) >= checkpoint.files.size()) {
    return std::nullopt;
  }
  const auto& source = checkpoint.files[static_cast<std::size_t>(tensor.file)].source;
  std::string bytes(static_cast<std::size_t>(tensor.bytes), '\0');
  if (source == nullptr ||
      !source->ReadAt(tensor.offset, std::as_writable_bytes(std::span(bytes)))) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace fourpiles
