#pragma once

// Reading the comma-separated vectors under tests/data/vectors, for the tests of this folder.

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fourpiles {

// The formats of decode_*.csv and encode_*.csv, by their names in the files' names and here.
struct VectorFormat {
  const char* file;
  const char* name;
};
inline constexpr VectorFormat kVectorFormats[] = {
    {"fp16", "float16"},       {"bf16", "bfloat16"},
    {"e5m2", "float8_e5m2"},   {"e5m2fnuz", "float8_e5m2fnuz"},
    {"e4m3", "float8_e4m3"},   {"e4m3fn", "float8_e4m3fn"},
    {"e3m4", "float8_e3m4"},   {"e4m3fnuz", "float8_e4m3fnuz"},
    {"e2m3", "float6_e2m3fn"}, {"e4m3b11fnuz", "float8_e4m3b11fnuz"},
    {"e3m2", "float6_e3m2fn"}, {"e2m1", "float4_e2m1fn"},
};

using Row = std::vector<std::string>;

// The rows of a file, the heading first; empty when it cannot be read.
inline std::vector<Row> ReadVectors(const std::string& name) {
  std::ifstream file(FOURPILES_TEST_DATA "/vectors/" + name);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    Row row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) {
      row.push_back(cell);
    }
    rows.push_back(row);
  }
  return rows;
}

inline std::uint64_t Hex(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

}  // namespace fourpiles
