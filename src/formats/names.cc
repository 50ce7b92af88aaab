// The names of what a conversion may be told, and of what became of a value.

#include "fourpiles/number_format.h"

namespace fourpiles {

std::string_view Name(RoundingStatus status) {
  switch (status) {
    case RoundingStatus::kNan:
      return "nan";
    case RoundingStatus::kOverflow:
      return "overflow";
    case RoundingStatus::kSaturated:
      return "saturated";
    case RoundingStatus::kUnderflow:
      return "underflow";
    case RoundingStatus::kSubnormal:
      return "subnormal";
    case RoundingStatus::kRounded:
      return "rounded";
    case RoundingStatus::kExact:
      break;
  }
  return "exact";
}

std::string_view Name(Overflow overflow) {
  switch (overflow) {
    case Overflow::kIeee:
      return "ieee";
    case Overflow::kSaturate:
      return "saturate";
    case Overflow::kNan:
      break;
  }
  return "nan";
}

std::string_view Name(RoundingMode rounding) {
  switch (rounding) {
    case RoundingMode::kNearestEven:
      return "nearest-even";
    case RoundingMode::kNearestAway:
      return "nearest-away";
    case RoundingMode::kTowardZero:
      return "toward-zero";
    case RoundingMode::kUp:
      return "up";
    case RoundingMode::kDown:
      return "down";
    case RoundingMode::kToOdd:
      return "to-odd";
    case RoundingMode::kStochastic:
      break;
  }
  return "stochastic";
}

std::string_view Name(Subnormals subnormals) {
  switch (subnormals) {
    case Subnormals::kKept:
      return "keep";
    case Subnormals::kFlushedOnInput:
      return "flush-input";
    case Subnormals::kFlushedOnOutput:
      break;
  }
  return "flush-output";
}

}  // namespace fourpiles
