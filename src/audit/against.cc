#include "audit/against.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "audit/format_way.h"
#include "audit/gguf_pairs.h"
#include "audit/running_totals.h"
#include "audit/tensor_values.h"
#include "base/try.h"
#include "formats/block_layout.h"
#include "kernels/losses.h"
#include "kernels/parallel.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

// Two tensors of one name, by their places in the checkpoints.
struct Pair {
  std::size_t first = 0;
  std::size_t second = 0;
  bool is_repeated = false;  // tied weights: the same views were a pair before
};

// What the values of a pair say.
struct Compared {
  RunningFacts facts;
  Losses losses;
  bool numbers_stay = true;  // what was finite is finite
  AuditFormat format;        // of the second
};

// The place of each name that is wanted; of repeated names the first.
std::map<std::string_view, std::size_t> PlacesOf(const Checkpoint& checkpoint,
                                                 const std::vector<std::string>& filters) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    if (const std::string_view name = checkpoint.tensors[i].name; MatchesAny(name, filters)) {
      places.try_emplace(name, i);
    }
  }
  return places;
}

// The format that elements are stored in; nothing of whole numbers.
std::optional<AuditFormat> FormatOf(const TensorValues& values) {
  const std::string name(values.Type().name);
  if (values.Format()) {
    return AuditFormat{.name = name, .format = *values.Format()};
  }
  const auto blocks = BlockFormats();
  const auto same = std::ranges::find_if(blocks, [&](const BlockFormat& format) {
    return format.kind == BlockKind::kGgml && GgmlTypeOf(format) == values.Type().name;
  });
  return same == blocks.end() ? std::nullopt
                              : std::optional(AuditFormat{.name = name, .format = *same});
}

LossLimits LimitsOf(const AuditFormat& format) {
  const auto* const number = std::get_if<NumberFormat>(&format.format);
  return number != nullptr ? LimitsOf(*number) : LossLimits{};
}

// Room for a block of each side.
template <class Value>
struct Blocks {
  std::vector<Value> before = std::vector<Value>(kLossBlock);
  std::vector<Value> after = std::vector<Value>(kLossBlock);
};

template <class Value>
bool NumbersStay(std::span<const Value> before, std::span<const Value> after) {
  bool stay = true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    stay &= !std::isfinite(before[i]) || std::isfinite(after[i]);
  }
  return stay;
}

template <class Value>
Result<void> CompareValues(const TensorValues& first, const TensorValues& second,
                           Blocks<Value>& room, Compared& compared, ErrorHistogram& errors) {
  const LossLimits limits = LimitsOf(compared.format);
  constexpr auto kBlock = static_cast<std::int64_t>(kLossBlock);
  for (std::int64_t begin = 0; begin < first.Elements(); begin += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, first.Elements() - begin));
    const std::span<Value> before = std::span(room.before).first(count);
    const std::span<Value> after = std::span(room.after).first(count);
    TRY_VOID(first.Read(begin, before));
    TRY_VOID(second.Read(begin, after));
    const std::span<const Value> x = before;
    const std::span<const Value> r = after;
    compared.facts.Add(RunningFacts(FactsOf(x)));
    Add(LossesOf(CountLosses(x, r, limits, count, errors), begin), compared.losses);
    compared.numbers_stay = compared.numbers_stay && NumbersStay(x, r);
  }
  compared.losses.relative_error_p99 = RelativeErrorP99(errors, compared.losses);
  return {};
}

// Both sides of a checkpoint pair, and what is asked of them.
class Comparer {
 public:
  Comparer(const Checkpoint& first, const Checkpoint& second, const AuditOptions& options)
      : first_(first),
        second_(second),
        options_(options),
        first_cache_(first),
        second_cache_(second) {}

  Result<Comparison> Compare() {
    FindPairs();
    results_.resize(pairs_.size());
    std::atomic<std::size_t> next = 0;
    ForRanges(static_cast<std::size_t>(std::max(options_.threads, 1)), 1, options_.threads,
              [&](std::size_t, std::size_t) {
                Blocks<float> floats;
                for (std::size_t i = next++; i < pairs_.size() && !Failed(); i = next++) {
                  Take(i, floats);
                }
              });
    if (failure_) {
      return tl::make_unexpected(*std::move(failure_));
    }
    return Join();
  }

 private:
  // Why a pair was left out, or what it says; neither: it was not reached.
  struct Outcome {
    std::string skipped = {};
    std::optional<Compared> compared = {};
  };

  const FileTensor& First(std::size_t pair) const { return first_.tensors[pairs_[pair].first]; }
  const FileTensor& Second(std::size_t pair) const { return second_.tensors[pairs_[pair].second]; }

