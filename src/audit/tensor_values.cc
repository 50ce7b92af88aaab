#include "audit/tensor_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "formats/block_layout.h"
#include "formats/ggml_blocks.h"
#include "formats/packing.h"
#include "formats/storage.h"
#include "fourpiles/arrays.h"

namespace fourpiles {
namespace {

constexpr std::size_t kAtOnce = 1024;  // elements that are widened at once, on the stack
constexpr int kLargestCode = 8;

std::size_t Size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

const BlockFormat* GgmlFormatOf(const StoredType& type) {
  const auto found = std::ranges::find_if(BlockFormats(), [&](const BlockFormat& format) {
    return format.kind == BlockKind::kGgml && GgmlTypeOf(format) == type.name;
  });
  return found == BlockFormats().end() ? nullptr : &*found;
}

// The elements from the first to the last one, both included: what a tensor spans.
Checked SpanOf(const FileTensor& tensor) {
  Checked span = 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    span = span + Checked(tensor.shape[i] - 1) * tensor.strides[i];
  }
  return span;
}

void ReverseBytes(std::span<std::byte> codes, std::size_t code_bytes) {
  for (std::size_t i = 0; i < codes.size(); i += code_bytes) {
    std::ranges::reverse(codes.subspan(i, code_bytes));
  }
}

// The elements of a strided tensor one by one, in row-major order.
class Odometer {
 public:
  Odometer(std::int64_t first, const std::vector<std::int64_t>& shape,
           const std::vector<std::int64_t>& strides)
      : shape_(shape), strides_(strides), index_(shape.size()) {
    for (std::size_t i = shape.size(); i-- > 0;) {
      index_[i] = first % shape[i];
      first /= shape[i];
      place_ += index_[i] * strides[i];
    }
  }

  std::int64_t Place() const { return place_; }
  void Step() {
    for (std::size_t i = shape_.size(); i-- > 0;) {
      place_ += strides_[i];
      if (++index_[i] < shape_[i]) {
        return;
      }
      place_ -= shape_[i] * strides_[i];
      index_[i] = 0;
    }
  }

 private:
  const std::vector<std::int64_t>& shape_;
  const std::vector<std::int64_t>& strides_;
  std::vector<std::int64_t> index_;
  std::int64_t place_ = 0;
};

// Whole numbers of `Stored` become values; those that a value has no room for are rounded.
template <class Stored, class Value>
void WidenIntegers(std::span<const std::byte> codes, std::span<Value> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored number = 0;
    std::memcpy(&number, codes.data() + i * sizeof number, sizeof number);
    values[i] = static_cast<Value>(number);
  }
}

template <class Value>
void WidenSigned(std::span<const std::byte> codes, int code_bytes, std::span<Value> values) {
  switch (code_bytes) {
    case 1:
      return WidenIntegers<std::int8_t>(codes, values);
    case 2:
      return WidenIntegers<std::int16_t>(codes, values);
    case 4:
      return WidenIntegers<std::int32_t>(codes, values);
    default:
      return WidenIntegers<std::int64_t>(codes, values);
  }
}

template <class Value>
void WidenUnsigned(std::span<const std::byte> codes, int code_bytes, std::span<Value> values) {
  switch (code_bytes) {
    case 1:
      return WidenIntegers<std::uint8_t>(codes, values);
    case 2:
      return WidenIntegers<std::uint16_t>(codes, values);
    case 4:
      return WidenIntegers<std::uint32_t>(codes, values);
    default:
      return WidenIntegers<std::uint64_t>(codes, values);
  }
}

// float32 holds the values of all formats of fewer bits.
void WidenFormat(ConstCodes codes, std::span<float> values) {
  DecodeArray(codes, values);
}
void WidenFormat(ConstCodes codes, std::span<double> values) {
  std::array<float, kAtOnce> floats = {};
  const std::span<float> part = std::span(floats).first(values.size());
  if (codes.format.name == "float32") {
    std::memcpy(part.data(), codes.bytes.data(), codes.bytes.size());
  } else {
    DecodeArray(codes, part);
  }
  std::ranges::copy(part, values.begin());
}

