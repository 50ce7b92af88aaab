// Tensors of more than 16 bits an element: every value is rounded and compared.

#include <algorithm>
#include <cmath>
#include <mutex>
#include <type_traits>

#include "audit/audit_pass.h"
#include "audit/channel_maxima.h"
#include "audit/code_losses.h"
#include "base/try.h"
#include "kernels/fused_losses.h"

namespace fourpiles {
namespace {

// Through a format of one value and back.
void RoundValues(std::span<const float> values, const FormatWay& way, std::span<float> rounded) {
  const Conversion conversion = NearestEven(way.overflow);
  if (way.scale == 1) {
    RoundTripArray(values, way.format, conversion, rounded);
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = static_cast<float>(values[i] * way.scale);
  }
  RoundTripArray(rounded, way.format, conversion, rounded);
  for (float& value : rounded) {
    value = static_cast<float>(value / way.scale);
  }
}

void RoundValues(std::span<const double> values, const FormatWay& way, std::span<double> rounded) {
  std::ranges::copy(RoundedValues(values, way), rounded.begin());
}

double LargestOf(std::span<const float> values) {
  return LargestMagnitude(values);
}
double LargestOf(std::span<const double> values) {
  return FactsOf(values).largest;
}

// Room for a block's values and for what they become.
template <class Value>
struct BlockRoom {
  std::span<Value> values;
  std::span<Value> rounded;
};
template <class Value>
BlockRoom<Value> RoomOf(std::vector<Value>& values, std::vector<Value>& rounded) {
  values.resize(std::max(values.size(), kLossBlock));
  rounded.resize(std::max(rounded.size(), kLossBlock));
  return {values, rounded};
}

// A format of one value, of the plan.
struct WayTo {
  std::size_t format = 0;
  FormatWay way = {};
  std::optional<FusedFormat> fused = {};  // of float32 values
};

std::optional<FusedFormat> FusedOf(const FormatWay& way) {
  const bool is_plain = way.scale == 1 && way.overflow == Overflow::kSaturate;
  return is_plain ? FusedFormatOf(way.format, way.limits) : std::nullopt;
}

// Those that can be fused first.
std::vector<WayTo> WaysOf(const AuditedTensor& tensor, const AuditPlan& plan) {
  const double largest = std::max(-tensor.whole.extremes.lowest, tensor.whole.extremes.highest);
  std::vector<WayTo> ways;
  for (std::size_t i = 0; i < plan.Formats().size(); ++i) {
    if (std::holds_alternative<NumberFormat>(plan.Formats()[i].format)) {
      const FormatWay way = WayOf(plan.Formats()[i], plan.OverflowPolicy(), largest);
      ways.push_back({i, way, FusedOf(way)});
    }
  }
  std::stable_partition(ways.begin(), ways.end(),
                        [](const WayTo& way) { return way.fused.has_value(); });
  return ways;
}

template <class Value>
class ValuePass final : public AuditPass {
 public:
  ValuePass(const AuditedTensor& tensor, const AuditPlan& plan)
      : tensor_(tensor),
        ways_(WaysOf(tensor, plan)),
        spans_(Spans::Flat(tensor.values.Elements(), kFlatSpan)),
        sampled_(SampledOf(tensor.values.Elements())),
        results_(static_cast<std::size_t>(spans_.Count())),
        errors_(ways_.size()),
        channels_(tensor.shape) {
    for (const WayTo& way : ways_) {
      if (way.fused && std::is_same_v<Value, float>) {
        fused_.push_back(*way.fused);
      }
    }
  }

  std::int64_t Count() const override { return spans_.Count(); }
  Result<void> Run(std::int64_t index, AuditScratch& scratch) override;
  Result<void> Finish(TensorOutcome& outcome, AuditScratch& scratch) override;

 private:
  // What a span says, its blocks merged in order.
  struct SpanResult {
    RunningFacts facts;
    std::vector<Losses> losses;  // of ways_
  };
  struct Block {
    std::int64_t first = 0;
    std::span<const Value> values = {};
    std::span<Value> rounded = {};  // room
  };

  void TakeChannels(const Block& block);
  void TakeLosses(const Block& block, const BlockFacts& facts, std::vector<ErrorHistogram>& errors,
                  SpanResult& result) const;

