#include "tensors/npy_type.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/checked.h"

namespace fourpiles {
namespace {

struct PlainType {
  std::string_view word;   // NumPy's
  std::string_view dtype;  // safetensors'
  std::string_view type;   // of formats/stored_type.h
};
constexpr std::array kPlainTypes = {
    PlainType{"b1", "BOOL", "bool"},     PlainType{"i1", "I8", "int8"},
    PlainType{"u1", "U8", "uint8"},      PlainType{"i2", "I16", "int16"},
    PlainType{"u2", "U16", "uint16"},    PlainType{"i4", "I32", "int32"},
    PlainType{"u4", "U32", "uint32"},    PlainType{"i8", "I64", "int64"},
    PlainType{"u8", "U64", "uint64"},    PlainType{"f2", "F16", "float16"},
    PlainType{"f4", "F32", "float32"},   PlainType{"f8", "F64", "float64"},
    PlainType{"c8", "C64", "complex64"}, PlainType{"c16", "C128", "complex128"},
};
// Numbers that are not ours: the long double of a compiler, and two of them. By their bits, F128,
// none is taken for another.
constexpr std::array<std::string_view, 4> kLongNumbers = {"f12", "f16", "c24", "c32"};

// The size behind the kind; nothing where it is none.
std::optional<std::int64_t> SizeOf(std::string_view digits) {
  Checked size = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') {
      return std::nullopt;
    }
    size = size * 10 + (digit - '0');
  }
  return digits.empty() || !size.ok() ? std::nullopt : std::optional(size.value());
}

// Raw bytes. ml_dtypes gives its types to NumPy as such, and their names are lost.
NpyType RawBytes(std::int64_t bytes) {
  NpyType type = {.dtype = fmt::format("VOID{}", bytes), .bytes = bytes};
  type.warning = "raw bytes, whose type the file does not name";
  if (bytes == 2) {
    type.type = FindStoredType("bfloat16");
    type.warning += "; counted as bfloat16, which is saved so";
  } else if (bytes == 1) {
    type.warning += "; float8 and int4 are saved so";
  }
  return type;
}

// Of numbers, by the whole word.
std::optional<NpyType> NumberType(std::string_view word, std::int64_t size) {
  const auto* const plain = std::ranges::find(kPlainTypes, word, &PlainType::word);
  if (plain != kPlainTypes.end()) {
    return NpyType{
        .dtype = std::string(plain->dtype), .type = FindStoredType(plain->type), .bytes = size};
  }
  const bool is_long = std::ranges::count(kLongNumbers, word) > 0;
  if (!is_long) {
    return std::nullopt;
  }
  return NpyType{.dtype = fmt::format("{}{}", word.front() == 'f' ? 'F' : 'C', 8 * size),
                 .bytes = size};
}

// Dates and spans of time, as whole numbers of a unit: "M8[ns]".
std::optional<NpyType> TimeType(std::string_view word) {
  const bool is_time =
      word == "M8" || word == "m8" || (word.substr(1).starts_with("8[") && word.ends_with(']'));
  return is_time ? std::optional(NpyType{.dtype = std::string(word), .bytes = 8}) : std::nullopt;
}

// Of any word without its order of bytes.
std::optional<NpyType> TypeOf(std::string_view word) {
  if (word == "O" || word == "O4" || word == "O8") {
    return NpyType{.dtype = "O", .has_objects = true};
  }
  if (word.starts_with('M') || word.starts_with('m')) {
    return TimeType(word);
  }
  const std::optional<std::int64_t> size =
      SizeOf(word.substr(std::min<std::size_t>(word.size(), 1)));
  if (!size) {
    return std::nullopt;
  }
  switch (word.front()) {
    case 'V':
      return RawBytes(*size);
    case 'S':
    case 'a':
      return NpyType{.dtype = std::string(word), .bytes = *size};
    case 'U':  // UCS-4
      return NpyType{.dtype = std::string(word), .bytes = OrLargest(Checked(*size) * 4)};
    default:
      return NumberType(word, *size);
  }
}

}  // namespace

std::optional<NpyType> NpyTypeOf(std::string_view descr) {
  constexpr std::string_view kOrders = "<>|=";
  const bool has_order = !descr.empty() && kOrders.find(descr.front()) != std::string_view::npos;
  const char order = has_order ? descr.front() : '=';
  std::optional<NpyType> type = TypeOf(descr.substr(has_order ? 1 : 0));
  const bool is_text = type && (type->dtype.starts_with('S') || type->dtype.starts_with('a'));
  const bool has_byte_order = type && type->bytes > 1 && type->warning.empty() && !is_text;
  if (has_byte_order && order != '<' && order != '>') {
    type->warning = "no order of bytes; taken as little-endian";
  }
  if (has_byte_order && order == '>') {
    type->big_endian = true;
  }
  return type;
}

}  // namespace fourpiles
