#include "plan/sample_lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/csv_reader.h"
#include "base/nearest_name.h"
#include "base/range.h"
#include "base/try.h"
#include "plan/request_lengths.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLongestShown = 100;
constexpr Range kLengths = {1, kLargestAmount};
constexpr Range kCounts = {0, kLargestAmount};

// Of a header, in lower case, ours first.
constexpr std::string_view kLengthNames[] = {
    "length",          "len",       "tokens",      "num_tokens",  "n_tokens", "seq_len", "seqlen",
    "sequence_length", "input_len", "token_count", "input_length"};
constexpr std::string_view kCountNames[] = {"count", "samples", "num_samples", "frequency", "n"};

bool IsOneOf(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, LowerCase(name)) != names.end();
}

bool LooksLikeNumber(std::string_view text) {
  return !text.empty() && ((text.front() >= '0' && text.front() <= '9') || text.front() == '-' ||
                           text.front() == '+' || text.front() == '.');
}

// Where the length and the count stand in a record.
struct Places {
  std::size_t length = 0;
  std::optional<std::size_t> count = {};
};

// A length is a request that has no output.
class LengthRows final : public RequestRows {
 public:
  LengthRows(const ByteSource& source, std::int64_t begin)
      : name_(source.Name()), csv_(source, begin) {}

  // Reads the first record, and its names where it is a header. Error: names that are not known.
  Result<void> Begin() {
    TRY(const bool any, csv_.Next(fields_));
    if (!any) {
      return BadInput({.where = name_,
                       .found = "an empty file",
                       .expected = "expected a length a line",
                       .hint = "docs/LENGTHS.md shows the forms"});
    }
    waits_ = std::ranges::any_of(fields_, LooksLikeNumber);
    if (waits_) {
      if (fields_.size() > 2) {
        return BadInput({.where = Where(),
                         .found = fmt::format("{} numbers and no header", fields_.size()),
                         .expected = "expected a length, or a length and its count",
                         .hint = "a header names the columns: length,count"});
      }
      numbers_ = fields_.size();
      places_.count = numbers_ == 2 ? std::optional<std::size_t>(1) : std::nullopt;
      return {};
    }
    return ReadHeader();
  }

  Result<std::optional<RequestLength>> Next() override {
    if (!std::exchange(waits_, false)) {
      TRY(const bool more, csv_.Next(fields_));
      if (!more) {
        return std::nullopt;
      }
    }
    if (numbers_ > 0 && fields_.size() != numbers_) {
      return BadInput({.where = Where(),
                       .found = fmt::format("{} fields", fields_.size()),
                       .expected = fmt::format("expected {}, as in the first line", numbers_),
                       .hint = "a length a line, or a length and its count: 512,3"});
    }
    RequestLength row;
    TRY(row.prompt, ReadNumber(places_.length, "length", kLengths));
    if (places_.count) {
      TRY(row.count, ReadNumber(*places_.count, "count", kCounts));
    }
    return row;
  }

  std::string Where() const override { return csv_.Where(); }

 private:
  Result<void> ReadHeader() {
    std::optional<std::size_t> length;
    for (std::size_t place = 0; place < fields_.size(); ++place) {
      const bool is_length = IsOneOf(kLengthNames, fields_[place]);
      if (!is_length && !IsOneOf(kCountNames, fields_[place])) {
        continue;
      }
      std::optional<std::size_t>& column = is_length ? length : places_.count;
      if (column) {
        return BadInput({.where = Where(),
                         .found = fmt::format("{} twice, perhaps under two names",
                                              is_length ? "length" : "count"),
                         .expected = "expected it once",
                         .hint = "take the other column out"});
      }
      column = place;
    }
    if (!length) {
      const std::string_view first = fields_.front().substr(0, kLongestShown);
      const std::string nearest = DidYouMean(first, kLengthNames);
      return BadInput(
          {.where = Where(),
           .found = fmt::format("\"{}\"", first),
           .expected = nearest.empty() ? "expected a length, or the name length" : nearest,
           .hint = "docs/LENGTHS.md shows the forms"});
    }
    places_.length = *length;
    return {};
  }

  Result<std::int64_t> ReadNumber(std::size_t place, std::string_view name, Range range) const {
    const std::string_view text = place < fields_.size() ? fields_[place] : std::string_view();
    std::int64_t number = 0;
    const char* const text_end = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), text_end, number);
    if (!text.empty() && error == std::errc() && end == text_end && range.Holds(number)) {
      return number;
    }
    return BadInput(
        {.where = fmt::format("{}: {}", Where(), name),
         .found = text.empty() ? "nothing" : fmt::format("\"{}\"", text.substr(0, kLongestShown)),
         .expected = ExpectedWholeNumber(range),
         .hint = text.find(' ') == std::string_view::npos
                     ? ""
                     : "write a length and its count with a comma: 512,3"});
  }

  std::string name_;
  CsvReader csv_;
  std::vector<std::string_view> fields_ = {};
  bool waits_ = false;       // the first record, already read
  std::size_t numbers_ = 0;  // in every record, without a header
  Places places_ = {};
};

// How many standard deviations above the mean that share of a normal distribution ends, by halves.
double NormalQuantile(double share) {
  double low = -10;
  double high = 10;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    const bool is_below = std::erfc(-middle / std::numbers::sqrt2) / 2 < share;
    (is_below ? low : high) = middle;
  }
  return low;
}