std::int64_t MostRepeated(const Checkpoint& checkpoint, const FileTensor& tensor) {
  return std::max(kMostRepeatedBytes, checkpoint.files[Size(tensor.file)].bytes);
}

}  // namespace

bool RepeatsTooMuch(const Checkpoint& checkpoint, const FileTensor& tensor) {
  return !tensor.strides.empty() && tensor.pieces.empty() &&
         tensor.bytes > MostRepeated(checkpoint, tensor);
}

Result<TensorValues> TensorValues::Of(const Checkpoint& checkpoint, const FileTensor& tensor) {
  StorageCache cache(checkpoint);
  return Of(checkpoint, tensor, cache);
}

Result<TensorValues> TensorValues::Of(const Checkpoint& checkpoint, const FileTensor& tensor,
                                      StorageCache& cache) {
  TensorValues values;
  TRY(values.source_, SourceOf(checkpoint, tensor.file));
  const std::string where = fmt::format("{}: tensor \"{}\"", values.source_->Name(), tensor.name);
  TRY_VOID(values.TakeType(tensor, where));
  values.elements_ = tensor.elements;
  values.offset_ = tensor.offset;
  values.big_endian_ = tensor.big_endian;
  if (tensor.elements == 0) {
    return values;
  }
  if (!tensor.pieces.empty()) {
    TRY_VOID(values.TakePieces(checkpoint, tensor, where));
    return values;
  }
  if (RepeatsTooMuch(checkpoint, tensor)) {
    return BadInput({where,
                     fmt::format("a view that repeats its elements to {} bytes", tensor.bytes),
                     fmt::format("expected at most {}", MostRepeated(checkpoint, tensor)),
                     "save a copy of it instead"});
  }
  HeldPlace place = {.file = tensor.file, .offset = tensor.offset, .packed = tensor.packed};
  if (tensor.packed && tensor.storage >= 0) {
    place.offset = checkpoint.storages[Size(tensor.storage)].offset;
  }
  TRY_VOID(values.TakeHeld(tensor, place, cache));
  return values;
}

// What an element is, and how many bytes all of them should have.
Result<void> TensorValues::TakeType(const FileTensor& tensor, const std::string& where) {
  const auto refuse = [&](std::string found, std::string expected) {
    return BadInput({where, std::move(found), std::move(expected), ""});
  };
  if (tensor.type == nullptr) {
    return refuse(fmt::format("the type \"{}\"", tensor.dtype), "expected one that is known");
  }
  type_ = tensor.type;
  const std::string_view name = type_->name;
  if (name.starts_with("complex")) {
    return refuse(fmt::format("the type {}", name), "expected real numbers");
  }
  const Checked bytes = StorageBytes(tensor.elements, *type_);
  if (!bytes.ok() || bytes.value() != tensor.bytes ||
      tensor.elements % type_->block_elements != 0) {
    return refuse(
        fmt::format("{} bytes", tensor.bytes),
        fmt::format("{} elements of {} take {}", tensor.elements, name, OrLargest(bytes)));
  }
  if (type_->block_elements > 1) {
    const BlockFormat* format = GgmlFormatOf(*type_);
    if (format == nullptr || !CanDecodeGgml(name)) {
      return refuse(fmt::format("the type {}", name), "expected one that can be decoded");
    }
    kind_ = Kind::kBlocks;
    blocks_ = *format;
    return {};
  }
  code_bytes_ = static_cast<int>(std::bit_ceil(static_cast<unsigned>(type_->block_bits + 7) / 8));
  const auto known = std::ranges::find(Formats(), name, &NumberFormat::name);
  if (known != Formats().end()) {
    format_ = *known;
  } else {
    kind_ = name.starts_with("int") ? Kind::kSigned : Kind::kUnsigned;
  }
  return {};
}

