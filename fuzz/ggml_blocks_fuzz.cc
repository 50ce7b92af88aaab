// Any bytes as blocks of any type of ggml, the first byte says which: decoding them is defined and
// what is no number is the one NaN. Then the same bytes as float32 values: what is encoded comes
// back near, or infinite where the scale overflows, or not finite where a value was not.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "formats/ggml_blocks.h"
#include "formats/ggml_codec.h"
#include "formats/stored_type.h"

namespace fourpiles {
namespace {

const std::vector<const GgmlCodec*>& Codecs() {
  static const std::vector<const GgmlCodec*> codecs = [] {
    std::vector<const GgmlCodec*> found;
    for (const StoredType& type : StoredTypes()) {
      if (CanDecodeGgml(type.name)) {
        found.push_back(FindGgmlCodec(type.name));
      }
    }
    return found;
  }();
  return codecs;
}

std::vector<float> Decoded(const GgmlCodec& codec, std::span<const std::byte> blocks) {
  const std::size_t count = blocks.size() / static_cast<std::size_t>(codec.block_bytes);
  std::vector<float> values(count * static_cast<std::size_t>(codec.block_elements));
  DecodeGgmlBlocks(codec, blocks, values);
  for (const float value : values) {
    CHECK(!std::isnan(value) || std::bit_cast<std::uint32_t>(value) == 0x7fc00000U);
  }
  return values;
}

// Values of one block, and what came back.
void CheckBlock(std::span<const float> values, std::span<const float> decoded) {
  const bool all_finite = AllFinite(values);
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!all_finite) {
      CHECK(!std::isfinite(decoded[i]));
    } else if (std::isfinite(decoded[i])) {
      CHECK(std::abs(decoded[i]) <= 8.0 * largest);  // a tiny scale may double as a float16
    } else {
      CHECK(largest > 65504);
    }
  }
}

void CheckEncoding(const GgmlCodec& codec, std::span<const std::byte> bytes) {
  const auto elements = static_cast<std::size_t>(codec.block_elements);
  const std::size_t count = bytes.size() / (elements * sizeof(float));
  std::vector<float> values(count * elements);
  if (codec.encode == nullptr || values.empty()) {
    return;
  }
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  std::vector<std::byte> blocks(count * static_cast<std::size_t>(codec.block_bytes));
  EncodeGgmlBlocks(codec, values, blocks);
  const std::vector<float> decoded = Decoded(codec, blocks);
  for (std::size_t i = 0; i < count; ++i) {
    CheckBlock(std::span(values).subspan(i * elements, elements),
               std::span(decoded).subspan(i * elements, elements));
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fourpiles;
  if (size == 0) {
    return 0;
  }
  const GgmlCodec& codec = *Codecs()[data[0] % Codecs().size()];
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  Decoded(codec,
          bytes.first(bytes.size() - bytes.size() % static_cast<std::size_t>(codec.block_bytes)));
  CheckEncoding(codec, bytes);
  return 0;
}