  bool Failed() {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

  void FindPairs() {
    const auto firsts = PlacesOf(first_, options_.filters);
    const auto seconds = PlacesOf(second_, options_.filters);
    std::set<std::pair<TensorView, TensorView>> seen;
    for (std::size_t i = 0; i < first_.tensors.size(); ++i) {
      const auto own = firsts.find(first_.tensors[i].name);
      if (own == firsts.end() || own->second != i) {
        continue;
      }
      comparison_.real += HoldsRealNumbers(first_.tensors[i]) ? 1 : 0;
      if (const auto other = seconds.find(own->first); other != seconds.end()) {
        const FileTensor& tensor = first_.tensors[i];
        const FileTensor& partner = second_.tensors[other->second];
        const bool is_new = seen.insert({ViewOf(tensor), ViewOf(partner)}).second;
        pairs_.push_back({.first = i, .second = other->second, .is_repeated = !is_new});
        bytes_ += tensor.bytes + partner.bytes;
      } else {
        comparison_.only_first.emplace_back(own->first);
        comparison_.unpaired += HoldsRealNumbers(first_.tensors[i]) ? 1 : 0;
      }
    }
    for (const auto& [name, place] : seconds) {
      if (!firsts.contains(name)) {
        comparison_.only_second.emplace_back(name);
      }
    }
  }

  void Take(std::size_t pair, Blocks<float>& room) {
    Result<Outcome> outcome = OutcomeOf(pair, room);
    const std::lock_guard lock(mutex_);
    if (!outcome) {
      failure_ = failure_ ? failure_ : std::move(outcome).error();
      return;
    }
    results_[pair] = *std::move(outcome);
    done_ += First(pair).bytes + Second(pair).bytes;
    if (options_.progress) {
      options_.progress({.bytes_done = done_, .bytes = bytes_});
    }
  }

  Result<Outcome> OutcomeOf(std::size_t pair, Blocks<float>& room) {
    const FileTensor& first = First(pair);
    const FileTensor& second = Second(pair);
    if (first.shape != second.shape) {
      return Outcome{.skipped = fmt::format("is {} here, {} there", ShapeText(first.shape),
                                            ShapeText(second.shape))};
    }
    if (first.type == nullptr || second.type == nullptr ||
        first.type->name.starts_with("complex") || second.type->name.starts_with("complex")) {
      return Outcome{.skipped = fmt::format("is {} here, {} there: not real numbers", first.dtype,
                                            second.dtype)};
    }
    if (RepeatsTooMuch(first_, first) || RepeatsTooMuch(second_, second)) {
      return Outcome{.skipped = "repeats its elements to more bytes than its file has"};
    }
    TRY(const TensorValues x, TensorValues::Of(first_, first, first_cache_));
    TRY(const TensorValues r, TensorValues::Of(second_, second, second_cache_));
    const std::optional<AuditFormat> before = FormatOf(x);
    const std::optional<AuditFormat> after = FormatOf(r);
    if (!before || !after) {
      return Outcome{
          .skipped = fmt::format("{} here, {} there: whole numbers", x.Type().name, r.Type().name)};
    }
    Outcome outcome;
    outcome.compared.emplace().format = *after;
    const auto errors = std::make_unique<ErrorHistogram>();
    if (x.Type().block_bits > 32 && x.Format().has_value()) {
      Blocks<double> doubles;
      TRY_VOID(CompareValues(x, r, doubles, *outcome.compared, *errors));
    } else {
      TRY_VOID(CompareValues(x, r, room, *outcome.compared, *errors));
    }
    if (!pairs_[pair].is_repeated) {
      const std::lock_guard lock(mutex_);
      errors_[after->name].Add(*errors);
    }
    return outcome;
  }

  std::size_t IndexOf(const AuditFormat& format) {
    auto& formats = comparison_.audit.formats;
    const auto found = std::ranges::find(formats, format.name, &AuditFormat::name);
    if (found != formats.end()) {
      return static_cast<std::size_t>(found - formats.begin());
    }
    formats.push_back(format);
    return formats.size() - 1;
  }

  Comparison Join() {
    Audit& audit = comparison_.audit;
    for (const Outcome& outcome : results_) {
      if (outcome.compared) {
        IndexOf(outcome.compared->format);
      }
    }
    audit.totals.resize(audit.formats.size());
    audit.worst_tensors.assign(audit.formats.size(), -1);
    audit.tensors.reserve(pairs_.size());
    RunningFacts facts;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (results_[i].compared) {
        if (!pairs_[i].is_repeated) {
          facts.Add(results_[i].compared->facts);
        }
        AddTensor(i);
      } else {
        comparison_.unpaired += HoldsRealNumbers(First(i)) ? 1 : 0;
        audit.skipped.push_back({.tensor = static_cast<std::int32_t>(pairs_[i].first),
                                 .name = First(i).name,
                                 .why = results_[i].skipped});
      }
    }
    audit.each_in_every_format = false;
    audit.values = facts.Facts();
    for (std::size_t i = 0; i < audit.formats.size(); ++i) {
      Losses& losses = audit.totals[i].losses;
      losses.relative_error_p99 = RelativeErrorP99(errors_[audit.formats[i].name], losses);
    }
    return std::move(comparison_);
  }

