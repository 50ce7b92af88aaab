#include "base/json.h"

#include <algorithm>

#include <fmt/format.h>

namespace fourpiles {
namespace {

constexpr std::size_t kLongestQuote = 60;  // bytes of a string that a message repeats

std::string Quote(std::string_view text) {
  if (text.size() <= kLongestQuote) {
    return fmt::format("\"{}\"", text);
  }
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;  // not inside a UTF-8 sequence
  }
  return fmt::format("\"{}...\"", text.substr(0, end));
}

// Always with a point, an exponent or a name, so that it cannot be taken for a whole number.
std::string DescribeDouble(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) {
    text += ".0";
  }
  return text;
}

}  // namespace

const Json* Json::Find(std::string_view key) const {
  const Object* object = AsObject();
  if (object == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(object->begin(), object->end(),
                                  [key](const Member& member) { return member.first == key; });
  return found == object->end() ? nullptr : &found->second;
}

std::string Describe(const Json& value) {
  if (const bool* flag = value.AsBool()) {
    return *flag ? "true" : "false";
  }
  if (const std::int64_t* integer = value.AsInteger()) {
    return std::to_string(*integer);
  }
  if (const double* number = value.AsDouble()) {
    return DescribeDouble(*number);
  }
  if (const std::string* text = value.AsString()) {
    return "the string " + Quote(*text);
  }
  if (value.AsArray() != nullptr) {
    return "an array";
  }
  return value.AsObject() != nullptr ? "an object" : "null";
}

}  // namespace fourpiles
