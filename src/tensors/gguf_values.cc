#include "tensors/gguf_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "base/utf8.h"

namespace fourpiles {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
constexpr std::int64_t kMostKeptStringBytes = 65'536;
constexpr std::int64_t kMostKeptElements = 65'536;
constexpr std::string_view kCutHint = "the file may be cut short; compare its size with the source";

struct ValueTypeRow {
  std::string_view name;
  int bytes;  // of one value; 0: it says so itself
};
constexpr ValueTypeRow kValueTypes[] = {
    {"uint8", 1},  {"int8", 1},    {"uint16", 2},  {"int16", 2},  {"uint32", 4},
    {"int32", 4},  {"float32", 4}, {"bool", 1},    {"string", 0}, {"array", 0},
    {"uint64", 8}, {"int64", 8},   {"float64", 8},
};

// The fewest bytes that a value of the type takes.
std::int64_t LeastBytes(std::uint32_t type, const GgufLayout& layout) {
  if (type == kGgufString) {
    return layout.count_bytes;
  }
  if (type == kGgufArray) {
    return 4 + layout.count_bytes;  // its element type, its length
  }
  return kValueTypes[type].bytes;
}

template <class Number>
Number As(std::uint64_t bits) {
  Number number = {};
  std::memcpy(&number, &bits,
              sizeof(number));  // the low bytes: every machine here is little-endian
  return number;
}
static_assert(std::endian::native == std::endian::little);

Json NumberJson(std::uint32_t type, std::uint64_t bits) {
  switch (type) {
    case kGgufInt8:
      return std::int64_t{As<std::int8_t>(bits)};
    case kGgufInt16:
      return std::int64_t{As<std::int16_t>(bits)};
    case kGgufInt32:
      return std::int64_t{As<std::int32_t>(bits)};
    case kGgufFloat32:
      return double{As<float>(bits)};
    case kGgufFloat64:
      return As<double>(bits);
    case kGgufBool:
      return bits != 0;
    default:
      break;
  }
  const bool fits = type == kGgufInt64 || bits <= std::uint64_t{INT64_MAX};
  return fits ? Json(static_cast<std::int64_t>(bits)) : Json(static_cast<double>(bits));
}

Finding BadBool(std::string where, std::uint64_t value) {
  return {FileVerdict::kRefuse,
          {.where = std::move(where),
           .found = fmt::format("a bool of {}", value),
           .expected = "expected 0 or 1"}};
}

Result<std::uint32_t> ReadValueType(GgufStream& stream, std::string_view what) {
  const std::int64_t place = stream.Place();
  TRY(const std::uint32_t type, stream.Uint32(what));
  if (type >= std::size(kValueTypes)) {
    return BadInput({.where = stream.WhereAt(place),
                     .found = fmt::format("{} {}", what, type),
                     .expected = "expected one from 0 to 12",
                     .hint = "the file is damaged, or newer than this version of fourpiles"});
  }
  return type;
}

struct ArrayHead {
  std::uint32_t type = 0;
  std::int64_t length = 0;
};

Result<ArrayHead> ReadArrayHead(GgufStream& stream) {
  TRY(const std::uint32_t type, ReadValueType(stream, "array type"));
  const std::int64_t place = stream.Place();
  TRY(const std::uint64_t length, stream.Count("the length of an array"));
  const auto found = [type, length = length] {
    return fmt::format("an array of {} elements ({})", length, kValueTypes[type].name);
  };
  // Divided, not multiplied: the length is any 64-bit number.
  const std::int64_t most = stream.Remaining() / LeastBytes(type, stream.Layout());
  if (length > static_cast<std::uint64_t>(most)) {
    return BadInput({.where = stream.WhereAt(place),
                     .found = found() + ", past the end of the file",
                     .expected = fmt::format("expected at most {} in the {} bytes that follow",
                                             most, stream.Remaining()),
                     .hint = std::string(kCutHint)});
  }
  if (length > std::uint64_t{kMostGgufElements}) {
    return BadInput({.where = stream.WhereAt(place),
                     .found = found(),
                     .expected = fmt::format("expected at most {}", kMostGgufElements)});
  }
  return ArrayHead{type, static_cast<std::int64_t>(length)};
}

// Arrays in arrays, without recursion: how many elements of each are still to come.
Result<void> SkipNested(GgufStream& stream, const ArrayHead& outermost) {
  std::vector<ArrayHead> open = {outermost};
  while (!open.empty()) {
    ArrayHead& innermost = open.back();
    if (innermost.length == 0) {
      open.pop_back();
    } else if (innermost.type == kGgufString) {
      --innermost.length;
      TRY_VOID(stream.SkipString("a string in an array"));
    } else if (innermost.type != kGgufArray) {
      TRY_VOID(stream.Skip(innermost.length * kValueTypes[innermost.type].bytes, "an array"));
      open.pop_back();
    } else if (open.size() == kMostGgufNesting) {
      return BadInput({.where = stream.Where(),
                       .found = fmt::format("array nesting deeper than {}", kMostGgufNesting),
                       .hint = "no program writes such files; do not use it"});
    } else {
      --innermost.length;
      TRY(const ArrayHead next, ReadArrayHead(stream));
      open.push_back(next);
    }
  }
  return {};
}

// Numbers and bools, kept where there is room.
Result<void> ReadNumbers(GgufStream& stream, const ArrayHead& head, GgufRoom& room,
                         GgufValue& value) {
  const int bytes = kValueTypes[head.type].bytes;
  const std::int64_t memory = head.length * static_cast<std::int64_t>(sizeof(Json));
  const bool is_kept = head.length <= kMostKeptElements && memory <= room.bytes;
  if (!is_kept && head.type != kGgufBool) {
    return stream.Skip(head.length * bytes, "an array");
  }
  Json::Array elements;
  for (std::int64_t i = 0; i < head.length; ++i) {
    const std::int64_t place = stream.Place();
    TRY(const std::uint64_t bits, stream.Number(bytes, "an element of an array"));
    if (head.type == kGgufBool && bits > 1 && !value.finding) {
      value.finding = BadBool(stream.WhereAt(place), bits);
    }
    if (is_kept) {
      elements.push_back(NumberJson(head.type, bits));
    }
  }
  if (is_kept) {
    room.bytes -= memory;
    value.value = std::move(elements);
  }
  return {};
}

Result<void> ReadArray(GgufStream& stream, GgufRoom& room, GgufValue& value) {
  TRY(const ArrayHead head, ReadArrayHead(stream));
  value.array_length = head.length;
  if (head.type == kGgufString || head.type == kGgufArray) {
    return SkipNested(stream, head);
  }
  return ReadNumbers(stream, head, room, value);
}

Result<void> ReadText(GgufStream& stream, GgufRoom& room, GgufValue& value) {
  const std::int64_t place = stream.Place();
  TRY(std::string text, stream.String(kMostGgufStringBytes, "a string"));
  const std::size_t well_formed = Utf8Prefix(text);
  if (well_formed != text.size()) {
    value.finding = {FileVerdict::kAcceptWithWarning,
                     {.where = stream.WhereAt(place),
                      .found = fmt::format("a string that is no UTF-8 at its byte {}", well_formed),
                      .hint = "it is shown with its bytes written out"}};
  }
  const auto bytes = static_cast<std::int64_t>(text.size());
  if (bytes <= kMostKeptStringBytes && bytes <= room.bytes) {
    room.bytes -= bytes;
    value.value = std::move(text);
  }
  return {};
}

}  // namespace

