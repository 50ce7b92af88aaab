#pragma once

// What the commands about numbers share: reading formats, numbers and how they are rounded.

#include <string>
#include <vector>

#include "cli/command.h"
#include "formats/rounding.h"

namespace fourpiles::cli {

// The row of --overflow, for the commands that have it.
inline constexpr Option kOverflowOption = {
    .name = "--overflow",
    .value = "POLICY",
    .help =
        "past the largest value: ieee (infinity, else NaN, else the largest; the default), "
        "saturate, nan",
};

// The rows that say how numbers are rounded, for TypedConversionOf.
inline constexpr Option kRoundingOption = {
    .name = "--rounding",
    .value = "MODE",
    .help =
        "nearest-even (the default), nearest-away, toward-zero, up, down, to-odd, stochastic (by "
        "chance)",
};
inline constexpr Option kInfinitiesOption = {
    .name = "--infinities",
    .value = "POLICY",
    .help = "the same for infinite values; as --overflow when it is not given",
};
inline constexpr Option kSubnormalsOption = {
    .name = "--subnormals",
    .value = "CHOICE",
    .help =
        "keep (the default), flush-output (to zero, of results), flush-input (of values, as --from "
        "has them)",
};
inline constexpr Option kFromOption = {
    .name = "--from",
    .value = "FORMAT",
    .help = "what a value comes from, for --subnormals flush-input; float64 by default",
};
inline constexpr Option kSeedOption = {
    .name = "--seed",
    .value = "N",
    .help = "of --rounding stochastic, 0 by default; each VALUE has random bits of its own",
};

// The names of a list: "int4:group=32,asymmetric,fp16" has two. A comma behind a colon ends a name
// where what follows is no choice of it, but the name of a format.
std::vector<std::string> FormatItemsOf(const std::string& list);

// Formats of both kinds, each in the order typed.
struct NamedFormats {
  std::vector<NumberFormat> numbers = {};
  std::vector<BlockFormat> blocks = {};
};
Result<NamedFormats> AnyFormatsOf(const Arguments& arguments, std::string_view option);

Result<std::vector<NumberFormat>> FormatsOf(const Arguments& arguments, std::string_view option);
Result<std::vector<TypedNumber>> NumbersOf(const Arguments& arguments, std::string_view option);
// The policy of --overflow, or `otherwise` when it was not given.
Result<Overflow> OverflowOf(const Arguments& arguments, Overflow otherwise = Overflow::kIeee);
// What --rounding, --overflow, --infinities, --subnormals, --from and --seed say. Error: an unknown
// name; --from or --seed where nothing goes by it.
Result<TypedConversion> TypedConversionOf(const Arguments& arguments);

// Error: the option was given although it is not `used`, which `needs` would make it.
Result<void> RefuseIdle(const Arguments& arguments, std::string_view option, bool used,
                        std::string_view needs);

}  // namespace fourpiles::cli
