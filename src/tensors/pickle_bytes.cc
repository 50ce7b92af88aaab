#include "tensors/pickle_bytes.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "base/utf8.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kFirstPieceBytes = std::int64_t{1} << 10;  // many pickles are small
constexpr std::int64_t kMostPieceBytes = std::int64_t{1} << 16;
constexpr std::int64_t kLongestLine = std::int64_t{1} << 16;

std::uint32_t HexDigits(std::string_view digits) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? number : '?';
}

// These append what a line begins with, and give how many bytes it took.

std::size_t TakeLatin1(std::string_view line, std::string& text) {
  AppendUtf8(static_cast<unsigned char>(line.front()), text);
  return 1;
}

// How many hexadecimal digits follow the letter of an escape.
std::size_t DigitsBehind(char letter) {
  switch (letter) {
    case 'x':
      return 2;
    case 'u':
      return 4;
    default:
      return letter == 'U' ? 8 : 0;
  }
}

std::size_t TakeEscape(std::string_view line, std::string& text) {
  constexpr std::string_view kLetters = "\\'\"nrtabfv";
  constexpr std::string_view kMeanings = "\\'\"\n\r\t\a\b\f\v";
  const char next = line.size() > 1 ? line[1] : '\0';
  const std::size_t digits = DigitsBehind(next);
  const std::size_t letter = kLetters.find(next);
  if (digits > 0 && line.size() >= 2 + digits) {
    AppendUtf8(HexDigits(line.substr(2, digits)), text);
    return 2 + digits;
  }
  if (letter != std::string_view::npos) {
    text += kMeanings[letter];
    return 2;
  }
  text += '\\';
  return 1;
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

std::string Unescaped(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    line.remove_prefix(line.front() == '\\' ? TakeEscape(line, text) : TakeLatin1(line, text));
  }
  return text;
}

}  // namespace fourpiles