std::string_view GgufValueTypeName(std::uint32_t type) {
  return type < std::size(kValueTypes) ? kValueTypes[type].name : "";
}

std::string GgufStream::WhereAt(std::int64_t place) const {
  return fmt::format("{}: byte {}", source_.Name(), place);
}

Result<void> GgufStream::Fill() {
  const std::int64_t bytes = std::min(static_cast<std::int64_t>(kBufferBytes), Remaining());
  buffer_.resize(static_cast<std::size_t>(bytes));
  buffer_start_ = place_;
  TRY_VOID(CheckLength());
  return source_.ReadAt(place_, buffer_);
}

Result<void> GgufStream::Read(std::span<std::byte> bytes, std::string_view what) {
  if (static_cast<std::int64_t>(bytes.size()) > Remaining()) {
    return BadInput(
        {.where = Where(),
         .found = fmt::format("the end of the file in {}", what),
         .expected = fmt::format("expected {} more bytes, not {}", bytes.size(), Remaining()),
         .hint = std::string(kCutHint)});
  }
  while (!bytes.empty()) {
    if (place_ - buffer_start_ >= static_cast<std::int64_t>(buffer_.size())) {
      TRY_VOID(Fill());
    }
    const auto from = static_cast<std::size_t>(place_ - buffer_start_);
    const std::size_t count = std::min(bytes.size(), buffer_.size() - from);
    std::memcpy(bytes.data(), buffer_.data() + from, count);
    bytes = bytes.subspan(count);
    place_ += static_cast<std::int64_t>(count);
  }
  return {};
}

