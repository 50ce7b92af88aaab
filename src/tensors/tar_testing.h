#pragma once

// Tar archives for tests, made byte by byte, so that any field can be wrong.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace fourpiles {

struct MadeTarMember {
  std::string name = {};
  std::string bytes = {};
  char type = '0';
};

inline std::string TarHeader(const MadeTarMember& member) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  };
  const auto octal = [](std::size_t number, int digits) {
    char text[24] = {};
    std::snprintf(text, sizeof text, "%0*zo", digits, number);
    return std::string(text);
  };
  put(0, member.name);
  put(100, "0000644");
  put(124, octal(member.bytes.size(), 11));
  put(148, "        ");
  block[156] = member.type;
  put(257, std::string_view("ustar\00000", 8));
  std::size_t sum = 0;
  for (const char c : block) {
    sum += static_cast<unsigned char>(c);
  }
  put(148, octal(sum, 6) + std::string(1, '\0'));
  return block;
}

// The members, and the two blocks of zeros behind them.
inline std::string MakeTar(const std::vector<MadeTarMember>& members) {
  std::string bytes;
  for (const MadeTarMember& member : members) {
    bytes += TarHeader(member) + member.bytes;
    bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  }
  return bytes.append(1024, '\0');
}

}  // namespace fourpiles
