#include "base/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/try.h"

namespace fourpiles {
namespace {

tl::unexpected<Error> Unopened(const std::string& path, int error) {
  if (error == ENOENT) {
    return BadInput({path, "no such file", "", "check the spelling of the path"});
  }
  return BadInput({path, std::generic_category().message(error), "expected a file to read"});
}

Result<void> CheckRange(const ByteSource& source, std::int64_t offset, std::size_t count) {
  const Checked end = Checked(offset) + static_cast<std::int64_t>(count);
  if (offset < 0 || !end.ok() || end.value() > source.Size()) {
    return BadInput({.where = fmt::format("{}: byte {}", source.Name(), offset),
                     .found = fmt::format("the end at byte {}", source.Size()),
                     .expected = fmt::format("expected {} bytes here", count),
                     .hint = "the file may be cut short; compare its size with the source"});
  }
  return {};
}

}  // namespace

Result<FileSource> FileSource::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return BadInput({path, "a NUL byte in the path", "", ""});
  }
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    return Unopened(path, errno);
  }
  FileSource file(path, descriptor, 0);  // closes the descriptor from here on
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    return Unopened(path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    const bool is_folder = S_ISDIR(status.st_mode);
    return BadInput({path, is_folder ? "a folder" : "a pipe or device", "expected a regular file",
                     is_folder ? "" : "copy its content to a file"});
  }
  if (!Checked(status.st_size).ok()) {
    return BadInput({path, fmt::format("{} bytes", status.st_size), "expected at most 2^53", ""});
  }
  file.size_ = status.st_size;
  return file;
}

FileSource::FileSource(FileSource&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

FileSource::~FileSource() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Result<void> FileSource::ReadAt(std::int64_t offset, std::span<std::byte> bytes) const {
  TRY_VOID(CheckRange(*this, offset, bytes.size()));
  while (!bytes.empty()) {
    const ssize_t count = pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return BadInput(
          {.where = fmt::format("{}: byte {}", path_, offset),
           .found = count < 0 ? std::generic_category().message(errno) : "the end of the file",
           .expected = fmt::format("expected {} bytes in all", size_),
           .hint = "the file may have been changed while it was read; try again"});
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

Result<void> MemorySource::ReadAt(std::int64_t offset, std::span<std::byte> bytes) const {
  TRY_VOID(CheckRange(*this, offset, bytes.size()));
  std::copy_n(bytes_.begin() + offset, bytes.size(), bytes.begin());
  return {};
}

Result<std::string> ReadWholeFile(const std::string& path, std::int64_t limit) {
  TRY(const FileSource file, FileSource::Open(path));
  if (file.Size() > limit) {
    return BadInput({path, fmt::format("{} bytes", file.Size()),
                     fmt::format("expected at most {}", limit), ""});
  }
  std::string content(static_cast<std::size_t>(file.Size()), '\0');
  TRY_VOID(file.ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

}  // namespace fourpiles
