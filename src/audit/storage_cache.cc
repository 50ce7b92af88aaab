#include "audit/storage_cache.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"

namespace fourpiles {

Result<std::shared_ptr<const ByteSource>> SourceOf(const Checkpoint& checkpoint,
                                                   std::int32_t file) {
  const CheckpointFile& entry = checkpoint.files[static_cast<std::size_t>(file)];
  if (entry.source != nullptr) {
    return entry.source;
  }
  if (entry.folder.empty()) {
    return BadInput({entry.name, "a file that could not be opened", "expected its tensors", ""});
  }
  TRY(FileSource source, FileSource::OpenWithin(entry.folder, entry.name));
  return std::make_shared<FileSource>(std::move(source));
}

Result<std::shared_ptr<const std::string>> StorageCache::Bytes(const HeldPlace& place) {
  const std::lock_guard lock(mutex_);
  if (last_ == nullptr || place != last_place_) {
    last_.reset();  // before the next one takes memory
    TRY(std::string bytes, Load(place));
    last_ = std::make_shared<const std::string>(std::move(bytes));
    last_place_ = place;
  }
  return last_;
}

Result<std::string> StorageCache::Load(const HeldPlace& place) {
  TRY(const std::shared_ptr<const ByteSource> source, SourceOf(checkpoint_, place.file));
  if (place.packed) {
    return Unpack(place, *source);
  }
  if (place.bytes > kMostHeldBytes) {
    return BadInput(
        {.where = fmt::format("{}: byte {}", source->Name(), place.offset),
         .found = fmt::format("{} bytes that do not lie in order", place.bytes),
         .expected = fmt::format("expected at most {} to be held in memory", kMostHeldBytes),
         .hint = "save the tensor with its last dimension contiguous"});
  }
  std::string bytes;
  // A file that is too short is told before memory is taken for it.
  if (place.offset <= source->Size() && place.bytes <= source->Size() - place.offset) {
    bytes.resize(static_cast<std::size_t>(place.bytes));
    TRY_VOID(source->ReadAt(place.offset, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }
  return BadInput({.where = fmt::format("{}: byte {}", source->Name(), place.offset),
                   .found = fmt::format("the end at byte {}", source->Size()),
                   .expected = fmt::format("expected {} bytes here", place.bytes),
                   .hint = "the file may be cut short; compare its size with the source"});
}

Result<std::string> StorageCache::Unpack(const HeldPlace& place, const ByteSource& source) {
  auto directory = directories_.find(place.file);
  if (directory == directories_.end()) {
    TRY(ZipDirectory read, ReadZip(source));
    std::ranges::sort(read.members, {}, &ZipMember::offset);
    directory = directories_.emplace(place.file, std::move(read)).first;
  }
  const std::vector<ZipMember>& members = directory->second.members;
  // Members without data lie where the next one does, and none of them is deflated.
  auto member = std::ranges::lower_bound(members, place.offset, {}, &ZipMember::offset);
  while (member != members.end() && member->offset == place.offset &&
         member->method != ZipMethod::kDeflated) {
    ++member;
  }
  if (member == members.end() || member->offset != place.offset) {
    return BadInput({.where = fmt::format("{}: byte {}", source.Name(), place.offset),
                     .found = "no deflated member of the archive",
                     .expected = "expected the one that was there",
                     .hint = "the file may have been changed while it was read; try again"});
  }
  return ReadZipMember(source, *member, kMostHeldBytes);
}

}  // namespace fourpiles
