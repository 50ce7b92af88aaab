#include "tensors/gguf.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/try.h"
#include "base/utf8.h"
#include "tensors/finding_list.h"
#include "tensors/gguf_infos.h"
#include "tensors/gguf_values.h"

namespace fourpiles {
namespace {

constexpr std::uint32_t kNewestVersion = 3;
constexpr std::int64_t kMostKeys = 1'000'000;
constexpr std::int64_t kMostKeyBytes = 65'535;  // docs/gguf.md
constexpr std::int64_t kLargestAlignment = std::int64_t{1} << 30;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::string_view kCutHint = "the file may be cut short; compare its size with the source";

struct OldFormat {
  std::string_view magic;
  std::string_view name;
};
constexpr OldFormat kOldFormats[] = {{"lmgg", "GGML"}, {"fmgg", "GGMF"}, {"tjgg", "GGJT"}};

ErrorText WrongMagic(std::string_view file, std::string_view magic) {
  const auto* const old = std::ranges::find(kOldFormats, magic, &OldFormat::magic);
  if (old != std::end(kOldFormats)) {
    return {.where = std::string(file),
            .found = fmt::format("a {} file, a format older than GGUF", old->name),
            .expected = "expected GGUF",
            .hint = "convert it with the convert-llama-ggml-to-gguf.py of an old llama.cpp"};
  }
  return {.where = fmt::format("{}: byte 0", file),
          .found = fmt::format("the bytes \"{}\": an unknown format", magic),
          .expected = "expected \"GGUF\""};
}

// A binary file that went through a program which took it for text has each byte that was no UTF-8
// replaced by EF BF BD, so that all of it became valid UTF-8.
bool WentThroughText(const ByteSource& source) {
  constexpr std::int64_t kMostBytes = 65'536;
  std::string text(static_cast<std::size_t>(std::min(kMostBytes, source.Size())), '\0');
  if (!source.ReadAt(0, std::as_writable_bytes(std::span(text)))) {
    return false;
  }
  constexpr std::size_t kLongestCharacter = 4;  // the last one may be cut
  return text.find("\xEF\xBF\xBD") != std::string::npos &&
         Utf8Prefix(text) + kLongestCharacter > text.size();
}

// The rule for keys, with the hyphens that names of architectures bring along ("command-r").
bool IsPlainKey(std::string_view key) {
  return std::ranges::all_of(key, [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

// Facts that are a copy of a whole number or text of the metadata.
struct FactKey {
  std::string_view key;
  std::string_view fact;
};
constexpr FactKey kSplitFacts[] = {{"split.no", "split_no"},
                                   {"split.count", "split_count"},
                                   {"split.tensors.count", "split_tensors"}};

// One pass through a file: each step leaves what it read in the reading. A step fails where
// nothing behind it can be read.
class Pass {
 public:
  explicit Pass(const ByteSource& source) : source_(source), stream_(source) {
    reading_.format = "gguf";
  }

  FileReading Run() && {
    if (auto read = ReadAll(); !read) {
      findings_.Refuse(std::move(read).error().text);
      if (WentThroughText(source_)) {
        findings_.Refuse(
            {.where = std::string(source_.Name()),
             .found = "bytes EF BF BD in place of others: a program took the file for text",
             .hint = "get the file again, without conversion of text"});
      }
    }
    reading_.findings = std::move(findings_).Take(source_.Name());
    return std::move(reading_);
  }

 private:
  Result<void> ReadAll();
  Result<void> ReadVersion();
  Result<void> ReadCounts();
  Result<void> ReadKeys();
  Result<void> ReadKey();
  void CheckKeys();
  void TellFacts();
  std::optional<std::int64_t> ReadAlignment(const MetadataEntry* entry);
  Result<void> ReadTensors();

  void Tell(std::string_view fact, Json value) {
    reading_.facts.emplace_back(std::string(fact), std::move(value));
  }
  std::string KeyWhere(std::string_view key) const {
    return fmt::format("{}: key \"{}\"", source_.Name(), key);
  }

  const ByteSource& source_;
  GgufStream stream_;
  FileReading reading_ = {};
  FindingList findings_ = {};
  GgufRoom room_ = {};
  std::int64_t name_bytes_ = kMostGgufNameBytes;  // left
  std::int64_t keys_ = 0;
  std::int64_t tensors_ = 0;
  std::uint32_t alignment_type_ = kGgufUint32;
  std::optional<std::int64_t> alignment_ = {};
};

Result<void> Pass::ReadAll() {
  TRY_VOID(ReadVersion());
  TRY_VOID(ReadCounts());
  const Result<void> read = ReadKeys();
  CheckKeys();
  TellFacts();
  TRY_VOID(read);
  return ReadTensors();
}

Result<void> Pass::ReadVersion() {
  TRY(const std::uint64_t magic_number, stream_.Number(4, "the header"));
  std::string magic(4, '\0');
  for (std::size_t i = 0; i < magic.size(); ++i) {
    magic[i] = static_cast<char>(magic_number >> (8 * i) & 0xFFU);
  }
  if (magic != "GGUF") {
    return BadInput(WrongMagic(source_.Name(), magic));
  }
  TRY(std::uint32_t version, stream_.Uint32("the version"));
  // Nothing marks the order of bytes. Versions are small: one whose low half is empty was written
  // the other way round.
  const bool big_endian = (version & 0xFFFFU) == 0 && version != 0;
  if (big_endian) {
    version = __builtin_bswap32(version);
  }
  if (version == 0 || version > kNewestVersion) {
    return BadInput({.where = fmt::format("{}: byte 4", source_.Name()),
                     .found = fmt::format("version {}", version),
                     .expected = fmt::format("expected 1 to {}", kNewestVersion)});
  }
  stream_.SetLayout({.big_endian = big_endian, .count_bytes = version == 1 ? 4 : 8});
  Tell("version", std::int64_t{version});
  Tell("endian", big_endian ? "big" : "little");
  return {};
}

Result<void> Pass::ReadCounts() {
  struct Count {
    std::string_view what;
    std::int64_t least_bytes;  // of one of them: empty name, smallest value, no dimension
    std::int64_t most;
    std::int64_t value;
    std::int64_t place;
  };
  const std::int64_t length = stream_.Layout().count_bytes;
  std::array<Count, 2> counts = {
      {{"tensors", length + 16, kMostTensors, 0, 0}, {"keys", length + 5, kMostKeys, 0, 0}}};
  std::array<std::uint64_t, 2> raw = {};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i].place = stream_.Place();
    TRY(raw[i], stream_.Count(counts[i].what));
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Count& count = counts[i];
    const std::int64_t fit = stream_.Remaining() / count.least_bytes;
    const std::int64_t most = std::min(fit, count.most);
    if (raw[i] > static_cast<std::uint64_t>(most)) {
      return BadInput({.where = stream_.WhereAt(count.place),
                       .found = fmt::format("{} {}{}", raw[i], count.what,
                                            fit <= count.most ? ", past the end of the file" : ""),
                       .expected = fmt::format("expected at most {}", most),
                       .hint = fit <= count.most ? std::string(kCutHint) : ""});
    }
    count.value = static_cast<std::int64_t>(raw[i]);
  }
  tensors_ = counts[0].value;
  keys_ = counts[1].value;
  Tell("metadata_keys", keys_);
  return {};
}

Result<void> Pass::ReadKeys() {
  for (std::int64_t i = 0; i < keys_; ++i) {
    TRY_VOID(ReadKey());
  }
  return {};
}

Result<void> Pass::ReadKey() {
  const std::int64_t place = stream_.Place();
  TRY(std::string key, stream_.String(kMostKeyBytes, "a key"));
  name_bytes_ -= static_cast<std::int64_t>(key.size());
  if (name_bytes_ < 0) {
    return BadInput(
        {.where = stream_.WhereAt(place),
         .found = "keys that are too long",
         .expected = fmt::format("expected at most {} bytes in all", kMostGgufNameBytes)});
  }
  if (key.empty()) {
    findings_.Refuse({stream_.WhereAt(place), "an empty key", "expected a name", ""});
  } else if (!IsPlainKey(key)) {
    findings_.Warn({KeyWhere(key), "a key that breaks the naming rule",
                    "expected lower-case letters, digits, \".\" and \"_\"", ""});
  }
  auto value = ReadGgufValue(stream_, room_);
  if (!value) {
    ErrorText text = std::move(value).error().text;
    text.found = fmt::format("{} (of key \"{}\")", text.found, key);
    return BadInput(std::move(text));
  }
  if (value->finding) {
    value->finding->text.found += fmt::format(" (of key \"{}\")", key);
    findings_.Add(*std::move(value->finding));
  }
  if (key == kAlignmentKey) {
    alignment_type_ = value->type;
  }
  reading_.metadata.push_back({std::move(key), std::move(value->value), value->array_length});
  return {};
}

void Pass::CheckKeys() {
  std::vector<std::string_view> names;
  names.reserve(reading_.metadata.size());
  for (const MetadataEntry& entry : reading_.metadata) {
    names.emplace_back(entry.key);
  }
  for (const std::size_t i : RepeatedNames(names)) {
    findings_.Refuse(
        {KeyWhere(names[i]), "a duplicate: the key stands before", "expected each key once", ""});
  }
}

// Nothing, with a finding, where it is none.
std::optional<std::int64_t> Pass::ReadAlignment(const MetadataEntry* entry) {
  constexpr std::int64_t kUnsaid = 32;
  if (entry == nullptr) {
    return kUnsaid;
  }
  const std::int64_t* const value = entry->value.AsInteger();
  if (alignment_type_ != kGgufUint32 || value == nullptr) {
    findings_.Refuse({KeyWhere(kAlignmentKey),
                      fmt::format("alignment type {}", GgufValueTypeName(alignment_type_)),
                      "expected uint32", "where the tensors lie cannot be told"});
    return std::nullopt;
  }
  const bool is_power = *value > 0 && (*value & (*value - 1)) == 0;
  if (!is_power || *value > kLargestAlignment) {
    findings_.Refuse({KeyWhere(kAlignmentKey), fmt::format("alignment {}", *value),
                      "expected a power of two up to 2^30",
                      "where the tensors lie cannot be told"});
    return std::nullopt;
  }
  constexpr std::int64_t kLeast = 8;
  if (*value < kLeast) {
    findings_.Warn({KeyWhere(kAlignmentKey), fmt::format("alignment {}", *value),
                    "expected a multiple of 8", ""});
  }
  return *value;
}

void Pass::TellFacts() {
  const auto& metadata = reading_.metadata;
  const MetadataEntry* const architecture = FindEntry(metadata, "general.architecture");
  if (architecture != nullptr && architecture->value.AsString() != nullptr) {
    Tell("architecture", *architecture->value.AsString());
  }
  alignment_ = ReadAlignment(FindEntry(metadata, kAlignmentKey));
  if (alignment_) {
    Tell("alignment", *alignment_);
  }
  const MetadataEntry* const tokens = FindEntry(metadata, "tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->array_length >= 0) {
    Tell("vocabulary", tokens->array_length);
  }
  for (const auto& [key, fact] : kSplitFacts) {
    const MetadataEntry* const entry = FindEntry(metadata, key);
    if (entry != nullptr && entry->value.AsInteger() != nullptr) {
      Tell(fact, *entry->value.AsInteger());
    }
  }
}

Result<void> Pass::ReadTensors() {
  TRY(reading_.tensors, ReadGgufInfos(stream_, tensors_, name_bytes_, findings_));
  if (!alignment_) {
    reading_.tensors.clear();
    return {};
  }
  const std::int64_t place = stream_.Place();
  const std::int64_t aligned = (place + *alignment_ - 1) / *alignment_ * *alignment_;
  // A file of keys alone may end without padding.
  const std::int64_t start = tensors_ == 0 ? std::min(aligned, source_.Size()) : aligned;
  Tell("data_start", start);
  PlaceGgufTensors(reading_.tensors,
                   {.file = source_.Name(),
                    .start = start,
                    .alignment = *alignment_,
                    .file_bytes = source_.Size()},
                   findings_);
  return {};
}

}  // namespace

FileReading ReadGguf(const ByteSource& source) {
  return Pass(source).Run();
}

}  // namespace fourpiles
