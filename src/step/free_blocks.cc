#include "step/free_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace fourpiles {

std::vector<FreeBlocks::Size>::iterator FreeBlocks::Find(std::int64_t bytes) {
  return std::ranges::lower_bound(sizes_, bytes, {}, &Size::bytes);
}

void FreeBlocks::Add(const FreeBlock& block) {
  auto size = Find(block.bytes);
  if (size == sizes_.end() || size->bytes != block.bytes) {
    if (unused_.empty()) {
      unused_.push_back(blocks_.size());
      blocks_.emplace_back();
    }
    size = sizes_.insert(size, {block.bytes, unused_.back()});
    unused_.pop_back();
  }
  std::deque<Place>& alike = blocks_[size->place];
  const Place place = {block.address, block.number};
  if (alike.empty() || alike.back().address < block.address) {
    alike.push_back(place);
  } else if (block.address < alike.front().address) {
    alike.push_front(place);
  } else {
    alike.insert(std::ranges::lower_bound(alike, block.address, {}, &Place::address), place);
  }
}

void FreeBlocks::Remove(std::int64_t bytes, std::int64_t address) {
  const auto size = Find(bytes);
  CHECK(size != sizes_.end() && size->bytes == bytes);
  std::deque<Place>& alike = blocks_[size->place];
  if (alike.front().address == address) {
    alike.pop_front();
  } else {
    alike.erase(std::ranges::lower_bound(alike, address, {}, &Place::address));
  }
  if (LeavesIfEmpty(*size)) {
    sizes_.erase(size);
  }
}

// Its vector is for the next size then.
bool FreeBlocks::LeavesIfEmpty(const Size& size) {
  if (!blocks_[size.place].empty()) {
    return false;
  }
  unused_.push_back(size.place);
  return true;
}

std::int32_t FreeBlocks::BestFit(std::int64_t bytes, std::int32_t reluctantly) const {
  const auto size = std::ranges::lower_bound(sizes_, bytes, {}, &Size::bytes);
  if (size == sizes_.end()) {
    return kNone;
  }
  const std::deque<Place>& alike = blocks_[size->place];
  if (alike.front().number != reluctantly) {
    return alike.front().number;
  }
  if (alike.size() > 1) {
    return alike[1].number;
  }
  const auto next = size + 1;
  return next == sizes_.end() ? reluctantly : blocks_[next->place].front().number;
}

}  // namespace fourpiles