Result<std::uint64_t> GgufStream::Number(int bytes, std::string_view what) {
  std::array<std::byte, 8> raw = {};
  const std::span<std::byte> used = std::span(raw).first(static_cast<std::size_t>(bytes));
  TRY_VOID(Read(used, what));
  if (layout_.big_endian) {
    std::ranges::reverse(used);
  }
  return std::bit_cast<std::uint64_t>(raw);
}

Result<std::uint32_t> GgufStream::Uint32(std::string_view what) {
  TRY(const std::uint64_t number, Number(4, what));
  return static_cast<std::uint32_t>(number);
}

Result<void> GgufStream::CheckLength() const {
  if (place_ <= kMostGgufHeaderBytes) {
    return {};
  }
  return BadInput({.where = Where(),
                   .found = "a header that goes on",
                   .expected = fmt::format("expected at most {} bytes", kMostGgufHeaderBytes)});
}

Result<void> GgufStream::Skip(std::int64_t bytes, std::string_view what) {
  if (bytes > Remaining()) {
    return BadInput({.where = Where(),
                     .found = fmt::format("the end of the file in {}", what),
                     .expected = fmt::format("expected {} more bytes, not {}", bytes, Remaining()),
                     .hint = std::string(kCutHint)});
  }
  place_ += bytes;
  return {};
}

Result<std::int64_t> GgufStream::StringLength(std::int64_t limit, std::string_view what) {
  const std::int64_t place = place_;
  TRY(const std::uint64_t length, Count(what));
  if (length > static_cast<std::uint64_t>(Remaining())) {
    return BadInput({.where = WhereAt(place),
                     .found = fmt::format("{} of {} bytes, past the end of the file", what, length),
                     .expected = fmt::format("expected at most {}", Remaining()),
                     .hint = std::string(kCutHint)});
  }
  if (length > static_cast<std::uint64_t>(limit)) {
    return BadInput({.where = WhereAt(place),
                     .found = fmt::format("{} of {} bytes", what, length),
                     .expected = fmt::format("expected at most {}", limit)});
  }
  return static_cast<std::int64_t>(length);
}

Result<std::string> GgufStream::String(std::int64_t limit, std::string_view what) {
  TRY(const std::int64_t length, StringLength(limit, what));
  std::string text(static_cast<std::size_t>(length), '\0');
  TRY_VOID(Read(std::as_writable_bytes(std::span(text)), what));
  return text;
}

Result<void> GgufStream::SkipString(std::string_view what) {
  TRY(const std::int64_t length, StringLength(kMostGgufStringBytes, what));
  return Skip(length, what);
}

Result<GgufValue> ReadGgufValue(GgufStream& stream, GgufRoom& room) {
  GgufValue value;
  TRY(value.type, ReadValueType(stream, "value type"));
  if (value.type == kGgufArray) {
    TRY_VOID(ReadArray(stream, room, value));
  } else if (value.type == kGgufString) {
    TRY_VOID(ReadText(stream, room, value));
  } else {
    const std::int64_t place = stream.Place();
    TRY(const std::uint64_t bits, stream.Number(kValueTypes[value.type].bytes, "a value"));
    if (value.type == kGgufBool && bits > 1) {
      value.finding = BadBool(stream.WhereAt(place), bits);
    }
    value.value = NumberJson(value.type, bits);
  }
  return value;
}

}  // namespace fourpiles
