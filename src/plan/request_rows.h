#pragma once

// The rows of a file of requests, one at a time: CSV with a header, JSON Lines, or a JSON array of
// objects. docs/REQUESTS.md describes the forms and lists the names of the columns.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/byte_source.h"
#include "fourpiles/result.h"

namespace fourpiles {

// Requests of equal lengths, in tokens.
struct RequestLength {
  std::int64_t prompt = 0;
  std::int64_t output = 0;
  std::int64_t count = 1;

  // What the cache holds when the request ends.
  std::int64_t Total() const { return prompt + output; }
};

class RequestRows {
 public:
  virtual ~RequestRows() = default;

  // The next row, each number at most 2^53; nothing at the end. Errors: kInput.
  virtual Result<std::optional<RequestLength>> Next() = 0;
  // Of the row read last, for errors: "requests.csv: line 7".
  virtual std::string Where() const = 0;
};

// The form is told by the content. The source must outlive the rows. Error: nothing in it.
Result<std::unique_ptr<RequestRows>> OpenRequestRows(const ByteSource& source);

}  // namespace fourpiles
