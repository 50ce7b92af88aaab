#include "tensors/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/try.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::size_t kMostMembers = 1'000;
constexpr std::int64_t kMostExtendedBytes = 1 << 20;  // of a header of pax
constexpr std::string_view kCutShort = "the file may have been cut short; fetch it again";

using Block = std::array<char, kBlock>;

// Places and lengths of the header's fields.
struct Field {
  std::size_t at = 0;
  std::size_t bytes = 0;
};
constexpr Field kName = {0, 100};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr std::size_t kType = 156;
constexpr Field kPrefix = {345, 155};

// What an extended header says of the member behind it.
struct Extended {
  std::optional<std::string> path = {};
  std::optional<std::int64_t> size = {};
};

std::string_view TextOf(const Block& block, Field field) {
  const std::string_view text(block.data() + field.at, field.bytes);
  return text.substr(0, text.find('\0'));
}

// Digits of the base, and nothing else.
std::optional<std::int64_t> NumberOf(std::string_view digits, int base) {
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  const bool is_good = read.ec == std::errc() && read.ptr == end && number >= 0;
  return is_good && number <= kLargestAmount ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> OctalOf(const Block& block, Field field) {
  std::string_view text = TextOf(block, field);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return NumberOf(text.substr(0, text.find(' ')), 8);
}

// The sum of the header's bytes, its own field read as spaces.
std::int64_t ChecksumOf(const Block& block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_own = i >= kChecksum.at && i < kChecksum.at + kChecksum.bytes;
    sum += is_own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

class TarReader {
 public:
  explicit TarReader(const ByteSource& source) : source_(source) {}

  Result<TarDirectory> Read() {
    while (true) {
      TRY(const Block block, NextBlock());
      if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) {
        break;
      }
      TRY(TarMember member, MemberOf(block));
      place_ += kBlock;
      TRY_VOID(Enter(std::move(member)));
    }
    if (extended_) {
      return Bad("an extended header without a member", "expected a member behind it");
    }
    directory_.end = place_;
    return std::move(directory_);
  }

 private:
  tl::unexpected<Error> Bad(std::string found, std::string expected,
                            std::string_view hint = {}) const {
    return BadInput({.where = fmt::format("{}: byte {}", source_.Name(), place_),
                     .found = std::move(found),
                     .expected = std::move(expected),
                     .hint = std::string(hint)});
  }

  Result<Block> NextBlock() const {
    Block block = {};
    if (source_.Size() - place_ < kBlock) {
      return Bad("the end of the file", "expected a header, or the zeros that end a tar archive",
                 kCutShort);
    }
    TRY_VOID(source_.ReadAt(place_, std::as_writable_bytes(std::span(block))));
    return block;
  }

  Result<TarMember> MemberOf(const Block& block) const {
    const auto checksum = OctalOf(block, kChecksum);
    const auto size = OctalOf(block, kSize);
    if (!checksum || *checksum != ChecksumOf(block)) {
      return Bad("a tar header with another checksum than its bytes have", "expected its own");
    }
    if (!size) {
      return Bad("a size that is no octal number", "expected one of at most 2^53");
    }
    const std::string_view prefix = TextOf(block, kPrefix);
    const char type = block[kType] == '\0' ? '0' : block[kType];
    return TarMember{
        .name = fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", TextOf(block, kName)),
        .type = type,
        .bytes = '1' <= type && type <= '6' ? 0 : *size};
  }

  // The bytes of a header lie behind it.
  Result<void> Enter(TarMember member) {
    if (member.type != 'x' && (member.type < '0' || member.type > '6')) {
      return Bad(fmt::format("a header of type {:#04x}", static_cast<unsigned char>(member.type)),
                 "expected files, folders, links, and headers of pax");
    }
    const bool is_extended = member.type == 'x';
    if (!is_extended && extended_) {
      member.name = extended_->path.value_or(std::move(member.name));
      member.bytes = member.type == '0' ? extended_->size.value_or(member.bytes) : 0;
    }
    if (member.bytes > source_.Size() - place_) {
      return Bad(fmt::format("a member of {} bytes", member.bytes),
                 fmt::format("the file ends after {}", source_.Size() - place_), kCutShort);
    }
    member.offset = place_;
    if (is_extended) {
      TRY_VOID(ReadExtended(member));
    }
    place_ += DivideRoundingUp(Checked(member.bytes), kBlock).value() * kBlock;
    if (!is_extended) {
      extended_.reset();
      directory_.members.push_back(std::move(member));
    }
    return directory_.members.size() > kMostMembers
               ? Result<void>(
                     Bad(fmt::format("more than {} members", kMostMembers), "expected fewer"))
               : Result<void>();
  }

  // Records of pax: "20 path=a/long/name\n", the number counting the whole record.
  Result<void> ReadExtended(const TarMember& header) {
    if (extended_ || header.bytes > kMostExtendedBytes) {
      return Bad(extended_ ? "a second extended header"
                           : fmt::format("an extended header of {} bytes", header.bytes),
                 fmt::format("expected one, of at most {} bytes", kMostExtendedBytes));
    }
    std::string text(static_cast<std::size_t>(header.bytes), '\0');
    TRY_VOID(source_.ReadAt(place_, std::as_writable_bytes(std::span(text))));
    extended_.emplace();
    for (std::string_view left = text; !left.empty();) {
      const std::size_t space = std::min(left.find(' '), left.size());
      const auto length = NumberOf(left.substr(0, space), 10);
      if (!length || *length <= static_cast<std::int64_t>(space) + 1 ||
          *length > static_cast<std::int64_t>(left.size()) ||
          left[static_cast<std::size_t>(*length) - 1] != '\n') {
        return Bad("a broken extended header", "expected records of \"LENGTH KEY=VALUE\"");
      }
      const auto end = static_cast<std::size_t>(*length);
      TRY_VOID(TakeRecord(left.substr(space + 1, end - space - 2)));
      left.remove_prefix(end);
    }
    return {};
  }

  Result<void> TakeRecord(std::string_view record) {
    const std::size_t equals = std::min(record.find('='), record.size());
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(std::min(equals + 1, record.size()));
    if (key == "path") {
      extended_->path = value;
    } else if (key == "size") {
      extended_->size = NumberOf(value, 10);
    }
    const bool is_bad = equals == record.size() || key.starts_with("GNU.sparse") ||
                        (key == "size" && !extended_->size);
    return is_bad ? Result<void>(Bad("an extended header that is not read here",
                                     "expected path, size, times and owners"))
                  : Result<void>();
  }

  const ByteSource& source_;
  std::int64_t place_ = 0;
  std::optional<Extended> extended_ = {};  // what the header before says
  TarDirectory directory_ = {};
};

}  // namespace

Result<TarDirectory> ReadTar(const ByteSource& source) {
  return TarReader(source).Read();
}

}  // namespace fourpiles
