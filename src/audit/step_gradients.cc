// The gradients of every weight, and what formats lose of them at each loss scale.

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "audit/step_parts.h"
#include "audit/tensor_values.h"
#include "base/try.h"
#include "kernels/parallel.h"
#include "tensors/name_pattern.h"
#include "tensors/piles.h"

namespace fourpiles {
namespace {

std::vector<GradientLosses> LossesOf(const GradientCounts& counts, std::size_t formats) {
  std::vector<GradientLosses> losses;
  losses.reserve(formats);
  for (std::size_t i = 0; i < formats; ++i) {
    losses.push_back(counts.LossesIn(i));
  }
  return losses;
}

// Some blocks, one after the other.
Result<GradientCounts> CountRange(const TensorValues& values, std::span<const NumberFormat> formats,
                                  std::int64_t first, std::int64_t last) {
  GradientCounts counts(formats);
  std::vector<double> memory(static_cast<std::size_t>(std::min(kStepBlock, last - first)));
  for (std::int64_t begin = first; begin < last; begin += kStepBlock) {
    const auto part =
        std::span(memory).first(static_cast<std::size_t>(std::min(kStepBlock, last - begin)));
    TRY_VOID(values.Read(begin, part));
    counts.Add(part);
  }
  return counts;
}

Result<GradientCounts> CountTensor(const TensorValues& values, StepWork& work) {
  constexpr std::int64_t kBlocksOfRange = 16;
  const std::vector<NumberFormat>& formats = work.options.formats;
  GradientCounts counts(formats);
  const std::int64_t elements = values.Elements();
  const int threads = std::max(work.options.threads, 1);
  const std::int64_t at_once = kStepBlock * kBlocksOfRange * threads;
  for (std::int64_t begin = 0; begin < elements; begin += at_once) {
    const std::int64_t count = std::min(at_once, elements - begin);
    const auto ranges = static_cast<std::size_t>(
        std::min<std::int64_t>(threads, (count + kStepBlock - 1) / kStepBlock));
    const auto end_of = [&](std::size_t range) {
      return begin + std::min(count, (count / kStepBlock + 1) * static_cast<std::int64_t>(range) /
                                         static_cast<std::int64_t>(ranges) * kStepBlock);
    };
    std::vector<Result<GradientCounts>> parts(ranges, GradientCounts(formats));
    ForRanges(ranges, 1, threads, [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        parts[i] = CountRange(values, formats, end_of(i), end_of(i + 1));
      }
    });
    for (const Result<GradientCounts>& part : parts) {
      if (!part) {
        return tl::make_unexpected(part.error());
      }
      counts.Add(*part);
    }
    work.Advance(count);
  }
  return counts;
}

}  // namespace

std::vector<std::int32_t> GradientTensors(const StepFiles& files, const StepOptions& options) {
  const Checkpoint& checkpoint = files.gradients != nullptr ? *files.gradients : *files.weights;
  const std::vector<PiledTensor> piles = TensorPilesOf(checkpoint.tensors);
  const bool has_gradients =
      std::ranges::count(piles, TensorPile::kGradients, &PiledTensor::pile) > 0;
  // A file of gradients may call them as the weights are called.
  const TensorPile pile =
      files.gradients != nullptr && !has_gradients ? TensorPile::kWeights : TensorPile::kGradients;
  std::set<std::tuple<std::int32_t, std::int64_t, std::vector<std::int64_t>>> seen;
  std::vector<std::int32_t> chosen;
  for (std::size_t i = 0; i < piles.size(); ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    const bool is_number = tensor.type != nullptr && FindFormat(tensor.type->name).has_value();
    const bool is_first =
        tensor.storage < 0 || seen.emplace(tensor.storage, tensor.offset, tensor.shape).second;
    if (piles[i].pile == pile && is_number && is_first &&
        MatchesAny(tensor.name, options.filters)) {
      chosen.push_back(static_cast<std::int32_t>(i));
    }
  }
  return chosen;
}

Result<GradientAudit> AuditGradients(const Checkpoint& checkpoint,
                                     const std::vector<std::int32_t>& tensors, StepWork& work) {
  const std::vector<NumberFormat>& formats = work.options.formats;
  StorageCache cache(checkpoint);
  GradientAudit audit;
  GradientCounts all(formats);
  for (const std::int32_t index : tensors) {
    const FileTensor& tensor = checkpoint.tensors[static_cast<std::size_t>(index)];
    TRY(const TensorValues values, TensorValues::Of(checkpoint, tensor, cache));
    TRY(const GradientCounts counts, CountTensor(values, work));
    all.Add(counts);
    audit.tensors.push_back({.tensor = index,
                             .name = tensor.name,
                             .facts = counts.Facts(),
                             .formats = LossesOf(counts, formats.size())});
  }
  audit.facts = all.Facts();
  audit.totals = LossesOf(all, formats.size());
  return audit;
}

}  // namespace fourpiles
