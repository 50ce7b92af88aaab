#pragma once

// PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp), replayed on sizes alone.
//
// Tensors are not given device memory of their own. A request is rounded up and served from the
// smallest free block that holds it; what the block has too much becomes a free block, where that
// is worth it. Only where no block is large enough the device is asked for a segment. A freed block
// merges with its free neighbours in the segment and is kept: what the device has given (reserved)
// only grows, unless the memory ends. So reserved passes what tensors hold (allocated) by what lies
// in pieces that fit nothing.
//
// Each stream has its free blocks for itself: what one of them gave back serves no other. Tensors
// that two streams use live as long as both need them here, so that PyTorch's "active" is
// "allocated". Among free blocks of one size PyTorch takes the lowest address; segments are given
// ascending addresses here.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fourpiles/units.h"

namespace fourpiles {

// One request, or the release of what one was given.
struct AllocatorEvent {
  std::int32_t tensor = 0;  // its number, from 0; of none that is alive
  std::int32_t stream = 0;
  // Of the request; not set: it is freed.
  std::optional<Bytes> bytes = {};
};

// Requests that stay, and then steps that are alike: each frees all that it asks for. In the first
// of them something is born that stays too, before its event of that number.
struct AllocatorRun {
  std::vector<AllocatorEvent> before = {};
  std::vector<AllocatorEvent> step = {};
  std::vector<AllocatorEvent> born = {};
  std::size_t born_at = 0;
  int steps = 0;
};

// As PYTORCH_CUDA_ALLOC_CONF sets them.
struct AllocatorSettings {
  // One segment a pool, which grows by pages; never a second one.
  bool expandable_segments = false;
  // Requests are rounded to so many steps between two powers of two; 0: they are not.
  std::int64_t roundup_power2_divisions = 0;
  // What the device can give; not set: anything. Segments that are wholly free go back to it before
  // the memory ends (not the pages of expandable ones).
  std::optional<Bytes> memory = {};
  // Where more than this is reserved, nobody asks how much: the replay ends there.
  std::optional<Bytes> enough = {};
};

struct AllocatorPeaks {
  Bytes requested = Bytes(0);  // torch.cuda.memory_stats()["requested_bytes.all.peak"]
  Bytes allocated = Bytes(0);  // torch.cuda.max_memory_allocated(): blocks, as they are rounded
  Bytes reserved = Bytes(0);   // torch.cuda.max_memory_reserved(): segments
  // The memory ended: PyTorch raises an error there, the replay goes on as if there were more.
  bool out_of_memory = false;
};

// What a request takes: 512 bytes or a multiple.
Bytes RoundedRequest(Bytes request, std::int64_t power2_divisions = 0);

// A tensor that is freed must be alive.
AllocatorPeaks ReplayAllocator(const AllocatorRun& run, const AllocatorSettings& settings = {});

// Steps that differ, one of each run in that order; what comes before them, and is born in the
// first, is that of the first run.
AllocatorPeaks ReplayAllocator(std::span<const AllocatorRun* const> steps,
                               const AllocatorSettings& settings = {});

}  // namespace fourpiles
