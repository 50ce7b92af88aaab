#pragma once

// Codes of fewer than 8 bits packed into bytes: where the code of an element lies. Codes of 6 bits
// are a stream of bits, the lowest first, four in three bytes; of 4 bits the first of two is in the
// low half of a byte, or in the high one.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/arrays.h"

namespace fourpiles {

// How a code lies: `bits` is 4, 6 or 8.
struct Packing {
  int bits = 8;
  NibbleOrder order = NibbleOrder::kLowFirst;
};

// The code of element k.
constexpr std::byte CodeAt(std::span<const std::byte> packed, std::size_t k,
                           const Packing& packing) {
  if (packing.bits == 8) {
    return packed[k];
  }
  if (packing.bits == 4) {
    const bool high = (k % 2 == 1) == (packing.order == NibbleOrder::kLowFirst);
    return high ? packed[k / 2] >> 4 : packed[k / 2] & std::byte{0xf};
  }
  const std::size_t first = k * 6 / 8;
  const int shift = static_cast<int>(k * 6 % 8);
  std::byte code = packed[first] >> shift;
  if (shift > 2) {
    code |= packed[first + 1] << (8 - shift);
  }
  return code & std::byte{0x3f};
}

// Writes the code of element k and leaves its neighbours as they are.
constexpr void PutCode(std::span<std::byte> packed, std::size_t k, const Packing& packing,
                       std::byte code) {
  if (packing.bits == 8) {
    packed[k] = code;
    return;
  }
  if (packing.bits == 4) {
    const bool high = (k % 2 == 1) == (packing.order == NibbleOrder::kLowFirst);
    std::byte& byte = packed[k / 2];
    byte = high ? (byte & std::byte{0x0f}) | code << 4
                : (byte & std::byte{0xf0}) | (code & std::byte{0x0f});
    return;
  }
  const std::byte mask{0x3f};
  const std::size_t first = k * 6 / 8;
  const int shift = static_cast<int>(k * 6 % 8);
  packed[first] = (packed[first] & ~(mask << shift)) | (code & mask) << shift;
  if (shift > 2) {
    std::byte& next = packed[first + 1];
    next = (next & ~(mask >> (8 - shift))) | (code & mask) >> (8 - shift);
  }
}

// The same for elements from `first` on.
void PutCodes(std::span<std::byte> packed, std::size_t first, const Packing& packing,
              std::span<const std::byte> codes);
void GetCodes(std::span<const std::byte> packed, std::size_t first, const Packing& packing,
              std::span<std::byte> codes);

}  // namespace fourpiles
