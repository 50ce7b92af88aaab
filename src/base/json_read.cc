// ReadJson: simdjson's on-demand reader walks the whole document once, so that every value of it is
// validated. What simdjson lets pass is refused here: duplicate keys, deep nesting, a byte order
// mark. simdjson refuses without saying where; json_fault.h then finds the place.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>
#include <locale.h>
#include <simdjson.h>

#include "base/check.h"
#include "base/json.h"
#include "base/json_fault.h"
#include "base/json_number.h"
#include "base/try.h"

namespace fourpiles {
namespace {

namespace ondemand = simdjson::ondemand;

// The first member whose key an earlier one has, or the number of members. Sorting keeps it fast
// whatever the keys are; a hash table could be made slow by chosen keys.
std::size_t FirstDuplicate(const Json::Object& members) {
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&members](std::size_t a, std::size_t b) {
    const int compared = members[a].first.compare(members[b].first);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::size_t first = members.size();
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (members[order[i - 1]].first == members[order[i]].first) {
      first = std::min(first, order[i]);
    }
  }
  return first;
}

// The number, or null if the text is none or lies beyond what a double holds. Not left to simdjson:
// its on-demand reader (3.0.1) gives wrong values for some decimals of more than 19 digits, and has
// none for integers beyond 64 bits.
Json NumberOf(const std::string& text) {
  if (!IsJsonNumber(text)) {
    return {};
  }
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error == std::errc() && end == text.data() + text.size()) {
    return integer;
  }
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);  // whatever the program's
  const double number = strtod_l(text.c_str(), nullptr, c_locale);
  return std::isfinite(number) ? Json(number) : Json();
}

constexpr std::string_view kBeforeValue = "[,: \t\r\n";
constexpr std::string_view kAfterNumber = "],} \t\r\n";

struct NonFinite {
  std::size_t byte = 0;
  double value = 0;
};

// The token that NaN or an infinity is at the front of `text`; empty where there is none.
std::string_view NonFiniteAtFront(std::string_view text) {
  for (const std::string_view token : {"NaN", "Infinity", "-Infinity"}) {
    const std::size_t end = token.size();
    if (text.starts_with(token) &&
        (text.size() == end || kAfterNumber.find(text[end]) != std::string_view::npos)) {
      return text.substr(0, end);
    }
  }
  return {};
}

// The first byte behind the string that opens at `begin`.
std::size_t EndOfString(std::string_view text, std::size_t begin) {
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') {
    at += text[at] == '\\' ? 2 : 1;
  }
  return at + 1;
}

// Puts a number of the same length in the place of each NaN and infinity outside of strings, so
// that the strict reader takes the text and every byte keeps its place, and says where they were.
std::vector<NonFinite> MaskNonFinite(std::string& text) {
  std::vector<NonFinite> found;
  bool value_may_begin = true;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = EndOfString(text, at);
      value_may_begin = false;
      continue;
    }
    const std::string_view token =
        value_may_begin ? NonFiniteAtFront(std::string_view(text).substr(at)) : "";
    value_may_begin = kBeforeValue.find(text[at]) != std::string_view::npos;
    if (token.empty()) {
      ++at;
      continue;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    found.push_back({.byte = at,
                     .value = token == "NaN"    ? std::numeric_limits<double>::quiet_NaN()
                              : token[0] == '-' ? -infinity
                                                : infinity});
    const std::size_t sign = token[0] == '-' ? 1 : 0;
    const std::size_t length = token.size();
    std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at + sign), length - sign, '1');
    at += length;
  }
  return found;
}

class Reader {
 public:
  // `non_finite` stands in the places where the text has a number that JSON lacks.
  Reader(std::string_view text, std::string_view where, int depth,
         std::vector<NonFinite> non_finite = {})
      : text_(text),
        where_(where),
        depth_(depth),
        depth_left_(depth),
        non_finite_(std::move(non_finite)) {
    // In brackets, a document that is a lone number is a value like any other.
    padded_.reserve(text.size() + 2 + simdjson::SIMDJSON_PADDING);
    padded_.append("[").append(text).append("]").append(simdjson::SIMDJSON_PADDING, '\0');
  }

  Result<Json> ReadDocument() {
    ondemand::parser parser;
    ondemand::document document;
    ondemand::array brackets;
    if (parser.iterate(padded_.data(), text_.size() + 2, padded_.size()).get(document) ||
        document.get_array().get(brackets)) {
      return Malformed();
    }
    TRY(Json::Array values, ReadElements(brackets));
    // "1, 2" and "1], [2" fill the brackets otherwise than with one value.
    if (values.size() != 1 || document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      return Malformed();
    }
    return std::move(values.front());
  }

 private:
  tl::unexpected<Error> RefuseAt(std::size_t byte, std::string found, std::string expected) const {
    return BadInput({.where = fmt::format("{}: byte {}", where_, byte),
                     .found = std::move(found),
                     .expected = std::move(expected)});
  }

  tl::unexpected<Error> Malformed() const {
    JsonFault fault = FirstJsonFault(text_);
    return RefuseAt(fault.byte, std::move(fault.found), std::move(fault.expected));
  }

  // The offset in the document of a place in the padded copy.
  std::size_t ByteOf(const char* place) const {
    return static_cast<std::size_t>(place - padded_.data()) - 1;
  }

