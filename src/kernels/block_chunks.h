#pragma once

// Block tensors worked through in chunks that stand in the first-level cache: where their values
// come from and go to, and their codes unpacked. Internal to this folder.

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "formats/block_layout.h"
#include "fourpiles/arrays.h"
#include "kernels/block_tasks.h"
#include "kernels/parallel.h"

namespace fourpiles {

// An output this large is not read again from the caches: it is written past them, which saves
// reading the lines first.
inline constexpr std::size_t kStreamedBytes = std::size_t{4} << 20;

// Ranges of threads: whole chunks of any block and packing.
inline constexpr std::size_t kRange = std::size_t{1} << 16;

// The values that a tensor is encoded from: float32, or codes that are widened to it by and by.
class ValueSource {
 public:
  explicit ValueSource(std::span<const float> floats) : floats_(floats), size_(floats.size()) {}
  explicit ValueSource(ConstCodes codes)
      : codes_(codes.bytes),
        format_(&codes.format),
        size_(codes.bytes.size() / static_cast<std::size_t>(CodeBytes(codes.format))) {}

  std::size_t Size() const { return size_; }

  // Values first … first + count. `room` is for as many, where they have to be made.
  const float* At(std::size_t first, std::size_t count, float* room) const {
    if (format_ == nullptr) {
      return floats_.data() + first;
    }
    const auto bytes = static_cast<std::size_t>(CodeBytes(*format_));
    DecodeArray({*format_, codes_.subspan(first * bytes, count * bytes)}, {room, count});
    return room;
  }

  // All of them; `room` grows where they have to be made.
  std::span<const float> All(std::vector<float>& room) const {
    if (format_ == nullptr) {
      return floats_;
    }
    room.resize(size_);
    return {At(0, size_, room.data()), size_};
  }

 private:
  std::span<const float> floats_;
  std::span<const std::byte> codes_;
  const NumberFormat* format_ = nullptr;
  std::size_t size_;
};

// Where the values of a tensor go: float32, or codes that they are rounded to by and by.
class ValueSink {
 public:
  explicit ValueSink(std::span<float> floats) : floats_(floats), size_(floats.size()) {}
  ValueSink(Codes codes, const Conversion& conversion, std::uint64_t first_index)
      : codes_(codes.bytes),
        format_(&codes.format),
        conversion_(conversion),
        first_index_(first_index),
        size_(codes.bytes.size() / static_cast<std::size_t>(CodeBytes(codes.format))) {}

  std::size_t Size() const { return size_; }
  bool Streams() const { return floats_.size_bytes() >= kStreamedBytes; }

  // Where the values from `first` on are to be written, which may be `room`; then Put them.
  float* At(std::size_t first, float* room) const {
    return format_ == nullptr ? floats_.data() + first : room;
  }
  void Put(std::size_t first, std::size_t count, const float* room) const {
    if (format_ != nullptr) {
      const auto bytes = static_cast<std::size_t>(CodeBytes(*format_));
      EncodeArray({room, count}, {*format_, codes_.subspan(first * bytes, count * bytes)},
                  conversion_, {.first_index = first_index_ + first});
    }
  }

  // All at once: calls decode(floats).
  template <class Decode>
  void PutAll(const Decode& decode) const {
    if (format_ == nullptr) {
      return decode(floats_);
    }
    std::vector<float> room(size_);
    decode(std::span<float>(room));
    Put(0, size_, room.data());
  }

 private:
  std::span<float> floats_;
  std::span<std::byte> codes_;
  const NumberFormat* format_ = nullptr;
  Conversion conversion_;
  std::uint64_t first_index_ = 0;
  std::size_t size_;
};

// Elements begin … end, `step` of them at a time, at most kPiece.
struct ChunkRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t step = kPiece;
};

struct Chunk {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Calls encode(chunk, values, codes) for each chunk, codes one a byte, and packs them.
template <class EncodeChunk>
void EncodeChunks(const ChunkRange& range, const ValueSource& source, BlockTensor& tensor,
                  const EncodeChunk& encode) {
  const Packing packing = PackingOf(tensor.format);
  std::array<float, kPiece> room;
  std::array<std::byte, kPiece> bytes;
  for (std::size_t first = range.begin; first < range.end; first += range.step) {
    const std::size_t count = std::min(range.step, range.end - first);
    std::byte* const packed =
        tensor.codes.data() + first * static_cast<std::size_t>(packing.bits) / 8;
    std::byte* const codes = packing.bits == 8 ? packed : bytes.data();
    encode(Chunk{first, count}, source.At(first, count, room.data()), codes);
    if (packing.bits != 8) {
      PackBytes(codes, count, packing, packed);
    }
  }
}

// Calls decode(chunk, codes, values) for each.
template <class DecodeChunk>
void DecodeChunks(const ChunkRange& range, const BlockTensor& tensor, const ValueSink& sink,
                  const DecodeChunk& decode) {
  const Packing packing = PackingOf(tensor.format);
  std::array<float, kPiece> room;
  std::array<std::byte, kPiece> bytes;
  for (std::size_t first = range.begin; first < range.end; first += range.step) {
    const std::size_t count = std::min(range.step, range.end - first);
    const std::byte* codes =
        tensor.codes.data() + first * static_cast<std::size_t>(packing.bits) / 8;
    if (packing.bits != 8) {
      UnpackBytes(codes, count, packing, bytes.data());
      codes = bytes.data();
    }
    decode(Chunk{first, count}, codes, sink.At(first, room.data()));
    sink.Put(first, count, room.data());
  }
}

// Tables; the last block may be short.
void EncodeCodeBooks(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
                     const Span& span);
void DecodeCodeBooks(const BlockTensor& tensor, const ValueSink& sink, const Span& span);

// Integers, to nearest-even, and whether there are kernels for the tensor.
bool HasIntegerKernels(const BlockTensor& tensor);
void EncodeIntegerRows(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
                       const Span& span);
void DecodeIntegerRows(const BlockTensor& tensor, const ValueSink& sink, const Span& span);

}  // namespace fourpiles
