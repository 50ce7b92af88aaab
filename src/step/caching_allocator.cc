#include "step/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "step/free_blocks.h"

namespace fourpiles {
namespace {

// The constants of CUDACachingAllocator.cpp, under their names there.
constexpr std::int64_t kMinBlockSize = 512;
constexpr std::int64_t kSmallSize = 1 << 20;       // the largest request of the small pool
constexpr std::int64_t kSmallBuffer = 2 << 20;     // a segment of the small pool
constexpr std::int64_t kLargeBuffer = 20 << 20;    // a segment of the large pool …
constexpr std::int64_t kMinLargeAlloc = 10 << 20;  // … for requests below this
constexpr std::int64_t kRoundLarge = 2 << 20;      // larger ones have a segment, rounded to this

constexpr std::int32_t kNone = FreeBlocks::kNone;

std::int64_t RoundUp(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// Between a power of two and the next so many steps (roundup_power2_next_division).
std::int64_t RoundToDivision(std::int64_t bytes, std::int64_t divisions) {
  const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  return RoundUp(bytes, floor / divisions);
}

// get_allocation_size.
std::int64_t SegmentBytes(std::int64_t bytes) {
  if (bytes <= kSmallSize) {
    return kSmallBuffer;
  }
  return bytes < kMinLargeAlloc ? kLargeBuffer : RoundUp(bytes, kRoundLarge);
}

// A piece of a segment, beside its neighbours there.
struct Block {
  std::int64_t bytes = 0;
  std::int64_t address = 0;
  std::int32_t previous = kNone;
  std::int32_t next = kNone;
  bool is_free = false;
};

// The whole of a segment, where segments cannot grow.
bool IsSegment(const Block& block) {
  return block.previous == kNone && block.next == kNone;
}

struct Pool {
  std::int64_t page = 0;       // by which an expandable segment grows
  std::int64_t remainder = 0;  // the least that is split off a block
  FreeBlocks free = {};
  std::int64_t free_segments = 0;  // how many of them are whole segments
  std::int32_t last = kNone;       // the last block of its expandable segment
};

class Allocator {
 public:
  explicit Allocator(const AllocatorSettings& settings) : settings_(settings) {}

  void Replay(std::span<const AllocatorEvent> events);
  // What stays to the end: its numbers are free for others.
  void Keep(std::span<const AllocatorEvent> events);
  // What comes before the steps, and the first of them.
  void Begin(const AllocatorRun& run);
  const AllocatorPeaks& Peaks() const { return peaks_; }
  // How often the device was asked for memory.
  std::int64_t Asked() const { return asked_; }
  bool HasEnough() const { return settings_.enough && peaks_.reserved > *settings_.enough; }

 private:
  // What a tensor has; an empty one has no block.
  struct Holding {
    bool is_alive = false;
    std::int64_t request = 0;
    Pool* pool = nullptr;
    std::int32_t block = kNone;
  };

  struct Pools {
    Pool small = {};
    Pool large = {};
  };

  void Allocate(const AllocatorEvent& event);
  Holding Serve(const AllocatorEvent& event);
  void Free(std::int32_t tensor);
  Pool& PoolOf(std::int32_t stream, std::int64_t bytes);
  Block& At(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }
  std::int32_t Add(const Block& block);
  void SetFree(Pool& pool, std::int32_t block);
  void Take(Pool& pool, std::int32_t block);
  std::int32_t NewSegment(Pool& pool, std::int64_t bytes);
  std::int32_t Grown(Pool& pool, std::int64_t bytes);
  void Split(Pool& pool, std::int32_t block, std::int64_t bytes);
  void Absorb(Pool& pool, std::int32_t block, std::int32_t right);
  void Reserve(std::int64_t bytes);
  void ReleaseSegments(Pool& pool);

  AllocatorSettings settings_;
  std::map<std::int32_t, Pools> pools_ = {};  // by stream
  std::vector<Block> blocks_ = {};
  std::vector<std::int32_t> unused_ = {};  // places in blocks_
  std::vector<Holding> holdings_ = {};     // by tensor
  std::int64_t next_address_ = 0;
  std::int64_t requested_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t asked_ = 0;
  AllocatorPeaks peaks_ = {};
};

std::int32_t Allocator::Add(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<std::int32_t>(std::ssize(blocks_) - 1);
  }
  const std::int32_t place = unused_.back();
  unused_.pop_back();
  At(place) = block;
  return place;
}

void Allocator::SetFree(Pool& pool, std::int32_t block) {
  At(block).is_free = true;
  pool.free_segments += IsSegment(At(block)) ? 1 : 0;
  pool.free.Add({At(block).bytes, At(block).address, block});
}

void Allocator::Take(Pool& pool, std::int32_t block) {
  At(block).is_free = false;
  pool.free_segments -= IsSegment(At(block)) ? 1 : 0;
  pool.free.Remove(At(block).bytes, At(block).address);
}

// alloc_block: of the device, or after what is cached was given back to it.
void Allocator::Reserve(std::int64_t bytes) {
  const auto passes = [&] {
    return settings_.memory && reserved_ + bytes > settings_.memory->value();
  };
  if (passes()) {
    for (auto& [stream, pools] : pools_) {
      ReleaseSegments(pools.small);
      ReleaseSegments(pools.large);
    }
  }
  peaks_.out_of_memory = peaks_.out_of_memory || passes();
  ++asked_;
  reserved_ += bytes;
  peaks_.reserved = std::max(peaks_.reserved, Bytes(reserved_));
}

// release_cached_blocks. A job far beyond its device comes here at every segment, mostly for
// nothing.
void Allocator::ReleaseSegments(Pool& pool) {
  if (settings_.expandable_segments || pool.free_segments == 0) {
    return;
  }
  pool.free_segments = 0;
  pool.free.RemoveIf([&](std::int32_t number) {
    if (!IsSegment(At(number))) {
      return false;
    }
    reserved_ -= At(number).bytes;
    unused_.push_back(number);
    return true;
  });
}

std::int32_t Allocator::NewSegment(Pool& pool, std::int64_t bytes) {
  const std::int64_t segment = SegmentBytes(bytes);
  Reserve(segment);
  const std::int32_t block = Add({.bytes = segment, .address = next_address_});
  next_address_ += segment;
  SetFree(pool, block);
  return block;
}

// try_allocate_expandable_block: the free end of the segment becomes large enough.
std::int32_t Allocator::Grown(Pool& pool, std::int64_t bytes) {
  const bool has_free_end = pool.last != kNone && At(pool.last).is_free;
  const std::int64_t growth = RoundUp(bytes - (has_free_end ? At(pool.last).bytes : 0), pool.page);
  Reserve(growth);
  if (has_free_end) {
    Take(pool, pool.last);
    At(pool.last).bytes += growth;
  } else {
    Block block = {.bytes = growth};
    if (pool.last != kNone) {
      block.address = At(pool.last).address + At(pool.last).bytes;
      block.previous = pool.last;
    }
    const std::int32_t added = Add(block);
    if (pool.last != kNone) {
      At(pool.last).next = added;
    }
    pool.last = added;
  }
  SetFree(pool, pool.last);
  return pool.last;
}

// should_split and alloc_found_block: the tensor has the front, the rest stays free.
void Allocator::Split(Pool& pool, std::int32_t block, std::int64_t bytes) {
  const Block whole = At(block);
  if (whole.bytes - bytes < pool.remainder) {
    return;
  }
  const std::int32_t rest = Add({.bytes = whole.bytes - bytes,
                                 .address = whole.address + bytes,
                                 .previous = block,
                                 .next = whole.next});
  At(block).bytes = bytes;
  At(block).next = rest;
  if (whole.next != kNone) {
    At(whole.next).previous = rest;
  }
  if (pool.last == block) {
    pool.last = rest;
  }
  SetFree(pool, rest);
}

Pool& Allocator::PoolOf(std::int32_t stream, std::int64_t bytes) {
  const std::int64_t rest = settings_.expandable_segments ? kMinBlockSize : kSmallSize + 1;
  const Pools empty = {.small = {.page = kSmallBuffer, .remainder = kMinBlockSize},
                       .large = {.page = kLargeBuffer, .remainder = rest}};
  Pools& pools = pools_.try_emplace(stream, empty).first->second;
  return bytes <= kSmallSize ? pools.small : pools.large;
}

void Allocator::Allocate(const AllocatorEvent& event) {
  const auto place = static_cast<std::size_t>(event.tensor);
  holdings_.resize(std::max(holdings_.size(), place + 1));
  CHECK(!holdings_[place].is_alive);
  holdings_[place] = Serve(event);
}

Allocator::Holding Allocator::Serve(const AllocatorEvent& event) {
  const std::int64_t request = event.bytes->value();
  if (request == 0) {
    return {.is_alive = true};
  }
  const std::int64_t bytes =
      RoundedRequest(Bytes(request), settings_.roundup_power2_divisions).value();
  Pool& pool = PoolOf(event.stream, bytes);
  // get_free_block: the last can grow and is as large as it could become, so any other is better.
  std::int32_t block = pool.free.BestFit(bytes, pool.last);
  if (block == kNone) {
    block = settings_.expandable_segments ? Grown(pool, bytes) : NewSegment(pool, bytes);
  }
  Take(pool, block);
  Split(pool, block, bytes);
  requested_ += request;
  allocated_ += At(block).bytes;
  peaks_.requested = std::max(peaks_.requested, Bytes(requested_));
  peaks_.allocated = std::max(peaks_.allocated, Bytes(allocated_));
  return {.is_alive = true, .request = request, .pool = &pool, .block = block};
}

// try_merge_blocks: `right`, which is free, becomes a part of its left neighbour.
void Allocator::Absorb(Pool& pool, std::int32_t block, std::int32_t right) {
  At(block).bytes += At(right).bytes;
  At(block).next = At(right).next;
  if (At(block).next != kNone) {
    At(At(block).next).previous = block;
  }
  if (pool.last == right) {
    pool.last = block;
  }
  unused_.push_back(right);
}

void Allocator::Free(std::int32_t tensor) {
  const auto place = static_cast<std::size_t>(tensor);
  CHECK(place < holdings_.size() && holdings_[place].is_alive);
  const auto [is_alive, request, pool, held] = std::exchange(holdings_[place], {});
  if (held == kNone) {
    return;
  }
  std::int32_t block = held;
  requested_ -= request;
  allocated_ -= At(block).bytes;
  if (const std::int32_t next = At(block).next; next != kNone && At(next).is_free) {
    Take(*pool, next);
    Absorb(*pool, block, next);
  }
  if (const std::int32_t before = At(block).previous; before != kNone && At(before).is_free) {
    Take(*pool, before);
    Absorb(*pool, before, block);
    block = before;
  }
  SetFree(*pool, block);
}

void Allocator::Replay(std::span<const AllocatorEvent> events) {
  for (const AllocatorEvent& event : events) {
    if (HasEnough()) {
      return;
    }
    if (event.bytes) {
      Allocate(event);
    } else {
      Free(event.tensor);
    }
  }
}

void Allocator::Keep(std::span<const AllocatorEvent> events) {
  for (const AllocatorEvent& event : events) {
    if (HasEnough()) {
      return;
    }
    Serve(event);
  }
}

void Allocator::Begin(const AllocatorRun& run) {
  const std::span<const AllocatorEvent> step = run.step;
  Keep(run.before);
  Replay(step.first(run.born_at));
  Keep(run.born);
  Replay(step.subspan(run.born_at));
}

}  // namespace

// round_size.
Bytes RoundedRequest(Bytes request, std::int64_t power2_divisions) {
  const std::int64_t bytes = request.value();
  if (power2_divisions > 1 && bytes > kMinBlockSize * power2_divisions) {
    return Bytes(RoundToDivision(bytes, power2_divisions));
  }
  return Bytes(RoundUp(std::max(bytes, kMinBlockSize), kMinBlockSize));
}

// Where a step asks the device for nothing, the blocks are at its end what they were at its
// beginning: those that it took are free again, and merged as before. So will be the next step's.
AllocatorPeaks ReplayAllocator(const AllocatorRun& run, const AllocatorSettings& settings) {
  Allocator allocator(settings);
  allocator.Begin(run);
  bool changes = true;
  for (int number = 1; number < run.steps && changes; ++number) {
    const std::int64_t asked = allocator.Asked();
    allocator.Replay(run.step);
    changes = allocator.Asked() != asked;
  }
  return allocator.Peaks();
}

AllocatorPeaks ReplayAllocator(std::span<const AllocatorRun* const> steps,
                               const AllocatorSettings& settings) {
  Allocator allocator(settings);
  allocator.Begin(*steps.front());
  for (const AllocatorRun* const run : steps.subspan(1)) {
    allocator.Replay(run->step);
  }
  return allocator.Peaks();
}

}  // namespace fourpiles
