#include "plan/sglang.h"

#include <algorithm>

#include "plan/paged_cache.h"

namespace fourpiles {
namespace {

Checked WholePages(Checked tokens, std::int64_t page_tokens) {
  return DivideRoundingDown(tokens, page_tokens) * page_tokens;
}

}  // namespace

Checked SglangReservedBytes(const SglangMemory& memory) {
  return ShareOf(memory.available_before_load, 1 - memory.memory_fraction_static);
}

Checked SglangCacheBytes(const SglangMemory& memory) {
  const Checked rest = memory.available_after_load - SglangReservedBytes(memory);
  return rest.ok() ? Checked(std::max<std::int64_t>(0, rest.value())) : rest;
}

Checked SglangMaxTotalTokens(Checked cache_bytes, Checked cell_bytes, std::int64_t page_tokens) {
  return WholePages(DivideRoundingDown(cache_bytes, cell_bytes), page_tokens);
}

Checked SglangPoolBytes(Checked tokens, std::int64_t page_tokens, Checked cell_bytes) {
  return (tokens + page_tokens) * cell_bytes;
}

SglangPools SglangSplitTokens(Checked tokens, const SglangSplit& split) {
  const Checked bytes = tokens * (Checked(split.full_cell) + split.window_cell);
  const double shares =
      static_cast<double>(split.full_cell) + split.ratio * static_cast<double>(split.window_cell);
  if (!bytes.ok() || !(shares > 0)) {
    const Checked none = Checked(kLargestAmount) + 1;
    return {none, none};
  }
  const auto full = static_cast<std::int64_t>(static_cast<double>(bytes.value()) / shares);
  const Checked full_tokens = WholePages(full, split.page_tokens);
  return {full_tokens, SglangWindowTokens(full_tokens, split.ratio, split.page_tokens)};
}

Checked SglangWindowTokens(Checked full_tokens, double ratio, std::int64_t page_tokens) {
  return WholePages(ShareOf(full_tokens, ratio), page_tokens);
}

}  // namespace fourpiles
