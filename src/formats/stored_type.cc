#include "formats/stored_type.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/ascii.h"
#include "formats/storage.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

constexpr std::string_view kPlain = "two's complement, or one byte of 0 and 1";
// The structs of ggml-common.h, whose sizes its static_asserts state; ids and names in ggml.h.
constexpr std::string_view kGgml = "ggml d99724f2, ggml-common.h";

constexpr StoredType Plain(std::string_view name, std::string_view alias, int bits) {
  return {name, alias, 1, bits, kPlain};
}
constexpr StoredType Block(std::string_view name, int elements, int bytes) {
  return {name, {}, elements, bytes * 8, kGgml};
}

constexpr StoredType kOtherTypes[] = {
    Plain("bool", "", 8),
    Plain("int8", "i8", 8),
    Plain("uint8", "u8", 8),
    Plain("int16", "i16", 16),
    Plain("uint16", "u16", 16),
    Plain("int32", "i32", 32),
    Plain("uint32", "u32", 32),
    Plain("int64", "i64", 64),
    Plain("uint64", "u64", 64),
    Plain("int4", "i4", 4),
    Plain("uint4", "u4", 4),
    {"complex64", "c64", 1, 64, "two float32"},
    {"complex128", "c128", 1, 128, "two float64"},
    Block("q1_0", 128, 18),
    Block("q2_0", 64, 18),
    Block("q4_0", 32, 18),
    Block("q4_1", 32, 20),
    Block("q5_0", 32, 22),
    Block("q5_1", 32, 24),
    Block("q8_0", 32, 34),
    Block("q8_1", 32, 36),
    Block("q2_k", 256, 84),
    Block("q3_k", 256, 110),
    Block("q4_k", 256, 144),
    Block("q5_k", 256, 176),
    Block("q6_k", 256, 210),
    Block("q8_k", 256, 292),
    Block("iq1_s", 256, 50),
    Block("iq1_m", 256, 56),
    Block("iq2_xxs", 256, 66),
    Block("iq2_xs", 256, 74),
    Block("iq2_s", 256, 82),
    Block("iq3_xxs", 256, 98),
    Block("iq3_s", 256, 110),
    Block("iq4_nl", 32, 18),
    Block("iq4_xs", 256, 136),
    Block("tq1_0", 256, 54),
    Block("tq2_0", 256, 66),
    Block("mxfp4", 32, 17),
    Block("nvfp4", 64, 36),
};

}  // namespace

std::span<const StoredType> StoredTypes() {
  static const std::vector<StoredType> types = [] {
    std::vector<StoredType> all;
    for (const NumberFormat& format : Formats()) {
      all.push_back(
          {.name = format.name, .block_bits = StorageBits(format), .source = format.source});
    }
    std::ranges::copy(kOtherTypes, std::back_inserter(all));
    return all;
  }();
  return types;
}

const StoredType* FindStoredType(std::string_view name) {
  const auto named = [](std::string_view wanted) {
    const auto found = std::ranges::find_if(StoredTypes(), [&](const StoredType& type) {
      return type.name == wanted || (!type.alias.empty() && type.alias == wanted);
    });
    return found == StoredTypes().end() ? nullptr : &*found;
  };
  if (const StoredType* type = named(LowerCase(name))) {
    return type;
  }
  const auto format = FindFormat(name);  // by an alias of its own
  return format ? named(format->name) : nullptr;
}

Checked StorageBytes(Checked elements, const StoredType& type) {
  return StorageBytes(DivideRoundingUp(elements, type.block_elements), type.block_bits);
}

}  // namespace fourpiles
