#pragma once

// From where on an audit says something: one row each, with its source. A person can set another
// value.

#include <array>
#include <cstddef>
#include <string_view>

#include "fourpiles/result.h"

namespace fourpiles {

// In the order in which a person must look at what passes them.
enum class ThresholdId {
  kNan,
  kInfinite,
  kUnpaired,
  kOverflow,
  kSaturated,
  kSqnr16Bit,
  kSqnr8Bit,
  kSqnr4Bit,
  kSqnrFewBits,
  kFactor,
  kLostBlocks,
  kUnderflow,
  kSqnrInRange,
  kSqnrSuspicious,
  kRelativeP99,
  kChannelOutliers,
  kKurtosis,
  kSubnormal,
  kNotPossible,
  kLostUpdates,
  kVanishedGradients,
};
inline constexpr std::size_t kThresholds = 21;

struct Threshold {
  ThresholdId id = {};
  std::string_view name = {};     // "saturated"
  double value = 0;               // a share is a number from 0 to 1
  std::string_view unit = {};     // "share", "dB"; empty: a plain number
  std::string_view meaning = {};  // what is said of a format or tensor that passes it
  std::string_view source = {};
};

using Thresholds = std::array<Threshold, kThresholds>;  // by ThresholdId

// The values that hold when nothing else was said.
Thresholds DefaultThresholds();

inline const Threshold& Of(const Thresholds& thresholds, ThresholdId id) {
  return thresholds[static_cast<std::size_t>(id)];
}

// Sets one as typed: "saturated=0.1%", "saturated=0.001", "sqnr-4-bit=15". Error: an unknown name,
// with the nearest, or no number; `where` names its place.
Result<void> SetThreshold(Thresholds& thresholds, std::string_view typed, std::string_view where);

}  // namespace fourpiles
