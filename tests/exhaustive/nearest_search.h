#pragma once

// A second meaning of rounding, made of a table of values and a search in it. As magnitudes grow,
// the code that a float32 gets only moves up: so the floats fall into stretches that have one code,
// and the ends of a stretch are a value of the format, the middle between two, or the next float.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fourpiles/arrays.h"

namespace fourpiles::exhaustive {

// What the codes of a format stand for. Values are magnitudes, in order, zero first.
struct ValueTable {
  struct Entry {
    double value = 0;
    std::uint32_t code = 0;
    std::uint32_t negative_code = 0;  // of −value; of zero where there is no −0
  };
  std::vector<Entry> finite;
  bool has_infinity = false;
  std::uint32_t infinity = 0;
  std::uint32_t negative_infinity = 0;
  std::vector<bool> is_nan;  // by code
  bool has_nan = false;
};

// From decode_{file}.csv, formats with a sign; empty when it cannot be read.
ValueTable ReadValueTable(const std::string& file);

// What is checked: EncodeArray, or whatever is called as it is.
using Encoder = void (*)(std::span<const float> values, Codes codes, const Conversion& conversion,
                         int threads);

struct Sweep {
  NumberFormat format;    // handed to the encoder; at most 16 bits
  Conversion conversion;  // subnormals kept
  std::uint32_t stride = 1;
  int threads = 1;  // of the sweep: each hands its own inputs to the encoder
};

struct SweepResult {
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;
  std::string first_wrong = {};  // "43e80001 -> 7f, expected 7e"
};

// Every stride-th float32 of either sign, NaNs too, and the ends of all stretches. `first_wrong` is
// the smallest magnitude of a thread's.
SweepResult SweepFloat32(const ValueTable& table, const Sweep& sweep, Encoder encoder);

}  // namespace fourpiles::exhaustive
