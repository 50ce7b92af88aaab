// round, accumulate and scale: what became of the numbers, and why.

#include "report/numbers.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "report/columns.h"
#include "units/print.h"

namespace fourpiles {
namespace {

std::string CodeText(const Rounding& r) {
  return fmt::format("0x{:0{}x}", r.encoded.code, (Bits(r.format) + 3) / 4);
}

// A value or "nothing", for the neighbours at the ends of a format.
std::string Neighbour(const std::optional<double>& value) {
  return value ? NumberText(*value) : "nothing";
}

std::string Between(const Rounding& r) {
  return fmt::format("between {} and {}", Neighbour(r.below), Neighbour(r.above));
}

std::string ErrorText(const Rounding& r) {
  return r.error_in_ulps ? fmt::format("error {:+.3g} = {:.3g} ulp", *r.error, *r.error_in_ulps)
                         : fmt::format("error {:+.3g}", *r.error);
}

std::string WhyNan(const Rounding& r) {
  if (std::isnan(r.input.nearest)) {
    return Nans(r.format) == 0 ? "the format has no NaN; ml_dtypes stores -0" : "the input is NaN";
  }
  if (!r.format.has_sign && r.input.nearest < 0) {
    return "the format has no sign";
  }
  return fmt::format("past the largest, {}, {}", NumberText(Largest(r.format)),
                     Infinities(r.format) == 0 ? "the format has only NaN" : "NaN as asked for");
}

std::string WhySaturated(const Rounding& r) {
  if (r.value == 0) {
    return "below zero, and kept there: the format has no sign";
  }
  return fmt::format("{} the largest, {}, and kept there",
                     r.input.finite ? "past" : "infinite, past", NumberText(Largest(r.format)));
}

bool IsToNearest(const Rounding& r) {
  return r.mode == RoundingMode::kNearestEven || r.mode == RoundingMode::kNearestAway;
}

std::string WhyUnderflow(const Rounding& r) {
  const std::string smallest = NumberText(SmallestPositive(r.format));
  switch (r.mode) {
    case RoundingMode::kNearestEven:
      return fmt::format("half of the smallest positive value, {}, or less", smallest);
    case RoundingMode::kNearestAway:
      return fmt::format("less than half of the smallest positive value, {}", smallest);
    default:
      return fmt::format("less than the smallest positive value, {}", smallest);
  }
}

// Which of its neighbours an inexact value became.
std::string_view Way(const Rounding& r) {
  switch (r.mode) {
    case RoundingMode::kNearestEven:
      return r.tie ? "a tie, to the even code" : "the nearer one";
    case RoundingMode::kNearestAway:
      return r.tie ? "a tie, away from zero" : "the nearer one";
    case RoundingMode::kTowardZero:
      return "toward zero";
    case RoundingMode::kUp:
      return "up";
    case RoundingMode::kDown:
      return "down";
    case RoundingMode::kToOdd:
      return "to the odd code";
    case RoundingMode::kStochastic:
      break;
  }
  return "by chance";
}

// One sentence on what happened.
std::string Why(const Rounding& r) {
  if (r.flushed) {
    return "subnormal, and taken for zero";
  }
  switch (r.encoded.status) {
    case RoundingStatus::kNan:
      return WhyNan(r);
    case RoundingStatus::kOverflow:
      return fmt::format("{} the largest, {}", IsToNearest(r) ? "half a step or more past" : "past",
                         NumberText(Largest(r.format)));
    case RoundingStatus::kSaturated:
      return WhySaturated(r);
    case RoundingStatus::kUnderflow:
      return WhyUnderflow(r);
    case RoundingStatus::kSubnormal:
    case RoundingStatus::kRounded:
    case RoundingStatus::kExact:
      break;
  }
  if (!r.input.finite) {
    return "the format has infinity";
  }
  if (!r.below && !r.encoded.exact && r.above == SmallestPositive(r.format)) {
    return fmt::format("below the smallest value, {}: the format has no zero",
                       NumberText(SmallestPositive(r.format)));
  }
  if (r.encoded.exact) {
    return (r.encoded.status == RoundingStatus::kSubnormal
                ? "exact, with fewer bits than a normal value; "
                : "") +
           fmt::format("its neighbours are {} and {}", Neighbour(r.below), Neighbour(r.above));
  }
  return fmt::format("{}, {}; {}", Between(r), Way(r), ErrorText(r));
}

Json::Object RoundingJson(const Rounding& r) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return {{"input", r.input.nearest},
          {"format", r.format.name},
          {"value", r.value},
          {"code", CodeText(r)},
          {"status", Name(r.encoded.status)},
          {"exact", r.encoded.exact},
          {"below", optional(r.below)},
          {"above", optional(r.above)},
          {"error", optional(r.error)},
          {"error_in_ulps", optional(r.error_in_ulps)},
          {"tie", r.tie}};
}

std::string_view FromText(const TypedConversion& how) {
  return how.from ? how.from->name : "float64";
}

// What shaped the answer: the rounding and the policy, and what else is not as ever.
std::string HowText(const RoundResult& result) {
  const TypedConversion& how = result.how;
  const Conversion& conversion = how.conversion;
  std::string text(Name(conversion.rounding));
  if (!result.roundings.empty()) {
    text += fmt::format("; --overflow {}", Name(conversion.overflow));
  }
  if (!result.blocks.empty()) {
    text += "; elements of blocks saturate";
  }
  if (conversion.infinities != conversion.overflow) {
    text += fmt::format("; --infinities {}", Name(conversion.infinities));
  }
  if (conversion.subnormals != Subnormals::kKept) {
    text += fmt::format("; --subnormals {}", Name(conversion.subnormals));
  }
  if (conversion.subnormals == Subnormals::kFlushedOnInput && !result.roundings.empty()) {
    text += fmt::format(" --from {}", FromText(how));
  }
  if (conversion.rounding == RoundingMode::kStochastic) {
    text += fmt::format("; --seed {}", conversion.seed);
  }
  return text + "\n";
}

// The format that a sum is kept in.
const NumberFormat& KeptIn(const SumPlan& plan) {
  return plan.master ? *plan.master : plan.format;
}

// A sum whose addend is zero in its format, though it was not as typed, has not come to rest: it
// never moved.
bool AddsZero(const SumPlan& plan, const AccumulationJob& job) {
  return !job.add.exact.IsZero() && AddendIn(KeptIn(plan), job) == 0;
}

// The digits that a table has room for: "1.0000000000000000000…e+5000" of more.
std::string ExactText(const Decimal& exact) {
  constexpr std::size_t kMost = 40;
  constexpr std::size_t kDigits = 20;
  std::string text = exact.Text();
  if (text.size() <= kMost) {
    return text;
  }
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits),
                       [&](char c) { return c >= (digits.empty() ? '1' : '0') && c <= '9'; });
  digits.resize(kDigits, '0');
  return fmt::format("{}{}.{}…e{:+}", exact.IsNegative() ? "-" : "", digits[0], digits.substr(1),
                     exact.LeadingExponent());
}

