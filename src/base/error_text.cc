#include "base/error_text.h"

#include <fmt/format.h>

#include "base/terminal_text.h"

namespace fourpiles {

std::string ErrorMessage(const Error& error) {
  const auto& [where, found, expected, hint] = error.text;
  const std::string_view colon = where.empty() ? "" : ": ";
  const std::string_view comma = found.empty() || expected.empty() ? "" : ", ";
  std::string message = fmt::format("error: {}{}{}{}{}\n", EscapeForTerminal(where), colon,
                                    EscapeForTerminal(found), comma, EscapeForTerminal(expected));
  if (!hint.empty()) {
    message += fmt::format("hint: {}\n", EscapeForTerminal(hint));
  }
  return message;
}

Json ErrorJson(const Error& error) {
  return Json::Object{{"where", error.text.where},
                      {"found", error.text.found},
                      {"expected", error.text.expected},
                      {"hint", error.text.hint}};
}

int ExitStatus(ErrorKind kind) {
  return kind == ErrorKind::kUsage ? 2 : 3;
}

}  // namespace fourpiles
