#pragma once

// What a played step leaves: its allocations with their lifetimes, and the names of its moments.

#include <map>

#include "fourpiles/result.h"
#include "step/storage.h"

namespace fourpiles {

struct Tape {
  std::vector<Storage> storages;
  std::vector<std::string> moments;  // "forward of model.layers.3"; at least one
};

// The largest sum of live storages at one place, overhead left out, and the first moment that has
// it.
struct Peak {
  Moment moment = 0;
  Bytes bytes = Bytes(0);
};
Peak PeakOf(const Tape& tape, Place place);

// Expected bytes alive at a moment, by pile.
std::map<Pile, Bytes> PilesAt(const Tape& tape, Place place, Moment moment);

// Refuses a tape whose storages together pass 2^53 bytes; the functions above may be asked
// afterwards.
Result<void> CheckTape(const Tape& tape);

}  // namespace fourpiles
