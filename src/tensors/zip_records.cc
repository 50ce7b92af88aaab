#include "tensors/zip_records.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/checked.h"
#include "base/try.h"

namespace fourpiles {
namespace {

constexpr std::string_view kEndSignature = "PK\x05\x06";
constexpr std::int64_t kEndBytes = 22;
constexpr std::int64_t kMostCommentBytes = 65'535;
constexpr std::string_view kLocatorSignature = "PK\x06\x07";
constexpr std::int64_t kLocatorBytes = 20;
constexpr std::string_view kEnd64Signature = "PK\x06\x06";
constexpr std::int64_t kEnd64Bytes = 56;
constexpr std::string_view kCentralSignature = "PK\x01\x02";
constexpr std::int64_t kCentralBytes = 46;  // before name, extra fields and comment

constexpr std::int64_t kMostMembers = 1'000'000;
constexpr std::int64_t kMostDirectoryBytes = 100'000'000;
constexpr std::string_view kCutShort =
    "the file may be cut short, or hold something else beside the archive";

constexpr std::uint64_t kZip64Field = 0x0001;
constexpr std::uint64_t kUnicodePathField = 0x7075;
constexpr std::uint64_t kInZip64 = 0xFFFF'FFFF;  // a field of four bytes that did not suffice

std::uint64_t LittleEndian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

std::int64_t AmountOf(std::uint64_t number) {
  return static_cast<std::int64_t>(std::min(number, static_cast<std::uint64_t>(kLargestAmount)));
}

std::string WhereAt(const ByteSource& source, std::int64_t place) {
  return fmt::format("{}: byte {}", source.Name(), place);
}

// A field of the end record, and where its longer form stands in that of zip64.
struct EndField {
  std::string_view what;
  std::size_t at;
  std::size_t bytes;
  std::size_t at64;
  std::size_t bytes64;
};
constexpr std::array<EndField, 6> kEndFields = {{{"part", 4, 2, 16, 4},
                                                 {"part of the directory", 6, 2, 20, 4},
                                                 {"members of this part", 8, 2, 24, 8},
                                                 {"members", 10, 2, 32, 8},
                                                 {"bytes of the directory", 12, 4, 40, 8},
                                                 {"place of the directory", 16, 4, 48, 8}}};

// The last end record, whose comment ends the file.
Result<std::int64_t> FindEnd(const ByteSource& source) {
  const std::int64_t tail_bytes = std::min(source.Size(), kEndBytes + kMostCommentBytes);
  const std::int64_t tail_place = source.Size() - tail_bytes;
  TRY(const ZipRecord tail,
      ReadZipRecord(source, tail_place, static_cast<std::size_t>(tail_bytes)));
  const std::size_t at = tail_bytes < kEndBytes
                             ? std::string::npos
                             : tail.bytes.rfind(kEndSignature, tail.bytes.size() - kEndBytes);
  if (at == std::string::npos) {
    return BadInput({.where = std::string(source.Name()),
                     .found = "a zip archive without the directory at its end",
                     .expected = "expected an end record",
                     .hint = std::string(kCutShort)});
  }
  const std::int64_t place = tail_place + static_cast<std::int64_t>(at);
  const std::int64_t behind = source.Size() - place - kEndBytes;
  const std::int64_t comment = tail.Amount(at + 20, 2);
  if (comment != behind) {
    return BadInput({.where = WhereAt(source, place),
                     .found = fmt::format("an end record with a comment of {} bytes", comment),
                     .expected = fmt::format("the file has {} behind it", behind),
                     .hint = std::string(kCutShort)});
  }
  return place;
}

// Where the end record of zip64 stands that belongs to the end record at `end`; `end`: there is
// none.
Result<std::int64_t> FindEnd64(const ByteSource& source, std::int64_t end) {
  const std::int64_t locator_place = end - kLocatorBytes;
  if (locator_place < 0) {
    return end;
  }
  TRY(const ZipRecord locator, ReadZipRecord(source, locator_place, kLocatorBytes));
  if (!locator.bytes.starts_with(kLocatorSignature)) {
    return end;
  }
  const std::int64_t place = locator.Amount(8, 8);
  if (place <= locator_place - kEnd64Bytes && locator.Number(4, 4) == 0 &&
      locator.Number(16, 4) <= 1) {
    TRY(const ZipRecord record, ReadZipRecord(source, place, kEnd64Bytes));
    constexpr std::int64_t kBeforeSize = 12;  // what its size does not count
    if (record.bytes.starts_with(kEnd64Signature) &&
        record.Amount(4, 8) == locator_place - place - kBeforeSize) {
      return place;
    }
  }
  return BadInput({.where = WhereAt(source, locator_place),
                   .found = "a zip64 locator that leads to no end record",
                   .expected = "expected one that ends here, of an archive of one part",
                   .hint = std::string(kCutShort)});
}

using EndNumbers = std::array<std::uint64_t, kEndFields.size()>;

// The numbers of the end record, or of that of zip64 where there is one.
Result<EndNumbers> ReadEnd(const ByteSource& source, std::int64_t end, std::int64_t end64) {
  TRY(const ZipRecord record, ReadZipRecord(source, end, kEndBytes));
  EndNumbers numbers = {};
  for (std::size_t i = 0; i < kEndFields.size(); ++i) {
    numbers[i] = record.Number(kEndFields[i].at, kEndFields[i].bytes);
  }
  if (end64 == end) {
    return numbers;
  }
  TRY(const ZipRecord record64, ReadZipRecord(source, end64, kEnd64Bytes));
  for (std::size_t i = 0; i < kEndFields.size(); ++i) {
    const EndField& field = kEndFields[i];
    const std::uint64_t all_ones = (std::uint64_t{1} << (8 * field.bytes)) - 1;
    const std::uint64_t number = record64.Number(field.at64, field.bytes64);
    if (numbers[i] != number && numbers[i] != all_ones) {
      return BadInput({.where = WhereAt(source, end),
                       .found = fmt::format("{} {} in the end record", field.what, numbers[i]),
                       .expected = fmt::format("that of zip64 says {}", number)});
    }
    numbers[i] = number;
  }
  return numbers;
}

// The extra fields by their ids: each an id and a length of two bytes, and the content.
struct ExtraFields {
  std::string_view zip64 = {};
  bool has_zip64 = false;
  bool has_unicode_path = false;
};
std::optional<ExtraFields> ParseExtra(std::string_view extra) {
  ExtraFields fields;
  while (!extra.empty()) {
    if (extra.size() < 4) {
      return std::nullopt;
    }
    const std::uint64_t id = LittleEndian(extra.substr(0, 2));
    const std::uint64_t bytes = LittleEndian(extra.substr(2, 2));
    extra.remove_prefix(4);
    if (bytes > extra.size() || (id == kZip64Field && fields.has_zip64)) {
      return std::nullopt;
    }
    if (id == kZip64Field) {
      fields.has_zip64 = true;
      fields.zip64 = extra.substr(0, bytes);
    }
    fields.has_unicode_path = fields.has_unicode_path || id == kUnicodePathField;
    extra.remove_prefix(bytes);
  }
  return fields;
}

// The zip64 field has, in order, those numbers that did not suffice.
class Zip64Numbers {
 public:
  explicit Zip64Numbers(const ExtraFields& fields)
      : is_there_(fields.has_zip64), rest_(fields.zip64) {}

