#pragma once

// How long the samples of the training data are. A step is sized for the longest of them, or for
// the limit that cuts it, and most of a padded batch may be filling.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "fourpiles/result.h"

namespace fourpiles {

struct LengthCount {
  std::int64_t length = 1;  // in tokens
  std::int64_t samples = 1;
};

struct SampleLengths {
  std::vector<LengthCount> rows = {};  // by length, each once; at least one
  std::int64_t samples = 0;
  std::int64_t tokens = 0;

  std::int64_t Longest() const { return rows.back().length; }
};

// A file of any size in bounded memory: a length a line, or a length and the count of samples that
// have it, by comma, semicolon or tab; a header may name them (docs/LENGTHS.md). Errors, of kind
// kInput and with the line: what is no whole number from 1 to 2^53, more than 2^53 samples or
// tokens, more different lengths than data have, no sample.
Result<SampleLengths> ReadSampleLengths(const std::string& path);
Result<SampleLengths> ReadSampleLengths(const ByteSource& source);

// Of samples whose lengths are known by their mean and standard deviation alone: of a log-normal
// distribution of these moments a thousand lengths, the middles of equal shares. Both positive.
SampleLengths LogNormalLengths(double mean, double deviation);

// Those of at most `limit` tokens; nothing where there is none.
std::optional<SampleLengths> WithoutLonger(const SampleLengths& lengths, std::int64_t limit);

// By nearest rank, in thousandths: 999 is the least length that 99.9 % of the samples do not pass.
std::int64_t Percentile(const SampleLengths& lengths, std::int64_t thousandths);

// Shares, 0 to 1, where samples end at `limit` tokens.
struct LimitShares {
  double samples_whole = 0;  // samples that the limit does not cut …
  double tokens_whole = 0;   // … and the tokens of those
  double samples_cut = 0;
  double tokens_cut = 0;  // behind the limit
};
LimitShares SharesAt(const SampleLengths& lengths, std::int64_t limit);

// The mean length of samples that end at `limit` tokens.
double MeanLength(const SampleLengths& lengths, std::int64_t limit);

// The mean of the longest of `batch` such samples, each drawn for itself: with F(x) the share of
// samples of at most x tokens, the sum of x × (F(x)^batch − F(x − 1)^batch). Of lengths 100, three
// times, and 1,000 in batches of two: 100 × 0.75² + 1,000 × (1 − 0.75²) = 493.75.
double MeanLongest(const SampleLengths& lengths, std::int64_t limit, std::int64_t batch);

// The longest of such samples in each of `count` batches, ascending, at least one: the least x with
// F(x)^batch ≥ (i + ½) / count, and last the longest of all. Above, for four batches of two: of
// 1/8, 3/8 and 5/8 the first two are below 0.75², so that they are 100, 100, 1,000 and 1,000.
std::vector<std::int64_t> LongestOfBatches(const SampleLengths& lengths, std::int64_t limit,
                                           std::int64_t batch, std::size_t count);

}  // namespace fourpiles