std::string SumText(const AccumulationJob& job) {
  return fmt::format("{} + {} × {}\n", job.start.text, job.times, job.add.text);
}

std::string MasterText(const SumPlan& plan) {
  return plan.master ? fmt::format(", master copy {}", plan.master->name) : "";
}

std::string NotRunText() {
  return fmt::format("more than {} steps", PrintGrouped(kMostPlayedSteps));
}

// What made a sum NaN by being negative where there is no sign; empty: nothing did.
std::string_view NegativePart(const SumPlan& plan, const AccumulationJob& job) {
  const NumberFormat& kept = KeptIn(plan);
  if (kept.has_sign) {
    return !plan.format.has_sign && ExactSum(job).IsNegative() ? "the sum" : "";
  }
  const auto is_lost = [&kept](const TypedNumber& number) {
    return number.exact.IsNegative() && std::isnan(Round(number, kept));
  };
  if (is_lost(job.start)) {
    return "the start";
  }
  if (is_lost(job.add)) {
    return "the addend";
  }
  return plan.method == SumMethod::kKahan ? "its correction" : "";
}

std::string WhyNotANumber(const SumPlan& plan, const AccumulationJob& job) {
  const std::string_view negative = NegativePart(plan, job);
  if (!negative.empty()) {
    return fmt::format("{} is negative, the format has no sign", negative);
  }
  return Infinities(plan.format) == 0 ? "past the largest, the format has only NaN"
                                      : "past the largest, infinity - infinity";
}

