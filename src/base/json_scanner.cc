#include "base/json_scanner.h"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_number.h"
#include "base/utf8.h"

namespace fourpiles {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr std::size_t kLongestShown = 100;  // of a string, in messages

bool IsSpace(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Letters that a string may have as they are, and that are whole characters.
bool IsPlain(char c) {
  return c >= ' ' && c < 0x7F && c != '"' && c != '\\';
}

}  // namespace

JsonScanner::JsonScanner(const ByteSource& source, std::int64_t begin, std::int64_t end)
    : source_(source),
      source_place_(begin),
      source_end_(end),
      buffer_(std::min(kBufferBytes, static_cast<std::size_t>(end - begin))) {}

void JsonScanner::Fill() {
  buffer_place_ += static_cast<std::int64_t>(filled_);
  next_ = 0;
  filled_ = std::min(buffer_.size(), static_cast<std::size_t>(source_end_ - source_place_));
  const std::span<char> part(buffer_.data(), filled_);
  if (const auto read = source_.ReadAt(source_place_, std::as_writable_bytes(part)); !read) {
    filled_ = 0;
    Refuse(read.error().text.found, read.error().text.expected);
    return;
  }
  source_place_ += static_cast<std::int64_t>(filled_);
}

int JsonScanner::Peek() {
  if (next_ == filled_ && !has_fault_ && source_place_ < source_end_) {
    Fill();
  }
  return next_ == filled_ || has_fault_ ? kEnd : static_cast<unsigned char>(buffer_[next_]);
}

int JsonScanner::PeekBehindSpace() {
  if (next_ < filled_ && buffer_[next_] > ' ' && !has_fault_) {
    return buffer_[next_];  // nearly always, and quick
  }
  int c = Peek();
  while (IsSpace(c)) {
    ++next_;
    c = Peek();
  }
  return c;
}

void JsonScanner::Refuse(std::string found, std::string expected) {
  if (!has_fault_) {
    fault_ = {.byte = static_cast<std::size_t>(Place()),
              .found = std::move(found),
              .expected = std::move(expected)};
    has_fault_ = true;
  }
}

void JsonScanner::RefuseNext(std::string expected) {
  const int c = Peek();
  if (c == kEnd) {
    Refuse("the end of the text", std::move(expected));
  } else if (c > ' ' && c < 0x7F) {
    Refuse(fmt::format("unexpected '{}'", static_cast<char>(c)), std::move(expected));
  } else {
    Refuse(fmt::format("unexpected byte 0x{:02x}", c), std::move(expected));
  }
}

bool JsonScanner::Take(char expected) {
  if (PeekBehindSpace() != static_cast<unsigned char>(expected)) {
    RefuseNext(fmt::format("expected '{}'", expected));
    return false;
  }
  ++next_;
  return true;
}

JsonKind JsonScanner::NextKind() {
  const int c = PeekBehindSpace();
  switch (c) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
    case 'f':
      return JsonKind::kBool;
    case 'n':
      return JsonKind::kNull;
    default:
      break;
  }
  if (c == '-' || (c >= '0' && c <= '9')) {
    return JsonKind::kNumber;
  }
  RefuseNext("expected a value");
  return JsonKind::kNone;
}

void JsonScanner::Enter(char open) {
  if (!Take(open)) {
    return;
  }
  if (is_first_.size() == kMostDepth) {
    Refuse("an array or object inside too many",
           fmt::format("expected at most {} one inside the other", kMostDepth));
    return;
  }
  is_first_.push_back(true);
}

void JsonScanner::EnterObject() {
  Enter('{');
}

void JsonScanner::EnterArray() {
  Enter('[');
}

// Between two members or elements; false where the object or array ends, or at a fault.
bool JsonScanner::TakeSeparator(char close) {
  if (has_fault_ || is_first_.empty()) {
    return false;
  }
  const int c = PeekBehindSpace();
  if (c == static_cast<unsigned char>(close)) {
    ++next_;
    is_first_.pop_back();
    return false;
  }
  if (!is_first_.back()) {
    if (c != ',') {
      RefuseNext(fmt::format("expected ',' or '{}'", close));
      return false;
    }
    ++next_;
  }
  is_first_.back() = false;
  return true;
}

bool JsonScanner::NextKey(std::string& key) {
  if (!TakeSeparator('}')) {
    return false;
  }
  ReadString(key);
  return Take(':');
}

bool JsonScanner::NextElement() {
  return TakeSeparator(']');
}

void JsonScanner::ReadString(std::string& text) {
  text.clear();
  if (!Take('"')) {
    return;
  }
  bool is_ascii = true;
  for (int c = Peek(); c != '"' && !has_fault_; c = Peek()) {
    if (c == '\\') {
      ++next_;
      ReadEscape(text);
    } else if (c < ' ') {  // the end, too
      RefuseNext("expected a string without control characters and its end");
    } else {
      is_ascii = is_ascii && IsPlain(static_cast<char>(c));
      AppendPlain(text);
    }
    CheckLength(text);
  }
  if (has_fault_) {
    return;
  }
  ++next_;  // the closing quote
  if (!is_ascii && Utf8Prefix(text) < text.size()) {
    Refuse("a string that is no UTF-8", "expected UTF-8");
  }
}

void JsonScanner::CheckLength(const std::string& text) {
  if (text.size() > longest_text_) {
    Refuse(fmt::format("a value of more than {} bytes", longest_text_), "expected a shorter one");
  }
}

