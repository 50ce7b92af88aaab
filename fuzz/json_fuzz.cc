// ReadJson and JsonScanner against nlohmann's parser: all take the same documents for JSON and read
// the same values from them, but for what ReadJson refuses on top. And what WriteJson writes reads
// back the same.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "base/json_scanner.h"

namespace fourpiles {
namespace {

using nlohmann::ordered_json;

// What ReadJson refuses in a document that is JSON.
struct Excess {
  int depth = 0;
  bool has_duplicate = false;
};

// The document as nlohmann reads it; discarded when it is no JSON.
ordered_json ReadReference(std::string_view text, Excess& excess) {
  std::vector<std::set<std::string>> keys;  // of the objects and arrays around
  const auto note = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    using Event = ordered_json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      excess.depth = std::max(excess.depth, depth + 1);
      keys.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      const bool is_new = keys.back().insert(parsed.get<std::string>()).second;
      excess.has_duplicate |= !is_new;
    }
    return true;
  };
  return ordered_json::parse(text, note, /*allow_exceptions=*/false);
}

bool Same(const Json& ours, const ordered_json& theirs);

bool SameArray(const Json::Array& ours, const ordered_json& theirs) {
  bool same = theirs.is_array() && ours.size() == theirs.size();
  for (std::size_t i = 0; same && i < ours.size(); ++i) {
    same = Same(ours[i], theirs[i]);
  }
  return same;
}

bool SameObject(const Json::Object& ours, const ordered_json& theirs) {
  if (!theirs.is_object() || ours.size() != theirs.size()) {
    return false;
  }
  auto member = theirs.begin();
  for (const auto& [key, value] : ours) {
    if (key != member.key() || !Same(value, *member)) {
      return false;
    }
    ++member;
  }
  return true;
}

bool Same(const Json& ours, const ordered_json& theirs) {
  if (const bool* flag = ours.AsBool()) {
    return theirs == *flag;
  }
  if (const std::int64_t* integer = ours.AsInteger()) {
    return theirs.is_number_integer() && theirs == *integer;
  }
  if (const double* number = ours.AsDouble()) {
    // Integers beyond int64 are doubles to us, and may still be a uint64 to nlohmann.
    return theirs.is_number() && theirs.get<double>() == *number &&
           !(theirs.is_number_integer() && !theirs.is_number_unsigned());
  }
  if (const std::string* text = ours.AsString()) {
    return theirs == *text;
  }
  if (const Json::Array* array = ours.AsArray()) {
    return SameArray(*array, theirs);
  }
  return ours.AsObject() == nullptr ? theirs.is_null() : SameObject(*ours.AsObject(), theirs);
}

// Whether the scanner takes the text for JSON. It knows nothing of duplicate keys.
bool IsScanned(std::string_view text) {
  const MemorySource source("x", std::as_bytes(std::span(text)));
  JsonScanner json(source, 0, source.Size());
  json.SkipValue();
  return json.Finish();
}

void Compare(std::string_view text) {
  const Result<Json> ours = ReadJson(text, "x");
  Excess excess;
  const ordered_json theirs = ReadReference(text, excess);
  // nlohmann takes a NUL for the end, and a byte order mark for nothing.
  const bool acceptable =
      !theirs.is_discarded() && !excess.has_duplicate && excess.depth <= JsonLimits{}.depth &&
      text.find('\0') == std::string_view::npos && !text.starts_with("\xEF\xBB\xBF");
  CHECK(ours.has_value() == acceptable);
  // A number too large for a double is one by its grammar, which is all that the scanner knows.
  const bool has_exponent = text.find_first_of("eE") != std::string_view::npos || text.size() > 300;
  CHECK(!IsScanned(text) || !theirs.is_discarded() || has_exponent);
  CHECK(!ours || IsScanned(text));
  if (ours) {
    CHECK(Same(*ours, theirs));
    CHECK(Same(*ReadJson(WriteJson(*ours), "x"), theirs));
  } else {
    CHECK(ours.error().text.where.starts_with("x: byte "));
    CHECK(std::stoull(ours.error().text.where.substr(8)) <= text.size());
    CHECK(ours.error().text.found != "malformed JSON");
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Compare({reinterpret_cast<const char*>(data), size});
  return 0;
}
