#include "plan/run_notes.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

bool IsLetter(char c) {
  return ('a' <= c && c <= 'z') || c == '_';
}

// The place behind the word, where it stands for itself; npos: it does not.
std::size_t Behind(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if (at == 0 || !IsLetter(text[at - 1])) {
      return at + word.size();
    }
  }
  return std::string_view::npos;
}

std::string_view NumberAt(std::string_view text, std::size_t at, std::string_view characters) {
  const std::string_view rest = text.substr(at);
  std::string_view number = rest.substr(0, rest.find_first_not_of(characters));
  while (number.ends_with('.')) {  // of the sentence
    number.remove_suffix(1);
  }
  return number;
}

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kDecimal = "0123456789.";
constexpr std::int64_t kMostTokens = 1 << 30;  // of a sample

// The number behind the first of the words that stands there; the last of them is the bare word,
// which without a number is not understood.
Result<std::string> NumberBehind(std::string_view text,
                                 std::initializer_list<std::string_view> words,
                                 std::string_view characters) {
  for (const std::string_view word : words) {
    if (const std::size_t at = Behind(text, word); at != std::string_view::npos) {
      const std::string_view number = NumberAt(text, at, characters);
      if (!number.empty()) {
        return std::string(number);
      }
    }
  }
  return std::string();
}

Result<void> Refuse(std::string_view text, std::string_view word, const std::string& number) {
  if (number.empty() && Behind(text, word) != std::string_view::npos) {
    return NotExpressible(fmt::format("notes: what stands behind \"{}\" is not understood", word));
  }
  return {};
}

// The number before " virtual tokens".
std::string VirtualTokens(std::string_view text) {
  const std::size_t end = text.find(" virtual token");
  if (end == std::string_view::npos) {
    return "";
  }
  const std::size_t before = text.substr(0, end).find_last_not_of(kDigits);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return std::string(text.substr(begin, end - begin));
}

// The whole number that ends where the text does; 0: none.
std::int64_t NumberBefore(std::string_view text) {
  const std::size_t before = text.find_last_not_of(kDigits);
  text.remove_prefix(before == std::string_view::npos ? 0 : before + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number <= kMostTokens ? number : 0;
}

std::optional<LengthMoments> LengthsOf(std::string_view text) {
  constexpr std::string_view kBetween = " +/- ";
  const std::size_t between = text.find(kBetween);
  const std::size_t end = text.find(" tokens", between);
  if (between == std::string_view::npos || end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::int64_t mean = NumberBefore(text.substr(0, between));
  const std::string_view number = NumberAt(text, between + kBetween.size(), kDigits);
  const bool ends_number = between + kBetween.size() + number.size() == end;
  const std::int64_t deviation = ends_number ? NumberBefore(number) : 0;
  if (mean == 0 || deviation == 0) {
    return std::nullopt;
  }
  return LengthMoments{.mean = static_cast<double>(mean),
                       .deviation = static_cast<double>(deviation)};
}

std::optional<Bytes> ContextOf(std::string_view text) {
  const bool is_named = Behind(text, "cuda context ") != std::string_view::npos;
  const std::size_t at = Behind(text, is_named ? "cuda context " : "context ");
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view number = NumberAt(text, at, kDigits);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  constexpr std::int64_t kMost = 1 << 20;
  const std::string_view behind = text.substr(at + number.size());
  const bool is_megabytes = behind.starts_with(is_named ? " mb" : " + weights ");  // a sum of such
  if (error != std::errc() || count > kMost || !is_megabytes) {
    return std::nullopt;
  }
  return Bytes(count << 20);
}

}  // namespace

Result<RunNotes> NotesOf(std::string_view notes) {
  const std::string text = LowerCase(notes);
  RunNotes read;
  TRY(read.rank, NumberBehind(text, {"r=", "rank=", "rank "}, kDigits));
  TRY(read.dropout, NumberBehind(text, {"dropout=", "dropout "}, kDecimal));
  TRY_VOID(Refuse(text, "dropout", read.dropout));
  read.tokens = VirtualTokens(text);
  if (read.tokens.empty() && text.find("virtual token") != std::string::npos) {
    return NotExpressible("notes: how many virtual tokens is not understood");
  }
  constexpr std::string_view kAccumulation = "accumulation";
  TRY(read.accumulation,
      NumberBehind(text, {"grad accumulation ", "gradient accumulation "}, kDigits));
  TRY_VOID(Refuse(text, kAccumulation, read.accumulation));
  // "128/mb": a batch of 128 in micro-batches.
  if (text.find("accumulation " + read.accumulation + "/mb") != std::string::npos) {
    read.accumulation.clear();
  }
  TRY(read.global_batch, NumberBehind(text, {"global-batch "}, kDigits));
  read.lengths = LengthsOf(text);
  read.context = ContextOf(text);
  return read;
}

}  // namespace fourpiles
