#pragma once

// The free blocks of a pool, of which the smallest that is large enough is sought. Many are of few
// sizes, as tensors are: those of one size stand together.

#include <cstdint>
#include <deque>
#include <vector>

namespace fourpiles {

struct FreeBlock {
  std::int64_t bytes = 0;
  std::int64_t address = 0;  // no two have the same
  std::int32_t number = 0;
};

class FreeBlocks {
 public:
  static constexpr std::int32_t kNone = -1;

  void Add(const FreeBlock& block);
  void Remove(std::int64_t bytes, std::int64_t address);

  // The number of the smallest block of at least so many bytes, of those of a size the one with the
  // lowest address; `reluctantly` only where there is no other. None: kNone.
  std::int32_t BestFit(std::int64_t bytes, std::int32_t reluctantly) const;

  // Removes those for whose number it is true.
  template <class IsRemoved>
  void RemoveIf(IsRemoved is_removed) {
    for (const Size& size : sizes_) {
      std::erase_if(blocks_[size.place],
                    [&](const Place& place) { return is_removed(place.number); });
    }
    std::erase_if(sizes_, [&](const Size& size) { return LeavesIfEmpty(size); });
  }

 private:
  struct Size {
    std::int64_t bytes = 0;
    std::size_t place = 0;  // in blocks_
  };
  struct Place {
    std::int64_t address = 0;
    std::int32_t number = 0;
  };

  std::vector<Size>::iterator Find(std::int64_t bytes);
  bool LeavesIfEmpty(const Size& size);

  std::vector<Size> sizes_ = {};  // ascending; each has blocks
  // Of one size, by address. Most come and go at one of the ends.
  std::vector<std::deque<Place>> blocks_ = {};
  std::vector<std::size_t> unused_ = {};  // places in blocks_
};

}  // namespace fourpiles
