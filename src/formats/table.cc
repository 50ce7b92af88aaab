// The record of every named format, and the free pairs.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "formats/any_format.h"
#include "formats/codes.h"

namespace fourpiles {
namespace {

constexpr std::string_view kIeee754 = "IEEE 754-2019, 3.6";
constexpr std::string_view kOfp8 = "OCP 8-bit Floating Point (OFP8) 1.0";
constexpr std::string_view kMx = "OCP Microscaling Formats (MX) 1.0";
constexpr std::string_view kMlDtypes = "ml_dtypes 0.5.4";

constexpr NumberFormat kFormats[] = {
    {"float64", "fp64 f64 double", true, 11, 52, 1023, Specials::kIeee, true, kIeee754},
    {"float32", "fp32 f32 float single", true, 8, 23, 127, Specials::kIeee, true, kIeee754},
    {"tfloat32", "tf32 tensorfloat32", true, 8, 10, 127, Specials::kIeee, true,
     "NVIDIA A100 Tensor Core GPU Architecture, 2020; kept in 32 bits, the low 13 zero", 13},
    {"bfloat16", "bf16 brain16", true, 8, 7, 127, Specials::kIeee, true,
     "Intel BFLOAT16 hardware numerics definition, rev. 1.0"},
    {"float16", "fp16 f16 half", true, 5, 10, 15, Specials::kIeee, true, kIeee754},
    {"float8_e5m2", "e5m2 f8_e5m2 fp8_e5m2", true, 5, 2, 15, Specials::kIeee, true, kOfp8},
    {"float8_e5m2fnuz", "e5m2fnuz f8_e5m2fnuz fp8_e5m2fnuz", true, 5, 2, 16, Specials::kNanAtZero,
     true, kMlDtypes},
    {"float8_e4m3fn", "e4m3 e4m3fn f8_e4m3 f8_e4m3fn fp8_e4m3 fp8_e4m3fn fp8 float8", true, 4, 3, 7,
     Specials::kNanAtTop, true, kOfp8},
    {"float8_e4m3fnuz", "e4m3fnuz f8_e4m3fnuz fp8_e4m3fnuz", true, 4, 3, 8, Specials::kNanAtZero,
     true, kMlDtypes},
    {"float8_e4m3b11fnuz", "e4m3b11fnuz e4m3b11 f8_e4m3b11fnuz", true, 4, 3, 11,
     Specials::kNanAtZero, true, kMlDtypes},
    {"float8_e4m3", "", true, 4, 3, 7, Specials::kIeee, true, kMlDtypes},
    {"float8_e3m4", "e3m4 f8_e3m4 fp8_e3m4", true, 3, 4, 3, Specials::kIeee, true, kMlDtypes},
    {"float8_e8m0fnu", "e8m0 e8m0fnu f8_e8m0 f8_e8m0fnu ue8m0", false, 8, 0, 127,
     Specials::kNanAtTop, false, kMx},
    {"float6_e3m2fn", "e3m2 e3m2fn f6_e3m2 fp6_e3m2", true, 3, 2, 3, Specials::kNone, true, kMx},
    {"float6_e2m3fn", "e2m3 e2m3fn f6_e2m3 fp6_e2m3", true, 2, 3, 1, Specials::kNone, true, kMx},
    {"float4_e2m1fn", "e2m1 e2m1fn f4_e2m1 fp4_e2m1", true, 2, 1, 1, Specials::kNone, true, kMx},
};

// The free pairs. A double holds every value of each: its own exponent has 11 bits, so an "fn"
// format, which spends no binade on infinities, ends at 10.
constexpr int kMinExponentBits = 2;
constexpr int kMaxExponentBits = 11;
constexpr int kMaxFractionBits = 52;

// The name of a free pair, kept in a table because a record only points at its name.
struct PairName {
  char text[8] = {};
  std::size_t length = 0;
  constexpr void Append(int number) {
    if (number >= 10) {
      text[length++] = static_cast<char>('0' + number / 10);
    }
    text[length++] = static_cast<char>('0' + number % 10);
  }
};

constexpr std::size_t kPairs =
    (std::size_t{kMaxExponentBits} + 1) * (std::size_t{kMaxFractionBits} + 1);

constexpr std::size_t PairIndex(int exponent_bits, int fraction_bits, bool fn) {
  const auto row = static_cast<std::size_t>(exponent_bits);
  const auto column = static_cast<std::size_t>(fraction_bits);
  return row * (std::size_t{kMaxFractionBits} + 1) + column + (fn ? kPairs : 0);
}

constexpr auto kPairNames = [] {
  std::array<PairName, 2 * kPairs> names;
  for (int e = 0; e <= kMaxExponentBits; ++e) {
    for (int m = 0; m <= kMaxFractionBits; ++m) {
      for (const bool fn : {false, true}) {
        PairName& name = names[PairIndex(e, m, fn)];
        name.text[name.length++] = 'e';
        name.Append(e);
        name.text[name.length++] = 'm';
        name.Append(m);
        if (fn) {
          name.text[name.length++] = 'f';
          name.text[name.length++] = 'n';
        }
      }
    }
  }
  return names;
}();

struct Pair {
  int exponent_bits = 0;
  int fraction_bits = 0;
  bool fn = false;
};

// Reads digits at the front of text and drops them.
std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || text.front() == '-') {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// "e4m3", "e4m2fn"; nothing else.
std::optional<Pair> ParsePair(std::string_view text) {
  Pair pair;
  for (const auto& [letter, bits] :
       {std::pair{'e', &pair.exponent_bits}, {'m', &pair.fraction_bits}}) {
    if (text.empty() || text.front() != letter) {
      return std::nullopt;
    }
    text.remove_prefix(1);
    const std::optional<int> number = TakeNumber(text);
    if (!number) {
      return std::nullopt;
    }
    *bits = *number;
  }
  pair.fn = text == "fn";
  return pair.fn || text.empty() ? std::optional(pair) : std::nullopt;
}

bool IsPossible(const Pair& pair) {
  return pair.exponent_bits >= kMinExponentBits &&
         pair.exponent_bits <= kMaxExponentBits - (pair.fn ? 1 : 0) &&
         pair.fraction_bits >= (pair.fn ? 0 : 1) && pair.fraction_bits <= kMaxFractionBits;
}

NumberFormat FormatOf(const Pair& pair) {
  const PairName& name = kPairNames[PairIndex(pair.exponent_bits, pair.fraction_bits, pair.fn)];
  return {.name = {name.text, name.length},
          .exponent_bits = pair.exponent_bits,
          .fraction_bits = pair.fraction_bits,
          .bias = (1 << (pair.exponent_bits - 1)) - 1,  // as IEEE 754 has it
          .specials = pair.fn ? Specials::kNanAtTop : Specials::kIeee,
          .source =
              pair.fn ? "as float8_e4m3fn: NaN at the top, no infinity" : "as IEEE 754-2019, 3.4"};
}

// A named format that has exactly these codes: e5m10 is float16.
const NumberFormat* SameCodes(const NumberFormat& format) {
  const auto* const same = std::ranges::find_if(kFormats, [&](const NumberFormat& named) {
    return named.exponent_bits == format.exponent_bits &&
           named.fraction_bits == format.fraction_bits && named.bias == format.bias &&
           named.specials == format.specials && named.has_sign == format.has_sign;
  });
  return same == std::end(kFormats) ? nullptr : same;
}

tl::unexpected<Error> UnknownFormat(std::string_view name, std::string_view where,
                                    std::span<const std::string_view> others) {
  const std::string_view base = name.substr(0, name.find(':'));
  if (std::ranges::count(BlockFormatNames(), LowerCase(base)) != 0) {
    return NotOfOneValue(name, where);
  }
  std::vector<std::string_view> names = FormatNames();
  std::ranges::copy(others, std::back_inserter(names));
  return WrongUsage({.where = std::string(where),
                     .found = "unknown number format \"" + std::string(name) + "\"",
                     .expected = FormatMeant(name, names),
                     .hint = "\"fourpiles formats\" lists them all; eXmY is a free pair"});
}

}  // namespace

std::span<const NumberFormat> Formats() {
  return kFormats;
}

std::vector<std::string_view> AliasesOf(const NumberFormat& format) {
  return WordsOf(format.aliases);
}

std::vector<std::string_view> FormatNames() {
  std::vector<std::string_view> names;
  for (const NumberFormat& format : kFormats) {
    names.push_back(format.name);
    std::ranges::copy(AliasesOf(format), std::back_inserter(names));
  }
  for (const NumberFormat& format : P3109Formats()) {
    names.push_back(format.name);
  }
  return names;
}

Result<NumberFormat> FindFormat(std::string_view name, std::string_view where) {
  return FindFormat(name, where, {});
}

Result<NumberFormat> FindFormat(std::string_view name, std::string_view where,
                                std::span<const std::string_view> others) {
  const std::string lower = LowerCase(name);
  for (const NumberFormat& format : kFormats) {
    if (lower == format.name || std::ranges::count(AliasesOf(format), lower) != 0) {
      return format;
    }
  }
  for (const NumberFormat& format : P3109Formats()) {
    if (lower == format.name) {
      return format;
    }
  }
  const std::optional<Pair> pair = ParsePair(lower);
  if (!pair) {
    return UnknownFormat(name, where, others);
  }
  if (!IsPossible(*pair)) {
    return WrongUsage({.where = std::string(where),
                       .found = "impossible number format \"" + std::string(name) + "\"",
                       .expected = pair->fn
                                       ? "expected eXmYfn with X from 2 to 10 and Y from 0 to 52"
                                       : "expected eXmY with X from 2 to 11 and Y from 1 to 52",
                       .hint = "infinity, NaN and a double's range need those bits"});
  }
  const NumberFormat format = FormatOf(*pair);
  const NumberFormat* const named = SameCodes(format);
  return named != nullptr ? *named : format;
}

}  // namespace fourpiles
