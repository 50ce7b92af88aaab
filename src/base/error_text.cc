#include "base/error_text.h"

#include <fmt/format.h>

#include "base/terminal_text.h"

namespace fourpiles {

namespace {

// What a file or a command line says may be megabytes long; a message is read by people.
std::string Shortened(const std::string& text) {
  constexpr std::size_t kLongest = 800;
  if (text.size() <= kLongest) {
    return text;
  }
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;  // not inside a character
  }
  return text.substr(0, end) + "…";
}

ErrorText ShortenedText(const ErrorText& text) {
  return {Shortened(text.where), Shortened(text.found), Shortened(text.expected),
          Shortened(text.hint)};
}

}  // namespace

std::string SentenceOf(const ErrorText& text) {
  const auto [where, found, expected, hint] = ShortenedText(text);
  const std::string_view colon = where.empty() ? "" : ": ";
  const std::string_view comma = found.empty() || expected.empty() ? "" : ", ";
  return EscapeForTerminal(where)
      .append(colon)
      .append(EscapeForTerminal(found))
      .append(comma)
      .append(EscapeForTerminal(expected));
}

std::string ErrorMessage(const Error& error) {
  std::string message = fmt::format("error: {}\n", SentenceOf(error.text));
  if (!error.text.hint.empty()) {
    message += fmt::format("hint: {}\n", EscapeForTerminal(Shortened(error.text.hint)));
  }
  return message;
}

Json ErrorJson(const Error& error) {
  const auto [where, found, expected, hint] = ShortenedText(error.text);
  return Json::Object{{"where", where}, {"found", found}, {"expected", expected}, {"hint", hint}};
}

int ExitStatus(ErrorKind kind) {
  return kind == ErrorKind::kUsage ? 2 : 3;
}

}  // namespace fourpiles
