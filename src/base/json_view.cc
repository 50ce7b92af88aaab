#include "base/json_view.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/check.h"
#include "base/json_fault.h"
#include "base/try.h"

namespace fourpiles {

namespace dom = simdjson::dom;

// The way between a JsonView and simdjson's element.
struct JsonViewParts {
  static JsonView ViewOf(dom::element element) {
    JsonView view;
    view.element_ = std::bit_cast<std::array<std::uintptr_t, 2>>(element);
    return view;
  }
  static dom::element ElementOf(const JsonView& view) {
    return std::bit_cast<dom::element>(view.element_);
  }
};

namespace {

constexpr std::size_t kFewMembers = 8;  // so few are compared each with each

std::optional<std::string_view> DuplicateOfFew(dom::object object) {
  std::array<std::string_view, kFewMembers> keys;
  std::size_t count = 0;
  for (const dom::key_value_pair member : object) {
    const auto end = keys.begin() + count;
    if (std::find(keys.begin(), end, member.key) != end) {
      return member.key;
    }
    keys[count++] = member.key;
  }
  return std::nullopt;
}

// Sorted by hash first, which is quick, then by the key itself, so that keys chosen to share a hash
// cost no more than a sort of texts.
std::optional<std::string_view> DuplicateOfMany(dom::object object) {
  std::vector<std::pair<std::size_t, std::string_view>> keys;
  for (const dom::key_value_pair member : object) {
    keys.emplace_back(std::hash<std::string_view>{}(member.key), member.key);
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ? std::nullopt : std::optional(twice->second);
}

// A key that some object has twice. The nesting is limited, so the recursion is.
std::optional<std::string_view> Duplicate(dom::element element) {
  if (dom::array array; element.get(array) == simdjson::SUCCESS) {
    for (const dom::element each : array) {
      if (const auto found = Duplicate(each)) {
        return found;
      }
    }
    return std::nullopt;
  }
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  std::size_t members = 0;
  for (const dom::key_value_pair member : object) {
    if (const auto found = Duplicate(member.value)) {
      return found;
    }
    ++members;
  }
  return members <= kFewMembers ? DuplicateOfFew(object) : DuplicateOfMany(object);
}

}  // namespace

bool JsonView::IsObject() const {
  return JsonViewParts::ElementOf(*this).is_object();
}

bool JsonView::IsArray() const {
  return JsonViewParts::ElementOf(*this).is_array();
}

std::optional<std::string_view> JsonView::Text() const {
  std::string_view text;
  const bool is_text = JsonViewParts::ElementOf(*this).get(text) == simdjson::SUCCESS;
  return is_text ? std::optional(text) : std::nullopt;
}

std::optional<std::int64_t> JsonView::WholeNumber() const {
  const dom::element element = JsonViewParts::ElementOf(*this);
  std::int64_t number = 0;
  // A uint64 beyond int64 is of another type to simdjson, and so is a double.
  const bool is_whole =
      element.type() == dom::element_type::INT64 && element.get(number) == simdjson::SUCCESS;
  return is_whole ? std::optional(number) : std::nullopt;
}

void JsonView::ForEachMember(const std::function<void(std::string_view, JsonView)>& use) const {
  dom::object object;
  if (JsonViewParts::ElementOf(*this).get(object) == simdjson::SUCCESS) {
    for (const dom::key_value_pair member : object) {
      use(member.key, JsonViewParts::ViewOf(member.value));
    }
  }
}

void JsonView::ForEachElement(const std::function<void(JsonView)>& use) const {
  dom::array array;
  if (JsonViewParts::ElementOf(*this).get(array) == simdjson::SUCCESS) {
    for (const dom::element element : array) {
      use(JsonViewParts::ViewOf(element));
    }
  }
}

std::size_t JsonView::Count() const {
  std::size_t count = 0;  // simdjson's own count stops at 2^24
  ForEachMember([&count](std::string_view, JsonView) { ++count; });
  ForEachElement([&count](JsonView) { ++count; });
  return count;
}

std::string JsonView::Description() const {
  const dom::element element = JsonViewParts::ElementOf(*this);
  switch (element.type()) {
    case dom::element_type::ARRAY:
      return "an array";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::STRING:
      return Describe(Json(*Text()));
    case dom::element_type::DOUBLE:
      return Describe(Json(double(element)));
    default:
      return simdjson::minify(element);
  }
}

struct JsonDocument::Parsed {
  dom::parser parser;
  dom::element root;
};

JsonDocument::JsonDocument(std::unique_ptr<Parsed> parsed) : parsed_(std::move(parsed)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonView JsonDocument::Root() const {
  return JsonViewParts::ViewOf(parsed_->root);
}

Result<JsonDocument> JsonDocument::Read(std::string_view text, std::string_view where,
                                        const JsonLimits& limits) {
  TRY_VOID(CheckJsonSize(text, where, limits));
  auto parsed = std::make_unique<Parsed>();
  // An array at the outermost level counts as one that simdjson's depth does not.
  const auto depth = static_cast<std::size_t>(limits.depth) + 1;
  simdjson::error_code error = parsed->parser.allocate(text.size(), depth);
  if (!error) {
    error = parsed->parser.parse(text.data(), text.size()).get(parsed->root);
  }
  if (error == simdjson::DEPTH_ERROR) {
    return BadInput(
        {.where = std::string(where),
         .found = "an array or object inside too many",
         .expected = fmt::format("expected at most {} one inside the other", limits.depth)});
  }
  if (error) {
    const JsonFault fault = FirstJsonFault(text);
    return BadInput({.where = fmt::format("{}: byte {}", where, fault.byte),
                     .found = fault.found,
                     .expected = fault.expected});
  }
  if (const auto key = Duplicate(parsed->root)) {
    return BadInput({.where = std::string(where),
                     .found = fmt::format("{} as a key twice in one object", Describe(Json(*key))),
                     .expected = "expected each key once"});
  }
  return JsonDocument(std::move(parsed));
}

}  // namespace fourpiles
