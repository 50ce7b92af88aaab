#include "model/record.h"

#include <utility>

namespace fourpiles {

template <class T>
T Record::Take(Result<T> result, T otherwise) {
  if (result) {
    return *std::move(result);
  }
  if (!first_error_) {
    first_error_ = std::move(result).error();
  }
  return otherwise;
}

std::int64_t Record::Count(std::string_view key, Range range) {
  return Take(fields_.Integer(key, range), range.least);
}

std::int64_t Record::CountOr(std::string_view key, std::int64_t otherwise, Range range) {
  return OptionalCount(key, range).value_or(otherwise);
}

std::optional<std::int64_t> Record::OptionalCount(std::string_view key, Range range) {
  return Take(fields_.OptionalInteger(key, range), {});
}

std::optional<double> Record::OptionalNumber(std::string_view key, NumberRange range) {
  return Take(fields_.OptionalNumber(key, range), {});
}

bool Record::Flag(std::string_view key, bool otherwise) {
  return OptionalFlag(key).value_or(otherwise);
}

std::optional<bool> Record::OptionalFlag(std::string_view key) {
  return Take(fields_.OptionalBool(key), {});
}

std::string Record::Text(std::string_view key) {
  return std::string(Take(fields_.Text(key), {}));
}

std::string Record::TextOr(std::string_view key, std::string_view otherwise) {
  return std::string(Take(fields_.OptionalText(key), {}).value_or(otherwise));
}

bool Record::IsText(std::string_view key, std::string_view text) const {
  const auto found = fields_.OptionalText(key);
  return found && *found == text;
}

std::vector<std::int64_t> Record::Counts(std::string_view key, Range each) {
  return Take(fields_.OptionalIntegers(key, each), {}).value_or(std::vector<std::int64_t>());
}

std::vector<std::string> Record::Texts(std::string_view key) {
  const auto texts = Take(fields_.OptionalTexts(key), {});
  return texts ? std::vector<std::string>(texts->begin(), texts->end())
               : std::vector<std::string>();
}

std::optional<Record> Record::Object(std::string_view key) {
  const std::optional<Fields> object = Take(fields_.OptionalObject(key), {});
  return object ? std::optional(Record(*object)) : std::nullopt;
}

std::vector<Record> Record::Objects(std::string_view key) {
  std::vector<Record> records;
  if (Has(key)) {
    for (const Fields& object : Take(fields_.Objects(key), {})) {
      records.emplace_back(object);
    }
  }
  return records;
}

void Record::Include(const Record& part) {
  if (!first_error_) {
    first_error_ = part.first_error_;
  }
}

std::int64_t Record::MemberCount(std::string_view key, std::int64_t otherwise) {
  const std::optional<Fields> object = Take(fields_.OptionalObject(key), {});
  return object ? std::ssize(object->Members()) : otherwise;
}

std::optional<std::string> Record::MemberText(std::string_view key, std::string_view member,
                                              std::string_view otherwise) {
  const std::optional<Fields> object = Take(fields_.OptionalObject(key), {});
  if (!object) {
    return std::nullopt;
  }
  return std::string(Take(object->OptionalText(member), {}).value_or(otherwise));
}

NumberFormat Record::Format(std::string_view key) {
  Result<NumberFormat> format = FindFormat(Text(key), fields_.Where(key));
  if (!format) {
    format.error().kind = ErrorKind::kInput;  // it was a file's
  }
  return Take(std::move(format), NumberFormat());
}

std::optional<NumberFormat> Record::OptionalFormat(std::string_view key) {
  return Has(key) ? std::optional(Format(key)) : std::nullopt;
}

void Record::Refuse(std::string_view key, ErrorText text) {
  text.where = fields_.Where(key);
  Take<bool>(BadInput(std::move(text)), false);
}

Result<void> Record::Finish() const {
  return first_error_ ? Result<void>(tl::make_unexpected(*first_error_)) : Result<void>();
}

}  // namespace fourpiles
