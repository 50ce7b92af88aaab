#include "step/tape.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"

namespace fourpiles {
namespace {

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

const Action& ActionOf(const Tape& tape, Moment moment) {
  return tape.actions[Index(tape.moments[Index(moment)].action)];
}

std::string_view Name(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "forward";
    case ActionKind::kRecompute:
      return "recomputation";
    case ActionKind::kBackward:
      return "backward";
    case ActionKind::kGather:
    case ActionKind::kPrefetch:
      return "gathering";
    case ActionKind::kRelease:
    case ActionKind::kReduce:
      return "reduction of gradients";
    case ActionKind::kStep:
      return "optimizer step";
    case ActionKind::kServe:
      break;
  }
  return "serving";
}

bool IsAt(const Storage& storage, Place place) {
  return storage.place == place && storage.pile != Pile::kOverhead;
}

// The sums of the live storages that are `meant` moment by moment, and the largest of those that
// `counts`.
template <class Meant, class Counts>
Peak Largest(const Tape& tape, Meant meant, Counts counts) {
  const auto moments = std::ssize(tape.moments);
  std::vector<std::int64_t> changes(Index(moments) + 1);
  for (const Storage& storage : tape.storages) {
    if (meant(storage) && storage.born < moments) {
      const std::int64_t bytes = ExpectedBytes(storage).value();
      changes[Index(storage.born)] += bytes;
      changes[Index(std::min(storage.dies, moments))] -= bytes;
    }
  }
  Peak peak;
  std::int64_t alive = 0;
  for (Moment moment = 0; moment < moments; ++moment) {
    alive += changes[Index(moment)];
    if (Bytes(alive) > peak.bytes && counts(moment)) {
      peak = {moment, Bytes(alive)};
    }
  }
  return peak;
}

}  // namespace

std::string MomentName(const Tape& tape, Moment moment) {
  const Kernel& kernel = tape.moments[Index(moment)];
  const Action& action = ActionOf(tape, moment);
  const std::string_view name = Name(action.kind);
  if (action.kind == ActionKind::kStep || action.kind == ActionKind::kServe) {
    return std::string(name);
  }
  const Block& block = tape.network->blocks[Index(action.block)];
  std::string place = LayerName(block, action.layer);
  if (kernel.op >= 0 && !block.operators[Index(kernel.op)].name.empty()) {
    place += (place.empty() ? "" : ".") + block.operators[Index(kernel.op)].name;
  }
  return fmt::format("{} of {}", name, place);
}

bool StandsForSeveral(const Tape& tape, Moment moment) {
  const Action& action = ActionOf(tape, moment);
  return action.layers > 1 || action.micro_batches > 1 || tape.moments[Index(moment)].alike > 1;
}

Peak PeakOf(const Tape& tape, Place place) {
  return Largest(
      tape, [&](const Storage& storage) { return IsAt(storage, place); },
      [&](Moment moment) { return !StandsForSeveral(tape, moment); });
}

Bytes PeaksOfStreams(const Tape& tape) {
  Bytes sum(0);
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    const auto is_of = [&](const Storage& storage) {
      return IsAt(storage, Place::kDevice) && static_cast<std::size_t>(storage.stream) == stream;
    };
    sum +=
        Largest(tape, is_of, [&](Moment moment) { return !StandsForSeveral(tape, moment); }).bytes;
  }
  return sum;
}

Peak PeakOf(const Tape& tape, Place place, ActionKind kind) {
  return Largest(
      tape, [&](const Storage& storage) { return IsAt(storage, place); },
      [&](Moment moment) {
        const ActionKind other = ActionOf(tape, moment).kind;
        const bool replayed = kind == ActionKind::kBackward && other == ActionKind::kRecompute;
        return (other == kind || replayed) && !StandsForSeveral(tape, moment);
      });
}

std::map<Pile, Bytes> PilesAt(const Tape& tape, Place place, Moment moment) {
  std::map<Pile, Bytes> piles;
  for (const Pile pile : kPiles) {
    piles.emplace(pile, Bytes(0));
  }
  for (const Storage& storage : tape.storages) {
    if (storage.place == place && IsAlive(storage, moment)) {
      piles.at(storage.pile) = piles.at(storage.pile) + ExpectedBytes(storage);
    }
  }
  return piles;
}

