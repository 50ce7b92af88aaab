#include "step/tape.h"

#include "base/checked.h"

namespace fourpiles {

Peak PeakOf(const Tape& tape, Place place) {
  // The change at each moment, so that the work grows with the storages and not with their product
  // with the moments.
  std::map<Moment, std::int64_t> changes = {{0, 0}};
  for (const Storage& storage : tape.storages) {
    if (storage.place == place && storage.pile != Pile::kOverhead) {
      changes[storage.born] += storage.bytes.expected.value();
      changes[storage.dies] -= storage.bytes.expected.value();
    }
  }
  Peak peak;
  std::int64_t alive = 0;
  for (const auto& [moment, change] : changes) {
    alive += change;
    if (Bytes(alive) > peak.bytes) {
      peak = {moment, Bytes(alive)};
    }
  }
  return peak;
}

std::map<Pile, Bytes> PilesAt(const Tape& tape, Place place, Moment moment) {
  std::map<Pile, Bytes> piles;
  for (const Pile pile : kPiles) {
    piles.emplace(pile, Bytes(0));
  }
  for (const Storage& storage : tape.storages) {
    if (storage.place == place && IsAlive(storage, moment)) {
      piles.at(storage.pile) = piles.at(storage.pile) + storage.bytes.expected;
    }
  }
  return piles;
}

Result<void> CheckTape(const Tape& tape) {
  Checked sum = 0;
  for (const Storage& storage : tape.storages) {
    sum = sum + storage.bytes.high.value();
  }
  if (sum.ok()) {
    return {};
  }
  return WrongUsage({.where = "budget",
                     .found = "the allocations together pass 2^53 bytes",
                     .expected = "expected less",
                     .hint = "check the batch size, the sequence length and the parameter count"});
}

}  // namespace fourpiles
