#pragma once

// Zip archives made by hand, record by record (APPNOTE.TXT 6.3.10, 4.3), so that tests and the fuzz
// target can make good ones and change one field.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include "base/check.h"

namespace fourpiles {

inline void AppendNumber(std::string& text, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(number >> (8 * i) & 0xFFU);
  }
}

// One side of a member: of its local header, or of the directory.
struct ZipSide {
  std::string name = {};
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t packed = 0;
  std::uint32_t unpacked = 0;
  std::string extra = {};

  void Append(std::string& text) const {
    AppendNumber(text, 20, 2);
    AppendNumber(text, flags, 2);
    AppendNumber(text, method, 2);
    AppendNumber(text, 0x21'0000, 4);  // 1980-01-01
    AppendNumber(text, crc, 4);
    AppendNumber(text, packed, 4);
    AppendNumber(text, unpacked, 4);
    AppendNumber(text, name.size(), 2);
    AppendNumber(text, extra.size(), 2);
  }
};

struct MadeMember {
  ZipSide local = {};
  ZipSide central = {};
  std::string data = {};
  std::string behind = {};  // the data
  std::int64_t place = -1;  // of its local header, as the directory says; -1: the true one
};

inline std::string Deflated(std::string_view content) {
  z_stream stream = {};
  CHECK(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline MadeMember MakeMember(std::string_view name, std::string_view content,
                             bool deflated = false) {
  MadeMember member;
  member.data = deflated ? Deflated(content) : std::string(content);
  member.local = {
      .name = std::string(name),
      .method = static_cast<std::uint16_t>(deflated ? 8 : 0),
      .crc = static_cast<std::uint32_t>(
          crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size())),
      .packed = static_cast<std::uint32_t>(member.data.size()),
      .unpacked = static_cast<std::uint32_t>(content.size()),
  };
  member.central = member.local;
  return member;
}

// A zip64 field of two sizes.
inline std::string Zip64Extra(std::uint64_t unpacked, std::uint64_t packed) {
  std::string extra("\1\0\x10\0", 4);
  AppendNumber(extra, unpacked, 8);
  AppendNumber(extra, packed, 8);
  return extra;
}

// Moves the sizes of a side into a zip64 field.
inline void UseZip64(ZipSide& side) {
  side.extra += Zip64Extra(side.unpacked, side.packed);
  side.unpacked = side.packed = 0xFFFF'FFFF;
}

// Moves CRC and sizes behind the data.
inline void UseDescriptor(MadeMember& member, bool has_signature = true, int size_bytes = 4) {
  member.behind = has_signature ? "PK\x07\x08" : "";
  AppendNumber(member.behind, member.local.crc, 4);
  AppendNumber(member.behind, member.local.packed, size_bytes);
  AppendNumber(member.behind, member.local.unpacked, size_bytes);
  member.local.crc = member.local.packed = member.local.unpacked = 0;
  member.local.flags = member.central.flags = 8;
}

struct MadeEnd {
  std::uint16_t part = 0;
  std::int64_t members = -1;  // -1: the true one, and so are the next
  std::int64_t bytes = -1;
  std::int64_t place = -1;
  bool zip64 = false;
  std::string comment = {};
};

inline std::string MakeZip(const std::vector<MadeMember>& members, const MadeEnd& end = {}) {
  std::string text;
  std::string directory;
  for (const MadeMember& member : members) {
    const std::size_t place = text.size();
    text += "PK\x03\x04";
    member.local.Append(text);
    text += member.local.name + member.local.extra + member.data + member.behind;
    directory += std::string("PK\x01\x02\x14\0", 6);
    member.central.Append(directory);
    directory += std::string(10, '\0');  // comment, part, attributes
    AppendNumber(directory, member.place < 0 ? place : static_cast<std::uint64_t>(member.place), 4);
    directory += member.central.name + member.central.extra;
  }
  const auto or_true = [](std::int64_t number, std::size_t truth) {
    return number < 0 ? truth : static_cast<std::uint64_t>(number);
  };
  const std::uint64_t count = or_true(end.members, members.size());
  const std::uint64_t bytes = or_true(end.bytes, directory.size());
  const std::uint64_t place = or_true(end.place, text.size());
  text += directory;
  const std::size_t end64 = text.size();
  if (end.zip64) {
    text += "PK\x06\x06";
    AppendNumber(text, 44, 8);
    AppendNumber(text, 45 | 45 << 16, 4);
    AppendNumber(text, 0, 8);
    for (const std::uint64_t number : {count, count, bytes, place}) {
      AppendNumber(text, number, 8);
    }
    text += "PK\x06\x07";
    AppendNumber(text, 0, 4);
    AppendNumber(text, end64, 8);
    AppendNumber(text, 1, 4);
  }
  text += "PK\x05\x06";
  AppendNumber(text, end.part, 2);
  AppendNumber(text, 0, 2);
  AppendNumber(text, end.zip64 ? 0xFFFF : count, 2);
  AppendNumber(text, end.zip64 ? 0xFFFF : count, 2);
  AppendNumber(text, end.zip64 ? 0xFFFF'FFFF : bytes, 4);
  AppendNumber(text, end.zip64 ? 0xFFFF'FFFF : place, 4);
  AppendNumber(text, end.comment.size(), 2);
  return text + end.comment;
}

}  // namespace fourpiles
