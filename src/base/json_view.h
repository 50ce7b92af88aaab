#pragma once

// A JSON document read as strictly as ReadJson() reads it, and looked at in place. For documents
// that are too large to become Json values: the header of a safetensors file may have 100 MB.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "fourpiles/result.h"

namespace fourpiles {

// One value of a document, which must outlive it.
class JsonView {
 public:
  bool IsObject() const;
  bool IsArray() const;
  // Each gives nothing when the value is of another kind. A whole number is one that is written
  // without point and exponent and fits 64 bits with a sign.
  std::optional<std::string_view> Text() const;
  std::optional<std::int64_t> WholeNumber() const;

  // Calls `use` for every member or element, in the order of the document. A value of another kind
  // has none.
  void ForEachMember(const std::function<void(std::string_view key, JsonView value)>& use) const;
  void ForEachElement(const std::function<void(JsonView value)>& use) const;
  // Members of an object, elements of an array.
  std::size_t Count() const;

  // As Describe(Json) describes it.
  std::string Description() const;

 private:
  friend struct JsonViewParts;
  JsonView() = default;

  // simdjson's own reference, whose type only json_view.cc knows.
  std::array<std::uintptr_t, 2> element_ = {};
};

class JsonDocument {
 public:
  // `where` names the document in errors.
  static Result<JsonDocument> Read(std::string_view text, std::string_view where,
                                   const JsonLimits& limits = {});
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonView Root() const;

 private:
  struct Parsed;
  explicit JsonDocument(std::unique_ptr<Parsed> parsed);

  std::unique_ptr<Parsed> parsed_;
};

}  // namespace fourpiles
