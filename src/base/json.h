#pragma once

// JSON as a plain value, read strictly and written plainly.
//
// Reading refuses what a lenient parser would let pass: duplicate keys, nesting past a limit,
// documents past a size, bytes after the end, a byte order mark. Members keep their order.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the order of the document; no key stands twice

  // Each kind of value reads as JSON where one is expected.
  // NOLINTBEGIN(google-explicit-constructor)
  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)

  bool IsNull() const { return std::holds_alternative<std::monostate>(value_); }
  // Each returns nullptr when the value is of another kind. A number without fraction and exponent
  // that fits 64 bits is an integer; every other number is a double.
  const bool* AsBool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* AsInteger() const { return std::get_if<std::int64_t>(&value_); }
  const double* AsDouble() const { return std::get_if<double>(&value_); }
  const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  const Array* AsArray() const { return std::get_if<Array>(&value_); }
  const Object* AsObject() const { return std::get_if<Object>(&value_); }

  // The member of an object, or nullptr when there is none or this is no object.
  const Json* Find(std::string_view key) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// An array of strings.
inline Json TextsJson(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

struct JsonLimits {
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;  // simdjson takes 32-bit sizes
  static constexpr int kMostDepth = 200;  // reading and destroying a value recurse

  std::int64_t bytes = 100'000'000;  // what the safetensors library takes as a header
  int depth = 64;
  // NaN, Infinity and -Infinity are numbers too, as Python's json module writes them. JSON has none
  // of them (RFC 8259, section 6). JsonScanner never takes them.
  bool non_finite = false;
};

// Reads one document. `where` names it in errors, which add the byte: "config.json: byte 17".
Result<Json> ReadJson(std::string_view text, std::string_view where, const JsonLimits& limits = {});

// The document with two spaces of indent and a final newline. A double prints with digits that read
// back to the same value; infinities and NaN as the strings "inf", "-inf", "nan". Bytes of a string
// that are no UTF-8 become U+FFFD.
std::string WriteJson(const Json& value);

// The kind and, for a scalar, the value, for error messages: "the string \"12\"", "-3", "an array".
std::string Describe(const Json& value);

}  // namespace fourpiles
