#include "step/timeline.h"

#include <algorithm>

namespace fourpiles {
namespace {

using Changes = std::array<std::int64_t, kPileCount>;

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

std::vector<TimelinePoint> TimelineOf(const Tape& tape, Place place) {
  const auto moments = std::ssize(tape.moments);
  std::vector<Changes> changes(Index(moments) + 1);
  for (const Storage& storage : tape.storages) {
    if (storage.place == place && storage.born < moments) {
      const auto pile = static_cast<std::size_t>(storage.pile);
      changes[Index(storage.born)][pile] += ExpectedBytes(storage).value();
      changes[Index(std::min(storage.dies, moments))][pile] -= ExpectedBytes(storage).value();
    }
  }
  std::vector<TimelinePoint> points(Index(moments));
  TimelinePoint alive;
  for (std::size_t moment = 0; moment < points.size(); ++moment) {
    for (std::size_t pile = 0; pile < kPileCount; ++pile) {
      const Bytes change(changes[moment][pile]);
      alive.piles[pile] += change;
      alive.bytes += kPiles[pile] == Pile::kOverhead ? Bytes(0) : change;
    }
    points[moment] = alive;
  }
  return points;
}

}  // namespace fourpiles
