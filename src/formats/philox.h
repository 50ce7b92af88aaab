#pragma once

// Random bits that need no state: those of element i of an array are a function of i and the seed,
// so that it does not matter who rounds which element, or in what order. Philox4x32-10 (Salmon et
// al. 2011, "Parallel random numbers: as easy as 1, 2, 3"; Random123) turns a counter of 128 bits
// and a key of 64 into 128 bits: ten rounds of two multiplications, whose high halves are mixed
// with the key.

#include <array>
#include <cstdint>

namespace fourpiles {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// The four random words of a counter.
constexpr PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};  // the golden ratio, and √3 − 1
  }
  return counter;
}

// The 32 random bits of element `index`: four elements share a counter.
constexpr std::uint32_t RandomBits(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t block = index / 4;
  const PhiloxCounter words =
      Philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return words[index % 4];
}

}  // namespace fourpiles
