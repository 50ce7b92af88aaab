// A config.json: whatever it says, a network whose elements add up, or an error; and the facts of
// its quantisation.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "model/from_config.h"
#include "tensors/open_checkpoint.h"
#include "tensors/quantised_config.h"

namespace fourpiles {
namespace {

void Read(std::string_view text) {
  const Result<Json> config = ReadJson(text, "x", kConfigLimits);
  if (!config) {
    return;
  }
  QuantisationFactsOf({.config = *config, .quantization = *config});
  const Result<Network> network = NetworkFromConfig(*config, "x");
  CHECK(!network || ParameterCount(*network) >= 0);
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