  Result<Json> ReadValue(simdjson::simdjson_result<ondemand::value> result) {
    ondemand::json_type type = {};
    if (result.type().get(type)) {
      return Malformed();
    }
    ondemand::value value = result.value_unsafe();
    switch (type) {
      case ondemand::json_type::array:
      case ondemand::json_type::object:
        return ReadNested(value, type == ondemand::json_type::array);
      case ondemand::json_type::number:
        return ReadNumber(value.raw_json_token());
      case ondemand::json_type::string:
        return ReadScalar(value.get_string());
      case ondemand::json_type::boolean:
        return ReadScalar(value.get_bool());
      case ondemand::json_type::null:
        break;
    }
    bool is_null = false;
    if (value.is_null().get(is_null) || !is_null) {
      return Malformed();
    }
    return Json();
  }

  template <class T>
  Result<Json> ReadScalar(simdjson::simdjson_result<T> result) const {
    T scalar{};
    if (std::move(result).get(scalar)) {
      return Malformed();
    }
    return Json(scalar);
  }

  // The token reaches up to the next one, white space included. simdjson steps over it by itself.
  Result<Json> ReadNumber(std::string_view token) const {
    const std::size_t byte = non_finite_.empty() ? 0 : ByteOf(token.data());
    const auto place =
        std::lower_bound(non_finite_.begin(), non_finite_.end(), byte,
                         [](const NonFinite& one, std::size_t at) { return one.byte < at; });
    if (place != non_finite_.end() && place->byte == byte) {
      return Json(place->value);
    }
    Json number = NumberOf(std::string(token.substr(0, token.find_last_not_of(" \t\r\n") + 1)));
    if (number.IsNull()) {
      return Malformed();
    }
    return number;
  }

  Result<Json> ReadNested(ondemand::value value, bool is_array) {
    if (depth_left_ == 0) {
      return RefuseAt(ByteOf(value.raw_json_token().data()), "an array or object inside too many",
                      fmt::format("expected at most {} one inside the other", depth_));
    }
    --depth_left_;
    Result<Json> nested = is_array ? ReadArray(value) : ReadObject(value);
    ++depth_left_;
    return nested;
  }

  Result<Json> ReadArray(ondemand::value value) {
    ondemand::array array;
    if (value.get_array().get(array)) {
      return Malformed();
    }
    return ReadElements(array).map([](Json::Array elements) { return Json(std::move(elements)); });
  }

  Result<Json::Array> ReadElements(ondemand::array array) {
    Json::Array elements;
    for (auto element : array) {
      TRY(Json value, ReadValue(element));
      elements.push_back(std::move(value));
    }
    return elements;
  }

  Result<Json> ReadObject(ondemand::value value) {
    ondemand::object object;
    if (value.get_object().get(object)) {
      return Malformed();
    }
    Json::Object members;
    std::vector<std::size_t> key_bytes;
    for (auto result : object) {
      ondemand::field field;
      std::string_view key;
      if (std::move(result).get(field)) {
        return Malformed();
      }
      key_bytes.push_back(ByteOf(field.key().raw()) - 1);  // of its opening quote
      if (field.unescaped_key().get(key)) {                // leaves the field without its raw key
        return Malformed();
      }
      TRY(Json member, ReadValue(std::move(field).value()));
      members.emplace_back(std::string(key), std::move(member));
    }
    const std::size_t duplicate = FirstDuplicate(members);
    if (duplicate < members.size()) {
      return RefuseAt(key_bytes[duplicate],
                      fmt::format("{} as a key a second time", Describe(members[duplicate].first)),
                      "expected each key once");
    }
    return Json(std::move(members));
  }

  std::string_view text_;
  std::string_view where_;
  int depth_;
  int depth_left_;
  std::vector<NonFinite> non_finite_;  // in the order of the text
  std::string padded_;  // '[', the text, ']', and the zero bytes that simdjson may read past it
};

// Refuses a text that is longer than the limit, or opens with a byte order mark.
Result<void> CheckJsonSize(std::string_view text, std::string_view where,
                           const JsonLimits& limits) {
  CHECK(limits.bytes <= JsonLimits::kMostBytes && limits.depth <= JsonLimits::kMostDepth);
  if (text.size() > static_cast<std::size_t>(limits.bytes)) {
    return BadInput({.where = std::string(where),
                     .found = fmt::format("{} bytes of JSON", text.size()),
                     .expected = fmt::format("expected at most {}", limits.bytes)});
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    return BadInput({.where = fmt::format("{}: byte 0", where),
                     .found = "a byte order mark",
                     .expected = "expected the document",
                     .hint = "save the file as UTF-8 without a byte order mark"});
  }
  return {};
}

}  // namespace

Result<Json> ReadJson(std::string_view text, std::string_view where, const JsonLimits& limits) {
  TRY_VOID(CheckJsonSize(text, where, limits));
  if (!limits.non_finite) {
    return Reader(text, where, limits.depth).ReadDocument();
  }
  std::string masked(text);
  std::vector<NonFinite> non_finite = MaskNonFinite(masked);
  return Reader(masked, where, limits.depth, std::move(non_finite)).ReadDocument();
}

}  // namespace fourpiles
