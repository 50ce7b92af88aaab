#include "formats/packing.h"

#include <algorithm>

#include "base/check.h"

namespace fourpiles {

void PutCodes(std::span<std::byte> packed, std::size_t first, const Packing& packing,
              std::span<const std::byte> codes) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    PutCode(packed, first + i, packing, codes[i]);
  }
}

void GetCodes(std::span<const std::byte> packed, std::size_t first, const Packing& packing,
              std::span<std::byte> codes) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = CodeAt(packed, first + i, packing);
  }
}

std::size_t PackedSize(std::size_t codes, int bits) {
  return (codes * static_cast<std::size_t>(bits) + 7) / 8;
}

void PackCodes(std::span<const std::byte> codes, int bits, std::span<std::byte> packed,
               NibbleOrder order) {
  CHECK(bits == 4 || bits == 6);
  CHECK(packed.size() == PackedSize(codes.size(), bits));
  if (!packed.empty()) {
    packed.back() = std::byte{0};  // the bits behind the last code
  }
  PutCodes(packed, 0, {bits, order}, codes);
}

void UnpackCodes(std::span<const std::byte> packed, int bits, std::span<std::byte> codes,
                 NibbleOrder order) {
  CHECK(bits == 4 || bits == 6);
  CHECK(packed.size() == PackedSize(codes.size(), bits));
  GetCodes(packed, 0, {bits, order}, codes);
}

}  // namespace fourpiles