// Excel writes a byte order mark.
Result<std::int64_t> BeginOf(const ByteSource& source) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string head(static_cast<std::size_t>(std::min<std::int64_t>(3, source.Size())), '\0');
  TRY_VOID(source.ReadAt(0, std::as_writable_bytes(std::span(head))));
  return head == kMark ? std::ssize(kMark) : 0;
}

}  // namespace

Result<SampleLengths> ReadSampleLengths(const std::string& path) {
  TRY(const FileSource file, FileSource::Open(path));
  return ReadSampleLengths(file);
}

Result<SampleLengths> ReadSampleLengths(const ByteSource& source) {
  TRY(const std::int64_t begin, BeginOf(source));
  LengthRows rows(source, begin);
  TRY_VOID(rows.Begin());
  TRY(const RequestLengths read, AddUpRows(rows, source.Name(), "samples"));
  SampleLengths lengths = {.samples = read.requests};
  lengths.rows.reserve(read.rows.size());
  for (const RequestLength& row : read.rows) {
    lengths.rows.push_back({.length = row.prompt, .samples = row.count});
    lengths.tokens += row.prompt * row.count;  // within 2^53 in all, as AddUpRows checks
  }
  return lengths;
}

SampleLengths LogNormalLengths(double mean, double deviation) {
  constexpr std::size_t kSamples = 1000;
  const double variance = std::log1p((deviation / mean) * (deviation / mean));  // of the logarithm
  const double center = std::log(mean) - variance / 2;
  SampleLengths lengths;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / kSamples;
    const double logarithm = center + std::sqrt(variance) * NormalQuantile(share);
    const auto length = std::max<std::int64_t>(1, std::llround(std::exp(logarithm)));
    if (lengths.rows.empty() || lengths.rows.back().length != length) {
      lengths.rows.push_back({.length = length, .samples = 0});
    }
    ++lengths.rows.back().samples;
    ++lengths.samples;
    lengths.tokens += length;
  }
  return lengths;
}

std::optional<SampleLengths> WithoutLonger(const SampleLengths& lengths, std::int64_t limit) {
  SampleLengths kept;
  for (const LengthCount& row : lengths.rows) {
    if (row.length <= limit) {
      kept.rows.push_back(row);
      kept.samples += row.samples;
      kept.tokens += row.length * row.samples;
    }
  }
  return kept.samples > 0 ? std::optional(std::move(kept)) : std::nullopt;
}

std::int64_t Percentile(const SampleLengths& lengths, std::int64_t thousandths) {
  // Of at most 2^53 samples, so that the product stays below 2^63.
  const std::int64_t place = (lengths.samples * thousandths + 999) / 1000;
  std::int64_t passed = 0;
  for (const LengthCount& row : lengths.rows) {
    passed += row.samples;
    if (passed >= place) {
      return row.length;
    }
  }
  return lengths.Longest();
}

LimitShares SharesAt(const SampleLengths& lengths, std::int64_t limit) {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t cut = 0;
  for (const LengthCount& row : lengths.rows) {
    if (row.length <= limit) {
      samples += row.samples;
      tokens += row.length * row.samples;
    } else {
      cut += (row.length - limit) * row.samples;
    }
  }
  const auto all_samples = static_cast<double>(lengths.samples);
  const auto all_tokens = static_cast<double>(lengths.tokens);
  return {.samples_whole = static_cast<double>(samples) / all_samples,
          .tokens_whole = static_cast<double>(tokens) / all_tokens,
          .samples_cut = static_cast<double>(lengths.samples - samples) / all_samples,
          .tokens_cut = static_cast<double>(cut) / all_tokens};
}

double MeanLength(const SampleLengths& lengths, std::int64_t limit) {
  const double kept = 1 - SharesAt(lengths, limit).tokens_cut;
  return kept * static_cast<double>(lengths.tokens) / static_cast<double>(lengths.samples);
}

double MeanLongest(const SampleLengths& lengths, std::int64_t limit, std::int64_t batch) {
  double mean = 0;
  double before = 0;  // F^batch of the row before
  std::int64_t passed = 0;
  for (const LengthCount& row : lengths.rows) {
    passed += row.samples;
    const double share = static_cast<double>(passed) / static_cast<double>(lengths.samples);
    const double within = std::pow(share, static_cast<double>(batch));
    mean += static_cast<double>(std::min(row.length, limit)) * (within - before);
    before = within;
  }
  return mean;
}

std::vector<std::int64_t> LongestOfBatches(const SampleLengths& lengths, std::int64_t limit,
                                           std::int64_t batch, std::size_t count) {
  std::vector<std::int64_t> longest;
  longest.reserve(count);
  std::int64_t passed = 0;
  for (const LengthCount& row : lengths.rows) {
    passed += row.samples;
    const double share = static_cast<double>(passed) / static_cast<double>(lengths.samples);
    const double within = std::pow(share, static_cast<double>(batch)) * static_cast<double>(count);
    while (longest.size() < count && static_cast<double>(longest.size()) + 0.5 <= within) {
      longest.push_back(std::min(row.length, limit));
    }
  }
  longest.back() = std::min(lengths.Longest(), limit);
  return longest;
}

}  // namespace fourpiles
