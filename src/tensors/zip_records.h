#pragma once

// The records of a zip archive, as bytes say them (PKWARE's APPNOTE.TXT 6.3.10, section 4.3). What
// they mean together is zip.cc's.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace fourpiles {

inline constexpr std::uint64_t kZipStored = 0;
inline constexpr std::uint64_t kZipDeflated = 8;

// Bytes of a source, whose fields are little-endian numbers.
struct ZipRecord {
  std::string bytes = {};

  // The one of `count` bytes from `at` on, which must lie within.
  std::uint64_t Number(std::size_t at, std::size_t count) const;
  // The same as an offset or size: one beyond 2^53 is 2^53, which no source reaches beyond.
  std::int64_t Amount(std::size_t at, std::size_t count) const;
};

Result<ZipRecord> ReadZipRecord(const ByteSource& source, std::int64_t place, std::size_t bytes);

// Where the directory lies. It ends where the records of the end begin.
struct ZipPlace {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t entries = 0;
  std::int64_t comment_bytes = 0;  // of the archive, at its very end
};

// Found from the end: the end record, and that of zip64 where there is one, which then must not
// contradict it. An error where there is none, where the archive has several parts, or where there
// are bytes before or behind the archive.
Result<ZipPlace> FindZipDirectory(const ByteSource& source);

struct ZipSizes {
  std::int64_t packed = 0;
  std::int64_t unpacked = 0;
};

// What the directory says of a member.
struct ZipCentralHeader {
  std::string name = {};
  std::uint64_t flags = 0;
  std::uint64_t method = 0;
  std::uint64_t crc = 0;
  ZipSizes sizes = {};
  std::int64_t local = 0;       // offset of its local header
  bool has_other_name = false;  // a Unicode path, which some programs put before the name
  const char* fault = nullptr;  // what is wrong with it: the numbers are then not known
};

// All of them, in order. An error where they do not fill the directory.
Result<std::vector<ZipCentralHeader>> ReadZipCentralHeaders(const ByteSource& source,
                                                            const ZipPlace& place);

// The sizes of a local header, of whose extra fields zip64 has those that do not fit. Nothing:
// the fields are malformed.
std::optional<ZipSizes> LocalZipSizes(const ZipRecord& local, std::string_view extra);

}  // namespace fourpiles
