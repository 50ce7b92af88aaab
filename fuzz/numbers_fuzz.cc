// Any text as a number and as the name of a format: what is read survives rounding into every
// format, and the rounded value comes back from its own code.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/rounding.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fourpiles;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<TypedNumber> number = ParseNumber(text, "input");
  const Result<NumberFormat> named = FindFormat(text);
  if (!number && !named) {
    return 0;
  }
  const TypedNumber value = number ? *number : ParseNumber("0.1", "input").value();
  const NumberFormat format = named ? *named : FindFormat("e5m2").value();
  const Rounding rounding = RoundTyped(value, format, {});
  if (std::isnan(rounding.value)) {
    return 0;
  }
  const Encoded again = Encode(rounding.value, format);
  if (again.code != rounding.encoded.code || !again.exact) {
    std::abort();
  }
  if (rounding.below && rounding.above && *rounding.below >= *rounding.above) {
    std::abort();
  }
  return 0;
}
