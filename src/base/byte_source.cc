#include "base/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
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

Result<void> CheckRange(const ByteSource& source, std::int64_t offset, std::int64_t count) {
  const Checked end = Checked(offset) + count;
  if (offset < 0 || count < 0 || !end.ok() || end.value() > source.Size()) {
    return BadInput({.where = fmt::format("{}: byte {}", source.Name(), offset),
                     .found = fmt::format("the end at byte {}", source.Size()),
                     .expected = fmt::format("expected {} bytes here", count),
                     .hint = "the file may be cut short; compare its size with the source"});
  }
  return {};
}

// Without O_NONBLOCK, opening a pipe would wait for a writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// A file descriptor that is closed when it is no longer needed; -1: none, with the reason in errno.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Become(-1); }

  int Number() const { return number_; }
  void Become(int number) {
    if (number_ >= 0) {
      const int error = errno;
      close(number_);
      errno = error;
    }
    number_ = number;
  }

 private:
  int number_;
};

// Where the link `name` leads, if `folder` is a snapshot of the Hugging Face cache and the link
// leads to its blobs: "../../blobs/0a1b…", one "../" more for each folder within the snapshot.
std::string CacheTarget(const std::string& folder, int place, const std::string& name) {
  std::error_code error;
  const auto snapshot = std::filesystem::canonical(folder, error);
  std::string target(PATH_MAX, '\0');
  const ssize_t length = readlinkat(place, name.c_str(), target.data(), target.size());
  if (error || length <= 0 || snapshot.parent_path().filename() != "snapshots") {
    return {};
  }
  target.resize(static_cast<std::size_t>(length));
  std::string_view rest = target;
  int steps = 0;
  while (rest.starts_with("../")) {
    rest.remove_prefix(3);
    ++steps;
  }
  const bool is_blob = rest.starts_with("blobs/") && StaysWithin(rest.substr(6)) &&
                       rest.find('/', 6) == std::string_view::npos;
  // The target must be the cache's own blobs, wherever within the snapshot the link lies.
  struct stat reached = {};
  struct stat blobs = {};
  const std::string towards = target.substr(0, target.size() - rest.size()) + "blobs";
  const std::string own = (snapshot.parent_path().parent_path() / "blobs").string();
  const bool is_own = steps >= 2 &&
                      fstatat(place, towards.c_str(), &reached, AT_SYMLINK_NOFOLLOW) == 0 &&
                      stat(own.c_str(), &blobs) == 0 && reached.st_dev == blobs.st_dev &&
                      reached.st_ino == blobs.st_ino;
  return is_blob && is_own ? target : std::string();
}

}  // namespace

bool StaysWithin(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos ||
      name.find('\\') != std::string_view::npos) {
    return false;
  }
  while (true) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view step = name.substr(0, end);
    if (step.empty() || step == "." || step == "..") {  // "/etc", "a//b", "a/" too
      return false;
    }
    if (end == name.size()) {
      return true;
    }
    name.remove_prefix(end + 1);
  }
}

Result<FileSource> FileSource::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return BadInput({path, "a NUL byte in the path", "", ""});
  }
  return Of(path, open(path.c_str(), kOpenFlags));
}

Result<FileSource> FileSource::OpenWithin(const std::string& folder, std::string_view name) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  if (!StaysWithin(name)) {
    return BadInput({.where = folder,
                     .found = fmt::format("the file name \"{}\"", name),
                     .expected = "expected a name within the folder"});
  }
  Descriptor place(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // One step of the path at a time, so that no step goes through a link.
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos;
       slash = name.find('/')) {
    const std::string step(name.substr(0, slash));
    place.Become(
        openat(place.Number(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (place.Number() < 0) {
      return Unopened(path, errno);
    }
    name.remove_prefix(slash + 1);
  }
  if (place.Number() < 0) {
    return Unopened(path, errno);
  }
  const std::string last(name);
  const int file = openat(place.Number(), last.c_str(), kOpenFlags | O_NOFOLLOW);
  if (file >= 0 || errno != ELOOP) {
    return Of(path, file);
  }
  const std::string target = CacheTarget(folder, place.Number(), last);
  if (target.empty()) {
    return BadInput({.where = path,
                     .found = "a symbolic link",
                     .expected = "expected a regular file in this folder",
                     .hint = "copy the file that it points to here"});
  }
  return Of(path, openat(place.Number(), target.c_str(), kOpenFlags | O_NOFOLLOW));
}

Result<FileSource> FileSource::Of(const std::string& path, int descriptor) {
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
  TRY_VOID(CheckRange(*this, offset, std::ssize(bytes)));
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
  TRY_VOID(CheckRange(*this, offset, std::ssize(bytes)));
  std::copy_n(bytes_.begin() + offset, bytes.size(), bytes.begin());
  return {};
}

SliceSource::SliceSource(const ByteSource& source, std::int64_t offset, std::int64_t size)
    : name_(fmt::format("{} from byte {}", source.Name(), offset)),
      source_(&source),
      offset_(offset),
      size_(size) {}

Result<SliceSource> SliceSource::Of(const ByteSource& source, std::int64_t offset,
                                    std::int64_t size) {
  TRY_VOID(CheckRange(source, offset, size));
  return SliceSource(source, offset, size);
}

Result<void> SliceSource::ReadAt(std::int64_t offset, std::span<std::byte> bytes) const {
  TRY_VOID(CheckRange(*this, offset, std::ssize(bytes)));
  return source_->ReadAt(offset_ + offset, bytes);
}

Result<std::string> ReadWholeFile(const std::string& path, std::int64_t limit) {
  TRY(const FileSource file, FileSource::Open(path));
  return ReadWholeFile(file, limit);
}

Result<std::string> ReadWholeFile(const ByteSource& source, std::int64_t limit) {
  if (source.Size() > limit) {
    return BadInput({std::string(source.Name()), fmt::format("{} bytes", source.Size()),
                     fmt::format("expected at most {}", limit), ""});
  }
  std::string content(static_cast<std::size_t>(source.Size()), '\0');
  TRY_VOID(source.ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

}  // namespace fourpiles
