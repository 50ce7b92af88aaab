// The updates of every weight, and what formats lose of them.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "audit/step_parts.h"
#include "audit/tensor_values.h"
#include "base/try.h"
#include "kernels/parallel.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

using FormatSums = std::vector<UpdateSums>;  // as the formats

const FileTensor& TensorAt(const Checkpoint& checkpoint, std::int32_t index) {
  return checkpoint.tensors[static_cast<std::size_t>(index)];
}

void AddAll(const FormatSums& next, FormatSums& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].Add(next[i]);
  }
}

std::vector<UpdateLosses> TotalsOf(const FormatSums& sums) {
  std::vector<UpdateLosses> totals;
  totals.reserve(sums.size());
  for (const UpdateSums& sum : sums) {
    totals.push_back(sum.Total());
  }
  return totals;
}

// Memory for the elements of one block.
struct BlockValues {
  std::vector<double> weights = std::vector<double>(kStepBlock);
  std::vector<double> first = std::vector<double>(kStepBlock);
  std::vector<double> second = std::vector<double>(kStepBlock);
};

// A weight with its moments.
struct WeightValues {
  TensorValues weight;
  TensorValues first;
  TensorValues second;
  AdamUpdate update;

  Result<FormatSums> BlockSums(std::int64_t block, const std::vector<FormatGrid>& grids,
                               BlockValues& values) const {
    const std::int64_t begin = block * kStepBlock;
    const auto count = static_cast<std::size_t>(std::min(kStepBlock, weight.Elements() - begin));
    const auto weights = std::span(values.weights).first(count);
    const auto updates = std::span(values.first).first(count);  // the first moments before
    const auto seconds = std::span(values.second).first(count);
    TRY_VOID(weight.Read(begin, weights));
    TRY_VOID(first.Read(begin, updates));
    TRY_VOID(second.Read(begin, seconds));
    for (std::size_t i = 0; i < count; ++i) {
      updates[i] = update.Of(weights[i], {.first = updates[i], .second = seconds[i]});
    }
    FormatSums sums(grids.size());
    for (std::size_t i = 0; i < grids.size(); ++i) {
      AddUpdates(weights, updates, grids[i], sums[i]);
    }
    return sums;
  }
};

// All blocks of a weight, some of them at once.
Result<FormatSums> SumsOf(const WeightValues& values, StepWork& work) {
  FormatSums sums(work.grids.size());
  const std::int64_t blocks = (values.weight.Elements() + kStepBlock - 1) / kStepBlock;
  const int threads = std::max(work.options.threads, 1);
  for (std::int64_t begin = 0; begin < blocks;) {
    const std::int64_t count = std::min(blocks - begin, kBlocksAhead * threads);
    std::vector<Result<FormatSums>> parts(static_cast<std::size_t>(count));
    ForRanges(parts.size(), 1, threads, [&](std::size_t from, std::size_t to) {
      BlockValues memory;
      for (std::size_t i = from; i < to; ++i) {
        parts[i] = values.BlockSums(begin + static_cast<std::int64_t>(i), work.grids, memory);
      }
    });
    for (const Result<FormatSums>& part : parts) {
      if (!part) {
        return tl::make_unexpected(part.error());
      }
      AddAll(*part, sums);
    }
    work.Advance(std::min(count * kStepBlock, values.weight.Elements() - begin * kStepBlock));
    begin += count;
  }
  return sums;
}

}  // namespace

Result<double> StepOf(const WeightState& weight, const TrainingState& state,
                      const Checkpoint& checkpoint, const StepOptions& options) {
  if (options.step) {
    return *options.step;
  }
  const std::int32_t index = weight.step >= 0 ? weight.step : state.step;
  if (index < 0) {
    return WrongUsage({.where = "--step",
                       .found = "no step in the optimizer's state",
                       .expected = "expected the number of steps that were taken",
                       .hint = "give it with --step"});
  }
  const FileTensor& tensor = TensorAt(checkpoint, index);
  double step = 0;
  if (tensor.elements == 1) {
    TRY(const TensorValues values, TensorValues::Of(checkpoint, tensor));
    TRY_VOID(values.Read(0, std::span(&step, 1)));
  }
  if (!std::isfinite(step) || step < 1) {
    return BadInput({.where = fmt::format("{}: tensor \"{}\"", checkpoint.path, tensor.name),
                     .found = tensor.elements == 1 ? fmt::format("the step {}", step)
                                                   : fmt::format("{} elements", tensor.elements),
                     .expected = "expected a number of steps from 1 on",
                     .hint = "--step gives another one"});
  }
  return step;
}

Result<UpdateAudit> AuditUpdates(const StepFiles& files, const TrainingState& state,
                                 const AdamSettings& settings, StepWork& work) {
  const Checkpoint& weights = *files.weights;
  const Checkpoint& moments = files.state != nullptr ? *files.state : weights;
  StorageCache weight_cache(weights);
  StorageCache moment_cache(moments);
  UpdateAudit audit;
  FormatSums all(work.grids.size());
  for (const WeightState& entry : state.weights) {
    const FileTensor& tensor = TensorAt(weights, entry.weight);
    if (!MatchesAny(tensor.name, work.options.filters)) {
      continue;
    }
    TRY(const double step, StepOf(entry, state, moments, work.options));
    TRY(TensorValues weight, TensorValues::Of(weights, tensor, weight_cache));
    TRY(TensorValues first,
        TensorValues::Of(moments, TensorAt(moments, entry.first), moment_cache));
    TRY(TensorValues second,
        TensorValues::Of(moments, TensorAt(moments, entry.second), moment_cache));
    const WeightValues values = {std::move(weight), std::move(first), std::move(second),
                                 AdamUpdate(settings, step)};
    TRY(const FormatSums sums, SumsOf(values, work));
    AddAll(sums, all);
    audit.tensors.push_back(
        {.tensor = entry.weight, .name = tensor.name, .step = step, .formats = TotalsOf(sums)});
  }
  audit.totals = TotalsOf(all);
  for (const std::int32_t weight : state.without_state) {
    if (MatchesAny(TensorAt(weights, weight).name, work.options.filters)) {
      audit.without_state.push_back(TensorAt(weights, weight).name);
    }
  }
  return audit;
}

}  // namespace fourpiles
