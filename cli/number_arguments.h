#pragma once

// What the commands about numbers share: reading formats, numbers and the overflow policy.

#include <vector>

#include "cli/command.h"
#include "formats/typed_number.h"

namespace fourpiles::cli {

// The row of --overflow, for the commands that have it.
inline constexpr Option kOverflowOption = {
    .name = "--overflow",
    .value = "POLICY",
    .help =
        "past the largest value: ieee (infinity, else NaN, else the largest; the default), "
        "saturate, nan",
};

Result<std::vector<NumberFormat>> FormatsOf(const Arguments& arguments, std::string_view option);
Result<std::vector<TypedNumber>> NumbersOf(const Arguments& arguments, std::string_view option);
// The policy of --overflow; ieee when it was not given.
Result<Overflow> OverflowOf(const Arguments& arguments);

}  // namespace fourpiles::cli
