#pragma once

// Bytes of a checkpoint that have to be held in memory before elements can be picked from them:
// deflated storages, and those whose tensors do not lie in order.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "tensors/open_checkpoint.h"
#include "tensors/zip.h"

namespace fourpiles {

// More of one storage is not held.
inline constexpr std::int64_t kMostHeldBytes = std::int64_t{4} << 30;

// Where bytes lie in a checkpoint.
struct HeldPlace {
  std::int32_t file = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  // of packed ones: any; all are unpacked
  bool packed = false;     // the deflated member of an archive that begins there

  friend bool operator==(const HeldPlace&, const HeldPlace&) = default;
};

// Of one checkpoint, which must outlive it; may be used from several threads. Keeps the bytes that
// were asked for last, so that tensors of one storage unpack it once, and the directories of
// archives.
class StorageCache {
 public:
  explicit StorageCache(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  StorageCache(const StorageCache&) = delete;
  StorageCache& operator=(const StorageCache&) = delete;

  // Errors (kInput): more than kMostHeldBytes; a file that cannot be read or has become shorter; a
  // member that does not unpack, or of more than 200 times its packed bytes.
  Result<std::shared_ptr<const std::string>> Bytes(const HeldPlace& place);

 private:
  Result<std::string> Load(const HeldPlace& place);
  Result<std::string> Unpack(const HeldPlace& place, const ByteSource& source);

  const Checkpoint& checkpoint_;
  std::mutex mutex_ = {};
  HeldPlace last_place_ = {.file = -1};
  std::shared_ptr<const std::string> last_ = {};
  std::map<std::int32_t, ZipDirectory> directories_ = {};  // members by their place
};

// The file to read from, opened again in its folder where it was closed. Errors (kInput): it can no
// longer be opened, or never was.
Result<std::shared_ptr<const ByteSource>> SourceOf(const Checkpoint& checkpoint, std::int32_t file);

}  // namespace fourpiles