// What became of a sum that takes its steps one after the other.
std::string StallText(const SumResult& r, const AccumulationJob& job) {
  if (AddsZero(r.plan, job) && !std::isnan(r.sum->value)) {
    return fmt::format("{} is 0 in {}", job.add.text, KeptIn(r.plan).name);
  }
  if (r.sum->first_stalled_step) {
    return fmt::format("step {} no longer moves it", *r.sum->first_stalled_step);
  }
  return std::isnan(r.sum->value) ? WhyNotANumber(r.plan, job)
                                  : fmt::format("all {} steps move it", job.times);
}

// What became of a sum by any method.
std::string MethodText(const SumResult& r, const AccumulationJob& job) {
  if (!r.sum) {
    return "not run: " + NotRunText();
  }
  const SumMethod method = r.plan.method;
  if (r.sum->first_stalled_step || method == SumMethod::kSequential || AddsZero(r.plan, job)) {
    return StallText(r, job);
  }
  if (std::isnan(r.sum->value)) {
    return WhyNotANumber(r.plan, job);
  }
  switch (method) {
    case SumMethod::kPairwise:
      return fmt::format("a tree {} additions deep", TreeDepth(job.times));
    case SumMethod::kKahan:
      return fmt::format("all {} steps move it or its correction", job.times);
    case SumMethod::kSequential:
    case SumMethod::kStochastic:
      break;
  }
  return "steps move it by chance";
}

Json::Object SumJson(const SumResult& r, const AccumulationJob& job) {
  const bool stalled = r.sum && r.sum->first_stalled_step;
  return {{"format", r.plan.format.name},
          {"master", r.plan.master ? Json(r.plan.master->name) : Json()},
          {"method", Name(r.plan.method)},
          {"addend", AddendIn(KeptIn(r.plan), job)},
          {"value", r.sum ? Json(r.sum->value) : Json()},
          {"exact", ExactSum(job).Nearest()},
          {"first_stalled_step", stalled ? Json(*r.sum->first_stalled_step) : Json()}};
}

}  // namespace

std::string RoundText(const RoundResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const Rounding& r : result.roundings) {
    rows.push_back({r.input.text, std::string(r.format.name), NumberText(r.value), CodeText(r),
                    std::string(Name(r.encoded.status)), Why(r)});
  }
  std::string text = InColumns(rows, {});
  for (const BlockRounding& rounding : result.blocks) {
    text += (text.empty() ? "" : "\n") + BlockRoundingText(rounding);
  }
  return text + HowText(result);
}

Json::Object RoundJson(const RoundResult& result) {
  Json::Array results;
  for (const Rounding& r : result.roundings) {
    results.emplace_back(RoundingJson(r));
  }
  const Conversion& conversion = result.how.conversion;
  const bool by_chance = conversion.rounding == RoundingMode::kStochastic;
  const bool none = result.roundings.empty();  // in a format of one value, which these are for
  return {{"rounding", Name(conversion.rounding)},
          {"overflow", none ? Json() : Json(Name(conversion.overflow))},
          {"infinities", none ? Json() : Json(Name(conversion.infinities))},
          {"subnormals", Name(conversion.subnormals)},
          {"from", none ? Json() : Json(FromText(result.how))},
          {"seed", by_chance ? Json(static_cast<std::int64_t>(conversion.seed)) : Json()},
          {"results", std::move(results)},
          {"block_results", BlockRoundingsJson(result.blocks)}};
}

