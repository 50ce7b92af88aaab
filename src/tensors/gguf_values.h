#pragma once

// The header of a GGUF file as a stream: numbers, strings, values. Read in pieces, so that a long
// vocabulary passes by without being kept.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/json.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// Where versions and machines differ.
struct GgufLayout {
  bool big_endian = false;
  int count_bytes = 8;  // of lengths, counts and dimensions: 4 in version 1
};

// Reads from the start of the file to its end. After an error the place is no longer known.
class GgufStream {
 public:
  explicit GgufStream(const ByteSource& source) : source_(source) {}

  void SetLayout(GgufLayout layout) { layout_ = layout; }
  const GgufLayout& Layout() const { return layout_; }
  std::int64_t Place() const { return place_; }
  std::int64_t Remaining() const { return source_.Size() - place_; }
  std::string Where() const { return WhereAt(place_); }  // "a.gguf: byte 24"
  std::string WhereAt(std::int64_t place) const;
  std::string_view Name() const { return source_.Name(); }

  // Errors name what could not be read: "a tensor type".
  Result<std::uint64_t> Number(int bytes, std::string_view what);
  Result<std::uint32_t> Uint32(std::string_view what);
  Result<std::uint64_t> Count(std::string_view what) { return Number(layout_.count_bytes, what); }
  // A length and so many bytes; refused past `limit`.
  Result<std::string> String(std::int64_t limit, std::string_view what);
  Result<void> SkipString(std::string_view what);
  Result<void> Skip(std::int64_t bytes, std::string_view what);

 private:
  Result<void> Read(std::span<std::byte> bytes, std::string_view what);
  Result<void> Fill();
  Result<void> CheckLength() const;
  Result<std::int64_t> StringLength(std::int64_t limit, std::string_view what);

  const ByteSource& source_;
  GgufLayout layout_ = {};
  std::int64_t place_ = 0;
  std::vector<std::byte> buffer_ = {};
  std::int64_t buffer_start_ = 0;  // its place in the file
};

inline constexpr std::int64_t kMostGgufHeaderBytes = 100'000'000;  // the largest real one: 15 MB
inline constexpr std::int64_t kMostGgufStringBytes = 64'000'000;
inline constexpr std::int64_t kMostGgufElements = 16'000'000;  // of an array
inline constexpr std::size_t kMostGgufNesting = 64;

// What may still be kept of all values of a file, in bytes of memory. Without such a limit a file
// of many short arrays would take forty times its own size.
struct GgufRoom {
  std::int64_t bytes = std::int64_t{64} << 20;
};

// The numbers of value types.
enum GgufValueType : std::uint32_t {
  kGgufUint8 = 0,
  kGgufInt8 = 1,
  kGgufUint16 = 2,
  kGgufInt16 = 3,
  kGgufUint32 = 4,
  kGgufInt32 = 5,
  kGgufFloat32 = 6,
  kGgufBool = 7,
  kGgufString = 8,
  kGgufArray = 9,
  kGgufUint64 = 10,
  kGgufInt64 = 11,
  kGgufFloat64 = 12,
};
std::string_view GgufValueTypeName(std::uint32_t type);  // "uint32"; "" for other numbers

struct GgufValue {
  std::uint32_t type = 0;
  Json value = {};                 // null when it was not kept
  std::int64_t array_length = -1;  // of an array
  // What is wrong with a value behind which reading can go on.
  std::optional<Finding> finding = {};
};

// A type and a value of that type. An error means that nothing behind it can be read.
Result<GgufValue> ReadGgufValue(GgufStream& stream, GgufRoom& room);

}  // namespace fourpiles
