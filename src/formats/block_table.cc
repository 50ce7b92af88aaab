// The record of every named block format.

#include <algorithm>
#include <vector>

#include "formats/block_layout.h"
#include "formats/stored_type.h"
#include "fourpiles/block_format.h"

namespace fourpiles {
namespace {

constexpr std::string_view kMx = "OCP Microscaling Formats (MX) 1.0";
constexpr std::string_view kNvidia = "NVIDIA, arXiv 2509.25149";
constexpr std::string_view kBitsandbytes = "bitsandbytes 95f9af3, functional.py";
constexpr std::string_view kInteger = "ONNX opset 21, QuantizeLinear";

constexpr BlockFormat Mx(std::string_view name, std::string_view aliases, std::string_view element,
                         int bits) {
  return {name, aliases, BlockKind::kMicroscaling, element, bits, 32, 8, 0, kMx};
}

constexpr BlockFormat Table(std::string_view name, std::string_view aliases, int bits, int block) {
  return {name, aliases, BlockKind::kCodeBook, name, bits, block, 32, 0, kBitsandbytes};
}

// Signed codes are symmetric unless told, unsigned ones have a zero point; 8 bits for a channel, 4
// for a group of 128, as weights usually have it.
constexpr BlockFormat Integer(std::string_view name, std::string_view aliases, int bits) {
  const bool asymmetric = name.front() == 'u';
  const bool grouped = bits == 4;
  return {.name = name,
          .aliases = aliases,
          .kind = BlockKind::kInteger,
          .element = name,
          .element_bits = bits,
          .block_elements = grouped ? 128 : 0,
          .scale_bits = asymmetric ? 40 : 32,
          .source = kInteger,
          .granularity = grouped ? Granularity::kGroup : Granularity::kChannel,
          .asymmetric = asymmetric};
}

constexpr BlockFormat kBlockFormats[] = {
    Mx("mxfp8_e4m3", "mxfp8", "float8_e4m3fn", 8),
    Mx("mxfp8_e5m2", "", "float8_e5m2", 8),
    Mx("mxint8", "", "int8", 8),
    Mx("mxfp6_e2m3", "", "float6_e2m3fn", 6),
    Mx("mxfp6_e3m2", "", "float6_e3m2fn", 6),
    Mx("mxfp4", "mxfp4_e2m1", "float4_e2m1fn", 4),
    {"nvfp4", "nvfp4_e2m1", BlockKind::kTwoLevel, "float4_e2m1fn", 4, 16, 8, 0, kNvidia},
    Table("dynamic8", "bnb_int8", 8, 256),
    Table("nf4", "bnb_nf4 normalfloat4", 4, 64),
    Table("fp4", "bnb_fp4", 4, 64),
    Table("af4", "bnb_af4 abnormalfloat4", 4, 64),
    Integer("int8", "i8", 8),
    Integer("uint8", "u8", 8),
    Integer("int4", "i4", 4),
    Integer("uint4", "u4", 4),
};

// What a type of ggml is called here: its own name, but for two that others have.
struct GgmlName {
  std::string_view type;
  std::string_view name;
};
constexpr GgmlName kGgmlNames[] = {{"mxfp4", "ggml_mxfp4"}, {"nvfp4", "ggml_nvfp4"}};

BlockFormat Ggml(const StoredType& type) {
  const auto* const other = std::ranges::find(kGgmlNames, type.name, &GgmlName::type);
  return {.name = other == std::end(kGgmlNames) ? type.name : other->name,
          .kind = BlockKind::kGgml,
          .block_elements = type.block_elements,
          .block_bits = type.block_bits,
          .source = type.source};
}

}  // namespace

std::string_view GgmlTypeOf(const BlockFormat& format) {
  const auto* const other = std::ranges::find(kGgmlNames, format.name, &GgmlName::name);
  return other == std::end(kGgmlNames) ? format.name : other->type;
}

std::span<const BlockFormat> BlockFormats() {
  static const std::vector<BlockFormat> formats = [] {
    std::vector<BlockFormat> all(std::begin(kBlockFormats), std::end(kBlockFormats));
    for (const StoredType& type : StoredTypes()) {
      if (type.block_elements > 1) {  // all of them are ggml's
        all.push_back(Ggml(type));
      }
    }
    return all;
  }();
  return formats;
}

}  // namespace fourpiles
