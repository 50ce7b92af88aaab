#pragma once

// One allocation of a training step or a serving pass. A budget is a list of these, and every
// answer is a view of the list.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "fourpiles/units.h"

namespace fourpiles {

enum class Pile {
  kWeights,         // parameters, frozen ones and buffers too
  kGradients,       // of parameters
  kOptimizerState,  // moments, and the float32 master copy
  kActivations,     // everything kept for the backward pass
  kKvCache,         // what serving keeps for its requests
  kWorkspace,       // what lives for a moment
  kOverhead,        // what no tensor holds
};
inline constexpr Pile kPiles[] = {Pile::kWeights,     Pile::kGradients, Pile::kOptimizerState,
                                  Pile::kActivations, Pile::kKvCache,   Pile::kWorkspace,
                                  Pile::kOverhead};

enum class Place { kDevice, kHostPinned, kHost };

std::string_view Name(Pile pile);    // "optimizer_state"
std::string_view Name(Place place);  // "host_pinned"

// Streams of the device, each of which the caching allocator serves from blocks of its own
// (c10/cuda/CUDACachingAllocator.cpp, get_free_block).
enum class Stream {
  kCompute,
  kGather,  // FSDP: shares of parameters come in (all_gather_copy_in_stream)
  kReduce,  // FSDP: sums of gradients come in (reduce_scatter_stream)
};
inline constexpr std::size_t kStreams = 3;

// Bytes as well as they are known; all three alike: exact.
struct Band {
  Bytes low = Bytes(0);
  Bytes expected = Bytes(0);
  Bytes high = Bytes(0);
};
constexpr Band Exactly(Bytes bytes) {
  return {bytes, bytes, bytes};
}

// The number of a kernel in the order of play.
using Moment = std::int64_t;
inline constexpr Moment kAlways = INT64_MAX;  // dies: never

// The lengths of up to four dimensions, outermost first: {batch, sequence, hidden_size}.
struct Shape {
  std::array<std::int64_t, 4> lengths = {};
  int rank = 0;

  Checked Elements() const {
    Checked product = 1;
    for (int i = 0; i < rank; ++i) {
      product = product * lengths[static_cast<std::size_t>(i)];
    }
    return product;
  }
  std::int64_t Last() const { return lengths[static_cast<std::size_t>(rank - 1)]; }
  Shape WithLast(std::int64_t length) const;
};
constexpr Shape ShapeOf(std::initializer_list<std::int64_t> lengths) {
  Shape shape;
  for (const std::int64_t length : lengths) {
    shape.lengths[static_cast<std::size_t>(shape.rank++)] = length;
  }
  return shape;
}

// In words, of storages that no kernel allocates: they are there before the first action.
struct StorageText {
  std::string what = {};     // "model.layers.{0..31}.mlp.up_proj.weight", "adam exp_avg"
  std::string formula = {};  // in the field's words: "32 × 4096 × 14336"
  std::string source = {};   // of the formula
};

struct Storage {
  Pile pile = Pile::kWeights;
  Place place = Place::kDevice;
  Stream stream = Stream::kCompute;
  std::string_view format = {};     // a number format, "int64" or "bool"; empty: no elements
  Shape shape = {};                 // of one, where a kernel allocated it
  Elements elements = Elements(0);  // of one
  Band bytes = {};                  // of one
  Moment made = 0;                  // by the kernel of this moment
  Moment born = 0;                  // alive from this moment …
  Moment dies = kAlways;            // … until before this one
  // Stands for so many storages alike: one in each layer that the action of its birth stands for.
  std::int64_t copies = 1;
  Moment kept = -1;        // the kernel of the forward pass that keeps it first; -1: none
  const char* slot = "";   // what it is to the kernel that allocated it: "output", "mean"
  std::int32_t text = -1;  // which of Tape::texts; -1: its kernel says what it is
};

// Of all that it stands for.
constexpr Bytes ExpectedBytes(const Storage& storage) {
  return Bytes(storage.bytes.expected.value() * storage.copies);
}

constexpr bool IsAlive(const Storage& storage, Moment moment) {
  return storage.born <= moment && moment < storage.dies;
}

}  // namespace fourpiles
