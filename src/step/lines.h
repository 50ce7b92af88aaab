#pragma once

// The tape as a table: what is alive at a moment, storages that are alike in one line.

#include <map>
#include <string>
#include <vector>

#include "step/tape.h"

namespace fourpiles {

struct Line {
  Pile pile = Pile::kWeights;
  std::string what = {};  // "model.layers.{} output × 32" for 32 storages alike
  Elements elements = Elements(0);
  std::string format = {};
  Bytes bytes = Bytes(0);    // expected
  std::string formula = {};  // of one
  std::string source = {};
};

// In the order of the piles, the order of birth within one.
std::vector<Line> LinesAt(const Tape& tape, Place place, Moment moment);

// The largest `most` of them, the largest first.
std::vector<Line> LargestAt(const Tape& tape, Place place, Moment moment, std::size_t most);

// Bytes of each pile by number format.
using FormatBytes = std::map<std::string, Bytes>;
std::map<Pile, FormatBytes> FormatsAt(const Tape& tape, Place place, Moment moment);

}  // namespace fourpiles
