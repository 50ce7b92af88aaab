#pragma once

// Which elements of a tensor share a scale, and where their codes lie.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "formats/packing.h"
#include "fourpiles/block_format.h"

namespace fourpiles {

// Consecutive elements that share a scale.
struct Run {
  std::size_t scale = 0;  // which
  std::size_t first = 0;  // element of the tensor
  std::size_t count = 0;
};

// How the runs of a tensor follow each other: every `period` elements begin with a new one, every
// `count` elements from there on too.
struct RunLayout {
  std::size_t elements = 0;
  std::size_t period = 0;
  std::size_t count = 0;
};
RunLayout RunLayoutOf(const TensorShape& shape, const BlockFormat& format);

// The StoredType, "mxfp4", of a format of ggml, "ggml_mxfp4".
std::string_view GgmlTypeOf(const BlockFormat& format);

// Bytes of a scale in BlockTensor's array of them.
constexpr int ScaleBytes(const BlockFormat& format) {
  const bool is_float = format.kind == BlockKind::kInteger ||
                        (format.kind == BlockKind::kCodeBook && !format.double_quantized);
  return is_float ? 4 : 1;
}

// Of a double-quantised tensor so many scales share one.
inline constexpr std::size_t kScalesPerGroup = 256;

// A float32 in an array of bytes.
inline float ReadFloat(std::span<const std::byte> bytes, std::size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}
inline void WriteFloat(std::span<std::byte> bytes, std::size_t index, float value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

// Calls do_run(Run) for each, in order.
template <class DoRun>
void ForEachRun(const TensorShape& shape, const BlockFormat& format, const DoRun& do_run) {
  const RunLayout layout = RunLayoutOf(shape, format);
  std::size_t scale = 0;
  for (std::size_t row = 0; row < layout.elements; row += layout.period) {
    for (std::size_t place = 0; place < layout.period; place += layout.count) {
      do_run(Run{scale++, row + place, std::min(layout.count, layout.period - place)});
    }
  }
}

// How the codes of a format are packed.
constexpr Packing PackingOf(const BlockFormat& format) {
  return {format.element_bits,
          format.kind == BlockKind::kCodeBook ? NibbleOrder::kHighFirst : NibbleOrder::kLowFirst};
}

// Elements that are worked on at once: a block of any format that has blocks, a piece of a row or a
// tensor where those share a scale.
inline constexpr std::size_t kPiece = 4096;

// Calls encode(values, first_index, codes) for the pieces of a run and packs the codes.
template <class EncodePiece>
void EncodeRun(std::span<const float> values, const Run& run, BlockTensor& tensor,
               const EncodePiece& encode) {
  std::array<std::byte, kPiece> buffer;  // not cleared: 4 KiB for a block of 32 would take longest
  for (std::size_t done = 0; done < run.count; done += kPiece) {
    const std::size_t first = run.first + done;
    const std::span<std::byte> codes =
        std::span<std::byte>(buffer).first(std::min(kPiece, run.count - done));
    encode(values.subspan(first, codes.size()), first, codes);
    PutCodes(tensor.codes, first, PackingOf(tensor.format), codes);
  }
}

// Calls decode(codes, values) for the pieces of a run.
template <class DecodePiece>
void DecodeRun(const BlockTensor& tensor, const Run& run, std::span<float> values,
               const DecodePiece& decode) {
  std::array<std::byte, kPiece> buffer;  // not cleared: 4 KiB for a block of 32 would take longest
  for (std::size_t done = 0; done < run.count; done += kPiece) {
    const std::size_t first = run.first + done;
    const std::span<std::byte> codes =
        std::span<std::byte>(buffer).first(std::min(kPiece, run.count - done));
    GetCodes(tensor.codes, first, PackingOf(tensor.format), codes);
    decode(std::span<const std::byte>(codes), values.subspan(first, codes.size()));
  }
}

}  // namespace fourpiles
