#include "base/csv_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"

namespace fourpiles {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view Trimmed(const char* begin, const char* end) {
  while (begin < end && IsBlank(*begin)) {
    ++begin;
  }
  while (begin < end && IsBlank(end[-1])) {
    --end;
  }
  return {begin, static_cast<std::size_t>(end - begin)};
}

// The bytes within the quotes that open at `place`, doubled ones made single where they lie.
// `place` moves behind the closing quote.
std::string_view TakeQuoted(char*& place, const char* end) {
  char* const begin = ++place;
  char* out = begin;
  for (; place < end; ++place) {
    if (*place == '"' && (++place == end || *place != '"')) {
      break;
    }
    *out++ = *place;
  }
  return {begin, static_cast<std::size_t>(out - begin)};
}

}  // namespace

CsvReader::CsvReader(const ByteSource& source, std::int64_t begin)
    : source_(source),
      source_place_(begin),
      buffer_(std::min(2 * kLongestRecord, static_cast<std::size_t>(source.Size() - begin))) {}

std::string CsvReader::Where() const {
  return fmt::format("{}: line {}", source_.Name(), line_);
}

tl::unexpected<Error> CsvReader::Bad(std::string found, std::string expected,
                                     std::string hint) const {
  return BadInput({Where(), std::move(found), std::move(expected), std::move(hint)});
}

// Keeps what was not read yet.
Result<void> CsvReader::Fill() {
  std::copy(buffer_.data() + next_, buffer_.data() + filled_, buffer_.data());
  filled_ -= std::exchange(next_, 0);
  const auto count =
      std::min(buffer_.size() - filled_, static_cast<std::size_t>(source_.Size() - source_place_));
  const std::span<char> part(buffer_.data() + filled_, count);
  TRY_VOID(source_.ReadAt(source_place_, std::as_writable_bytes(part)));
  source_place_ += static_cast<std::int64_t>(count);
  filled_ += count;
  return {};
}

CsvReader::Piece CsvReader::PieceFrom(std::size_t place) const {
  const std::string_view rest(buffer_.data() + place, filled_ - place);
  const std::size_t feed = rest.find('\n');
  const bool line_ends = feed != std::string_view::npos;
  const std::string_view piece = line_ends ? rest.substr(0, feed + 1) : rest;
  return {.end = place + piece.size(),
          .line_ends = line_ends,
          .odd_quotes = std::count(piece.begin(), piece.end(), '"') % 2 == 1};
}

// The end of the next record, in the buffer: behind its line feed, or where the source ends.
Result<std::size_t> CsvReader::FindEnd() {
  std::size_t end = next_;
  bool quoted = false;
  lines_ = 0;
  while (true) {
    const Piece piece = PieceFrom(end);
    quoted = quoted != piece.odd_quotes;
    end = piece.end;
    lines_ += piece.line_ends ? 1 : 0;
    if (end - next_ > kLongestRecord) {
      return Bad(fmt::format("a line of more than {} bytes", kLongestRecord),
                 "expected a shorter one", quoted ? "a quote may lack its end" : "");
    }
    if (piece.line_ends ? !quoted : source_place_ == source_.Size()) {
      break;
    }
    if (!piece.line_ends) {  // `end` from the buffer's new begin
      end -= next_;
      TRY_VOID(Fill());
    }
  }
  if (quoted) {
    return Bad("a quote without its end", "expected another quote", "");
  }
  return end;
}

void CsvReader::SplitRecord(char* begin, char* end, std::vector<std::string_view>& fields) const {
  fields.clear();
  for (char* place = begin; place <= end; ++place) {
    while (place < end && *place == ' ') {
      ++place;
    }
    const bool quoted = place < end && *place == '"';
    const std::string_view inside = quoted ? TakeQuoted(place, end) : std::string_view();
    char* const stop = std::find(place, end, separator_);
    fields.push_back(quoted ? inside : Trimmed(place, stop));
    place = stop;
  }
}

Result<bool> CsvReader::Next(std::vector<std::string_view>& fields) {
  while (true) {
    line_ += std::exchange(lines_, 0);
    TRY(const std::size_t end, FindEnd());
    if (end == next_) {
      return false;
    }
    char* const first = buffer_.data() + next_;
    char* const last = buffer_.data() + end;
    next_ = end;
    if (std::find(first, last, '\0') != last) {
      return Bad("a NUL byte", "expected text", "UTF-16 must be saved as UTF-8");
    }
    if (std::all_of(first, last, IsBlank)) {
      continue;
    }
    if (separator_ == '\0') {
      constexpr std::string_view kSeparators = ",;\t";
      char* const found = std::find_first_of(first, last, kSeparators.begin(), kSeparators.end());
      separator_ = found == last ? ',' : *found;
    }
    SplitRecord(first, last, fields);
    return true;
  }
}

}  // namespace fourpiles
