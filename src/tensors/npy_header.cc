#include "tensors/npy_header.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tensors/checkpoint.h"
#include "tensors/npy_type.h"

namespace fourpiles {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionAt = 6;
constexpr std::size_t kLengthAt = 8;
constexpr std::int64_t kMostHeaderBytes = 1'000'000;
constexpr int kMostNesting = 16;  // of records within records
constexpr std::string_view kCutShort =
    "the file may be cut short; compare its size with the source";

// The literals of a header, one after the other. An error names the byte of the array.
class Literals {
 public:
  Literals(std::string_view bytes, std::size_t at, std::string_view where)
      : bytes_(bytes), at_(at), where_(where) {}

  tl::unexpected<Error> Unexpected(std::string_view expected) const {
    constexpr std::size_t kMostShown = 24;
    const std::string_view rest = bytes_.substr(at_);
    return BadInput({.where = fmt::format("{}: byte {}", where_, at_),
                     .found = rest.empty() ? "the end of the header"
                                           : fmt::format("\"{}\"", rest.substr(0, kMostShown)),
                     .expected = fmt::format("expected {}", expected)});
  }
  tl::unexpected<Error> Wrong(std::string found, std::string expected) const {
    return BadInput(
        {fmt::format("{}: byte {}", where_, at_), std::move(found), std::move(expected), ""});
  }

  // Passes the sign by, where it is next.
  bool Take(char sign) {
    SkipSpace();
    const bool is_next = at_ < bytes_.size() && bytes_[at_] == sign;
    at_ += is_next ? 1 : 0;
    return is_next;
  }
  bool IsNext(std::string_view signs) {
    SkipSpace();
    return at_ < bytes_.size() && signs.find(bytes_[at_]) != std::string_view::npos;
  }
  Result<void> Expect(char sign) {
    if (Take(sign)) {
      return {};
    }
    return Unexpected(fmt::format("\"{}\"", sign));
  }
  // After an element: true when another one follows, false when `end` was passed.
  Result<bool> HasMore(char end) {
    const bool comma = Take(',');
    if (Take(end)) {
      return false;
    }
    if (comma) {
      return true;
    }
    return Unexpected(fmt::format("\",\" or \"{}\"", end));
  }
  Result<void> ExpectEnd() {
    SkipSpace();
    if (at_ < bytes_.size()) {
      return Unexpected("white space up to the data");
    }
    return {};
  }

  // The text between quotes. A sign behind a backslash stays as it is written.
  Result<std::string> Text() {
    if (!IsNext("'\"")) {
      return Unexpected("a text in quotes");
    }
    const char quote = bytes_[at_];
    const std::size_t begin = at_ + 1;
    std::size_t end = begin;
    while (end < bytes_.size() && bytes_[end] != quote && bytes_[end] != '\n') {
      end += bytes_[end] == '\\' ? 2 : 1;
    }
    if (end >= bytes_.size() || bytes_[end] != quote) {
      return Unexpected("a text that ends with its quote");
    }
    at_ = end + 1;
    return std::string(bytes_.substr(begin, end - begin));
  }

  Result<bool> Truth() {
    SkipSpace();
    for (const auto& [word, value] : {std::pair("True", true), {"False", false}}) {
      if (bytes_.substr(at_).starts_with(word)) {
        at_ += std::string_view(word).size();
        return value;
      }
    }
    return Unexpected("True or False");
  }

  // A whole number from 0 to 2^53. Python 2 put an L behind long ones.
  Result<std::int64_t> Count() {
    if (IsNext("-")) {
      return Unexpected("a dimension from 0 on");
    }
    if (!IsNext("0123456789")) {
      return Unexpected("a whole number");
    }
    const std::size_t begin = at_;
    Checked number = 0;
    for (; at_ < bytes_.size() && '0' <= bytes_[at_] && bytes_[at_] <= '9'; ++at_) {
      number = number * 10 + (bytes_[at_] - '0');
    }
    const bool has_zeros = bytes_[begin] == '0' && at_ > begin + 1;
    if (!number.ok() || has_zeros) {
      at_ = begin;
      return has_zeros ? Unexpected("a number without zeros before it")
                       : Wrong("a dimension overflow", "expected at most 2^53");
    }
    at_ += at_ < bytes_.size() && bytes_[at_] == 'L' ? 1 : 0;
    return number.value();
  }

