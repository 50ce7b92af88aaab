// Tensors of at most 16 bits an element: their codes are counted.

#include <algorithm>
#include <mutex>
#include <utility>

#include "audit/audit_pass.h"
#include "audit/channel_maxima.h"
#include "audit/code_losses.h"
#include "base/try.h"
#include "formats/codes.h"

namespace fourpiles {
namespace {

constexpr std::size_t kCodes = CodeCounts::kCodes;
constexpr std::int64_t kPiece = 65536;  // elements that stand in the second-level cache
constexpr std::int64_t kNowhere = -1;

// Codes of one or two bytes, as two.
Result<std::span<const std::uint16_t>> ReadCodes(const TensorValues& values, std::int64_t first,
                                                 std::int64_t count, AuditScratch& scratch) {
  const auto size = static_cast<std::size_t>(count);
  scratch.codes.resize(kPiece);
  const std::span<std::uint16_t> codes = std::span(scratch.codes).first(size);
  if (values.CodeBytesOf(1) == 2) {
    TRY_VOID(values.ReadCodes(first, count, std::as_writable_bytes(codes)));
    return codes;
  }
  scratch.bytes.resize(kPiece);
  const std::span<std::byte> bytes = std::span(scratch.bytes).first(size);
  TRY_VOID(values.ReadCodes(first, count, bytes));
  std::ranges::transform(bytes, codes.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint16_t>(byte); });
  return codes;
}

class CodePass final : public AuditPass {
 public:
  CodePass(const AuditedTensor& tensor, AuditPlan& plan)
      : tensor_(tensor),
        plan_(plan),
        table_(plan.TableOf(*tensor.values.Format())),
        spans_(Spans::Flat(tensor.values.Elements(), kCodeSpan)),
        channels_(tensor.shape) {}

  std::int64_t Count() const override { return spans_.Count(); }
  Result<void> Run(std::int64_t index, AuditScratch& scratch) override;
  Result<void> Finish(TensorOutcome& outcome, AuditScratch& scratch) override;

 private:
  void TakeChannels(std::int64_t first, std::span<const std::uint16_t> codes);
  std::unique_ptr<CodeCounts> TakeOne();
  void Join();
  Result<std::int64_t> FirstPlaceOf(const std::vector<std::uint16_t>& wanted,
                                    AuditScratch& scratch) const;

