// WriteJson, with nlohmann's writer.

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace fourpiles {
namespace {

using nlohmann::ordered_json;

// JSON has no infinity and no NaN.
ordered_json ToNlohmann(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

ordered_json ToNlohmann(const Json& value) {
  if (const bool* flag = value.AsBool()) {
    return *flag;
  }
  if (const std::int64_t* integer = value.AsInteger()) {
    return *integer;
  }
  if (const double* number = value.AsDouble()) {
    return ToNlohmann(*number);
  }
  if (const std::string* text = value.AsString()) {
    return *text;
  }
  if (const Json::Array* array = value.AsArray()) {
    ordered_json elements = ordered_json::array();
    for (const Json& element : *array) {
      elements.push_back(ToNlohmann(element));
    }
    return elements;
  }
  ordered_json members;  // null, until a member makes it an object
  if (const Json::Object* object = value.AsObject()) {
    members = ordered_json::object();
    for (const auto& [key, member] : *object) {
      members.get_ref<ordered_json::object_t&>().emplace_back(key, ToNlohmann(member));
    }
  }
  return members;
}

}  // namespace

std::string WriteJson(const Json& value) {
  constexpr int kIndent = 2;
  // A name from a file need not be UTF-8; its odd bytes become U+FFFD.
  return ToNlohmann(value).dump(kIndent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fourpiles