  void AddTensor(std::size_t pair) {
    Audit& audit = comparison_.audit;
    const Compared& compared = *results_[pair].compared;
    const std::size_t index = IndexOf(compared.format);
    TensorAudit tensor = {.tensor = static_cast<std::int32_t>(pairs_[pair].first),
                          .name = First(pair).name,
                          .is_repeated = pairs_[pair].is_repeated,
                          .values = compared.facts.Facts()};
    tensor.formats.resize(audit.formats.size());
    for (FormatLosses& other : tensor.formats) {
      other.not_possible = "is stored as " + compared.format.name;
    }
    tensor.formats[index] = {.losses = compared.losses};
    if (compared.losses.largest_relative_error >
        audit.totals[index].losses.largest_relative_error) {
      audit.worst_tensors[index] = static_cast<std::int32_t>(audit.tensors.size());
    }
    if (!pairs_[pair].is_repeated) {
      Add(compared.losses, audit.totals[index].losses);
    }
    audit.overflow = compared.numbers_stay ? audit.overflow : Overflow::kIeee;
    audit.tensors.push_back(std::move(tensor));
  }

  const Checkpoint& first_;
  const Checkpoint& second_;
  const AuditOptions& options_;
  StorageCache first_cache_;
  StorageCache second_cache_;
  std::vector<Pair> pairs_;
  std::vector<Outcome> results_;
  std::map<std::string, ErrorHistogram> errors_;  // by format; counts, in whatever order
  Comparison comparison_;
  std::int64_t bytes_ = 0;
  std::mutex mutex_;
  std::int64_t done_ = 0;
  std::optional<Error> failure_;
};

// Alike in direction, not in size: r ≈ k × x.
void JudgeFactor(const Losses& losses, const Thresholds& thresholds,
                 std::vector<AuditFinding>& findings) {
  constexpr double kAlike = 0.99;
  const Threshold& threshold = Of(thresholds, ThresholdId::kFactor);
  const double factor = 1 + losses.error_products / losses.squared_values;
  const double off = std::abs(factor - 1);
  // Clipped values are smaller for another reason.
  if (losses.saturated == 0 && HasSignal(losses) && Cosine(losses) > kAlike &&
      off > threshold.value) {
    findings.push_back(
        {.severity = AuditSeverity::kFault,
         .what = fmt::format("the values are {:.4g} times what they were, all alike", factor),
         .remedy = "look at the scale that they are stored with",
         .value = off,
         .limit = threshold.value,
         .threshold = threshold});
  }
}

void JudgePairs(const Comparison& comparison, const Thresholds& thresholds,
                std::vector<AuditFinding>& findings) {
  const Threshold& threshold = Of(thresholds, ThresholdId::kUnpaired);
  const double share = comparison.real == 0 ? 1
                                            : static_cast<double>(comparison.unpaired) /
                                                  static_cast<double>(comparison.real);
  if (share > threshold.value) {
    findings.push_back(
        {.severity = AuditSeverity::kFault,
         .what = comparison.real == 0
                     ? "there is no tensor of real numbers to compare"
                     : fmt::format("{} of {} tensors are not there as real numbers of that shape",
                                   comparison.unpaired, comparison.real),
         .remedy = "they are named below",
         .value = share,
         .limit = threshold.value,
         .threshold = threshold});
  }
}

}  // namespace

Result<Comparison> AuditAgainst(const Checkpoint& first, const Checkpoint& second,
                                const AuditOptions& options) {
  const bool is_gguf = IsGguf(first);
  if (is_gguf == IsGguf(second)) {
    return Comparer(first, second, options).Compare();
  }
  TRY(GgufPairs pairs, is_gguf ? PairGguf(first, second) : PairGguf(second, first));
  const Checkpoint& of_first = is_gguf ? pairs.gguf : pairs.checkpoint;
  const Checkpoint& of_second = is_gguf ? pairs.checkpoint : pairs.gguf;
  TRY(Comparison comparison, Comparer(of_first, of_second, options).Compare());
  for (SkippedTensor& tensor : pairs.left_out) {
    if (MatchesAny(tensor.name, options.filters)) {
      comparison.audit.skipped.push_back(std::move(tensor));
    }
  }
  return comparison;
}

std::vector<AuditFinding> FindingsOf(const Comparison& comparison, const Thresholds& thresholds) {
  const Audit& audit = comparison.audit;
  std::vector<AuditFinding> findings = FindingsOf(audit, thresholds);
  JudgePairs(comparison, thresholds, findings);
  for (std::size_t i = 0; i < audit.tensors.size(); ++i) {
    for (std::size_t j = 0; j < audit.formats.size(); ++j) {
      const FormatLosses& in_format = audit.tensors[i].formats[j];
      const std::size_t from = findings.size();
      if (in_format.not_possible.empty()) {
        JudgeFactor(in_format.losses, thresholds, findings);
      }
      for (std::size_t k = from; k < findings.size(); ++k) {
        findings[k].tensor = static_cast<std::int32_t>(i);
        findings[k].format = static_cast<std::int32_t>(j);
      }
    }
  }
  Rank(findings);
  return findings;
}

}  // namespace fourpiles
