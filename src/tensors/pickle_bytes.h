#pragma once

// The bytes of a pickle one after the other, from a source that is read in pieces, and the texts of
// protocol 0.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace fourpiles {

class PickleBytes {
 public:
  PickleBytes(const ByteSource& source, std::int64_t begin) : source_(source), place_(begin) {}

  std::int64_t Place() const { return place_; }  // of the next byte
  std::int64_t Left() const { return source_.Size() - place_; }

  // These give false where the source ends before, and take nothing then.
  bool Take(std::uint8_t& byte);
  // A little-endian number of 1 to 8 bytes.
  bool TakeNumber(int bytes, std::uint64_t& number);
  // Appends so many bytes to a text.
  bool TakeText(std::uint64_t bytes, std::string& text);
  bool Skip(std::uint64_t bytes);
  // Up to a line feed, which is not part of it; at most 64 KiB.
  bool TakeLine(std::string& line);

 private:
  // The byte at place_ + ahead; needs that there is one. -1: it cannot be read.
  int Peek(std::int64_t ahead);

  const ByteSource& source_;
  std::int64_t place_;
  std::string piece_ = {};
  std::int64_t piece_begin_ = 0;
};

// A number as digits, with or without the "L" of Python 2; false: none of at most 64 bits.
bool ReadDigits(std::string_view line, std::int64_t& number);

// A line of the step UNICODE, raw-unicode-escape of Python: \uXXXX and \UXXXXXXXX are read, other
// bytes are Latin-1.
std::string TextOfUnicodeLine(std::string_view line);

// What stands between the quotes of the step STRING, escape_decode() of Python: bytes, of which
// PyTorch holds that they are UTF-8. Escapes that Python does not know stay as they are.
std::string TextOfStringLine(std::string_view line);

}  // namespace fourpiles
