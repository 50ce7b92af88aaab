#pragma once

// Block tensors worked through in chunks that stand in the first-level cache: where their values
// come from and go to, and their codes unpacked. Internal to this folder.

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include <hwy/cache_control.h>

#include "formats/block_layout.h"
#include "fourpiles/arrays.h"
#include "kernels/array_tasks.h"
#include "kernels/block_tasks.h"
#include "kernels/parallel.h"

namespace fourpiles {

// Ranges of threads: whole chunks of any block and packing.
inline constexpr std::size_t kRange = std::size_t{1} << 16;

// The values that a tensor is encoded from: float32, or codes that are widened to it by and by.
class ValueSource {
 public:
  explicit ValueSource(std::span<const float> floats) : floats_(floats), size_(floats.size()) {}
  explicit ValueSource(const ConstCodes& codes)
      : codes_(codes),
        size_(codes.bytes.size() / static_cast<std::size_t>(CodeBytes(codes.format))) {}

  std::size_t Size() const { return size_; }

  // Values first … first + count. `room` is for as many, where they have to be made.
  const float* At(std::size_t first, std::size_t count, float* room) const {
    if (!codes_) {
      return floats_.data() + first;
    }
    const auto bytes = static_cast<std::size_t>(CodeBytes(codes_->format));
    const auto part = codes_->bytes.subspan(first * bytes, count * bytes);
    DecodeArray({codes_->format, part}, {room, count});
    return room;
  }

  // All of them; `room` grows where they have to be made.
  std::span<const float> All(std::vector<float>& room) const {
    if (!codes_) {
      return floats_;
    }
    room.resize(size_);
    return {At(0, size_, room.data()), size_};
  }

 private:
  std::span<const float> floats_;
  std::optional<ConstCodes> codes_;
  std::size_t size_;
};

// Where the values of a tensor go: float32, or codes that they are rounded to by and by.
class ValueSink {
 public:
  explicit ValueSink(std::span<float> floats) : floats_(floats), size_(floats.size()) {}
  ValueSink(const Codes& codes, const Conversion& conversion)
      : codes_(codes),
        conversion_(conversion),
        size_(codes.bytes.size() / static_cast<std::size_t>(CodeBytes(codes.format))) {}

  std::size_t Size() const { return size_; }
  bool Streams() const { return floats_.size_bytes() >= kStreamedBytes; }

  // Where the values from `first` on are to be written, which may be `room`; then Put them.
  float* At(std::size_t first, float* room) const { return codes_ ? room : floats_.data() + first; }
  void Put(std::size_t first, std::size_t count, const float* room) const {
    if (codes_) {
      const auto bytes = static_cast<std::size_t>(CodeBytes(codes_->format));
      const auto part = codes_->bytes.subspan(first * bytes, count * bytes);
      Conversion conversion = conversion_;
      conversion.first_index += first;
      EncodeArray({room, count}, {codes_->format, part}, conversion);
    }
  }

  // All at once: calls decode(floats).
  template <class Decode>
  void PutAll(const Decode& decode) const {
    if (!codes_) {
      return decode(floats_);
    }
    std::vector<float> room(size_);
    decode(std::span<float>(room));
    Put(0, size_, room.data());
  }

 private:
  std::span<float> floats_;
  std::optional<Codes> codes_;
  Conversion conversion_;
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
  hwy::FlushStream();
}

// Tables; the last block may be short.
void EncodeCodeBooks(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
                     int threads);
void DecodeCodeBooks(const BlockTensor& tensor, const ValueSink& sink, int threads);

// Integers, to nearest-even, and whether there are kernels for the tensor.
bool HasIntegerKernels(const BlockTensor& tensor);
void EncodeIntegerRows(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
                       int threads);
void DecodeIntegerRows(const BlockTensor& tensor, const ValueSink& sink, int threads);

}  // namespace fourpiles
