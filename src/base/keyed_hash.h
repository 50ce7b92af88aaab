#pragma once

// A hash of texts for tables whose keys come from files. Its key is drawn anew in every process, so
// that nobody can choose texts that share a hash and make a table slow.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace fourpiles {

class KeyedHash {
 public:
  std::size_t operator()(std::string_view text) const {
    static const Key key = NewKey();
    std::uint64_t hash = key.first ^ text.size();
    while (text.size() > sizeof hash) {
      hash = Mixed(hash ^ Word(text), key.second);
      text.remove_prefix(sizeof hash);
    }
    return Mixed(Mixed(hash ^ Word(text), key.second), key.first);
  }

 private:
  struct Key {
    std::uint64_t first;
    std::uint64_t second;  // odd
  };
  __extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): needs a typedef

  static Key NewKey() {
    std::random_device device;
    const auto draw = [&device] { return std::uint64_t{device()} << 32U | device(); };
    return {draw(), draw() | 1U};
  }
  // Up to eight bytes from the front.
  static std::uint64_t Word(std::string_view text) {
    std::uint64_t word = 0;
    if (!text.empty()) {
      std::memcpy(&word, text.data(), text.size() < sizeof word ? text.size() : sizeof word);
    }
    return word;
  }
  // Both halves of a product, so that each bit of the result depends on all bits below and above.
  static std::uint64_t Mixed(std::uint64_t value, std::uint64_t key) {
    const Wide product = static_cast<Wide>(value) * key;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }
};

}  // namespace fourpiles
