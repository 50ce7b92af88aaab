#pragma once

// Bytes to read from, by place: a file, or memory. Readers of file formats take a ByteSource, so
// that tests and fuzz targets need no files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fourpiles/result.h"

namespace fourpiles {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // How errors call it: the path.
  virtual std::string_view Name() const = 0;
  // In bytes, at most 2^53.
  virtual std::int64_t Size() const = 0;
  // Fills `bytes` from the place `offset`. A range that does not lie within the source is an error,
  // and so is a file that has become shorter since it was opened.
  virtual Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const = 0;
};

// A regular file, read by pread and never mapped: where a mapped file that shrinks is a signal,
// this is an error.
class FileSource final : public ByteSource {
 public:
  // Refuses, without waiting, what is no regular file: a folder, a pipe, a device.
  static Result<FileSource> Open(const std::string& path);

  // The file `name` of a folder, for names that come from a file: a relative path down from the
  // folder, without "..", through no link. The one exception is the Hugging Face cache, where a
  // snapshot's files are links into the "blobs" beside its "snapshots". Errors of kind kInput.
  static Result<FileSource> OpenWithin(const std::string& folder, std::string_view name);

  FileSource(FileSource&& other) noexcept;
  FileSource& operator=(FileSource&&) = delete;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override;

  std::string_view Name() const override { return path_; }
  std::int64_t Size() const override { return size_; }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override;

 private:
  FileSource(std::string path, int descriptor, std::int64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  // Takes the descriptor over, and refuses one that is no regular file.
  static Result<FileSource> Of(const std::string& path, int descriptor);

  std::string path_;
  int descriptor_;  // -1 when moved from
  std::int64_t size_;
};

// Bytes in memory, which must outlive it.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::span<const std::byte> bytes)
      : name_(std::move(name)), bytes_(bytes) {}

  std::string_view Name() const override { return name_; }
  std::int64_t Size() const override { return static_cast<std::int64_t>(bytes_.size()); }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

// A range of another source, which must outlive it: an archive within a file. Places count from the
// beginning of the range.
class SliceSource final : public ByteSource {
 public:
  // An error when the range does not lie within the source.
  static Result<SliceSource> Of(const ByteSource& source, std::int64_t offset, std::int64_t size);

  // "a.distcp from byte 4096"
  std::string_view Name() const override { return name_; }
  std::int64_t Size() const override { return size_; }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override;

 private:
  SliceSource(const ByteSource& source, std::int64_t offset, std::int64_t size);

  std::string name_;
  const ByteSource* source_;
  std::int64_t offset_;
  std::int64_t size_;
};

// Whether a relative path leads down from its folder and nowhere else, as far as its text says: no
// "..", no root, no backslash, no NUL.
bool StaysWithin(std::string_view name);

// A whole file of at most `limit` bytes.
Result<std::string> ReadWholeFile(const std::string& path, std::int64_t limit);
Result<std::string> ReadWholeFile(const ByteSource& source, std::int64_t limit);

}  // namespace fourpiles