Result<void> TensorValues::TakePieces(const Checkpoint& checkpoint, const FileTensor& tensor,
                                      const std::string& where) {
  if (kind_ == Kind::kBlocks || type_->block_bits % 8 != 0 || tensor.packed) {
    return BadInput(
        {where, fmt::format("{} in pieces", type_->name), "expected elements of whole bytes", ""});
  }
  TRY(PieceReader reader, PieceReader::Of(checkpoint, tensor, code_bytes_));
  pieces_ = std::make_shared<const PieceReader>(std::move(reader));
  return {};
}

// Holds the bytes of a tensor that is not plainly in its file.
Result<void> TensorValues::TakeHeld(const FileTensor& tensor, const HeldPlace& place,
                                    StorageCache& cache) {
  if (!tensor.packed && tensor.strides.empty()) {
    return {};
  }
  HeldPlace wanted = place;
  Checked span_bytes = tensor.bytes;
  if (!tensor.strides.empty()) {
    CHECK(tensor.strides.size() == tensor.shape.size());
    shape_ = tensor.shape;
    strides_ = tensor.strides;
    span_bytes = SpanOf(tensor) * code_bytes_;
  }
  if (!span_bytes.ok() || (!strides_.empty() && type_->block_bits % 8 != 0) ||
      (!strides_.empty() && kind_ == Kind::kBlocks)) {
    return BadInput({fmt::format("{}: tensor \"{}\"", source_->Name(), tensor.name),
                     fmt::format("{} that do not lie in order", type_->name),
                     "expected elements of whole bytes", ""});
  }
  wanted.bytes = tensor.packed ? 0 : span_bytes.value();
  TRY(held_, cache.Bytes(wanted));
  const std::int64_t there = std::ssize(*held_);
  if (!tensor.packed) {
    offset_ = 0;
  } else if (tensor.storage < 0) {
    offset_ = there - tensor.bytes;  // an array of NumPy fills its member up to the end
  }
  if (offset_ < 0 || offset_ > there || span_bytes.value() > there - offset_) {
    return BadInput({fmt::format("{}: tensor \"{}\"", source_->Name(), tensor.name),
                     fmt::format("{} bytes unpacked", there),
                     fmt::format("expected {} from byte {}", span_bytes.value(), offset_),
                     "the file may have been changed while it was read; try again"});
  }
  return {};
}

std::int64_t TensorValues::CodeBytesOf(std::int64_t count) const {
  return kind_ == Kind::kBlocks ? StorageBytes(count, *type_).value() : count * code_bytes_;
}

Result<void> TensorValues::ReadBytes(std::int64_t place, std::span<std::byte> bytes) const {
  if (held_ == nullptr) {
    return source_->ReadAt(offset_ + place, bytes);
  }
  const auto all = std::as_bytes(std::span(*held_));
  std::ranges::copy(all.subspan(Size(offset_ + place), bytes.size()), bytes.begin());
  return {};
}

void TensorValues::Gather(std::int64_t first, std::span<std::byte> codes) const {
  const std::size_t size = Size(code_bytes_);
  Odometer element(first, shape_, strides_);
  for (std::size_t i = 0; i < codes.size(); i += size) {
    std::memcpy(codes.data() + i, held_->data() + offset_ + element.Place() * code_bytes_, size);
    element.Step();
  }
}

// Codes of fewer than 8 bits.
Result<void> TensorValues::ReadPacked(std::int64_t first, std::span<std::byte> codes) const {
  constexpr std::int64_t kWhole = 4;  // codes of 4 or 6 bits are whole bytes
  const std::int64_t before = first % kWhole;
  const int bits = type_->block_bits;
  const std::int64_t begin = (first - before) * bits / 8;
  const std::int64_t bytes = StorageBytes(before + std::ssize(codes), bits).value();
  std::vector<std::byte> packed(Size(bytes));
  TRY_VOID(ReadBytes(begin, packed));
  GetCodes(packed, Size(before), {.bits = bits}, codes);
  if (kind_ == Kind::kSigned) {  // two's complement, widened to a byte
    const int rest = 8 - bits;
    for (std::byte& code : codes) {
      const auto high = static_cast<std::int8_t>(std::to_integer<int>(code) << rest);
      code = static_cast<std::byte>(high >> rest);
    }
  }
  return {};
}

