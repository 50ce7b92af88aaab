#pragma once

// A source whose small reads are answered from the piece that was read last: for formats of many
// small records, one behind the other or nearly so. Pieces grow while the reads go on from one to
// the next, and are small again after a leap, so that little is read that nobody asked for.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace fourpiles {

// Of one thread. The source must outlive it.
class NearbySource final : public ByteSource {
 public:
  explicit NearbySource(const ByteSource& source) : source_(source) {}

  std::string_view Name() const override { return source_.Name(); }
  std::int64_t Size() const override { return source_.Size(); }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override;

 private:
  Result<void> Fill(std::int64_t offset, std::int64_t least) const;

  const ByteSource& source_;
  mutable std::string piece_ = {};
  mutable std::int64_t begin_ = 0;  // of the piece
};

}  // namespace fourpiles
