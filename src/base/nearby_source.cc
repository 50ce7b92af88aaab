#include "base/nearby_source.h"

#include <algorithm>
#include <cstring>

#include "base/try.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kFirstBytes = 512;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 16;

}  // namespace

Result<void> NearbySource::ReadAt(std::int64_t offset, std::span<std::byte> bytes) const {
  const std::int64_t count = std::ssize(bytes);
  const bool is_small = 0 < count && count <= kMostBytes;
  if (!is_small || offset < 0 || offset > Size() - count) {
    return source_.ReadAt(offset, bytes);
  }
  const std::int64_t end = begin_ + std::ssize(piece_);
  if (offset < begin_ || offset > end - count) {
    TRY_VOID(Fill(offset, count));
  }
  std::memcpy(bytes.data(), piece_.data() + (offset - begin_), bytes.size());
  return {};
}

Result<void> NearbySource::Fill(std::int64_t offset, std::int64_t least) const {
  const std::int64_t before = std::ssize(piece_);
  const bool goes_on = offset >= begin_ && offset - begin_ < 2 * before;
  const std::int64_t wanted = goes_on ? std::min(2 * before, kMostBytes) : kFirstBytes;
  const std::int64_t bytes = std::min(std::max(wanted, least), Size() - offset);
  piece_.resize(static_cast<std::size_t>(bytes));
  begin_ = offset;
  Result<void> read = source_.ReadAt(offset, std::as_writable_bytes(std::span(piece_)));
  if (!read) {
    piece_.clear();
  }
  return read;
}

}  // namespace fourpiles
