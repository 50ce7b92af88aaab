#pragma once

// What the vectors of block formats need beyond test_vectors.h, for the tests of this folder.

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

#include "formats/test_vectors.h"

namespace fourpiles {

// "3f80000040000000": eight digits a float32.
inline std::vector<float> FloatsOf(const std::string& digits) {
  std::vector<float> values;
  for (std::size_t i = 0; i < digits.size(); i += 8) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(Hex(digits.substr(i, 8)))));
  }
  return values;
}

// "7f00": two digits a byte.
inline std::vector<std::byte> BytesOf(const std::string& digits) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(Hex(digits.substr(i, 2))));
  }
  return bytes;
}

}  // namespace fourpiles
