#include "plan/request_lengths.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/checked.h"
#include "base/try.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLeastBuffered = std::size_t{1} << 16;
constexpr std::size_t kMostPairs = std::size_t{1} << 22;

bool ComesBefore(const RequestLength& a, const RequestLength& b) {
  return a.Total() != b.Total() ? a.Total() < b.Total() : a.prompt < b.prompt;
}

// Adds rows up. They are sorted and equal ones merged whenever there are twice as many as were
// left the last time: what is kept grows with the different pairs alone, and no table of hashes is
// open to keys chosen to collide.
class Tally {
 public:
  explicit Tally(std::string_view what) : what_(what) {}

  Result<void> Add(const RequestLength& row, const RequestRows& rows) {
    if (row.count == 0) {
      return {};
    }
    requests_ = requests_ + row.count;
    prompt_tokens_ = prompt_tokens_ + Checked(row.prompt) * row.count;
    output_tokens_ = output_tokens_ + Checked(row.output) * row.count;
    if (!requests_.ok() || !(prompt_tokens_ + output_tokens_).ok()) {
      return TooMany(rows, fmt::format("{} up to here", requests_.ok() ? "tokens" : what_),
                     "2^53 in all");
    }
    rows_.push_back(row);
    if (rows_.size() >= most_buffered_) {
      Merge();
      most_buffered_ = std::max(kLeastBuffered, 2 * rows_.size());
    }
    if (rows_.size() > 2 * kMostPairs) {
      return TooMany(rows, "different lengths", fmt::format("{}", kMostPairs));
    }
    return {};
  }

  // Error: no requests, or too many different ones.
  Result<RequestLengths> Finish(const RequestRows& rows, std::string_view name) {
    Merge();
    if (rows_.empty()) {
      return BadInput({.where = std::string(name),
                       .found = fmt::format("no {}", what_.substr(0, what_.size() - 1)),
                       .expected = "expected at least one",
                       .hint = "a row of count 0 is none"});
    }
    if (rows_.size() > kMostPairs) {
      return TooMany(rows, "different lengths", fmt::format("{}", kMostPairs));
    }
    const auto requests = static_cast<double>(requests_.value());
    RequestLengths lengths = {
        .requests = requests_.value(),
        .mean_prompt = static_cast<double>(prompt_tokens_.value()) / requests,
        .mean_output = static_cast<double>(output_tokens_.value()) / requests,
        .mean_total = static_cast<double>((prompt_tokens_ + output_tokens_).value()) / requests,
        .p50 = Percentile(50),
        .p95 = Percentile(95),
        .p99 = Percentile(99),
        .worst = rows_.back().Total()};
    lengths.rows = std::move(rows_);
    return lengths;
  }

 private:
  tl::unexpected<Error> TooMany(const RequestRows& rows, std::string what,
                                std::string_view most) const {
    return BadInput({.where = rows.Where(),
                     .found = "too many " + std::move(what),
                     .expected = fmt::format("expected at most {}", most),
                     .hint = fmt::format("check the columns, or give a sample of the {}", what_)});
  }

  void Merge() {
    std::ranges::sort(rows_, [](const auto& a, const auto& b) { return ComesBefore(a, b); });
    std::size_t merged = 0;
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      if (!ComesBefore(rows_[merged], rows_[i])) {  // they are equal
        rows_[merged].count += rows_[i].count;
      } else {
        rows_[++merged] = rows_[i];
      }
    }
    rows_.resize(std::min(rows_.size(), merged + 1));
  }

  // By nearest rank: the total of the request at place ⌈requests × percent ÷ 100⌉.
  std::int64_t Percentile(std::int64_t percent) const {
    const std::int64_t requests = requests_.value();  // × 100 stays below 2^60
    const std::int64_t place = (requests * percent + 99) / 100;
    std::int64_t passed = 0;
    for (const RequestLength& row : rows_) {
      passed += row.count;
      if (passed >= place) {
        return row.Total();
      }
    }
    return rows_.back().Total();
  }

  std::string_view what_;
  std::vector<RequestLength> rows_ = {};
  std::size_t most_buffered_ = kLeastBuffered;
  Checked requests_ = 0;
  Checked prompt_tokens_ = 0;
  Checked output_tokens_ = 0;
};

}  // namespace

Result<RequestLengths> ReadRequestLengths(const std::string& path) {
  TRY(const FileSource file, FileSource::Open(path));
  return ReadRequestLengths(file);
}

Result<RequestLengths> ReadRequestLengths(const ByteSource& source) {
  TRY(const std::unique_ptr<RequestRows> rows, OpenRequestRows(source));
  return AddUpRows(*rows, source.Name(), "requests");
}

Result<RequestLengths> AddUpRows(RequestRows& rows, std::string_view name, std::string_view what) {
  Tally tally(what);
  while (true) {
    TRY(const std::optional<RequestLength> row, rows.Next());
    if (!row) {
      return tally.Finish(rows, name);
    }
    TRY_VOID(tally.Add(*row, rows));
  }
}

double ShareWithin(const RequestLengths& lengths, std::int64_t tokens) {
  std::int64_t within = 0;
  for (const RequestLength& row : lengths.rows) {
    if (row.Total() > tokens) {
      break;
    }
    within += row.count;
  }
  return static_cast<double>(within) / static_cast<double>(lengths.requests);
}

std::int64_t MeanTokensInBlocks(const RequestLengths& lengths, std::int64_t block_tokens) {
  CHECK(block_tokens >= 1);
  Checked blocks = 0;  // at most the tokens, which are within 2^53
  for (const RequestLength& row : lengths.rows) {
    blocks = blocks + DivideRoundingUp(Checked(row.Total()), block_tokens) * row.count;
  }
  return OrLargest(DivideRoundingUp(blocks * block_tokens, lengths.requests));
}

}  // namespace fourpiles