  const AuditedTensor& tensor_;
  std::vector<WayTo> ways_;
  std::vector<FusedFormat> fused_;  // the first of ways_
  Spans spans_;
  std::size_t sampled_;  // elements of a block
  std::vector<SpanResult> results_;
  std::mutex mutex_;
  std::vector<ErrorHistogram> errors_;  // of ways_
  ChannelMaxima channels_;
};

template <class Value>
void ValuePass<Value>::TakeChannels(const Block& block) {
  if (!channels_.AreKept()) {
    return;
  }
  channels_.Take(block.first, static_cast<std::int64_t>(block.values.size()),
                 [&](std::int64_t place, std::int64_t count) {
                   return LargestOf(block.values.subspan(static_cast<std::size_t>(place),
                                                         static_cast<std::size_t>(count)));
                 });
}

template <class Value>
void ValuePass<Value>::TakeLosses(const Block& block, const BlockFacts& facts,
                                  std::vector<ErrorHistogram>& errors, SpanResult& result) const {
  std::vector<BlockLosses> losses(ways_.size());
  std::size_t done = 0;
  if constexpr (std::is_same_v<Value, float>) {
    if (CanRoundFused(facts)) {
      done = fused_.size();
      RoundFused({.values = block.values, .facts = facts, .sampled = sampled_}, fused_,
                 std::span(losses).first(done), std::span(errors).first(done));
      // Beside large values float32 sums of squares lose errors this small: they are summed in
      // float64.
      for (std::size_t i = 0; i < done; ++i) {
        if (losses[i].changed > 0 && losses[i].squared_errors < 0x1p-80 * facts.squares) {
          RoundValues(block.values, ways_[i].way, block.rounded);
          ErrorHistogram counted_already;
          losses[i] = CountLosses(block.values, std::span<const Value>(block.rounded),
                                  ways_[i].way.limits, 0, counted_already);
        }
      }
    }
  }
  for (std::size_t i = done; i < ways_.size(); ++i) {
    RoundValues(block.values, ways_[i].way, block.rounded);
    losses[i] = CountLosses(block.values, std::span<const Value>(block.rounded),
                            ways_[i].way.limits, sampled_, errors[i]);
  }
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    Add(LossesOf(losses[i], block.first), result.losses[i]);
  }
}

template <class Value>
Result<void> ValuePass<Value>::Run(std::int64_t index, AuditScratch& scratch) {
  const Span span = spans_.At(index);
  SpanResult& result = results_[static_cast<std::size_t>(index)];
  result.losses.resize(ways_.size());
  scratch.errors.assign(ways_.size(), ErrorHistogram());
  BlockRoom<Value> room;
  if constexpr (std::is_same_v<Value, float>) {
    room = RoomOf(scratch.floats, scratch.rounded_floats);
  } else {
    room = RoomOf(scratch.doubles, scratch.rounded_doubles);
  }
  constexpr auto kBlock = static_cast<std::int64_t>(kLossBlock);
  for (std::int64_t done = 0; done < span.Elements(); done += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, span.Elements() - done));
    const std::span<Value> values = room.values.first(count);
    TRY_VOID(tensor_.values.Read(span.first + done, values));
    const Block block = {span.first + done, values, room.rounded.first(count)};
    const BlockFacts facts = FactsOf(block.values);
    result.facts.Add(RunningFacts(facts));
    TakeChannels(block);
    TakeLosses(block, facts, scratch.errors, result);
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    errors_[i].Add(scratch.errors[i]);
  }
  return {};
}

template <class Value>
Result<void> ValuePass<Value>::Finish(TensorOutcome& outcome, AuditScratch& /*scratch*/) {
  for (const SpanResult& result : results_) {
    outcome.facts.Add(result.facts);
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      Add(result.losses[i], outcome.audit.formats[ways_[i].format].losses);
    }
  }
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    Losses& losses = outcome.audit.formats[ways_[i].format].losses;
    losses.relative_error_p99 = RelativeErrorP99(errors_[i], losses);
    outcome.AddErrors(ways_[i].format, errors_[i], kLossBlock / sampled_);
  }
  outcome.audit.channels = channels_.Facts();
  return {};
}

}  // namespace

std::unique_ptr<AuditPass> MakeValuePass(const AuditedTensor& tensor, const AuditPlan& plan) {
  if (HasDoubles(tensor.values)) {
    return std::make_unique<ValuePass<double>>(tensor, plan);
  }
  return std::make_unique<ValuePass<float>>(tensor, plan);
}

}  // namespace fourpiles
