#include "base/json_number.h"

#include <algorithm>
#include <cstddef>

namespace fourpiles {
namespace {

// Takes digits off the front of `text`; how many there were.
std::size_t TakeDigits(std::string_view& text) {
  const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(count);
  return count;
}

}  // namespace

bool IsJsonNumber(std::string_view text) {
  text.remove_prefix(text.starts_with('-') ? 1 : 0);
  const bool zero_first = text.starts_with('0');
  const std::size_t whole_digits = TakeDigits(text);
  if (whole_digits == 0 || (zero_first && whole_digits > 1)) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (TakeDigits(text) == 0) {
      return false;
    }
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    text.remove_prefix(text.starts_with('+') || text.starts_with('-') ? 1 : 0);
    return TakeDigits(text) > 0 && text.empty();
  }
  return text.empty();
}

}  // namespace fourpiles
