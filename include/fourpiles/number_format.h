#pragma once

// Number formats of one value: what each can hold, and the code that a value gets.
//
// A format is one record, and everything else about it follows from the record. The value of a code
// with sign s, exponent field e and fraction field m is, with M fraction bits,
//   e = 0: (-1)^s × 2^(1 − bias) × m / 2^M        a subnormal, or zero
//   else:  (-1)^s × 2^(e − bias) × (1 + m / 2^M)
// except for the codes that `specials` sets aside (IEEE 754-2019 §3.4; OCP OFP8 1.0 §5; ml_dtypes).

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

// Which codes are no numbers.
enum class Specials {
  kIeee,       // exponent field all ones: infinity, NaN
  kNanAtTop,   // "fn": exponent and fraction all ones are NaN; no infinity
  kNanAtZero,  // "fnuz": the code of −0 is NaN; no infinity, no −0
  kNone,       // every code is a number
  // The code of −0 is NaN, without a sign the last code; the last code left on each side is
  // infinity (IEEE P3109 draft, the "extended" formats).
  kP3109Extended,
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the fields stand as a table row reads
struct NumberFormat {
  std::string_view name = {};     // as ml_dtypes and PyTorch name it
  std::string_view aliases = {};  // other names, separated by a space; the case does not matter
  bool has_sign = true;
  int exponent_bits = 0;
  int fraction_bits = 0;
  int bias = 0;
  Specials specials = Specials::kIeee;
  bool has_subnormals = true;    // false: exponent field 0 is an ordinary binade, without a zero
  std::string_view source = {};  // the document that defines it
  int unused_bits = 0;           // of a code in memory: tfloat32 takes 32 bits, 13 of them unused
};

// What becomes of a value beyond the largest finite one.
enum class Overflow {
  kIeee,      // infinity, else NaN, else the largest
  kSaturate,  // the largest
  kNan,       // NaN, else the largest
};

// Where a value between two of the format's goes (IEEE 754-2019 §4.3; to odd and stochastic: IEEE
// P3109 draft, 4.7). A mode that keeps a value from growing keeps it from overflowing too: toward
// zero, to odd, up for negative values and down for positive ones end at the largest.
enum class RoundingMode {
  kNearestEven,  // ties to the even code
  kNearestAway,  // ties away from zero
  kTowardZero,
  kUp,     // toward +infinity
  kDown,   // toward −infinity
  kToOdd,  // to the odd code of the two: a second rounding, to fewer bits, is then the only one
  kStochastic,  // away from zero with the chance that is the fraction cut off, to 2^−32
};

// What becomes of a subnormal, which hardware may take for zero.
enum class Subnormals {
  kKept,
  kFlushedOnInput,   // a value that is subnormal in the format it comes from is zero
  kFlushedOnOutput,  // a result that is subnormal, after rounding, is zero
};

// Everything that decides which code a value gets. Zeros keep their sign, NaN stays NaN.
struct Conversion {
  RoundingMode rounding = RoundingMode::kNearestEven;
  Overflow overflow = Overflow::kIeee;    // of finite values
  Overflow infinities = Overflow::kIeee;  // of infinite ones
  Subnormals subnormals = Subnormals::kKept;
  // Of stochastic rounding: element i is rounded by word i mod 4 of Philox4x32-10 (Salmon et al.
  // 2011) with the counter i ÷ 4 and the seed as key; it moves away from zero where that word and
  // the first 32 bits cut off carry.
  std::uint64_t seed = 0;
  std::uint64_t first_index = 0;  // added to it, where an array is part of a larger one
};

// The conversion that rounds to nearest-even and treats finite values and infinities alike.
constexpr Conversion NearestEven(Overflow overflow) {
  return {.overflow = overflow, .infinities = overflow};
}

// What happened to a value: the first of these that holds.
enum class RoundingStatus {
  kNan,        // the result, or the input, is NaN
  kOverflow,   // a finite input became infinite
  kSaturated,  // it rounds past the largest value, were there more of them, and became the largest
  kUnderflow,  // an input other than zero became zero
  kSubnormal,  // the result has fewer bits than a normal number
  kRounded,    // the result differs from the input
  kExact,
};

struct Encoded {
  std::uint64_t code = 0;
  RoundingStatus status = RoundingStatus::kExact;
  bool exact = true;  // the value of the code is the input
};

// Every named format, widest first, but for those of P3109Formats().
std::span<const NumberFormat> Formats();

// The 8-bit formats of the IEEE P3109 draft, by precision: "binary8p1se" … "binary8p8uf". The digit
// after the p is the precision (fraction bits + 1), then come s (signed) or u (unsigned) and e
// (extended: with infinity) or f (finite). None has a −0.
std::span<const NumberFormat> P3109Formats();

// The format of that name or alias (of P3109Formats() too), or of a free pair: "eXmY" (IEEE-like, X
// from 2 to 11, Y from 1 to 52) or "eXmYfn" (no infinity, one NaN, X from 2 to 10, Y from 0 to 52).
// A pair that is an alias is the alias. Error: an unknown name, with the nearest known one; `where`
// names its place.
Result<NumberFormat> FindFormat(std::string_view name, std::string_view where = "format");

// The other names of a format, one by one.
std::vector<std::string_view> AliasesOf(const NumberFormat& format);

// The code that the value gets: one rounding, exact for every double and so for every float. Where
// a format has no NaN, a NaN gets the code of −0 and a negative one that of 0, as in ml_dtypes.
// Where it has neither sign nor zero (float8_e8m0fnu), negative values and infinity are NaN and
// zero is the smallest value. Where it has a zero but no sign (P3109), a negative value that does
// not round to zero overflows: zero is what it saturates to, and what the modes that keep it from
// growing give; else it is NaN.
// `index` is the value's place in its array: stochastic rounding depends on it and on the seed
// alone. Subnormals flushed on input are those of float64: FlushSubnormal first for those of
// another.
Encoded Encode(double value, const NumberFormat& format, const Conversion& conversion,
               std::uint64_t index = 0);
Encoded Encode(double value, const NumberFormat& format, Overflow overflow = Overflow::kIeee);

// Zero with the sign of a value that is smaller than the smallest normal one of the format; else
// the value.
double FlushSubnormal(double value, const NumberFormat& format);

// The value of a code, exactly. Bits above the format's width are ignored.
double Decode(std::uint64_t code, const NumberFormat& format);

// The value in the format: Decode(Encode(value)).
double Round(double value, const NumberFormat& format, const Conversion& conversion,
             std::uint64_t index = 0);
double Round(double value, const NumberFormat& format, Overflow overflow = Overflow::kIeee);

// --- Facts, computed from the record ---

int Bits(const NumberFormat& format);                 // of one code
int StorageBits(const NumberFormat& format);          // that one code takes in memory
double Largest(const NumberFormat& format);           // finite
double SmallestNormal(const NumberFormat& format);    // positive
double SmallestPositive(const NumberFormat& format);  // the smallest subnormal, where there are any
double StepNearOne(const NumberFormat& format);       // from 1.0 to the next value, 2^−M
double OverflowThreshold(
    const NumberFormat& format);  // nearest-even rounds past Largest() from here
bool ThresholdOverflows(
    const NumberFormat& format);                 // the threshold itself, a tie, rounds past too
std::uint64_t Nans(const NumberFormat& format);  // how many codes are NaN
std::uint64_t Infinities(const NumberFormat& format);  // how many codes are infinite
double DecimalDigits(const NumberFormat& format);      // (M + 1) × log10(2)

std::string_view Name(RoundingStatus status);  // "overflow", …
std::string_view Name(Overflow overflow);      // "ieee", "saturate", "nan"
std::string_view Name(RoundingMode rounding);  // "nearest-even", "toward-zero", "up", …
std::string_view Name(Subnormals subnormals);  // "keep", "flush-input", "flush-output"

}  // namespace fourpiles
