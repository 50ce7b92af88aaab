#pragma once

// The members of one JSON object, read by name and kind: how every record of ours and every
// config.json is read. What does not fit is refused with the place, the value found and the value
// expected:
//
//   TRY(const Fields config, Fields::Of(json, "config.json"));
//   TRY(const std::int64_t width, config.Integer("hidden_size", {1, kMaxWidth}));
//   TRY(const auto heads, config.OptionalInteger("num_key_value_heads", {1, kMaxHeads}));
//   TRY_VOID(config.RefuseUnknown(kKnownKeys));
//
//   error: config.json: hidden_size: the string "4096", expected a whole number from 1 to 1048576
//   hint: write the number without quotes
//
// The optional variants give nothing for a member that is absent or null. Errors are of kind
// kInput. A Fields, and each string_view it gives, refers to the Json it was made from.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/range.h"
#include "fourpiles/result.h"

namespace fourpiles {

// Both ends included.
struct NumberRange {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
};

class Fields {
 public:
  // Refuses a value that is no object. `where` names the document in errors.
  static Result<Fields> Of(const Json& value, std::string where);
  static Result<Fields> Of(Json&&, std::string) = delete;  // it would refer to a dead value

  // Present, and not null.
  bool Has(std::string_view key) const;
  // The place of a member, for errors of the caller's own: "config.json: text_config.hidden_size".
  std::string Where(std::string_view key) const;
  const Json::Object& Members() const { return *value_->AsObject(); }

  // A count: written without decimal point and exponent, so that 4096.0 and 1e3 are refused.
  Result<std::int64_t> Integer(std::string_view key, Range range) const;
  Result<std::optional<std::int64_t>> OptionalInteger(std::string_view key, Range range) const;
  // Any number, however written.
  Result<double> Number(std::string_view key, NumberRange range = {}) const;
  Result<std::optional<double>> OptionalNumber(std::string_view key, NumberRange range = {}) const;
  Result<bool> Bool(std::string_view key) const;
  Result<std::optional<bool>> OptionalBool(std::string_view key) const;
  Result<std::string_view> Text(std::string_view key) const;
  Result<std::optional<std::string_view>> OptionalText(std::string_view key) const;

  Result<std::vector<std::int64_t>> Integers(std::string_view key, Range each) const;
  Result<std::optional<std::vector<std::int64_t>>> OptionalIntegers(std::string_view key,
                                                                    Range each) const;
  Result<std::vector<std::string_view>> Texts(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> OptionalTexts(std::string_view key) const;

  Result<Fields> Object(std::string_view key) const;
  Result<std::optional<Fields>> OptionalObject(std::string_view key) const;
  Result<std::vector<Fields>> Objects(std::string_view key) const;

  // Refuses the first member whose key is none of `known`, with a "did you mean".
  Result<void> RefuseUnknown(std::span<const std::string_view> known) const;

 private:
  // A value and its place; nullptr stands for an absent one, which each reader refuses as it
  // refuses any other misfit.
  struct Found {
    const Json* value;
    std::string where;
  };

  Fields(const Json* value, std::string where, std::string separator)
      : value_(value), where_(std::move(where)), separator_(std::move(separator)) {}

  static tl::unexpected<Error> Mismatch(Found found, std::string expected, std::string hint = {});
  static Result<std::int64_t> ReadInteger(Found found, Range range);
  static Result<double> ReadNumber(Found found, NumberRange range);
  static Result<bool> ReadBool(Found found);
  static Result<std::string_view> ReadText(Found found);
  static Result<Fields> ReadObject(Found found);
  static Result<std::vector<std::int64_t>> ReadIntegers(Found found, Range each);
  static Result<std::vector<std::string_view>> ReadTexts(Found found);
  template <class Read, class... Options>
  static auto ReadArray(Found found, std::string_view of, Read read, Options... options);
  template <class Read, class... Options>
  auto Optional(std::string_view key, Read read, Options... options) const;

  Found At(std::string_view key) const { return {value_->Find(key), Where(key)}; }

  const Json* value_;      // an object
  std::string where_;      // of this object
  std::string separator_;  // stands between where_ and a key: ": " in a document, "." further in
};

}  // namespace fourpiles
