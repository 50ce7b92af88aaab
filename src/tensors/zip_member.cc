// The bytes of a member: read where they lie, or inflated by zlib.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "base/check.h"
#include "base/try.h"
#include "tensors/zip.h"

namespace fourpiles {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 14;  // of packed bytes, read at once

tl::unexpected<Error> Faulty(const ByteSource& source, const ZipMember& member, std::string found,
                             std::string expected) {
  return BadInput({.where = fmt::format("{}: member \"{}\"", source.Name(), member.name),
                   .found = std::move(found),
                   .expected = std::move(expected),
                   .hint = "the file is damaged; fetch it again"});
}

// A raw deflate stream, as it lies in a member.
class Inflater {
 public:
  Inflater(const ByteSource& source, const ZipMember& member) : source_(source), member_(member) {
    constexpr int kRawDeflate = -15;
    CHECK(inflateInit2(&stream_, kRawDeflate) == Z_OK);  // fails without memory alone
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Fills `bytes`, or as many as the stream has. Returns how many.
  Result<std::size_t> Read(std::span<std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size() && !has_ended_) {
      if (stream_.avail_in == 0) {
        TRY_VOID(Fill());
      }
      const std::size_t room = std::min(bytes.size() - done, kPiece);
      stream_.next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      const uInt in_before = stream_.avail_in;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      has_ended_ = status == Z_STREAM_END;
      const std::size_t made = room - stream_.avail_out;
      done += made;
      const bool stalled = made == 0 && stream_.avail_in == in_before;
      if (status != Z_STREAM_END && (status != Z_OK || stalled)) {
        const bool is_cut = stalled && read_ == member_.packed_bytes;
        return Faulty(
            source_, member_,
            is_cut ? "a deflate stream that is cut short" : "bytes that are no deflate stream",
            fmt::format("expected {} bytes unpacked", member_.bytes));
      }
    }
    return done;
  }

  // Whether the stream ends here, and its packed bytes with it.
  Result<bool> HasEnded() {
    std::byte more = {};
    TRY(const std::size_t extra, Read(std::span(&more, 1)));
    return extra == 0 && has_ended_ && stream_.avail_in == 0 && read_ == member_.packed_bytes;
  }

 private:
  // Nothing is left where all was read: zlib may yet have bytes to give.
  Result<void> Fill() {
    const std::int64_t left = member_.packed_bytes - read_;
    const auto bytes = static_cast<std::size_t>(std::min<std::int64_t>(left, kPiece));
    TRY_VOID(source_.ReadAt(member_.offset + read_, std::span(piece_).first(bytes)));
    read_ += static_cast<std::int64_t>(bytes);
    stream_.next_in = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_in = static_cast<uInt>(bytes);
    return {};
  }

  const ByteSource& source_;
  const ZipMember& member_;
  z_stream stream_ = {};
  std::vector<std::byte> piece_ = std::vector<std::byte>(kPiece);
  std::int64_t read_ = 0;  // packed bytes
  bool has_ended_ = false;
};

std::uint32_t CrcOf(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

Result<std::string> ReadZipBeginning(const ByteSource& source, const ZipMember& member,
                                     std::int64_t count) {
  const bool is_whole = count >= member.bytes;
  std::string bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, member.bytes)),
                    '\0');
  const std::span<std::byte> room = std::as_writable_bytes(std::span(bytes));
  if (member.method == ZipMethod::kStored) {
    TRY_VOID(source.ReadAt(member.offset, room));
  } else {
    Inflater inflater(source, member);
    TRY(const std::size_t done, inflater.Read(room));
    if (done < bytes.size()) {
      return Faulty(source, member, fmt::format("{} bytes unpacked", done),
                    fmt::format("the directory says {}", member.bytes));
    }
    if (is_whole) {
      TRY(const bool has_ended, inflater.HasEnded());
      if (!has_ended) {
        return Faulty(source, member,
                      fmt::format("more than {} bytes unpacked, or packed", member.bytes),
                      "the directory says no more");
      }
    }
  }
  if (is_whole && CrcOf(bytes) != member.crc) {
    return Faulty(source, member, fmt::format("bytes of the CRC {:08x}", CrcOf(bytes)),
                  fmt::format("the directory says {:08x}", member.crc));
  }
  return bytes;
}

Result<std::string> ReadZipMember(const ByteSource& source, const ZipMember& member,
                                  std::int64_t limit) {
  if (member.bytes > limit || IsDense(member)) {
    return BadInput(
        {.where = fmt::format("{}: member \"{}\"", source.Name(), member.name),
         .found = fmt::format("{} bytes from {}", member.bytes, member.packed_bytes),
         .expected = fmt::format("expected at most {}, and at most 200 from one", limit)});
  }
  return ReadZipBeginning(source, member, member.bytes);
}

}  // namespace fourpiles