  // The number, or its longer form; without a zip64 field it is meant as it stands.
  std::int64_t Next(std::uint64_t number) {
    if (number != kInZip64 || !is_there_) {
      return AmountOf(number);
    }
    is_whole_ = is_whole_ && rest_.size() >= 8;
    if (!is_whole_) {
      return 0;
    }
    const std::int64_t amount = AmountOf(LittleEndian(rest_.substr(0, 8)));
    rest_.remove_prefix(8);
    return amount;
  }
  bool IsWhole() const { return is_whole_; }

 private:
  bool is_there_;
  bool is_whole_ = true;
  std::string_view rest_;
};

// The fixed part of a header of the directory, whose name is set.
void ParseCentralHeader(const ZipRecord& fixed, std::string_view extra, ZipCentralHeader& header) {
  header.flags = fixed.Number(8, 2);
  header.method = fixed.Number(10, 2);
  header.crc = fixed.Number(16, 4);
  header.local = fixed.Amount(42, 4);
  const std::optional<ExtraFields> fields = ParseExtra(extra);
  if (!fields) {
    header.fault = "extra fields that are cut short";
    return;
  }
  header.has_other_name = fields->has_unicode_path;
  Zip64Numbers numbers(*fields);
  header.sizes.unpacked = numbers.Next(fixed.Number(24, 4));
  header.sizes.packed = numbers.Next(fixed.Number(20, 4));
  header.local = numbers.Next(fixed.Number(42, 4));
  if (!numbers.IsWhole()) {
    header.fault = "a zip64 field that is cut short";
  } else if (fixed.Number(34, 2) != 0) {
    header.fault = "a member in another part of the archive";
  }
}

}  // namespace

std::uint64_t ZipRecord::Number(std::size_t at, std::size_t count) const {
  CHECK(at + count <= bytes.size());
  return LittleEndian(std::string_view(bytes).substr(at, count));
}

std::int64_t ZipRecord::Amount(std::size_t at, std::size_t count) const {
  return AmountOf(Number(at, count));
}

Result<ZipRecord> ReadZipRecord(const ByteSource& source, std::int64_t place, std::size_t bytes) {
  ZipRecord record = {.bytes = std::string(bytes, '\0')};
  TRY_VOID(source.ReadAt(place, std::as_writable_bytes(std::span(record.bytes))));
  return record;
}

Result<ZipPlace> FindZipDirectory(const ByteSource& source) {
  TRY(const std::int64_t end, FindEnd(source));
  TRY(const std::int64_t end64, FindEnd64(source, end));
  TRY(const EndNumbers numbers, ReadEnd(source, end, end64));
  const auto& [part, directory_part, part_members, members, bytes, offset] = numbers;
  const ZipPlace place = {.offset = AmountOf(offset),
                          .bytes = AmountOf(bytes),
                          .entries = AmountOf(members),
                          .comment_bytes = source.Size() - end - kEndBytes};
  if (part != 0 || directory_part != 0 || part_members != members) {
    return BadInput({WhereAt(source, end), "one part of an archive of several",
                     "expected all of it", "join the parts first"});
  }
  if (place.offset + place.bytes != end64) {
    return BadInput({WhereAt(source, end),
                     fmt::format("a directory of {} bytes from byte {} on", bytes, offset),
                     fmt::format("expected one that ends at byte {}", end64),
                     std::string(kCutShort)});
  }
  const std::int64_t most = std::min(kMostMembers, place.bytes / kCentralBytes);
  if (place.bytes > kMostDirectoryBytes || place.entries > most) {
    return BadInput(
        {WhereAt(source, end), fmt::format("{} members in a directory of {} bytes", members, bytes),
         fmt::format("expected at most {} in at most {} bytes", most, kMostDirectoryBytes), ""});
  }
  return place;
}

Result<std::vector<ZipCentralHeader>> ReadZipCentralHeaders(const ByteSource& source,
                                                            const ZipPlace& place) {
  TRY(const ZipRecord directory,
      ReadZipRecord(source, place.offset, static_cast<std::size_t>(place.bytes)));
  std::vector<ZipCentralHeader> headers;
  headers.reserve(static_cast<std::size_t>(place.entries));
  std::string_view rest = directory.bytes;
  while (!rest.empty()) {
    const auto at = place.offset + static_cast<std::int64_t>(directory.bytes.size() - rest.size());
    if (!rest.starts_with(kCentralSignature) || rest.size() < kCentralBytes) {
      return BadInput({WhereAt(source, at), "no header of the directory",
                       "expected the bytes \"PK\\x01\\x02\"", std::string(kCutShort)});
    }
    const ZipRecord fixed = {.bytes = std::string(rest.substr(0, kCentralBytes))};
    rest.remove_prefix(kCentralBytes);
    const std::size_t name_bytes = fixed.Number(28, 2);
    const std::size_t extra_bytes = fixed.Number(30, 2);
    const std::size_t bytes = name_bytes + extra_bytes + fixed.Number(32, 2);
    if (bytes > rest.size()) {
      return BadInput({WhereAt(source, at), fmt::format("a header of {} bytes", bytes + 46),
                       fmt::format("the directory ends after {}", rest.size() + 46), ""});
    }
    headers.push_back({.name = std::string(rest.substr(0, name_bytes))});
    ParseCentralHeader(fixed, rest.substr(name_bytes, extra_bytes), headers.back());
    rest.remove_prefix(bytes);
  }
  if (static_cast<std::int64_t>(headers.size()) != place.entries) {
    return BadInput({WhereAt(source, place.offset),
                     fmt::format("a directory of {} members", headers.size()),
                     fmt::format("the end record says {}", place.entries), ""});
  }
  return headers;
}

std::optional<ZipSizes> LocalZipSizes(const ZipRecord& local, std::string_view extra) {
  const std::optional<ExtraFields> fields = ParseExtra(extra);
  if (!fields) {
    return std::nullopt;
  }
  Zip64Numbers numbers(*fields);
  ZipSizes sizes;
  sizes.unpacked = numbers.Next(local.Number(22, 4));
  sizes.packed = numbers.Next(local.Number(18, 4));
  return numbers.IsWhole() ? std::optional(sizes) : std::nullopt;
}

}  // namespace fourpiles
