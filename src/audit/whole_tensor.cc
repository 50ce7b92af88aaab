#include "audit/whole_tensor.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <span>
#include <variant>

#include "audit/block_rounder.h"
#include "audit/spans.h"
#include "base/try.h"
#include "kernels/parallel.h"

namespace fourpiles {
namespace {

// Whether the scales of any of the formats depend on the tensor's extremes.
bool NeedExtremes(const TensorValues& values, std::int64_t columns, const AuditPlan& plan) {
  return std::ranges::any_of(plan.Formats(), [&](const AuditFormat& format) {
    const auto* const block = std::get_if<BlockFormat>(&format.format);
    return block != nullptr ? NeedsExtremes(*block, columns > kLongestRow)
                            : format.scaled && !HasFewCodes(values);
  });
}

std::size_t BlocksOf(const TensorValues& values) {
  return (static_cast<std::size_t>(values.Elements()) + kLossBlock - 1) / kLossBlock;
}

// Calls look(values, which) for each block of kLossBlock elements, in any order.
template <std::floating_point Value, class Look>
Result<void> ForBlocks(const TensorValues& values, int threads, const Look& look) {
  const auto elements = static_cast<std::size_t>(values.Elements());
  std::vector<Result<void>> read(BlocksOf(values));
  ForRanges(elements, kLossBlock, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<Value> room(std::min(kLossBlock, end - begin));
    for (std::size_t i = begin; i < end; i += kLossBlock) {
      const std::span<Value> block = std::span(room).first(std::min(kLossBlock, end - i));
      read[i / kLossBlock] = values.Read(static_cast<std::int64_t>(i), block);
      look(block, i / kLossBlock);
    }
  });
  for (const Result<void>& done : read) {
    TRY_VOID(done);
  }
  return {};
}

template <std::floating_point Value>
Result<Extremes> ExtremesOfTensor(const TensorValues& values, int threads) {
  std::vector<Extremes> extremes(BlocksOf(values));
  TRY_VOID(ForBlocks<Value>(values, threads, [&](std::span<const Value> block, std::size_t i) {
    extremes[i] = ExtremesOf(block);
  }));
  Extremes all;
  for (const auto& [lowest, highest] : extremes) {
    all = {std::min(all.lowest, lowest), std::max(all.highest, highest)};
  }
  return all;
}

// The mean of the largest magnitudes of blocks of so many elements, without those of blocks that
// are lost. Summed in float64, from the first block to the last.
Result<float> MeanScaleOf(const TensorValues& values, std::size_t elements, bool loses_blocks,
                          int threads) {
  struct Sum {
    double scales = 0;
    std::int64_t count = 0;
  };
  std::vector<Sum> sums(BlocksOf(values));
  TRY_VOID(ForBlocks<float>(values, threads, [&](std::span<float> block, std::size_t i) {
    for (std::size_t first = 0; first < block.size(); first += elements) {
      const auto some = block.subspan(first, std::min(elements, block.size() - first));
      const bool is_lost = loses_blocks && std::ranges::any_of(some, [](float value) {
                             return !std::isfinite(value);
                           });
      sums[i].scales += is_lost ? 0 : static_cast<double>(LargestMagnitude(some));
      sums[i].count += is_lost ? 0 : 1;
    }
  }));
  Sum all;
  for (const auto& [scales, count] : sums) {
    all = {all.scales + scales, all.count + count};
  }
  return all.count == 0 ? 0 : static_cast<float>(all.scales / static_cast<double>(all.count));
}

}  // namespace

Result<WholeTensor> LookAtWhole(const TensorValues& values, std::int64_t columns,
                                const AuditPlan& plan, int threads) {
  WholeTensor whole = {.scale_offsets = std::vector<float>(plan.Formats().size())};
  if (NeedExtremes(values, columns, plan)) {
    TRY(whole.extremes, HasDoubles(values) ? ExtremesOfTensor<double>(values, threads)
                                           : ExtremesOfTensor<float>(values, threads));
  }
  const bool loses_blocks = plan.OverflowPolicy() != Overflow::kSaturate;
  for (std::size_t i = 0; i < plan.Formats().size(); ++i) {
    const auto* const block = std::get_if<BlockFormat>(&plan.Formats()[i].format);
    if (block != nullptr && block->double_quantized) {
      const auto elements = static_cast<std::size_t>(block->block_elements);
      TRY(whole.scale_offsets[i], MeanScaleOf(values, elements, loses_blocks, threads));
    }
  }
  return whole;
}

}  // namespace fourpiles
