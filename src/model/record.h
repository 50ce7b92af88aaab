#pragma once

// A JSON object read field by field, with one question at the end. The first field that does not
// fit is remembered, and harmless values stand in for it, so that what reads a record is a plain
// list of its fields:
//
//   Record record(fields);
//   const std::int64_t heads = record.Count("num_attention_heads");
//   const std::int64_t groups = record.CountOr("num_key_value_heads", heads);
//   TRY_VOID(record.Finish());        nothing read before this may leave the function

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "fourpiles/formats.h"
#include "fourpiles/result.h"

namespace fourpiles {

// No width, number of heads or vocabulary comes near it; and three products of two such counts
// still fit 64 bits, so that only what multiplies further needs base/checked.h.
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 30;

inline constexpr Range kCounts = {1, kLargestCount};

class Record {
 public:
  explicit Record(Fields fields) : fields_(std::move(fields)) {}

  bool Has(std::string_view key) const { return fields_.Has(key); }

  // Each returns its value or, for a misfit, the least of the range, "", false or nothing.
  std::int64_t Count(std::string_view key, Range range = kCounts);
  std::int64_t CountOr(std::string_view key, std::int64_t otherwise, Range range = kCounts);
  std::optional<std::int64_t> OptionalCount(std::string_view key, Range range = kCounts);
  std::optional<double> OptionalNumber(std::string_view key, NumberRange range = {});
  bool Flag(std::string_view key, bool otherwise);
  std::optional<bool> OptionalFlag(std::string_view key);
  std::string Text(std::string_view key);
  std::string TextOr(std::string_view key, std::string_view otherwise);
  // Whether the member is this very text: of a count that may be "auto".
  bool IsText(std::string_view key, std::string_view text) const;
  std::vector<std::int64_t> Counts(std::string_view key, Range each);
  std::vector<std::string> Texts(std::string_view key);  // of an absent list: none
  // An object, and those of an array; of an absent one: none. Each remembers its own misfits until
  // it is included.
  std::optional<Record> Object(std::string_view key);
  std::vector<Record> Objects(std::string_view key);
  void Include(const Record& part);
  // How many members an object has.
  std::int64_t MemberCount(std::string_view key, std::int64_t otherwise);
  // The text of one member of an object, else `otherwise`; nothing where the object is absent.
  std::optional<std::string> MemberText(std::string_view key, std::string_view member,
                                        std::string_view otherwise);
  NumberFormat Format(std::string_view key);  // float32 stands in
  std::optional<NumberFormat> OptionalFormat(std::string_view key);

  // A mistake that only the caller can see, at the field that shows it.
  void Refuse(std::string_view key, ErrorText text);

  Result<void> RefuseUnknown(std::span<const std::string_view> known) const {
    return fields_.RefuseUnknown(known);
  }
  // The first misfit of all.
  Result<void> Finish() const;

 private:
  template <class T>
  T Take(Result<T> result, T otherwise);

  Fields fields_;
  std::optional<Error> first_error_;
};

}  // namespace fourpiles