bool IsSaved(const Tape& tape, const Storage& storage) {
  if (tape.forward_ends.empty()) {
    return false;
  }
  const Moment end = tape.forward_ends.back();
  return storage.born < end && storage.dies > end && storage.place == Place::kDevice &&
         storage.pile == Pile::kActivations && storage.text < 0;
}

Bytes SavedActivations(const Tape& tape) {
  Bytes saved(0);
  for (const Storage& storage : tape.storages) {
    saved += IsSaved(tape, storage) ? ExpectedBytes(storage) : Bytes(0);
  }
  return saved;
}

void AllocateOnce(Tape& tape) {
  const Moment end = tape.forward_ends.empty() ? kAlways : tape.forward_ends.front();
  const auto is_reused = [&](const Storage& storage) {
    const bool kept = storage.pile == Pile::kActivations && storage.made < end;
    const bool temporary = storage.pile == Pile::kActivations || storage.pile == Pile::kWorkspace;
    const bool of_the_step = ActionOf(tape, storage.made).kind == ActionKind::kStep;
    return storage.text < 0 && temporary && !kept && !of_the_step;
  };
  std::erase_if(tape.storages, is_reused);
  for (Storage& storage : tape.storages) {
    if (storage.text < 0 && storage.pile == Pile::kActivations) {
      storage.born = 0;
      storage.dies = kAlways;
    }
  }
}

void MakeStatesInStep(Tape& tape) {
  Moment step = 0;
  while (step < std::ssize(tape.moments) && ActionOf(tape, step).kind != ActionKind::kStep) {
    ++step;
  }
  for (Storage& storage : tape.storages) {
    const bool resident = storage.text >= 0 && storage.pile == Pile::kOptimizerState;
    if (resident && !(*tape.texts)[Index(storage.text)].what.starts_with("master copy")) {
      storage.born = step;
    }
  }
}

namespace {

// Kept by a layer of the forward pass.
bool IsKeptByLayer(const Tape& tape, const Storage& storage) {
  if (storage.text >= 0 || storage.kept < 0 || storage.pile != Pile::kActivations) {
    return false;
  }
  const Action& action = ActionOf(tape, storage.kept);
  return action.kind == ActionKind::kForward &&
         IsNumbered(tape.network->blocks[static_cast<std::size_t>(action.block)]);
}

bool AreOfOneLayer(const Action& a, const Action& b) {
  return a.block == b.block && a.layer == b.layer &&
         (a.kind == ActionKind::kForward) == (b.kind == ActionKind::kForward);
}

// The first moment after this one of another layer's action, and the first of this layer's.
Moment EndOfLayer(const Tape& tape, Moment moment) {
  const Action& action = ActionOf(tape, moment);
  const Moment end = std::ssize(tape.moments);
  while (moment < end && AreOfOneLayer(ActionOf(tape, moment), action)) {
    ++moment;
  }
  return moment;
}
Moment BeginOfLayer(const Tape& tape, Moment moment) {
  const Action& action = ActionOf(tape, moment);
  while (moment > 0 && AreOfOneLayer(ActionOf(tape, moment - 1), action)) {
    --moment;
  }
  return moment;
}

}  // namespace

void OffloadActivations(Tape& tape) {
  const std::size_t played = tape.storages.size();
  tape.storages.reserve(3 * played);
  for (std::size_t i = 0; i < played; ++i) {
    Storage& storage = tape.storages[i];
    if (!IsKeptByLayer(tape, storage) || storage.dies == kAlways) {
      continue;
    }
    const Moment leaves = EndOfLayer(tape, storage.kept);
    const Moment returns = BeginOfLayer(tape, storage.dies - 1);
    if (returns <= leaves) {
      continue;
    }
    Storage on_host = storage;
    on_host.place = Place::kHostPinned;
    on_host.born = leaves;
    Storage again = storage;
    again.born = returns;
    // Of the layers that an action stands for, one is on the device at a time.
    const Action& keeps = ActionOf(tape, storage.kept);
    again.copies /= keeps.layers * keeps.micro_batches;
    storage.copies = again.copies;
    storage.dies = leaves;
    tape.storages.push_back(on_host);
    tape.storages.push_back(again);
  }
}

Result<void> CheckTape(const Tape& tape) {
  Checked sum = 0;
  for (const Storage& storage : tape.storages) {
    sum = sum + Checked(storage.bytes.high.value()) * storage.copies;
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
