#include "tensors/pickle_bytes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "base/utf8.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kFirstPieceBytes = std::int64_t{1} << 10;  // many pickles are small
constexpr std::int64_t kMostPieceBytes = std::int64_t{1} << 16;
constexpr std::int64_t kLongestLine = std::int64_t{1} << 16;

// The number that `text` begins with: of one up to so many digits, which are taken off.
std::optional<std::uint32_t> TakeDigits(std::string_view& text, std::size_t most, int base) {
  const std::string_view digits = text.substr(0, most);
  std::uint32_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  const auto count = static_cast<std::size_t>(read.ptr - digits.data());
  if (read.ec != std::errc() || (base == 16 && count < most)) {
    return std::nullopt;
  }
  text.remove_prefix(count);
  return number;
}

// What follows a backslash of a STRING.
void TakeEscape(std::string_view& line, std::string& text) {
  constexpr std::string_view kLetters = "\\'\"nrtabfv";
  constexpr std::string_view kMeanings = "\\'\"\n\r\t\a\b\f\v";
  constexpr std::size_t kOctalDigits = 3;
  const std::size_t letter = line.empty() ? std::string_view::npos : kLetters.find(line.front());
  if (letter != std::string_view::npos) {
    text += kMeanings[letter];
    return line.remove_prefix(1);
  }
  if (const auto octal = TakeDigits(line, kOctalDigits, 8)) {
    text += static_cast<char>(*octal & 0xFF);
    return;
  }
  std::string_view digits = line.substr(std::min<std::size_t>(line.size(), 1));
  const auto hexadecimal =
      line.starts_with('x') ? TakeDigits(digits, 2, 16) : std::optional<std::uint32_t>();
  if (hexadecimal) {
    text += static_cast<char>(*hexadecimal);
    line = digits;
  } else {
    text += '\\';
  }
}

// \u and four digits, or \U and eight; else nothing is taken.
bool TakeCodePoint(std::string_view& line, std::string& text) {
  const bool is_short = line.starts_with("\\u");
  if (!is_short && !line.starts_with("\\U")) {
    return false;
  }
  std::string_view rest = line.substr(2);
  const auto point = TakeDigits(rest, is_short ? 4 : 8, 16);
  if (!point) {
    return false;
  }
  AppendUtf8(*point, text);
  line = rest;
  return true;
}

}  // namespace

int PickleBytes::Peek(std::int64_t ahead) {
  const std::int64_t place = place_ + ahead;
  const auto has = [&] {
    return place >= piece_begin_ && place < piece_begin_ + static_cast<std::int64_t>(piece_.size());
  };
  if (!has()) {
    const auto before = static_cast<std::int64_t>(piece_.size());
    const std::int64_t most = std::clamp(8 * before, kFirstPieceBytes, kMostPieceBytes);
    piece_.resize(static_cast<std::size_t>(std::min(most, source_.Size() - place)));
    piece_begin_ = place;
    if (!source_.ReadAt(place, std::as_writable_bytes(std::span(piece_)))) {
      piece_.clear();
      return -1;
    }
  }
  return static_cast<unsigned char>(piece_[static_cast<std::size_t>(place - piece_begin_)]);
}

bool PickleBytes::Take(std::uint8_t& byte) {
  const int next = Left() > 0 ? Peek(0) : -1;
  if (next < 0) {
    return false;
  }
  byte = static_cast<std::uint8_t>(next);
  ++place_;
  return true;
}

bool PickleBytes::TakeNumber(int bytes, std::uint64_t& number) {
  if (Left() < bytes) {
    return false;
  }
  number = 0;
  for (int i = 0; i < bytes; ++i) {
    const int next = Peek(i);
    if (next < 0) {
      return false;
    }
    number |= static_cast<std::uint64_t>(next) << (8 * i);
  }
  place_ += bytes;
  return true;
}

bool PickleBytes::TakeText(std::uint64_t bytes, std::string& text) {
  if (bytes > static_cast<std::uint64_t>(Left())) {
    return false;
  }
  const std::size_t size = text.size();
  for (auto left = static_cast<std::int64_t>(bytes); left > 0;) {
    if (Peek(0) < 0) {
      text.resize(size);
      return false;
    }
    const auto from = static_cast<std::size_t>(place_ - piece_begin_);
    const std::int64_t count = std::min(left, static_cast<std::int64_t>(piece_.size() - from));
    text.append(piece_, from, static_cast<std::size_t>(count));
    place_ += count;
    left -= count;
  }
  return true;
}

bool PickleBytes::Skip(std::uint64_t bytes) {
  if (bytes > static_cast<std::uint64_t>(Left())) {
    return false;
  }
  place_ += static_cast<std::int64_t>(bytes);
  return true;
}

bool PickleBytes::TakeLine(std::string& line) {
  const std::int64_t most = std::min(Left(), kLongestLine);
  line.clear();
  for (std::int64_t i = 0; i < most; ++i) {
    const int next = Peek(i);
    if (next < 0) {
      return false;
    }
    if (next == '\n') {
      place_ += i + 1;
      return true;
    }
    line += static_cast<char>(next);
  }
  return false;
}

bool ReadDigits(std::string_view line, std::int64_t& number) {
  if (line.ends_with('L')) {
    line.remove_suffix(1);
  }
  const auto read = std::from_chars(line.data(), line.data() + line.size(), number);
  return read.ec == std::errc() && read.ptr == line.data() + line.size();
}

std::string TextOfUnicodeLine(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    if (!TakeCodePoint(line, text)) {  // one byte, or a backslash and the next one
      const std::size_t count = std::min<std::size_t>(line.size(), line.front() == '\\' ? 2 : 1);
      for (const char byte : line.substr(0, count)) {
        AppendUtf8(static_cast<unsigned char>(byte), text);
      }
      line.remove_prefix(count);
    }
  }
  return text;
}

std::string TextOfStringLine(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const char byte = line.front();
    line.remove_prefix(1);
    byte == '\\' ? TakeEscape(line, text) : text.push_back(byte);
  }
  return text;
}

}  // namespace fourpiles