  // "(2, 3)", "(3,)" or "()".
  Result<std::vector<std::int64_t>> Counts() {
    TRY_VOID(Expect('('));
    std::vector<std::int64_t> counts;
    for (bool more = !Take(')'); more;) {
      if (counts.size() == kMostDimensions) {
        return Wrong(fmt::format("more than {} dimensions", kMostDimensions), "expected fewer");
      }
      TRY(counts.emplace_back(), Count());
      if (counts.size() == 1 && !IsNext(",")) {
        return Unexpected("\",\": one number in brackets is no tuple");
      }
      TRY(more, HasMore(')'));
    }
    return counts;
  }

 private:
  void SkipSpace() { at_ = std::min(bytes_.find_first_not_of(" \t\r\n\f", at_), bytes_.size()); }

  std::string_view bytes_;
  std::size_t at_;
  std::string_view where_;
};

Result<NpyType> ReadType(Literals& literals, int nesting);

// ('name', '<f4'), (('title', 'name'), '<f4'), ('name', '<f4', (2, 3)): what it adds to a record.
Result<NpyType> ReadField(Literals& literals, int nesting) {
  TRY_VOID(literals.Expect('('));
  if (literals.Take('(')) {
    TRY_VOID(literals.Text());
    TRY_VOID(literals.Expect(','));
    TRY_VOID(literals.Text());
    TRY_VOID(literals.Expect(')'));
  } else {
    TRY_VOID(literals.Text());
  }
  TRY_VOID(literals.Expect(','));
  TRY(NpyType type, ReadType(literals, nesting));
  TRY(const bool has_shape, literals.HasMore(')'));
  if (has_shape) {
    std::vector<std::int64_t> shape;
    if (literals.IsNext("(")) {
      TRY(shape, literals.Counts());
    } else {
      TRY(shape.emplace_back(), literals.Count());
    }
    const Checked bytes = ElementsOf(shape) * type.bytes;
    if (!bytes.ok()) {
      return literals.Wrong("a record of more than 2^53 bytes", "expected fewer");
    }
    type.bytes = bytes.value();
    TRY(const bool has_more, literals.HasMore(')'));
    if (has_more) {
      return literals.Unexpected("\")\"");
    }
  }
  return type;
}

// A list of fields.
Result<NpyType> ReadRecord(Literals& literals, int nesting) {
  if (nesting == kMostNesting) {
    return literals.Wrong(fmt::format("records within records, more than {}", kMostNesting),
                          "expected fewer");
  }
  TRY_VOID(literals.Expect('['));
  NpyType record = {.dtype = "STRUCT"};
  for (bool more = !literals.Take(']'); more;) {
    TRY(const NpyType field, ReadField(literals, nesting + 1));
    const Checked bytes = Checked(record.bytes) + field.bytes;
    if (!bytes.ok()) {
      return literals.Wrong("a record of more than 2^53 bytes", "expected fewer");
    }
    record.bytes = bytes.value();
    record.has_objects = record.has_objects || field.has_objects;
    TRY(more, literals.HasMore(']'));
  }
  return record;
}

Result<NpyType> ReadType(Literals& literals, int nesting) {
  if (literals.IsNext("[")) {
    return ReadRecord(literals, nesting);
  }
  const Literals before = literals;
  TRY(const std::string descr, literals.Text());
  const std::optional<NpyType> type = NpyTypeOf(descr);
  if (!type) {
    return before.Wrong(fmt::format("the type \"{}\"", descr.substr(0, 40)),
                        "expected one of NumPy, as \"<f4\"");
  }
  return *type;
}

// The keys that were seen.
struct SeenKeys {
  bool descr = false;
  bool fortran_order = false;
  bool shape = false;
};

// The value of the key.
Result<void> ReadValue(Literals& literals, std::string_view key, SeenKeys& seen,
                       NpyHeader& header) {
  if (key == "descr" && !std::exchange(seen.descr, true)) {
    TRY(header.type, ReadType(literals, 0));
  } else if (key == "fortran_order" && !std::exchange(seen.fortran_order, true)) {
    TRY(header.fortran_order, literals.Truth());
  } else if (key == "shape" && !std::exchange(seen.shape, true)) {
    TRY(header.shape, literals.Counts());
  } else {
    return literals.Wrong(fmt::format("the key \"{}\" too many", key.substr(0, 40)),
                          "expected descr, fortran_order and shape, each once");
  }
  return {};
}

Result<void> ReadDict(Literals& literals, NpyHeader& header) {
  TRY_VOID(literals.Expect('{'));
  SeenKeys seen;
  for (bool more = !literals.Take('}'); more;) {
    TRY(const std::string key, literals.Text());
    TRY_VOID(literals.Expect(':'));
    TRY_VOID(ReadValue(literals, key, seen, header));
    TRY(more, literals.HasMore('}'));
  }
  if (!(seen.descr && seen.fortran_order && seen.shape)) {
    return literals.Wrong("a key is missing", "expected descr, fortran_order and shape");
  }
  return literals.ExpectEnd();
}

}  // namespace

