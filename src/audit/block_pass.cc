// A block format: spans of whole blocks are encoded, decoded and compared.

#include <algorithm>
#include <mutex>

#include "audit/audit_pass.h"
#include "base/try.h"
#include "formats/block_layout.h"

namespace fourpiles {
namespace {

// Blocks of tables run through the whole tensor, others begin anew with each row. Scales of scales
// are cut by no span.
Spans SpansOf(const AuditedTensor& tensor, const BlockFormat& format) {
  const std::int64_t elements = tensor.values.Elements();
  constexpr auto kScales = static_cast<std::int64_t>(kScalesPerGroup);
  const std::int64_t block = std::max(1, format.block_elements);
  return format.kind == BlockKind::kCodeBook
             ? Spans::Flat(elements, std::max(kFlatSpan, kScales * block))
             : Spans::Rows(elements, tensor.Columns(), block);
}

class BlockPass final : public AuditPass {
 public:
  BlockPass(const AuditedTensor& tensor, const AuditPlan& plan, std::size_t format)
      : tensor_(tensor),
        index_(format),
        format_(std::get<BlockFormat>(plan.Formats()[format].format)),
        saturates_(plan.OverflowPolicy() == Overflow::kSaturate),
        spans_(SpansOf(tensor, format_)),
        sampled_(SampledOf(tensor.values.Elements())),
        results_(static_cast<std::size_t>(spans_.Count())) {}

  std::int64_t Count() const override { return spans_.Count(); }
  Result<void> Run(std::int64_t index, AuditScratch& scratch) override;
  Result<void> Finish(TensorOutcome& outcome, AuditScratch& scratch) override;

 private:
  struct SpanResult {
    Losses losses;
    ScaleFacts scales;
  };
  void Compare(const Span& span, std::span<const float> values, std::span<const float> rounded,
               SpanResult& result);

  const AuditedTensor& tensor_;
  std::size_t index_;  // of the format in the plan
  BlockFormat format_;
  bool saturates_;
  Spans spans_;
  std::size_t sampled_;  // elements of a block
  std::vector<SpanResult> results_;
  std::mutex mutex_;
  ErrorHistogram errors_;
  std::string not_possible_;
};

void BlockPass::Compare(const Span& span, std::span<const float> values,
                        std::span<const float> rounded, SpanResult& result) {
  ErrorHistogram errors;
  for (std::size_t done = 0; done < values.size(); done += kLossBlock) {
    const std::size_t count = std::min(kLossBlock, values.size() - done);
    const BlockLosses block = CountLosses(values.subspan(done, count), rounded.subspan(done, count),
                                          {}, std::min(sampled_, count), errors);
    Add(LossesOf(block, span.first + static_cast<std::int64_t>(done)), result.losses);
  }
  const std::lock_guard lock(mutex_);
  errors_.Add(errors);
}

Result<void> BlockPass::Run(std::int64_t index, AuditScratch& scratch) {
  const Span span = spans_.At(index);
  const auto elements = static_cast<std::size_t>(span.Elements());
  scratch.floats.resize(std::max(scratch.floats.size(), elements));
  scratch.rounded_floats.resize(std::max(scratch.rounded_floats.size(), elements));
  const std::span<float> values = std::span(scratch.floats).first(elements);
  const std::span<float> rounded = std::span(scratch.rounded_floats).first(elements);
  const bool cuts_a_channel = spans_.CutsRows() && tensor_.values.Elements() != spans_.RowLength();
  if (format_.granularity == Granularity::kChannel && cuts_a_channel) {
    const std::lock_guard lock(mutex_);
    not_possible_ = "a scale for each row of more than 4,194,304 elements";
    return {};
  }
  TRY_VOID(tensor_.values.Read(span.first, values));
  if (saturates_) {  // else what is not finite takes the values beside it along
    ZeroNonFinite(values);
  }
  BlockRounder rounder(format_, {tensor_.whole.extremes, tensor_.whole.scale_offsets[index_]},
                       NeedsExtremes(format_, spans_.CutsRows()));
  if (const auto done = rounder.Round(span, values, rounded); !done) {
    const std::lock_guard lock(mutex_);
    const ErrorText& text = done.error().text;
    not_possible_ = text.found + (text.expected.empty() ? "" : ", " + text.expected);
    return {};
  }
  SpanResult& result = results_[static_cast<std::size_t>(index)];
  if (HasScales(format_)) {
    result.scales = rounder.Scales(values);
  }
  Compare(span, values, rounded, result);
  return {};
}

Result<void> BlockPass::Finish(TensorOutcome& outcome, AuditScratch& /*scratch*/) {
  FormatLosses& to = outcome.audit.formats[index_];
  to.not_possible = not_possible_;
  if (!not_possible_.empty()) {
    return {};
  }
  ScaleFacts scales;
  for (const SpanResult& result : results_) {
    Add(result.losses, to.losses);
    Add(result.scales, scales);
  }
  if (HasOneScale(format_, spans_.CutsRows())) {  // each of the spans has told of it
    scales.scales = std::min<std::int64_t>(scales.scales, 1);
    scales.zero = std::min<std::int64_t>(scales.zero, 1);
    scales.lost_blocks = std::min<std::int64_t>(scales.lost_blocks, 1);
  }
  if (HasScales(format_)) {
    to.scales = scales;
  }
  to.losses.relative_error_p99 = RelativeErrorP99(errors_, to.losses);
  outcome.AddErrors(index_, errors_, kLossBlock / sampled_);
  return {};
}

}  // namespace

std::unique_ptr<AuditPass> MakeBlockPass(const AuditedTensor& tensor, const AuditPlan& plan,
                                         std::size_t format) {
  return std::make_unique<BlockPass>(tensor, plan, format);
}

}  // namespace fourpiles
