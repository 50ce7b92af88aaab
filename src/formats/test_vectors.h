#pragma once

// Reading the comma-separated vectors under tests/data/vectors, for the tests of this folder.

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fourpiles {

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
