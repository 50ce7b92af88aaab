#pragma once

// Number formats over arrays: the same bits as Encode, Decode and the block formats give one by
// one, on every processor, for any number of threads, whatever the processor's rounding mode and
// flush bits are. docs/PERFORMANCE.md says how fast each is. Of stochastic rounding, element i of
// an array has the place conversion.first_index + i.
//
// Arrays whose sizes do not match are a mistake in the calling program: std::logic_error is thrown.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/block_format.h"
#include "fourpiles/number_format.h"
#include "fourpiles/result.h"

namespace fourpiles {

// Codes in memory: a byte each up to 8 bits, two up to 16, four up to 32, else eight, in the
// processor's byte order. Smaller ones are not packed: PackCodes does that.
int CodeBytes(const NumberFormat& format);

struct ConstCodes {
  NumberFormat format;
  std::span<const std::byte> bytes;  // of an array of codes: std::as_bytes(std::span(codes))
};
struct Codes {
  NumberFormat format;
  std::span<std::byte> bytes;  // std::as_writable_bytes(std::span(codes))
};

// values[i] → code i. codes.bytes holds values.size() codes.
void EncodeArray(std::span<const float> values, Codes codes, const Conversion& conversion = {},
                 int threads = 1);

// Code i → values[i]; rounded to nearest-even where float32 does not hold it.
void DecodeArray(ConstCodes codes, std::span<float> values, int threads = 1);

// Any format to any other, with one rounding: float16 to float8_e4m3fn, float8_e5m2 to bfloat16.
// Both hold as many codes. `from` and `to` may be the same memory where the codes have the same
// size.
void ConvertArray(ConstCodes from, Codes to, const Conversion& conversion = {}, int threads = 1);

// What a rounding did to an array. Counts are of elements.
struct RoundingStatistics {
  std::int64_t count = 0;
  std::int64_t nan = 0;        // inputs that are NaN already; they are in no count below
  std::int64_t infinite = 0;   // inputs that are infinite already
  std::int64_t zero = 0;       // inputs
  std::int64_t overflow = 0;   // finite inputs that became infinity or NaN
  std::int64_t saturated = 0;  // inputs beyond the largest value that became it
  std::int64_t underflow = 0;  // inputs other than zero that became zero
  std::int64_t subnormal = 0;  // results with fewer bits than a normal number; zero is none
  std::int64_t changed = 0;    // results that differ from their input
  float largest = 0;           // magnitude of a finite input
  float smallest = 0;          // magnitude of a finite input other than zero; 0: there is none
  // Over elements that are finite before and after, in float64: x the input, r the result. Summed
  // in blocks of 65,536 elements, merged in order, so that they do not depend on how it was done.
  double sum_of_squares = 0;          // Σ x²
  double sum_of_squared_errors = 0;   // Σ (r − x)²
  double sum_of_rounded_squares = 0;  // Σ r²
  double sum_of_products = 0;         // Σ x·r
};

// 10 × log10(Σx² ÷ Σ(r − x)²) in dB; infinity where nothing changed.
double SignalToNoise(const RoundingStatistics& statistics);

// Rounds an array into the format and back, and counts on the way, in one pass. `rounded` holds as
// many values, or none where only the statistics are wanted; it may be `values` itself.
RoundingStatistics RoundArray(std::span<const float> values, const NumberFormat& format,
                              const Conversion& conversion, std::span<float> rounded,
                              int threads = 1);

// The same without counting.
void RoundTripArray(std::span<const float> values, const NumberFormat& format,
                    const Conversion& conversion, std::span<float> rounded, int threads = 1);

// Codes of 4 or 6 bits, one a byte, to and from their packed form: see BlockTensor. `packed` has
// PackedSize of as many codes.
enum class NibbleOrder { kLowFirst, kHighFirst };
std::size_t PackedSize(std::size_t codes, int bits);
void PackCodes(std::span<const std::byte> codes, int bits, std::span<std::byte> packed,
               NibbleOrder order = NibbleOrder::kLowFirst);
void UnpackCodes(std::span<const std::byte> packed, int bits, std::span<std::byte> codes,
                 NibbleOrder order = NibbleOrder::kLowFirst);

// A tensor into a block format. `tensor` has its format and shape set and grows as needed, so that
// one that is used again costs no fresh memory. The conversion's rounding and subnormals are those
// of the elements; they saturate. Error: a shape that is not that of the values; rows that are no
// whole blocks, where the format has no short ones (ggml); a ggml type that can only be decoded; a
// rounding or flushing that the format does not have (tables, ggml).
[[nodiscard]] Result<void> EncodeBlocks(std::span<const float> values, const Conversion& conversion,
                                        BlockTensor& tensor, int threads = 1);

// The same of codes, each widened to float32 first: exactly, but for those of more than 24 bits,
// which are rounded to nearest-even. In pieces, without memory for all of them, unless the scalar
// way is taken.
[[nodiscard]] Result<void> EncodeBlocks(ConstCodes from, const Conversion& conversion,
                                        BlockTensor& tensor, int threads = 1);

// And back: shape.rows × shape.columns values. Error: a shape that is not that of the values,
// arrays of other sizes than the shape asks for.
[[nodiscard]] Result<void> DecodeBlocks(const BlockTensor& tensor, std::span<float> values,
                                        int threads = 1);

// The same into codes: the float32 that the other gives, rounded once as the conversion says.
[[nodiscard]] Result<void> DecodeBlocks(const BlockTensor& tensor, Codes to,
                                        const Conversion& conversion = {}, int threads = 1);

// Into a block format and back, and counts what that did, as RoundArray does; `saturated` and
// `subnormal` stay 0: values alone do not tell. A finite value of a block that became NaN as a
// whole is an overflow. `scratch` has its format and shape set and holds the tensor afterwards;
// `rounded` holds as many values and is other memory. Error: as EncodeBlocks.
[[nodiscard]] Result<RoundingStatistics> RoundBlocks(std::span<const float> values,
                                                     const Conversion& conversion,
                                                     BlockTensor& scratch, std::span<float> rounded,
                                                     int threads = 1);

}  // namespace fourpiles