bool StartsAsNpy(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

Result<std::int64_t> NpyDataStart(std::string_view bytes, std::string_view where) {
  const auto at = [&](std::size_t byte) { return fmt::format("{}: byte {}", where, byte); };
  if (!StartsAsNpy(bytes)) {
    return BadInput({at(0), "no array of NumPy", "expected the bytes \"\\x93NUMPY\"", ""});
  }
  const auto number = [&](std::size_t byte) {
    return std::size_t{static_cast<unsigned char>(bytes[byte])};
  };
  const std::size_t version = bytes.size() <= kVersionAt + 1 ? 1 : number(kVersionAt);
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < kLengthAt + length_bytes) {
    return BadInput({at(bytes.size()), "the end of the file", "expected version and length",
                     std::string(kCutShort)});
  }
  if (version < 1 || version > 3 || number(kVersionAt + 1) != 0) {
    return BadInput({at(kVersionAt), fmt::format("version {}.{}", version, number(kVersionAt + 1)),
                     "expected 1.0, 2.0 or 3.0", ""});
  }
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | number(kLengthAt + i);
  }
  if (length > static_cast<std::size_t>(kMostHeaderBytes)) {
    return BadInput({at(kLengthAt), fmt::format("a header of {} bytes", length),
                     fmt::format("expected at most {}", kMostHeaderBytes), ""});
  }
  return static_cast<std::int64_t>(kLengthAt + length_bytes + length);
}

Result<NpyHeader> ParseNpyHeader(std::string_view bytes, std::string_view where) {
  TRY(const std::int64_t data_start, NpyDataStart(bytes, where));
  if (std::ssize(bytes) != data_start) {
    return BadInput({fmt::format("{}: byte {}", where, bytes.size()), "the end of the file",
                     fmt::format("expected a header up to byte {}", data_start),
                     std::string(kCutShort)});
  }
  NpyHeader header = {.version = bytes[kVersionAt], .data_start = data_start};
  const std::size_t at = kLengthAt + (header.version == 1 ? 2 : 4);
  constexpr std::int64_t kUtf8Version = 3;  // before it, bytes are Latin-1
  const std::size_t good = Utf8Prefix(bytes.substr(at));
  if (header.version == kUtf8Version && at + good < bytes.size()) {
    return BadInput({fmt::format("{}: byte {}", where, at + good), "bytes that are no UTF-8",
                     "expected a header of version 3 to be", ""});
  }
  Literals literals(bytes, at, where);
  TRY_VOID(ReadDict(literals, header));
  return header;
}

}  // namespace fourpiles
