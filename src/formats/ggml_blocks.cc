#include "formats/ggml_blocks.h"

#include <algorithm>

#include "base/check.h"
#include "base/float_environment.h"
#include "formats/ggml_codec.h"

namespace fourpiles {
namespace {

void CheckSizes(const GgmlCodec& codec, std::size_t bytes, std::size_t values) {
  const auto block_bytes = static_cast<std::size_t>(codec.block_bytes);
  CHECK(bytes % block_bytes == 0);
  CHECK(values == bytes / block_bytes * static_cast<std::size_t>(codec.block_elements));
}

}  // namespace

const GgmlCodec* FindGgmlCodec(std::string_view type) {
  for (const auto codecs : {GgmlLegacyCodecs(), GgmlKCodecs(), GgmlIqCodecs(), GgmlSmallCodecs()}) {
    const auto found = std::ranges::find(codecs, type, &GgmlCodec::type);
    if (found != codecs.end()) {
      return &*found;
    }
  }
  return nullptr;
}

bool CanDecodeGgml(std::string_view type) {
  return FindGgmlCodec(type) != nullptr;
}

bool CanEncodeGgml(std::string_view type) {
  const GgmlCodec* codec = FindGgmlCodec(type);
  return codec != nullptr && codec->encode != nullptr;
}

void DecodeGgmlBlocks(const GgmlCodec& codec, std::span<const std::byte> blocks,
                      std::span<float> values) {
  CheckSizes(codec, blocks.size(), values.size());
  const DefaultFloatEnvironment environment;
  codec.decode(blocks, values);
}

void EncodeGgmlBlocks(const GgmlCodec& codec, std::span<const float> values,
                      std::span<std::byte> blocks) {
  CHECK(codec.encode != nullptr);
  CheckSizes(codec, blocks.size(), values.size());
  const DefaultFloatEnvironment environment;
  codec.encode(values, blocks);
}

}  // namespace fourpiles
