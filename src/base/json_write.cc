// WriteJson: the frame is written here, numbers and texts by nlohmann's writer. A tree of its
// values would take as much memory again as ours.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/utf8.h"

namespace fourpiles {
namespace {

constexpr std::size_t kIndent = 2;

// Control characters that JSON lets stand, and marks that reorder or hide what is around them: a
// terminal would obey them.
bool IsUnsafe(char32_t code) {
  return (code >= 0x7F && code <= 0x9F) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

void WriteText(std::string_view text, std::string& out) {
  const bool is_plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
  if (is_plain) {
    out.append("\"").append(text).append("\"");
    return;
  }
  // A name from a file need not be UTF-8; its odd bytes become U+FFFD.
  const std::string written =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::string_view rest = written; !rest.empty();) {
    const Character character = FirstCharacter(rest);
    if (IsUnsafe(character.code)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
    } else {
      out.append(rest.substr(0, character.bytes));
    }
    rest.remove_prefix(character.bytes);
  }
}

void WriteScalar(const Json& value, std::string& out) {
  if (const bool* flag = value.AsBool()) {
    out += *flag ? "true" : "false";
  } else if (const std::int64_t* integer = value.AsInteger()) {
    out += fmt::format("{}", *integer);
  } else if (const double* number = value.AsDouble(); number != nullptr && std::isfinite(*number)) {
    out += nlohmann::json(*number).dump();
  } else if (number != nullptr) {  // JSON has no infinity and no NaN
    out += std::isnan(*number) ? "\"nan\"" : *number > 0 ? "\"inf\"" : "\"-inf\"";
  } else if (const std::string* text = value.AsString()) {
    WriteText(*text, out);
  } else {
    out += "null";
  }
}

void Write(const Json& value, std::size_t depth, std::string& out);

// What stands before a member or element: a comma behind the one before it, and a new line.
void BeginLine(bool is_first, std::size_t depth, std::string& out) {
  out.append(is_first ? "\n" : ",\n").append(depth * kIndent, ' ');
}

void WriteArray(const Json::Array& array, std::size_t depth, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    BeginLine(i == 0, depth + 1, out);
    Write(array[i], depth + 1, out);
  }
  if (!array.empty()) {
    out.append("\n").append(depth * kIndent, ' ');
  }
  out += ']';
}

void WriteObject(const Json::Object& object, std::size_t depth, std::string& out) {
  out += '{';
  for (std::size_t i = 0; i < object.size(); ++i) {
    BeginLine(i == 0, depth + 1, out);
    WriteText(object[i].first, out);
    out += ": ";
    Write(object[i].second, depth + 1, out);
  }
  if (!object.empty()) {
    out.append("\n").append(depth * kIndent, ' ');
  }
  out += '}';
}

void Write(const Json& value, std::size_t depth, std::string& out) {
  if (const Json::Array* array = value.AsArray()) {
    WriteArray(*array, depth, out);
  } else if (const Json::Object* object = value.AsObject()) {
    WriteObject(*object, depth, out);
  } else {
    WriteScalar(value, out);
  }
}

}  // namespace

std::string WriteJson(const Json& value) {
  std::string out;
  Write(value, 0, out);
  return out + "\n";
}

}  // namespace fourpiles
