#pragma once

// What a played step leaves: its allocations with their lifetimes, and the names of its moments.

#include <map>
#include <memory>
#include <vector>

#include "fourpiles/result.h"
#include "step/schedule.h"
#include "step/storage.h"

namespace fourpiles {

// What a framework calls a kernel, and where it says what that keeps.
struct KernelKind {
  const char* name;
  const char* source;
};

// One kernel as it ran: a moment of the play.
struct Kernel {
  std::int32_t action = 0;  // which of Tape::actions
  std::int32_t op = -1;     // which operator of the action's block; -1: none
  const KernelKind* kind = nullptr;
  std::int32_t alike = 1;  // stands for so many, one after the other: of experts
};

struct Tape {
  std::vector<Storage> storages = {};
  std::shared_ptr<const std::vector<StorageText>> texts = {};
  std::vector<Kernel> moments = {};  // at least one
  std::vector<Action> actions = {};
  // The first moment after each forward pass.
  std::vector<Moment> forward_ends = {};
  std::shared_ptr<const Network> network = {};
};

// "backward of model.layers.31.mlp.down_proj", "optimizer step".
std::string MomentName(const Tape& tape, Moment moment);

// Between the layers that an action stands for the sum only grows or only falls, so the largest
// is found in a layer that is played for itself.
bool StandsForSeveral(const Tape& tape, Moment moment);

// The largest sum of live storages at one place, overhead left out, and the first moment that has
// it.
struct Peak {
  Moment moment = 0;
  Bytes bytes = Bytes(0);
};
Peak PeakOf(const Tape& tape, Place place);

// Of each stream of the device by itself, what it holds at its peak, added up: an allocator whose
// streams share nothing has reserved no less.
Bytes PeaksOfStreams(const Tape& tape);

// The same over the actions of one kind; running forward again belongs to the backward pass.
Peak PeakOf(const Tape& tape, Place place, ActionKind kind);

// Expected bytes alive at a moment, by pile.
std::map<Pile, Bytes> PilesAt(const Tape& tape, Place place, Moment moment);

// Activations on the device that outlive the last forward pass, without the batch itself.
bool IsSaved(const Tape& tape, const Storage& storage);
Bytes SavedActivations(const Tape& tape);

// As a framework does that allocates everything once: what the first forward pass kept is there
// from the first action to the last, and the other kernels write into it.
void AllocateOnce(Tape& tape);

// As in the first step of an optimizer that makes its moments when it first steps; a master copy of
// the weights is made before.
void MakeStatesInStep(Tape& tape);

// Moves what the numbered layers keep to the host when the action that keeps it has run, and back
// when the action runs backward that reads it last (torchtune, training/_activation_offloading.py).
void OffloadActivations(Tape& tape);

// Refuses a tape whose storages together pass 2^53 bytes; the functions above may be asked
// afterwards.
Result<void> CheckTape(const Tape& tape);

}  // namespace fourpiles
