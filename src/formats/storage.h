#pragma once

// How many bytes elements take in memory.

#include "base/checked.h"
#include "fourpiles/formats.h"

namespace fourpiles {

// Bytes of so many elements, packed, the last byte filled up once: 3 elements of 4 bits are 2
// bytes.
constexpr Checked StorageBytes(Checked elements, int bits) {
  return DivideRoundingUp(elements * bits, 8);
}
inline Checked StorageBytes(Checked elements, const NumberFormat& format) {
  return StorageBytes(elements, StorageBits(format));
}

}  // namespace fourpiles
