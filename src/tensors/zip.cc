#include "tensors/zip.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/nearby_source.h"
#include "base/try.h"
#include "tensors/finding_list.h"
#include "tensors/zip_records.h"

namespace fourpiles {
namespace {

constexpr std::string_view kLocalSignature = "PK\x03\x04";
constexpr std::size_t kLocalBytes = 30;  // before name and extra fields
constexpr std::string_view kDescriptorSignature = "PK\x07\x08";
constexpr std::uint64_t kHasDescriptor = 0x8;
// Of the others, 0x6 tells how hard the packer tried and 0x800 that names are UTF-8.
constexpr std::uint64_t kPlainFlags = 0x80E;
constexpr std::uint64_t kEncrypted = 0x1;
// A match of 258 bytes takes two bits at least: no deflated byte makes more than 1032 (RFC 1951).
constexpr std::int64_t kMostInflation = 1032;

struct Entry {
  ZipCentralHeader header = {};
  std::int64_t offset = 0;  // of its data
  std::int64_t end = 0;     // behind its data and what belongs to it
  bool is_good = false;
};

ZipMember MemberOf(const Entry& entry) {
  const ZipCentralHeader& header = entry.header;
  return {
      .name = header.name,
      .method = header.method == kZipDeflated ? ZipMethod::kDeflated : ZipMethod::kStored,
      .offset = entry.offset,
      .packed_bytes = header.sizes.packed,
      .bytes = header.sizes.unpacked,
      .crc = static_cast<std::uint32_t>(header.crc),
  };
}

// Reads the local headers, and holds them against the directory and each other.
class Reader {
 public:
  Reader(const ByteSource& source, std::int64_t directory)
      : source_(source), directory_(directory) {}

  ZipDirectory Read(std::vector<ZipCentralHeader> headers) && {
    entries_.reserve(headers.size());
    for (ZipCentralHeader& header : headers) {
      entries_.push_back({.header = std::move(header)});
      Entry& entry = entries_.back();
      const Result<void> read = CheckEntry(entry);
      entry.is_good = entry.is_good && read.has_value();
      if (!read) {
        findings_.Refuse(read.error().text);
      }
    }
    CheckExtents();
    CheckNames();
    ZipDirectory directory;
    for (const Entry& entry : entries_) {
      if (entry.is_good) {
        directory.members.push_back(MemberOf(entry));
      }
    }
    directory.findings = std::move(findings_).Take(source_.Name());
    return directory;
  }

 private:
  std::string Where(const ZipCentralHeader& header) const {
    return fmt::format("{}: member \"{}\" at byte {}", source_.Name(), header.name, header.local);
  }
  tl::unexpected<Error> Faulty(const ZipCentralHeader& header, std::string found,
                               std::string expected) const {
    return BadInput({Where(header), std::move(found), std::move(expected), ""});
  }
  void Report(const ZipCentralHeader& header, std::string found, std::string expected) {
    findings_.Add({.verdict = FileVerdict::kReport,
                   .text = {Where(header), std::move(found), std::move(expected), ""}});
  }

  Result<void> CheckEntry(Entry& entry);
  Result<void> CheckDirectorySide(Entry& entry);
  Result<void> CheckLocalSide(Entry& entry);
  Result<void> CheckLocalSizes(const ZipCentralHeader& header, const ZipRecord& local,
                               std::string_view extra) const;
  Result<std::int64_t> DescriptorBytes(const Entry& entry, std::int64_t place) const;
  void CheckExtents();
  void WarnOfGap(std::int64_t begin, std::int64_t end);
  void CheckNames();