// The next letter, whatever it is, and the plain ones behind it that lie in the buffer.
void JsonScanner::AppendPlain(std::string& text) {
  const char* const begin = buffer_.data() + next_;
  const char* end = begin + 1;
  while (end < buffer_.data() + filled_ && IsPlain(*end)) {
    ++end;
  }
  text.append(begin, end);
  next_ += static_cast<std::size_t>(end - begin);
}

std::optional<std::uint32_t> JsonScanner::ReadHexDigits() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const auto c = static_cast<char>(std::max(Peek(), 0));
    std::uint32_t digit = 0;
    if (std::from_chars(&c, &c + 1, digit, 16).ec != std::errc()) {
      RefuseNext("expected four hexadecimal digits");
      return std::nullopt;
    }
    code = code << 4 | digit;
    ++next_;
  }
  return code;
}

// Behind the backslash.
void JsonScanner::ReadEscape(std::string& text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const int c = Peek();
  const std::size_t letter =
      c == kEnd ? std::string_view::npos : kLetters.find(static_cast<char>(c));
  if (letter != std::string_view::npos) {
    text += kMeanings[letter];
    ++next_;
    return;
  }
  if (c != 'u') {
    RefuseNext("expected an escape");
    return;
  }
  ++next_;
  std::optional<std::uint32_t> code = ReadHexDigits();
  if (!code) {
    return;
  }
  if (*code >= 0xD800 && *code < 0xDC00) {
    std::optional<std::uint32_t> low;
    if (Peek() == '\\' && (++next_, Peek() == 'u') && (++next_, low = ReadHexDigits()) &&
        *low >= 0xDC00 && *low < 0xE000) {
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
    }
  }
  if (*code >= 0xD800 && *code < 0xE000) {
    Refuse("half of a surrogate pair", "expected both halves");
    return;
  }
  AppendUtf8(*code, text);
}

std::string JsonScanner::ReadNumberText() {
  std::string text;
  for (int c = PeekBehindSpace(); c != kEnd; c = Peek()) {
    if (std::string_view("+-.0123456789eE").find(static_cast<char>(c)) == std::string_view::npos) {
      break;
    }
    text += static_cast<char>(c);
    ++next_;
    CheckLength(text);
  }
  if (!has_fault_ && !IsJsonNumber(text)) {
    Refuse(text.empty() ? "no number" : fmt::format("the number {}", text.substr(0, kLongestShown)),
           "expected a number as JSON writes it");
  }
  return text;
}

std::optional<std::int64_t> JsonScanner::ReadNumber() {
  // Nearly all numbers: digits that end within the buffer.
  if (const int c = PeekBehindSpace(); c >= '1' && c <= '9') {
    const char* const begin = buffer_.data() + next_;
    std::int64_t digits = 0;
    const auto [end, error] = std::from_chars(begin, buffer_.data() + filled_, digits);
    if (error == std::errc() && end < buffer_.data() + filled_ &&
        (*end == ',' || *end == ']' || *end == '}')) {
      next_ += static_cast<std::size_t>(end - begin);
      return digits;
    }
  }
  const std::string text = ReadNumberText();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole =
      !has_fault_ && error == std::errc() && end == text.data() + text.size() && text != "-0";
  return is_whole ? std::optional(number) : std::nullopt;
}

void JsonScanner::SkipWord(std::string_view word) {
  for (const char letter : word) {
    if (Peek() != static_cast<unsigned char>(letter)) {
      RefuseNext(fmt::format("expected \"{}\"", word));
      return;
    }
    ++next_;
  }
}

std::string JsonScanner::SkipScalar(JsonKind kind) {
  if (kind == JsonKind::kString) {
    std::string text;
    ReadString(text);
    return Describe(Json(std::string_view(text).substr(0, kLongestShown)));
  }
  if (kind == JsonKind::kNumber) {
    return ReadNumberText().substr(0, kLongestShown);
  }
  std::string word = kind == JsonKind::kNull ? "null" : Peek() == 't' ? "true" : "false";
  SkipWord(word);
  return word;
}

// The kind of the next value within what is open, which is left where it ends; kNone when all of it
// is left, and after a fault.
JsonKind JsonScanner::NextOf(std::vector<JsonKind>& open) {
  std::string key;
  while (!open.empty() && !has_fault_ &&
         !(open.back() == JsonKind::kObject ? NextKey(key) : NextElement())) {
    open.pop_back();
  }
  return open.empty() || has_fault_ ? JsonKind::kNone : NextKind();
}

std::string JsonScanner::SkipValue() {
  const JsonKind kind = NextKind();
  if (kind != JsonKind::kObject && kind != JsonKind::kArray) {
    return kind == JsonKind::kNone ? "nothing" : SkipScalar(kind);
  }
  // One step at a time, without recursion, until what was open before is open again.
  std::vector<JsonKind> open;
  for (JsonKind next = kind; next != JsonKind::kNone; next = NextOf(open)) {
    if (next == JsonKind::kObject || next == JsonKind::kArray) {
      next == JsonKind::kObject ? EnterObject() : EnterArray();
      open.push_back(next);
    } else {
      SkipScalar(next);
    }
  }
  return kind == JsonKind::kObject ? "an object" : "an array";
}

bool JsonScanner::AtEnd() {
  return PeekBehindSpace() == kEnd;
}

bool JsonScanner::Finish() {
  if (!AtEnd()) {
    RefuseNext("expected the end of the text");
  }
  return !has_fault_;
}

}  // namespace fourpiles
