#include "base/json_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/try.h"

namespace fourpiles {
namespace {

// What to do about a value that means a whole number and is not written as one; or "".
std::string WholeNumberHint(const Json* value) {
  const double* number = value == nullptr ? nullptr : value->AsDouble();
  if (number != nullptr && std::abs(*number) <= kLargestAmount && std::trunc(*number) == *number) {
    return fmt::format("write {:.0f}, without decimal point and exponent", *number);
  }
  const std::string* text = value == nullptr ? nullptr : value->AsString();
  const bool digits = text != nullptr && !text->empty() &&
                      text->find_first_not_of("0123456789") == std::string::npos;
  return digits ? "write the number without quotes" : "";
}

std::string ExpectedNumber(NumberRange range) {
  const NumberRange any;
  return range.least == any.least && range.most == any.most
             ? "expected a number"
             : fmt::format("expected a number from {} to {}", range.least, range.most);
}

}  // namespace

Result<Fields> Fields::Of(const Json& value, std::string where) {
  TRY(Fields fields, ReadObject({&value, std::move(where)}));
  fields.separator_ = ": ";
  return fields;
}

bool Fields::Has(std::string_view key) const {
  const Json* member = value_->Find(key);
  return member != nullptr && !member->IsNull();
}

std::string Fields::Where(std::string_view key) const {
  return fmt::format("{}{}{}", where_, separator_, key);
}

Result<void> Fields::RefuseUnknown(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : Members()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return BadInput({.where = Where(key),
                       .found = "an unknown key",
                       .expected = DidYouMean(key, known),
                       .hint = fmt::format("the keys known here: {}", fmt::join(known, ", "))});
    }
  }
  return {};
}

tl::unexpected<Error> Fields::Mismatch(Found found, std::string expected, std::string hint) {
  return BadInput({.where = std::move(found.where),
                   .found = found.value == nullptr ? "nothing" : Describe(*found.value),
                   .expected = std::move(expected),
                   .hint = std::move(hint)});
}

// The readers, each of one kind of value.

Result<std::int64_t> Fields::ReadInteger(Found found, Range range) {
  const std::int64_t* integer = found.value == nullptr ? nullptr : found.value->AsInteger();
  if (integer == nullptr || !range.Holds(*integer)) {
    std::string hint = WholeNumberHint(found.value);
    return Mismatch(std::move(found), ExpectedWholeNumber(range), std::move(hint));
  }
  return *integer;
}

Result<double> Fields::ReadNumber(Found found, NumberRange range) {
  std::optional<double> number;
  if (found.value != nullptr && found.value->AsDouble() != nullptr) {
    number = *found.value->AsDouble();
  } else if (found.value != nullptr && found.value->AsInteger() != nullptr) {
    number = static_cast<double>(*found.value->AsInteger());
  }
  if (!number || *number < range.least || *number > range.most) {
    return Mismatch(std::move(found), ExpectedNumber(range));
  }
  return *number;
}

Result<bool> Fields::ReadBool(Found found) {
  const bool* flag = found.value == nullptr ? nullptr : found.value->AsBool();
  if (flag == nullptr) {
    return Mismatch(std::move(found), "expected true or false");
  }
  return *flag;
}

Result<std::string_view> Fields::ReadText(Found found) {
  const std::string* text = found.value == nullptr ? nullptr : found.value->AsString();
  if (text == nullptr) {
    return Mismatch(std::move(found), "expected a string");
  }
  return *text;
}

Result<Fields> Fields::ReadObject(Found found) {
  if (found.value == nullptr || found.value->AsObject() == nullptr) {
    return Mismatch(std::move(found), "expected an object");
  }
  return Fields(found.value, std::move(found.where), ".");
}

// An array of what `read` reads, named `of` in the message: "strings".
template <class Read, class... Options>
auto Fields::ReadArray(Found found, std::string_view of, Read read, Options... options) {
  using Element = typename decltype(read(Found{}, options...))::value_type;
  using Answer = Result<std::vector<Element>>;
  const Json::Array* array = found.value == nullptr ? nullptr : found.value->AsArray();
  if (array == nullptr) {
    return Answer(Mismatch(std::move(found), fmt::format("expected an array of {}", of)));
  }
  std::vector<Element> elements;
  elements.reserve(array->size());
  for (const Json& json : *array) {
    auto element =
        read(Found{&json, fmt::format("{}[{}]", found.where, elements.size())}, options...);
    if (!element) {
      return Answer(tl::make_unexpected(std::move(element).error()));
    }
    elements.push_back(*std::move(element));
  }
  return Answer(std::move(elements));
}

Result<std::vector<std::int64_t>> Fields::ReadIntegers(Found found, Range each) {
  return ReadArray(std::move(found), "whole numbers", ReadInteger, each);
}

Result<std::vector<std::string_view>> Fields::ReadTexts(Found found) {
  return ReadArray(std::move(found), "strings", ReadText);
}

// What `read` makes of the member, or nothing when it is absent or null.
template <class Read, class... Options>
auto Fields::Optional(std::string_view key, Read read, Options... options) const {
  using Answer = Result<std::optional<typename decltype(read(Found{}, options...))::value_type>>;
  if (!Has(key)) {
    return Answer(std::nullopt);
  }
  auto value = read(At(key), options...);
  return value ? Answer(std::optional(*std::move(value)))
               : Answer(tl::make_unexpected(std::move(value).error()));
}

// The members, by kind.

Result<std::int64_t> Fields::Integer(std::string_view key, Range range) const {
  return ReadInteger(At(key), range);
}
Result<std::optional<std::int64_t>> Fields::OptionalInteger(std::string_view key,
                                                            Range range) const {
  return Optional(key, ReadInteger, range);
}

Result<double> Fields::Number(std::string_view key, NumberRange range) const {
  return ReadNumber(At(key), range);
}
Result<std::optional<double>> Fields::OptionalNumber(std::string_view key,
                                                     NumberRange range) const {
  return Optional(key, ReadNumber, range);
}

Result<bool> Fields::Bool(std::string_view key) const {
  return ReadBool(At(key));
}
Result<std::optional<bool>> Fields::OptionalBool(std::string_view key) const {
  return Optional(key, ReadBool);
}

Result<std::string_view> Fields::Text(std::string_view key) const {
  return ReadText(At(key));
}
Result<std::optional<std::string_view>> Fields::OptionalText(std::string_view key) const {
  return Optional(key, ReadText);
}

Result<std::vector<std::int64_t>> Fields::Integers(std::string_view key, Range each) const {
  return ReadIntegers(At(key), each);
}
Result<std::optional<std::vector<std::int64_t>>> Fields::OptionalIntegers(std::string_view key,
                                                                          Range each) const {
  return Optional(key, ReadIntegers, each);
}

Result<std::vector<std::string_view>> Fields::Texts(std::string_view key) const {
  return ReadTexts(At(key));
}
Result<std::optional<std::vector<std::string_view>>> Fields::OptionalTexts(
    std::string_view key) const {
  return Optional(key, ReadTexts);
}

Result<Fields> Fields::Object(std::string_view key) const {
  return ReadObject(At(key));
}
Result<std::optional<Fields>> Fields::OptionalObject(std::string_view key) const {
  return Optional(key, ReadObject);
}

Result<std::vector<Fields>> Fields::Objects(std::string_view key) const {
  return ReadArray(At(key), "objects", ReadObject);
}

}  // namespace fourpiles
