#include "audit/findings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "units/print.h"

namespace fourpiles {
namespace {

constexpr int kWide = 16;   // bits of formats that should lose next to nothing
constexpr int kByte = 8;    // … that hold a tensor without a scale
constexpr int kNibble = 4;  // … that need one for every block

// A tensor in a format, with what is needed to judge it.
struct Case {
  const Audit& audit;
  const Thresholds& thresholds;
  std::int32_t tensor;
  std::int32_t format;

  const TensorAudit& Tensor() const { return audit.tensors[static_cast<std::size_t>(tensor)]; }
  const AuditFormat& Format() const { return audit.formats[static_cast<std::size_t>(format)]; }
  const FormatLosses& InFormat() const {
    return Tensor().formats[static_cast<std::size_t>(format)];
  }
  const NumberFormat* OfOneValue() const { return std::get_if<NumberFormat>(&Format().format); }
  // Of an element, its share of a scale left out.
  int ElementBits() const {
    const NumberFormat* const number = OfOneValue();
    return number != nullptr
               ? Bits(*number)
               : static_cast<int>(BitsPerElement(std::get<BlockFormat>(Format().format)));
  }
};

using Findings = std::vector<AuditFinding>;

double Share(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

// "12 of 4,096 values (0.29 %)"; "all 4,096 values".
std::string CountWords(std::int64_t part, std::int64_t of, std::string_view noun) {
  return part == of ? fmt::format("all {} {}", PrintGrouped(of), noun)
                    : fmt::format("{} of {} {} ({:.3g} %)", PrintGrouped(part), PrintGrouped(of),
                                  noun, 100 * Share(part, of));
}

std::int64_t Finite(const ValueFacts& values) {
  return values.count - values.nan - values.infinite;
}

AuditFinding Make(AuditSeverity severity, const Threshold& threshold, double value) {
  return {.severity = severity, .value = value, .limit = threshold.value, .threshold = threshold};
}

// --- The values as they are stored ---

// Zeros and infinities alone: what attention adds to scores that must not count.
bool IsMask(const ValueFacts& values) {
  return values.infinite > 0 && values.zero > 0 && values.nan == 0 && values.largest == 0;
}

void JudgeStored(const ValueFacts& values, const Thresholds& thresholds, Findings& findings) {
  const Threshold& nan = Of(thresholds, ThresholdId::kNan);
  if (const double share = Share(values.nan, values.count); share > nan.value) {
    findings.push_back(Make(AuditSeverity::kFault, nan, share));
    findings.back().what = CountWords(values.nan, values.count, "values") + " are NaN already";
    findings.back().remedy = "take the checkpoint of an earlier step";
  }
  const Threshold& infinite = Of(thresholds, ThresholdId::kInfinite);
  if (const double share = Share(values.infinite, values.count); share > infinite.value) {
    const bool mask = IsMask(values);
    findings.push_back(Make(mask ? AuditSeverity::kNote : AuditSeverity::kFault, infinite, share));
    findings.back().what = CountWords(values.infinite, values.count, "values") +
                           " are infinite already" + (mask ? ", the others zero: a mask" : "");
    findings.back().remedy = mask ? "" : "take the checkpoint of an earlier step";
  }
}

// --- The range ---

// What values past the largest one become, where they are no numbers then.
std::string_view BeyondWords(const NumberFormat& format, Overflow overflow) {
  const bool infinity = overflow == Overflow::kIeee && Infinities(format) > 0;
  const bool nan = overflow != Overflow::kSaturate && Nans(format) > 0;
  return infinity ? "infinity" : nan ? "NaN" : "";
}

std::string FittingWords(const Case& of) {
  const std::optional<double>& scale = of.InFormat().fitting_scale;
  return fmt::format("the largest is {:.5g}", of.Tensor().values.largest) +
         (scale && *scale < 1 ? fmt::format(": multiply by at most {:.3g} first, as {}:scaled does",
                                            *scale, of.Format().name)
                              : "");
}

void JudgeLargest(const Case& of, const NumberFormat& format, Findings& findings) {
  const Losses& losses = of.InFormat().losses;
  const std::int64_t finite = Finite(of.Tensor().values);
  const std::string_view beyond = BeyondWords(format, of.audit.overflow);
  const double largest = Largest(format);
  const Threshold& saturated = Of(of.thresholds, ThresholdId::kSaturated);
  const Threshold& overflow = Of(of.thresholds, ThresholdId::kOverflow);
  const double overflow_share = Share(losses.overflow, finite);
  const double saturated_share = Share(losses.saturated, finite);
  const auto past = [&](std::int64_t count) {
    return fmt::format("{} are past {:.5g}", CountWords(count, finite, "values"), largest);
  };
  if (!beyond.empty() && overflow_share > overflow.value) {
    findings.push_back(Make(AuditSeverity::kFault, overflow, overflow_share));
    findings.back().what = past(losses.overflow) + fmt::format(" and become {}", beyond);
  } else if (beyond.empty() && saturated_share > saturated.value) {
    findings.push_back(Make(AuditSeverity::kFault, saturated, saturated_share));
    findings.back().what = past(losses.saturated) + " and are clipped to it";
  } else if (overflow_share > overflow.value) {
    findings.push_back(Make(AuditSeverity::kWarning, overflow, overflow_share));
    findings.back().what = past(losses.overflow) + " and are clipped to it";
  } else {
    return;
  }
  findings.back().remedy = FittingWords(of);
}

void JudgeSmallest(const Case& of, const NumberFormat& format, Findings& findings) {
  const Losses& losses = of.InFormat().losses;
  const ValueFacts& values = of.Tensor().values;
  const std::int64_t nonzero = Finite(values) - values.zero;
  const Threshold& underflow = Of(of.thresholds, ThresholdId::kUnderflow);
  const Threshold& subnormal = Of(of.thresholds, ThresholdId::kSubnormal);
  if (const double share = Share(losses.underflow, nonzero); share > underflow.value) {
    findings.push_back(Make(AuditSeverity::kWarning, underflow, share));
    findings.back().what =
        CountWords(losses.underflow, nonzero, "values other than zero") + " become zero";
    if (const auto& scale = of.InFormat().fitting_scale;
        scale && *scale > 1 && !of.Format().scaled) {
      findings.back().remedy = fmt::format("multiply by up to {:.3g} first, as {}:scaled does",
                                           *scale, of.Format().name);
    }
  } else if (const double few = Share(losses.subnormal, nonzero);
             Bits(format) == kWide && few > subnormal.value) {
    findings.push_back(Make(AuditSeverity::kNote, subnormal, few));
    findings.back().what =
        CountWords(losses.subnormal, nonzero, "values other than zero") + " become subnormal";
  }
}

// --- The precision ---

ThresholdId FloorOf(int bits) {
  return bits >= kWide     ? ThresholdId::kSqnr16Bit
         : bits >= kByte   ? ThresholdId::kSqnr8Bit
         : bits >= kNibble ? ThresholdId::kSqnr4Bit
                           : ThresholdId::kSqnrFewBits;
}

// What rounding to nearest keeps at least while values are normal numbers: half a step is 2^−(M+1)
// of a value or less.
double InRangeDecibels(const NumberFormat& format) {
  return 20 * std::log10(2.0) * (format.fraction_bits + 1);
}

// Its figure is lower than the limit.
AuditFinding TooLow(AuditSeverity severity, const Threshold& threshold, double value,
                    double limit) {
  AuditFinding finding = Make(severity, threshold, value);
  finding.limit = limit;
  return finding;
}

void JudgePrecision(const Case& of, Findings& findings) {
  const double exact_sqnr = SignalToNoise(of.InFormat().losses);
  const double sqnr = std::abs(exact_sqnr) < 0.05 ? 0 : exact_sqnr;  // not "-0.0"
  const int bits = of.ElementBits();
  const NumberFormat* const number = of.OfOneValue();
  const Threshold& floor = Of(of.thresholds, FloorOf(bits));
  const Threshold& suspicious = Of(of.thresholds, ThresholdId::kSqnrSuspicious);
  const Threshold& in_range = Of(of.thresholds, ThresholdId::kSqnrInRange);
  const Threshold& p99 = Of(of.thresholds, ThresholdId::kRelativeP99);
  if (sqnr < floor.value) {
    findings.push_back(TooLow(AuditSeverity::kFault, floor, sqnr, floor.value));
    findings.back().what =
        fmt::format("SQNR {:.1f} dB; {:g} dB is the floor of {}", sqnr, floor.value, floor.meaning);
    return;
  }
  const double range_limit = number == nullptr ? 0 : InRangeDecibels(*number) - in_range.value;
  if (number != nullptr && bits <= kWide && sqnr < range_limit) {
    findings.push_back(TooLow(AuditSeverity::kWarning, in_range, sqnr, range_limit));
    findings.back().what = fmt::format(
        "SQNR {:.1f} dB; it is {:.1f} dB or more where values are in the range of normal numbers",
        sqnr, range_limit);
  } else if (bits >= kNibble && bits < kByte && sqnr < suspicious.value) {
    findings.push_back(TooLow(AuditSeverity::kWarning, suspicious, sqnr, suspicious.value));
    findings.back().what =
        fmt::format("SQNR {:.1f} dB; less than formats of 4 to 7 bits usually have", sqnr);
  } else if (const double share = of.InFormat().losses.relative_error_p99.value_or(0);
             bits >= kWide && share > p99.value) {
    findings.push_back(Make(AuditSeverity::kWarning, p99, share));
    findings.back().what =
        fmt::format("one value of a hundred is off by {:.3g} % or more", 100 * share);
  }
}

// --- Blocks and scales ---

void JudgeBlocks(const Case& of, Findings& findings) {
  const std::optional<ScaleFacts>& scales = of.InFormat().scales;
  const Threshold& lost = Of(of.thresholds, ThresholdId::kLostBlocks);
  if (!scales) {
    return;
  }
  if (const double share = Share(scales->lost_blocks, scales->scales); share > lost.value) {
    findings.push_back(Make(AuditSeverity::kWarning, lost, share));
    findings.back().what = CountWords(scales->lost_blocks, scales->scales, "blocks") +
                           " become zero as a whole: their scale does";
  }
}

// An infinity, a NaN or a damaged scale decides over its whole block.
void JudgeNumbers(const Case& of, Findings& findings) {
  const ValueFacts& values = of.Tensor().values;
  const std::int64_t lost = of.InFormat().losses.overflow;
  const Threshold& threshold = Of(of.thresholds, ThresholdId::kOverflow);
  if (const double share = Share(lost, Finite(values)); share > threshold.value) {
    findings.push_back(
        Make(IsMask(values) ? AuditSeverity::kNote : AuditSeverity::kFault, threshold, share));
    findings.back().what = CountWords(lost, Finite(values), "finite values") +
                           " become NaN or infinite with others of their block";
  }
}

// What one step size for a whole tensor makes of values that are few and large.
void JudgeSpread(const Case& of, Findings& findings) {
  const auto* const block = std::get_if<BlockFormat>(&of.Format().format);
  if (block == nullptr || block->kind != BlockKind::kInteger ||
      block->granularity != Granularity::kTensor) {
    return;
  }
  const Threshold& outliers = Of(of.thresholds, ThresholdId::kChannelOutliers);
  const Threshold& kurtosis = Of(of.thresholds, ThresholdId::kKurtosis);
  const std::optional<ChannelFacts>& channels = of.Tensor().channels;
  const std::string remedy = fmt::format("give each channel a scale: {}:channel", block->name);
  if (const double share = channels ? Share(channels->outliers, channels->channels) : 0;
      share > outliers.value) {
    findings.push_back(Make(AuditSeverity::kWarning, outliers, share));
    findings.back().what =
        fmt::format("{} are more than {:g} times as large as the median one",
                    CountWords(channels->outliers, channels->channels, "channels"), kOutlierRatio);
    findings.back().remedy = remedy;
  } else if (const double tails = of.Tensor().values.kurtosis.value_or(0); tails > kurtosis.value) {
    findings.push_back(Make(AuditSeverity::kNote, kurtosis, tails));
    findings.back().what =
        fmt::format("a few values are far larger than the rest: kurtosis {:.3g}", tails);
    findings.back().remedy = remedy;
  }
}

void JudgeFormat(const Case& of, Findings& findings) {
  if (!of.InFormat().not_possible.empty()) {
    return;
  }
  if (const NumberFormat* const number = of.OfOneValue()) {
    // A scale leads the largest value to the format's largest.
    if (!of.Format().scaled) {
      JudgeLargest(of, *number, findings);
    }
    if (of.ElementBits() >= kByte) {
      JudgeSmallest(of, *number, findings);
    }
  } else {
    JudgeNumbers(of, findings);
  }
  JudgePrecision(of, findings);
  JudgeBlocks(of, findings);
  JudgeSpread(of, findings);
}

// Tensors that a format cannot hold.
void JudgePossible(const Audit& audit, const Thresholds& thresholds, std::size_t format,
                   Findings& findings) {
  const auto why = [&](const TensorAudit& tensor) { return tensor.formats[format].not_possible; };
  const std::int64_t count = std::ranges::count_if(
      audit.tensors, [&](const TensorAudit& tensor) { return !why(tensor).empty(); });
  const auto total = static_cast<std::int64_t>(audit.tensors.size());
  const Threshold& threshold = Of(thresholds, ThresholdId::kNotPossible);
  if (const double share = Share(count, total); share > threshold.value) {
    findings.push_back(
        Make(count == total ? AuditSeverity::kFault : AuditSeverity::kWarning, threshold, share));
    findings.back().what = CountWords(count, total, "tensors") + " cannot be in it";
    findings.back().remedy = "they stay in a format of one value";
  }
}

// By how much a limit is passed, for the order alone. Every limit is passed in one direction.
double Distance(const AuditFinding& finding) {
  return std::abs(finding.value - finding.limit);
}

void Name(Findings& findings, std::size_t from, std::int32_t tensor, std::int32_t format) {
  for (std::size_t i = from; i < findings.size(); ++i) {
    findings[i].tensor = tensor;
    findings[i].format = format;
  }
}

}  // namespace

std::string_view Name(AuditSeverity severity) {
  switch (severity) {
    case AuditSeverity::kFault:
      return "fault";
    case AuditSeverity::kWarning:
      return "warning";
    case AuditSeverity::kNote:
      break;
  }
  return "note";
}

void Rank(std::vector<AuditFinding>& findings) {
  std::ranges::stable_sort(findings, [](const AuditFinding& a, const AuditFinding& b) {
    return std::tuple(a.severity, a.threshold.id, -Distance(a)) <
           std::tuple(b.severity, b.threshold.id, -Distance(b));
  });
}

std::vector<AuditFinding> FindingsOf(const Audit& audit, const Thresholds& thresholds) {
  std::vector<AuditFinding> findings;
  for (std::size_t i = 0; i < audit.tensors.size(); ++i) {
    const auto tensor = static_cast<std::int32_t>(i);
    std::size_t from = findings.size();
    JudgeStored(audit.tensors[i].values, thresholds, findings);
    Name(findings, from, tensor, -1);
    for (std::size_t j = 0; j < audit.tensors[i].formats.size(); ++j) {
      const auto format = static_cast<std::int32_t>(j);
      from = findings.size();
      JudgeFormat({audit, thresholds, tensor, format}, findings);
      Name(findings, from, tensor, format);
    }
  }
  for (std::size_t j = 0; j < audit.formats.size() && audit.each_in_every_format; ++j) {
    const std::size_t from = findings.size();
    JudgePossible(audit, thresholds, j, findings);
    Name(findings, from, -1, static_cast<std::int32_t>(j));
  }
  Rank(findings);
  return findings;
}

}  // namespace fourpiles
