#include "plan/length_report.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "base/try.h"
#include "plan/search.h"
#include "plan/solve.h"
#include "plan/surroundings.h"
#include "plan/training_data.h"

namespace fourpiles {
namespace {

struct NamedPercentile {
  std::string_view percent;
  std::int64_t thousandths;
};
constexpr std::array<NamedPercentile, 6> kPercentiles = {
    {{"50", 500}, {"90", 900}, {"95", 950}, {"99", 990}, {"99.9", 999}, {"100", 1000}}};

// Rows of a table that is read on one screen.
constexpr std::size_t kMostPowers = 12;

Bytes PastAll() {
  return Bytes(kLargestAmount);
}

// With the peak of the job at that length.
LengthLimit RowOf(const Job& job, std::int64_t limit) {
  return {.limit = limit,
          .shares = SharesAt(job.training.data->lengths, limit),
          .peak = PeakBytes(WithValue(job, Unknown::kSequenceLength, limit)).value_or(PastAll())};
}

// Whether it fits the job's device; past 2^53 it does not. What is around the tensors takes replays
// of the allocator, and never less than nothing.
Fit VerdictOf(const Job& job, const LengthLimit& row) {
  const Fit alone = FitOf(Exactly(row.peak), job.device->memory);
  if (alone != Fit::kFits || !KnowsSurroundings(job)) {
    return alone;
  }
  const auto budget = PlayedBudget(WithValue(job, Unknown::kSequenceLength, row.limit));
  return budget && budget->verdict ? *budget->verdict : Fit::kDoesNotFit;
}

// Memory grows with the limit, but for what the allocator has in pieces, so that few rows are
// looked at for all.
void SetVerdicts(const Job& job, std::vector<LengthLimit>& rows) {
  std::vector<std::optional<Fit>> seen(rows.size());
  const auto first_worse_than = [&](Fit verdict) {
    return std::partition_point(rows.begin(), rows.end(), [&](const LengthLimit& row) {
      std::optional<Fit>& known = seen[static_cast<std::size_t>(&row - rows.data())];
      known = known ? known : VerdictOf(job, row);
      return *known <= verdict;
    });
  };
  const auto tight = first_worse_than(Fit::kFits);
  const auto too_long = first_worse_than(Fit::kTight);
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    row->verdict = row < tight ? Fit::kFits : row < too_long ? Fit::kTight : Fit::kDoesNotFit;
  }
}

// Downwards, to the first that all samples pass. A limit that no sample reaches is one only where
// samples are filled up to it.
std::vector<std::int64_t> PowersOf(const TrainingData& data) {
  const auto shortest = static_cast<std::uint64_t>(data.lengths.rows.front().length);
  const auto longest = static_cast<std::uint64_t>(data.lengths.Longest());
  std::vector<std::int64_t> powers;
  for (std::uint64_t power = FillsLimit(data) ? std::bit_ceil(longest) : std::bit_floor(longest);
       power >= 1 && powers.size() < kMostPowers; power /= 2) {
    powers.push_back(static_cast<std::int64_t>(power));
    if (power <= shortest) {
      break;
    }
  }
  return powers;
}

std::vector<LengthLimit> LimitsOf(const Job& job, const std::vector<LengthPercentile>& named) {
  std::vector<std::int64_t> all = PowersOf(*job.training.data);
  std::ranges::transform(named, std::back_inserter(all), &LengthPercentile::length);
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<LengthLimit> limits;
  for (const std::int64_t limit : all) {
    LengthLimit row = RowOf(job, limit);
    for (const LengthPercentile& percentile : named) {
      if (percentile.length == limit) {
        row.percentiles.push_back(percentile.percent);
      }
    }
    limits.push_back(std::move(row));
  }
  if (job.device) {
    SetVerdicts(job, limits);
  }
  return limits;
}

// Memory only grows with the length, so that a search by halves between two rows is enough.
std::optional<LengthLimit> LargestThatFits(const Job& job, const std::vector<LengthLimit>& limits) {
  const auto row_of = [&](std::int64_t limit) {
    LengthLimit row = RowOf(job, limit);
    row.verdict = VerdictOf(job, row);
    return row;
  };
  const auto fits = [](const LengthLimit& row) { return row.verdict != Fit::kDoesNotFit; };
  const std::int64_t longest = job.training.data->lengths.Longest();
  const auto too_long = std::ranges::find_if_not(limits, fits);
  if (too_long == limits.end() || too_long->limit > longest) {
    return row_of(longest);
  }
  const std::int64_t low = too_long == limits.begin() ? 1 : std::prev(too_long)->limit;
  if (too_long == limits.begin() && (too_long->limit == 1 || !fits(row_of(1)))) {
    return std::nullopt;
  }
  return row_of(
      LastThatHolds(low, too_long->limit, [&](std::int64_t limit) { return fits(row_of(limit)); }));
}

// Filling, in the long run, of the tokens that are computed.
double PaddingShare(const TrainingJob& training, double mean_longest) {
  const TrainingData& data = *training.data;
  const bool pads_to_itself = data.padding == Padding::kLongest && training.micro_batch_size == 1;
  if (data.is_packed || data.padding == Padding::kNone || pads_to_itself) {
    return 0;
  }
  const double computed =
      data.padding == Padding::kMax ? static_cast<double>(training.sequence_length) : mean_longest;
  const double used =
      MeanLength(KeptSamples(data, training.sequence_length), training.sequence_length);
  return std::max(0.0, 1 - used / computed);  // not below for a last digit
}

}  // namespace

Result<LengthReport> ReportLengths(const Job& job) {
  CHECK(job.training.data != nullptr);
  const TrainingJob& training = job.training;
  const SampleLengths& lengths = training.data->lengths;
  TRY_VOID(PeakBytes(job));
  LengthReport report = {.mean = MeanLength(lengths, lengths.Longest()),
                         .sequence_length = training.sequence_length,
                         .shares = SharesAt(lengths, training.sequence_length)};
  if (training.data->drops_longer) {
    report.shares.tokens_cut = 1 - report.shares.tokens_whole;
  }
  for (const NamedPercentile& percentile : kPercentiles) {
    report.percentiles.push_back({.percent = std::string(percentile.percent),
                                  .length = Percentile(lengths, percentile.thousandths)});
  }
  report.mean_longest = MeanLongest(KeptSamples(*training.data, training.sequence_length),
                                    training.sequence_length, training.micro_batch_size);
  report.padding_share = PaddingShare(training, report.mean_longest);
  report.limits = LimitsOf(job, report.percentiles);
  if (job.device) {
    report.largest = LargestThatFits(job, report.limits);
  }
  return report;
}

}  // namespace fourpiles