std::string AccumulateText(const AccumulationJob& job, std::span<const SumResult> results) {
  std::vector<std::vector<std::string>> rows;
  for (const SumResult& r : results) {
    rows.push_back({std::string(r.plan.format.name) + MasterText(r.plan), NumberText(r.sum->value),
                    StallText(r, job)});
  }
  rows.push_back({"exact", ExactText(ExactSum(job))});
  return SumText(job) + InColumns(rows, {.indent = "  "});
}

Json::Object AccumulateJson(const AccumulationJob& job, std::span<const SumResult> results) {
  Json::Array array;
  for (const SumResult& r : results) {
    array.emplace_back(SumJson(r, job));
  }
  return {{"results", std::move(array)}};
}

std::string CompareText(const AccumulationJob& job, std::span<const SumResult> results) {
  const Decimal exact = ExactSum(job);
  std::vector<std::vector<std::string>> rows = {{"format", "method", "value", "error", ""}};
  for (const SumResult& r : results) {
    const std::string error =
        r.sum ? fmt::format("{:.3g} %", 100 * RelativeError(r.sum->value, exact)) : "";
    rows.push_back({std::string(r.plan.format.name),
                    std::string(Name(r.plan.method)) + MasterText(r.plan),
                    r.sum ? NumberText(r.sum->value) : "", error, MethodText(r, job)});
  }
  rows.push_back({"exact", "", ExactText(exact)});
  return SumText(job) + InColumns(rows, {.indent = "  "}) +
         fmt::format("nearest-even, stochastic with --seed {}; --overflow ieee\n",
                     results.back().plan.seed);
}

Json::Object CompareJson(const AccumulationJob& job, std::span<const SumResult> results) {
  const Decimal exact = ExactSum(job);
  Json::Array array;
  for (const SumResult& r : results) {
    Json::Object sum = SumJson(r, job);
    sum.push_back({"relative_error", r.sum ? Json(RelativeError(r.sum->value, exact)) : Json()});
    sum.push_back({"not_run", r.sum ? Json() : Json(NotRunText())});
    array.emplace_back(std::move(sum));
  }
  return {{"seed", static_cast<std::int64_t>(results.back().plan.seed)},
          {"results", std::move(array)}};
}

std::string ScaleText(std::span<const ScaleResult> results, Overflow overflow) {
  std::vector<std::vector<std::string>> rows = {
      {"value", "format", "stored", "value", "relative error", "status"}};
  rows.front()[2] = fmt::format("stored × {}", results.front().scale.text);
  rows.front()[3] = "back";
  for (const ScaleResult& r : results) {
    rows.push_back({r.input.text, std::string(r.format.name), NumberText(r.scaling.stored),
                    fmt::format("{:.6g}", r.scaling.value),
                    fmt::format("{:.3g} %", 100 * r.scaling.relative_error),
                    std::string(Name(r.scaling.encoded.status))});
  }
  return InColumns(rows, {}) + fmt::format("nearest-even; --overflow {}\n", Name(overflow));
}

Json::Object ScaleJson(std::span<const ScaleResult> results, Overflow overflow) {
  Json::Array array;
  for (const ScaleResult& r : results) {
    array.emplace_back(Json::Object{{"input", r.input.nearest},
                                    {"format", r.format.name},
                                    {"scale", r.scale.nearest},
                                    {"stored", r.scaling.stored},
                                    {"value", r.scaling.value},
                                    {"relative_error", r.scaling.relative_error},
                                    {"status", Name(r.scaling.encoded.status)}});
  }
  return {{"overflow", Name(overflow)}, {"results", std::move(array)}};
}

}  // namespace fourpiles
