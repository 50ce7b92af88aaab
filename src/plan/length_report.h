#pragma once

// Which limit of the sequence length fits, and which share of the data it leaves whole.

#include "plan/budget.h"

namespace fourpiles {

struct LengthLimit {
  std::int64_t limit = 0;
  std::vector<std::string> percentiles = {};  // "99.9", those of the samples that it is
  LimitShares shares = {};
  Bytes peak = Bytes(0);
  std::optional<Fit> verdict = {};  // with a device
};

struct LengthPercentile {
  std::string percent = {};  // "99.9"
  std::int64_t length = 0;
};

struct LengthReport {
  double mean = 0;  // tokens of a sample, nothing cut
  std::vector<LengthPercentile> percentiles = {};
  std::int64_t sequence_length = 0;  // of the budget: where samples end
  LimitShares shares = {};           // there
  // Of a micro-batch of random samples that end there: of the tokens that are computed the share
  // that is filling, in the long run; and the mean of its longest sample.
  double padding_share = 0;
  double mean_longest = 0;
  std::vector<LengthLimit> limits = {};  // the powers of two, and the percentiles
  // With a device: the largest that fits, at most the longest sample; nothing where none does.
  std::optional<LengthLimit> largest = {};
};

// Of a job whose samples' lengths are known, as it stands. Error: products past 2^53 at the job's
// own length.
Result<LengthReport> ReportLengths(const Job& job);

}  // namespace fourpiles