Result<void> TensorValues::ReadCodes(std::int64_t first, std::int64_t count,
                                     std::span<std::byte> codes) const {
  CHECK(first >= 0 && count >= 0 && first <= elements_ && count <= elements_ - first);
  CHECK(std::ssize(codes) == CodeBytesOf(count));
  if (count == 0) {
    return {};
  }
  if (kind_ == Kind::kBlocks) {
    CHECK(first % type_->block_elements == 0 && count % type_->block_elements == 0);
    return ReadBytes(StorageBytes(first, *type_).value(), codes);
  }
  if (type_->block_bits % 8 != 0) {
    return ReadPacked(first, codes);
  }
  if (pieces_ != nullptr) {
    TRY_VOID(pieces_->Read(first, codes));
  } else if (strides_.empty()) {
    TRY_VOID(ReadBytes(first * code_bytes_, codes));
  } else {
    Gather(first, codes);
  }
  if (big_endian_ && code_bytes_ > 1) {
    ReverseBytes(codes, Size(code_bytes_));
  }
  return {};
}

template <class Value>
void TensorValues::Widen(std::span<const std::byte> codes, std::span<Value> values) const {
  switch (kind_) {
    case Kind::kSigned:
      return WidenSigned(codes, code_bytes_, values);
    case Kind::kUnsigned:
      return WidenUnsigned(codes, code_bytes_, values);
    default:
      return WidenFormat({.format = *format_, .bytes = codes}, values);
  }
}

// The codes are read into the end of the values' own memory, where there is room, and widened from
// the front: value i ends at or before the beginning of code i + 1, so no code is overwritten
// before it was read.
template <class Value>
Result<void> TensorValues::ReadAny(std::int64_t first, std::span<Value> values) const {
  const auto count = std::ssize(values);
  const std::span<std::byte> own = std::as_writable_bytes(values);
  const std::string_view same = sizeof(Value) == sizeof(float) ? "float32" : "float64";
  if (type_->name == same) {
    return ReadCodes(first, count, own);
  }
  const std::size_t code = Size(code_bytes_);
  std::vector<std::byte> beside(code > sizeof(Value) ? values.size() * code : 0);
  const std::span<std::byte> codes =
      code > sizeof(Value) ? std::span(beside) : own.last(values.size() * code);
  TRY_VOID(ReadCodes(first, count, codes));
  std::array<std::byte, kAtOnce* kLargestCode> piece = {};
  for (std::size_t i = 0; i < values.size(); i += kAtOnce) {
    const std::size_t part = std::min(kAtOnce, values.size() - i);
    const auto from = codes.subspan(i * code, part * code);
    std::memcpy(piece.data(), from.data(), from.size());
    Widen<Value>(std::span(piece).first(from.size()), values.subspan(i, part));
  }
  return {};
}

Result<void> TensorValues::ReadBlocks(std::int64_t first, std::span<float> values) const {
  const std::int64_t count = std::ssize(values);
  BlockTensor tensor = {.format = *blocks_, .shape = {.rows = 1, .columns = count}};
  tensor.codes.resize(Size(CodeBytesOf(count)));
  TRY_VOID(ReadCodes(first, count, tensor.codes));
  return DecodeBlocks(tensor, values);
}

Result<void> TensorValues::Read(std::int64_t first, std::span<float> values) const {
  return kind_ == Kind::kBlocks ? ReadBlocks(first, values) : ReadAny(first, values);
}

Result<void> TensorValues::Read(std::int64_t first, std::span<double> values) const {
  if (kind_ != Kind::kBlocks) {
    return ReadAny(first, values);
  }
  std::vector<float> floats(values.size());
  TRY_VOID(ReadBlocks(first, floats));
  std::ranges::copy(floats, values.begin());
  return {};
}

bool HoldsRealNumbers(const FileTensor& tensor) {
  return tensor.type != nullptr && !tensor.type->name.starts_with("complex") &&
         (tensor.type->block_elements > 1 || FindFormat(tensor.type->name).has_value());
}

}  // namespace fourpiles
