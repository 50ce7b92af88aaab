#pragma once

// CSV (RFC 4180) read record by record from a source, none of it kept: for files of millions of
// lines. A quoted field may hold separators, quotes (doubled) and ends of lines.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace fourpiles {

class CsvReader {
 public:
  static constexpr std::size_t kLongestRecord = std::size_t{1} << 20;

  // From the byte `begin` on, which must lie within the source.
  CsvReader(const ByteSource& source, std::int64_t begin);

  // Reads the fields of the next record that is not blank, without the white space around them;
  // false at the end. They refer to this reader and hold until the next call. The first record
  // decides what separates fields: the first comma, semicolon or tab in it. Errors, of kind kInput:
  // a record of more than kLongestRecord bytes, a NUL byte, quotes that do not end.
  Result<bool> Next(std::vector<std::string_view>& fields);

  // Where the record read last begins, for errors: "requests.csv: line 7".
  std::string Where() const;

 private:
  // Of the buffer, up to the end of a line or of what was read.
  struct Piece {
    std::size_t end = 0;
    bool line_ends = false;
    bool odd_quotes = false;
  };
  Piece PieceFrom(std::size_t place) const;
  Result<void> Fill();
  Result<std::size_t> FindEnd();
  void SplitRecord(char* begin, char* end, std::vector<std::string_view>& fields) const;
  tl::unexpected<Error> Bad(std::string found, std::string expected, std::string hint) const;

  const ByteSource& source_;
  std::int64_t source_place_;  // of the next byte to read from the source
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::size_t next_ = 0;    // of the next record, in the buffer
  char separator_ = '\0';   // not known yet
  std::int64_t line_ = 1;   // of the record read last
  std::int64_t lines_ = 0;  // that it and those before it take
};

}  // namespace fourpiles
