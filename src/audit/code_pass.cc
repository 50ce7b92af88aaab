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

constexpr std::int64_t kPiece = 98304;  // elements that stand in the second-level cache
constexpr std::int64_t kShortPiece = 8192;
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

// Codes that a format is asked about.
struct LookedAt {
  std::vector<CountedCode> codes = {};
  std::vector<double> values = {};  // of them
  std::vector<double> counts = {};  // of them
  bool without_signs = false;       // each stands for its negative too

  LookedAt() = default;
  explicit LookedAt(std::vector<CountedCode> counted, bool by_magnitude = false)
      : codes(std::move(counted)),
        values(codes.size()),
        counts(codes.size()),
        without_signs(by_magnitude) {
    std::ranges::transform(codes, values.begin(), &CountedCode::value);
    std::ranges::transform(codes, counts.begin(),
                           [](const CountedCode& code) { return static_cast<double>(code.count); });
  }
};

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
  void CountPiece(std::int64_t first, std::span<const std::uint16_t> codes, CodeCounters& counters);
  std::unique_ptr<CodeCounts> TakeOne();
  void Join();
  Result<void> FinishFormat(const LookedAt& looked_at, std::size_t number, TensorOutcome& outcome,
                            AuditScratch& scratch) const;
  Result<std::int64_t> WorstPlace(const LookedAt& looked_at, std::span<const double> relatives,
                                  double largest, AuditScratch& scratch) const;
  Result<std::int64_t> FirstPlaceOf(std::span<const std::uint16_t> wanted, std::uint16_t ignored,
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

// Counts the codes from element `first` on, channel by channel.
void CodePass::CountPiece(std::int64_t first, std::span<const std::uint16_t> codes,
                          CodeCounters& counters) {
  const FiniteCodes finite = {.mask = static_cast<std::uint16_t>(MagnitudeMask(table_.format)),
                              .limit = static_cast<std::uint16_t>(LargestCode(table_.format) + 1)};
  if (channels_.AreKept()) {
    channels_.Take(first, std::ssize(codes), [&](std::int64_t place, std::int64_t count) {
      const auto part =
          codes.subspan(static_cast<std::size_t>(place), static_cast<std::size_t>(count));
      return table_.values[CountCodes(part, finite, counters)];
    });
  } else {
    CountCodes(codes, finite, counters);
  }
  EndPiece(codes, counters);
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
  if (counts_.empty()) {  // an empty tensor
    counts_.push_back(plan_.TakeCounts());
  }
  while (counts_.size() > 1) {
    MoveCounts(*counts_.back(), *counts_.front());
    plan_.GiveBack(std::move(counts_.back()));
    counts_.pop_back();
  }
}

Result<void> CodePass::Run(std::int64_t index, AuditScratch& scratch) {
  const Span span = spans_.At(index);
  for (std::int64_t done = 0; done < span.Elements(); done += kPiece) {
    const std::int64_t first = span.first + done;
    TRY(const auto codes,
        ReadCodes(tensor_.values, first, std::min(kPiece, span.Elements() - done), scratch));
    CountPiece(first, codes, scratch.counters);
  }
  std::unique_ptr<CodeCounts> counts = TakeOne();
  TakeCounts(static_cast<std::uint32_t>(index), scratch.counters, *counts);
  const std::lock_guard lock(mutex_);
  counts_.push_back(std::move(counts));
  return {};
}

// The first element whose code is one of those wanted, or was before the bits of `ignored` were
// set. Most often it stands near the front of its span.
Result<std::int64_t> CodePass::FirstPlaceOf(std::span<const std::uint16_t> wanted,
                                            std::uint16_t ignored, AuditScratch& scratch) const {
  const auto mask = static_cast<std::uint16_t>(MagnitudeMask(table_.format));
  CodeRange range = {.mask = mask, .lowest = mask};  // usually none but those wanted is in it
  std::uint32_t first_span = CodeCounts::kNowhere;
  const std::vector<std::uint32_t>& firsts = counts_.front()->firsts;
  for (const std::uint16_t code : wanted) {
    const auto magnitude = static_cast<std::uint16_t>(code & mask);
    range = {mask, std::min(range.lowest, magnitude), std::max(range.highest, magnitude)};
    first_span = std::min({first_span, firsts[code], firsts[code | ignored]});
  }
  const Span span = spans_.At(first_span);
  std::int64_t piece = kShortPiece;
  for (std::int64_t done = 0; done < span.Elements(); done += std::exchange(piece, kPiece)) {
    piece = std::min(piece, span.Elements() - done);
    TRY(const auto codes, ReadCodes(tensor_.values, span.first + done, piece, scratch));
    for (std::size_t i = 0; i < codes.size(); ++i) {
      i += FirstOf(codes.subspan(i), range);
      if (i < codes.size() && std::ranges::binary_search(wanted, codes[i] & ~ignored)) {
        return span.first + done + static_cast<std::int64_t>(i);
      }
    }
  }
  return kNowhere;  // the file has changed meanwhile
}

// Where the largest of the relative errors of the codes, which is not 0, stands first.
Result<std::int64_t> CodePass::WorstPlace(const LookedAt& looked_at,
                                          std::span<const double> relatives, double largest,
                                          AuditScratch& scratch) const {
  std::vector<std::uint16_t> worst;
  for (std::size_t i = 0; i < relatives.size(); ++i) {
    if (relatives[i] == largest) {
      worst.push_back(static_cast<std::uint16_t>(looked_at.codes[i].code));
    }
  }
  const std::uint64_t sign = SignCode(looked_at.without_signs, table_.format);
  return FirstPlaceOf(worst, static_cast<std::uint16_t>(sign), scratch);
}

Result<void> CodePass::FinishFormat(const LookedAt& looked_at, std::size_t number,
                                    TensorOutcome& outcome, AuditScratch& scratch) const {
  const FormatWay way =
      WayOf(plan_.Formats()[number], plan_.OverflowPolicy(), outcome.facts.Facts().largest);
  const std::vector<double> rounded = RoundedValues(looked_at.values, way);
  std::vector<double> relatives(rounded.size());
  Losses& losses = outcome.audit.formats[number].losses;
  losses = LossesOf({looked_at.values, rounded, looked_at.counts}, way.limits, relatives,
                    scratch.code_errors);
  outcome.AddErrors(number, scratch.code_errors);
  scratch.code_errors.Clear();
  if (losses.largest_relative_error > 0) {
    TRY(losses.largest_at,
        WorstPlace(looked_at, relatives, losses.largest_relative_error, scratch));
  }
  return {};
}

Result<void> CodePass::Finish(TensorOutcome& outcome, AuditScratch& scratch) {
  Join();
  CodeCounts& counts = *counts_.front();
  const LookedAt all(CountedCodes(counts, table_.values));
  const LookedAt magnitudes =
      table_.format.has_sign ? LookedAt(WithoutSigns(all.codes, table_.format), true) : LookedAt();
  outcome.facts = FactsOf(all.codes);
  outcome.audit.channels = channels_.Facts();
  for (std::size_t i = 0; i < plan_.Formats().size(); ++i) {
    const auto* const format = std::get_if<NumberFormat>(&plan_.Formats()[i].format);
    if (format != nullptr) {
      const bool by_magnitude = table_.format.has_sign && format->has_sign;
      TRY_VOID(FinishFormat(by_magnitude ? magnitudes : all, i, outcome, scratch));
    }
  }
  ClearCounts(counts);
  plan_.GiveBack(std::move(counts_.front()));
  return {};
}

}  // namespace

std::unique_ptr<AuditPass> MakeCodePass(const AuditedTensor& tensor, AuditPlan& plan) {
  return std::make_unique<CodePass>(tensor, plan);
}

}  // namespace fourpiles
