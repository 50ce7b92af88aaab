#include "base/range.h"

namespace fourpiles {
namespace {

std::string Text(std::int64_t bound) {
  return bound == kLargestAmount ? "2^53" : std::to_string(bound);
}

}  // namespace

std::string ExpectedWholeNumber(Range range) {
  CHECK(Checked(range.least).ok() && Checked(range.most).ok() && range.least <= range.most);
  return "expected a whole number from " + Text(range.least) + " to " + Text(range.most);
}

}  // namespace fourpiles