  const ByteSource& source_;
  std::int64_t directory_;  // where it begins, and the members end
  std::vector<Entry> entries_ = {};
  FindingList findings_ = {};
};

Result<void> Reader::CheckEntry(Entry& entry) {
  if (entry.header.fault != nullptr) {
    return Faulty(entry.header, entry.header.fault, "expected fields of the format");
  }
  entry.is_good = true;
  TRY_VOID(CheckDirectorySide(entry));
  return CheckLocalSide(entry);
}

// What the directory says, by itself.
Result<void> Reader::CheckDirectorySide(Entry& entry) {
  const ZipCentralHeader& header = entry.header;
  const auto& [packed, unpacked] = header.sizes;
  const std::string_view path = header.name;
  if (!StaysWithin(path.ends_with('/') ? path.substr(0, path.size() - 1) : path)) {
    Report(header, "a name that is no path within a folder", "expected no \"..\", root or \"\\\"");
  }
  if (header.has_other_name) {
    Report(header, "a second name in its extra fields", "programs take one or the other");
  }
  const bool is_stored = header.method == kZipStored;
  if ((header.flags & kEncrypted) != 0 && !(is_stored && packed == unpacked)) {
    Report(header, "an encrypted member", "it cannot be read");
    entry.is_good = false;
  } else if ((header.flags & ~kPlainFlags) != 0) {
    Report(header, fmt::format("the flags {:#x}", header.flags),
           "some programs stop here, where others read on");
  }
  if (!is_stored && header.method != kZipDeflated) {
    return Faulty(header, fmt::format("the method {}", header.method),
                  "expected 0, stored, or 8, deflated");
  }
  if (is_stored && packed != unpacked && entry.is_good) {
    return Faulty(header, fmt::format("{} bytes stored as {}", unpacked, packed),
                  "expected the same");
  }
  if (!is_stored && unpacked / kMostInflation > packed) {
    return Faulty(header, fmt::format("{} bytes deflated to {}", unpacked, packed),
                  fmt::format("deflate makes at most {} of one", kMostInflation));
  }
  if (!is_stored && IsDense(MemberOf(entry))) {
    findings_.Warn({Where(header), fmt::format("{} bytes deflated to {}", unpacked, packed),
                    "expected at most 200 of one", "its values will not be unpacked"});
  }
  return {};
}

Result<void> Reader::CheckLocalSide(Entry& entry) {
  const ZipCentralHeader& header = entry.header;
  const auto name_bytes = static_cast<std::int64_t>(header.name.size());
  const auto fixed_bytes = static_cast<std::int64_t>(kLocalBytes);
  if (header.local > directory_ - fixed_bytes - name_bytes) {
    return Faulty(header,
                  fmt::format("a place behind the members, which end at byte {}", directory_),
                  "expected its local header there");
  }
  TRY(const ZipRecord local, ReadZipRecord(source_, header.local, kLocalBytes));
  if (!local.bytes.starts_with(kLocalSignature)) {
    return Faulty(header, "no local header", "expected the bytes \"PK\\x03\\x04\"");
  }
  const auto extra_bytes = static_cast<std::int64_t>(local.Number(28, 2));
  entry.offset = header.local + fixed_bytes + name_bytes + extra_bytes;
  const bool is_long = entry.offset > directory_ || header.sizes.packed > directory_ - entry.offset;
  if (is_long) {
    return Faulty(header, fmt::format("{} bytes from byte {}", header.sizes.packed, entry.offset),
                  fmt::format("the members end at byte {}", directory_));
  }
  TRY(const ZipRecord rest, ReadZipRecord(source_, header.local + fixed_bytes,
                                          static_cast<std::size_t>(name_bytes + extra_bytes)));
  const std::string_view name = std::string_view(rest.bytes).substr(0, header.name.size());
  if (local.Number(26, 2) != header.name.size() || name != header.name) {
    return Faulty(header, "another name in its local header", "expected that of the directory");
  }
  if (local.Number(8, 2) != header.method) {
    return Faulty(header, fmt::format("the method {} in its local header", local.Number(8, 2)),
                  fmt::format("the directory says {}", header.method));
  }
  if (local.Number(6, 2) != header.flags) {
    Report(header, fmt::format("the flags {:#x} in its local header", local.Number(6, 2)),
           fmt::format("the directory says {:#x}", header.flags));
  }
  TRY_VOID(CheckLocalSizes(header, local, std::string_view(rest.bytes).substr(name.size())));
  entry.end = entry.offset + header.sizes.packed;
  if (((local.Number(6, 2) | header.flags) & kHasDescriptor) != 0) {
    TRY(const std::int64_t descriptor, DescriptorBytes(entry, entry.end));
    entry.end += descriptor;
  }
  return {};
}

// A writer that did not know them yet leaves zeros, and writes them behind the data.
Result<void> Reader::CheckLocalSizes(const ZipCentralHeader& header, const ZipRecord& local,
                                     std::string_view extra) const {
  const std::optional<ZipSizes> sizes = LocalZipSizes(local, extra);
  if (!sizes) {
    return Faulty(header, "extra fields in its local header that are cut short",
                  "expected both sizes of zip64");
  }
  const bool may_be_zero = (local.Number(6, 2) & kHasDescriptor) != 0;
  struct Pair {
    std::string_view what;
    std::int64_t here;
    std::int64_t there;
  };
  for (const auto& [what, here, there] :
       {Pair{"CRC", static_cast<std::int64_t>(local.Number(14, 4)),
             static_cast<std::int64_t>(header.crc)},
        Pair{"packed bytes", sizes->packed, header.sizes.packed},
        Pair{"bytes", sizes->unpacked, header.sizes.unpacked}}) {
    if (here != there && !(may_be_zero && here == 0)) {
      return Faulty(header, fmt::format("{} {} in its local header", what, here),
                    fmt::format("the directory says {}", there));
    }
  }
  return {};
}

// Behind the data: perhaps a signature, then the CRC and both sizes in four or eight bytes each
// (APPNOTE 4.3.9). Nothing tells which; the one that repeats the directory is meant.
Result<std::int64_t> Reader::DescriptorBytes(const Entry& entry, std::int64_t place) const {
  struct Layout {
    std::size_t signature;
    std::size_t size;
  };
  const ZipCentralHeader& header = entry.header;
  const std::int64_t there = std::min<std::int64_t>(directory_ - place, 24);
  TRY(const ZipRecord found, ReadZipRecord(source_, place, static_cast<std::size_t>(there)));
  for (const auto& [signature, size] : {Layout{4, 8}, {0, 8}, {4, 4}, {0, 4}}) {
    const std::size_t bytes = signature + 4 + 2 * size;
    if (found.bytes.size() >= bytes &&
        (signature == 0 || found.bytes.starts_with(kDescriptorSignature)) &&
        found.Number(signature, 4) == header.crc &&
        found.Amount(signature + 4, size) == header.sizes.packed &&
        found.Amount(signature + 4 + size, size) == header.sizes.unpacked) {
      return static_cast<std::int64_t>(bytes);
    }
  }
  return Faulty(header, "no data descriptor behind its data",
                "expected one with the CRC and sizes of the directory");
}

// In the order of the file, each member begins behind the one before it.
void Reader::CheckExtents() {
  std::vector<Entry*> order;
  for (Entry& entry : entries_) {
    if (entry.end > 0) {  // else where it lies is not known, and was told
      order.push_back(&entry);
    }
  }
  std::ranges::stable_sort(order, {}, [](const Entry* entry) { return entry->header.local; });
  const bool is_whole = !findings_.HasRefusals();  // else one that is left out looks like a gap
  std::int64_t end = 0;
  for (Entry* entry : order) {
    if (entry->header.local < end) {
      findings_.Refuse({Where(entry->header),
                        fmt::format("the member before it reaches to byte {}", end),
                        "expected members that do not overlap", ""});
      entry->is_good = false;
    } else if (is_whole) {
      WarnOfGap(end, entry->header.local);
    }
    end = std::max(end, entry->end);
  }
  if (is_whole) {
    WarnOfGap(end, directory_);
  }
}

void Reader::WarnOfGap(std::int64_t begin, std::int64_t end) {
  if (begin == end) {
    return;
  }
  const auto bytes = std::min<std::int64_t>(end - begin, 4);
  const auto first = ReadZipRecord(source_, begin, static_cast<std::size_t>(bytes));
  const bool is_member = first && first->bytes == kLocalSignature;
  findings_.Add({.verdict = is_member ? FileVerdict::kReport : FileVerdict::kAcceptWithWarning,
                 .text = {.where = fmt::format("{}: byte {}", source_.Name(), begin),
                          .found = fmt::format("{} bytes that belong to no member{}", end - begin,
                                               is_member ? ", and begin as one" : ""),
                          .expected = "expected the next member or the directory"}});
}

void Reader::CheckNames() {
  std::vector<std::string_view> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    names.emplace_back(entry.header.name);
  }
  for (const std::size_t i : RepeatedNames(names)) {
    entries_[i].is_good = false;
    findings_.Refuse({Where(entries_[i].header), "a duplicate: the name stands before",
                      "expected each name once", "only the first one is listed"});
  }
}

}  // namespace

bool IsDense(const ZipMember& member) {
  constexpr std::int64_t kAlwaysFine = std::int64_t{1} << 20;
  constexpr std::int64_t kMostRatio = 200;
  return member.bytes > kAlwaysFine && (member.bytes - 1) / kMostRatio >= member.packed_bytes;
}

Result<ZipDirectory> ReadZip(const ByteSource& source) {
  TRY(const ZipPlace place, FindZipDirectory(source));
  TRY(std::vector<ZipCentralHeader> headers, ReadZipCentralHeaders(source, place));
  const NearbySource nearby(source);  // small members lie one behind the other
  ZipDirectory directory = Reader(nearby, place.offset).Read(std::move(headers));
  if (place.comment_bytes > 0) {
    directory.findings.push_back(
        {.text = {.where = fmt::format("{}: byte {}", source.Name(),
                                       source.Size() - place.comment_bytes),
                  .found = fmt::format("a comment of {} bytes", place.comment_bytes),
                  .expected = "expected the end of the file"}});
  }
  return directory;
}

}  // namespace fourpiles
