#pragma once

// The "did you mean" of unknown options, formats, devices, keys.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourpiles {

// The candidate that `typed` most likely stands for, or nothing when none is close. Distance counts
// letters put in, left out, replaced, and neighbours swapped, whatever the case; up to one in three
// of the typed letters may be wrong, and never more than three. Of equally close ones the first.
std::optional<std::string_view> NearestName(std::string_view typed,
                                            std::span<const std::string_view> candidates);

// `did you mean "float16"?`, or "" when nothing is close: the `expected` part of an error.
std::string DidYouMean(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace fourpiles