  const AuditedTensor& tensor_;
  AuditPlan& plan_;
  const CodeTable& table_;
  Spans spans_;
  std::mutex mutex_;
  // Those that no thread works on. Each thread has counts of its own: a core that reads what
  // another one wrote waits for it.
  std::vector<std::unique_ptr<CodeCounts>> counts_;
  ChannelMaxima channels_;
};

void CodePass::TakeChannels(std::int64_t first, std::span<const std::uint16_t> codes) {
  if (!channels_.AreKept()) {
    return;
  }
  const NumberFormat& format = table_.format;
  const auto mask = static_cast<std::uint16_t>(MagnitudeMask(format));
  const auto limit = static_cast<std::uint16_t>(LargestCode(format) + 1);
  channels_.Take(
      first, static_cast<std::int64_t>(codes.size()), [&](std::int64_t place, std::int64_t count) {
        const auto piece =
            codes.subspan(static_cast<std::size_t>(place), static_cast<std::size_t>(count));
        return table_.values[LargestCodeBelow(piece, mask, limit)];
      });
}

std::unique_ptr<CodeCounts> CodePass::TakeOne() {
  const std::lock_guard lock(mutex_);
  if (counts_.empty()) {
    return plan_.TakeCounts();
  }
  std::unique_ptr<CodeCounts> counts = std::move(counts_.back());
  counts_.pop_back();
  return counts;
}

// Makes one of the counts of all threads.
void CodePass::Join() {
  while (counts_.size() > 1) {
    CodeCounts& from = *counts_.back();
    CodeCounts& to = *counts_.front();
    for (std::size_t code = 0; code < kCodes; ++code) {
      to.totals[code] += std::exchange(from.totals[code], 0);
      to.firsts[code] =
          std::min(to.firsts[code], std::exchange(from.firsts[code], CodeCounts::kNowhere));
    }
    plan_.GiveBack(std::move(counts_.back()));
    counts_.pop_back();
  }
}

Result<void> CodePass::Run(std::int64_t index, AuditScratch& scratch) {
  const Span span = spans_.At(index);
  scratch.counts.resize(kCodes);  // all 0 between spans
  const std::span<std::uint32_t> counts = scratch.counts;
  for (std::int64_t done = 0; done < span.Elements(); done += kPiece) {
    const std::int64_t first = span.first + done;
    TRY(const auto codes,
        ReadCodes(tensor_.values, first, std::min(kPiece, span.Elements() - done), scratch));
    CountCodes(codes, counts);
    TakeChannels(first, codes);
  }
  std::unique_ptr<CodeCounts> to = TakeOne();
  TakeCounts(counts, static_cast<std::uint32_t>(index), {to->totals, to->firsts});
  const std::lock_guard lock(mutex_);
  counts_.push_back(std::move(to));
  return {};
}

// The first element that has one of the codes, which all occur.
Result<std::int64_t> CodePass::FirstPlaceOf(const std::vector<std::uint16_t>& wanted,
                                            AuditScratch& scratch) const {
  const CodeCounts& counts = *counts_.front();
  std::uint32_t first_span = CodeCounts::kNowhere;
  std::vector<bool> is_wanted(kCodes);
  for (const std::uint16_t code : wanted) {
    first_span = std::min(first_span, counts.firsts[code]);
    is_wanted[code] = true;
  }
  const Span span = spans_.At(first_span);
  for (std::int64_t done = 0; done < span.Elements(); done += kPiece) {
    TRY(const auto codes, ReadCodes(tensor_.values, span.first + done,
                                    std::min(kPiece, span.Elements() - done), scratch));
    // The usual case is one magnitude, with either sign.
    const auto found =
        wanted.size() <= 2
            ? FirstOf(codes, wanted.front(), wanted.back())
            : static_cast<std::size_t>(
                  std::ranges::find_if(codes, [&](std::uint16_t code) { return is_wanted[code]; }) -
                  codes.begin());
    if (found < codes.size()) {
      return span.first + done + static_cast<std::int64_t>(found);
    }
  }
  return kNowhere;  // the file has changed meanwhile
}

Result<void> CodePass::Finish(TensorOutcome& outcome, AuditScratch& scratch) {
  if (counts_.empty()) {  // an empty tensor
    counts_.push_back(plan_.TakeCounts());
  }
  Join();
  const std::vector<CountedCode> codes = CountedCodes(counts_.front()->totals, table_.values);
  outcome.facts = FactsOf(codes);
  outcome.audit.channels = channels_.Facts();
  const double largest = outcome.facts.Facts().largest;
  for (std::size_t i = 0; i < plan_.Formats().size(); ++i) {
    const AuditFormat& format = plan_.Formats()[i];
    if (!std::holds_alternative<NumberFormat>(format.format)) {
      continue;
    }
    const FormatWay way = WayOf(format, plan_.OverflowPolicy(), largest);
    const std::vector<double> scaled =
        format.scaled ? RoundedCodes(codes, way) : std::vector<double>();
    const std::vector<double>& rounded = format.scaled ? scaled : table_.rounded[i];
    Losses& losses = outcome.audit.formats[i].losses;
    losses = LossesOf(codes, rounded, way.limits, outcome.errors[i]);
    if (losses.largest_relative_error > 0) {
      TRY(losses.largest_at,
          FirstPlaceOf(WorstCodes(codes, rounded, losses.largest_relative_error), scratch));
    }
  }
  std::ranges::fill(counts_.front()->totals, 0);
  std::ranges::fill(counts_.front()->firsts, CodeCounts::kNowhere);
  plan_.GiveBack(std::move(counts_.front()));
  return {};
}

}  // namespace

std::unique_ptr<AuditPass> MakeCodePass(const AuditedTensor& tensor, AuditPlan& plan) {
  return std::make_unique<CodePass>(tensor, plan);
}

}  // namespace fourpiles
