#include "base/write_file.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.h"

namespace fourpiles {
namespace {

tl::unexpected<Error> Refuse(const std::string& path, std::string found) {
  return WrongUsage({path, std::move(found), "expected a place to write a file", ""});
}

// A new file in `folder`, removed again unless it is renamed. Its functions return false when the
// system refuses, and leave the reason in errno.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder) {
    // Another thread, or a process that was killed, may have taken a name.
    constexpr int kAttempts = 100;
    for (int i = 0; i < kAttempts; ++i) {
      path_ = folder / fmt::format(".fourpiles-{}-{}", getpid(), i);
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ >= 0 || errno != EEXIST) {
        return;
      }
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
      unlink(path_.c_str());  // fails once it is renamed
    }
  }

  bool IsOpen() const { return descriptor_ >= 0; }

  bool SetPermissions(mode_t mode) const { return fchmod(descriptor_, mode) == 0; }

  bool Write(std::string_view contents) const {
    while (!contents.empty()) {
      const ssize_t count = write(descriptor_, contents.data(), contents.size());
      if (count < 0 && errno != EINTR) {
        return false;
      }
      contents.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
    return fsync(descriptor_) == 0;
  }

  bool RenameTo(const std::filesystem::path& target) const {
    return rename(path_.c_str(), target.c_str()) == 0;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Makes a renaming in the folder last. Not every file system can; the file is whole in any case.
void SyncFolder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

// The permissions of the file at `path`, or nothing when there is none.
Result<std::optional<mode_t>> PermissionsOf(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return std::optional<mode_t>();
  }
  if (!S_ISREG(status.st_mode)) {
    return Refuse(path, S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device");
  }
  constexpr mode_t kPermissions = 07777;
  return std::optional<mode_t>(status.st_mode & kPermissions);
}

}  // namespace

Result<void> WriteFileAtomically(const std::string& path, std::string_view contents) {
  TRY(const std::optional<mode_t> permissions, PermissionsOf(path));
  std::error_code error;  // where a link cannot be followed, the system says so below
  const std::filesystem::path target =
      permissions ? std::filesystem::canonical(path, error) : std::filesystem::path(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const TemporaryFile file(folder);
  if (!file.IsOpen() || (permissions && !file.SetPermissions(*permissions)) ||
      !file.Write(contents) || !file.RenameTo(target)) {
    return Refuse(path, std::generic_category().message(errno));
  }
  SyncFolder(folder);
  return {};
}

}  // namespace fourpiles
