#include "audit/thresholds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/nearest_name.h"

namespace fourpiles {
namespace {

constexpr std::string_view kTorchao =
    "torchao, test/prototype/mx_formats/test_mx_tensor.py: what a round trip must keep";
constexpr std::string_view kTransformerEngine =
    "a working value; NVIDIA TransformerEngine's debug statistics watch it as underflows%";
constexpr std::string_view kMeasured = "tests/data/vectors/sqnr.csv: 262,144 drawn values a scheme";

// Runs of a GPT of 109,000 weights from one checkpoint, 200 steps at each of seven learning rates,
// with weights of float32, bfloat16 and float16: at 0.45 % of the updates' magnitude lost, 98 % of
// the improvement of float32 weights was kept, at 1.9 % 95 %, at 12 % 90 %, at 46 % 77 %, at 98 %
// 5 %. With stochastic rounding 96 % or more was kept at all of them.
constexpr std::string_view kLostUpdatesSource =
    "200 steps of a small GPT at seven learning rates: 0.45 % lost kept 98 % of the improvement, "
    "1.9 % kept 95 %, 12 % kept 90 %, 46 % kept 77 %";

// Runs of the same GPT with 0.1 % of the gradients vanishing in float16 ended where float32 did,
// without loss scaling.
constexpr std::string_view kVanishedSource =
    "working value of practice, as for underflows in TransformerEngine's statistics; runs of a "
    "small GPT with 0.1 % ended where float32 did";

constexpr Thresholds kDefaults = {{
    {ThresholdId::kNan, "nan", 0, "share", "values that are NaN before anything is converted",
     "IEEE 754-2019, 6.2: every product with one is NaN"},
    {ThresholdId::kInfinite, "infinite", 0, "share",
     "values that are infinite before anything is converted", "IEEE 754-2019, 6.1 and 7.2"},
    {ThresholdId::kUnpaired, "unpaired", 0, "share",
     "tensors that a conversion does not hold as real numbers of the same shape",
     "a conversion takes every tensor along"},
    {ThresholdId::kOverflow, "overflow", 0, "share", "values that round past the largest one",
     "pytorch/pytorch#178817, onnx/onnx#6220: NaN or infinity, or clipped without a word"},
    {ThresholdId::kSaturated, "saturated", 0.0001, "share",
     "values larger than the largest one, clipped to it", "a working value: one in 10,000"},
    {ThresholdId::kSqnr16Bit, "sqnr-16-bit", 30, "dB", "formats of 16 bits and more",
     "a working value: what healthy formats of 8 bits have (tests/data/vectors/sqnr.csv)"},
    {ThresholdId::kSqnr8Bit, "sqnr-8-bit", 18, "dB", "formats of 8 to 15 bits", kTorchao},
    {ThresholdId::kSqnr4Bit, "sqnr-4-bit", 13, "dB", "formats of 4 to 7 bits", kTorchao},
    {ThresholdId::kSqnrFewBits, "sqnr-few-bits", 0, "dB", "formats of fewer than 4 bits",
     "its definition: the error is as large as the values"},
    {ThresholdId::kFactor, "factor", 0.05, "", "how far values may be multiplied, all alike",
     "tenstorrent/tt-metal#55935: a cosine near 1 does not see a wrong scale"},
    {ThresholdId::kLostBlocks, "lost-blocks", 0.01, "share",
     "blocks of which every value becomes zero", kTransformerEngine},
    {ThresholdId::kUnderflow, "underflow", 0.01, "share",
     "values other than zero that become zero, in formats of 8 bits and more", kTransformerEngine},
    {ThresholdId::kSqnrInRange, "sqnr-in-range", 0, "dB",
     "how far below 6.02 dB × (fraction bits + 1), which holds while values are in the range of "
     "normal numbers",
     "Higham, Accuracy and Stability of Numerical Algorithms, theorem 2.2"},
    {ThresholdId::kSqnrSuspicious, "sqnr-suspicious", 15, "dB",
     "formats of 4 to 7 bits: below what such formats have on any usual distribution", kMeasured},
    {ThresholdId::kRelativeP99, "relative-p99", 0.1, "share",
     "one value of a hundred is off by more, in formats of 16 bits and more",
     "a chosen value: a digit of three; a rounding in range is off by 0.4 % at most (bfloat16)"},
    {ThresholdId::kChannelOutliers, "channel-outliers", 0, "share",
     "channels 20 times as large as the median one, in integers with one scale a tensor",
     "Xiao et al. 2023, SmoothQuant (arXiv 2211.10438), figure 4"},
    {ThresholdId::kKurtosis, "kurtosis", 100, "",
     "tails that take the steps of integers with one scale a tensor; 3: a normal distribution",
     "Chmiel et al. 2020, Robust Quantization (arXiv 2002.07686), section 3"},
    {ThresholdId::kSubnormal, "subnormal", 0.01, "share",
     "values that become subnormal, in formats of 16 bits, zeros where hardware flushes them",
     "pytorch/pytorch#19652, tensorflow/tensorflow#36514"},
    {ThresholdId::kNotPossible, "not-possible", 0, "share",
     "tensors that cannot be in a format, whose rows are no whole blocks of it",
     "ggml-quants.h: rows are whole blocks"},
    {ThresholdId::kLostUpdates, "lost-updates", 0.01, "share",
     "updates' magnitude that rounds away in a step: a float32 master copy is needed",
     kLostUpdatesSource},
    {ThresholdId::kVanishedGradients, "vanished-gradients", 0.01, "share",
     "gradients other than zero that become zero: loss scaling is needed", kVanishedSource},
}};

static_assert([] {
  for (std::size_t i = 0; i < kThresholds; ++i) {
    if (static_cast<std::size_t>(kDefaults[i].id) != i) {
      return false;
    }
  }
  return true;
}());

// "0.1%" is 0.001; "15 dB" and "15dB" are 15.
std::optional<double> NumberOf(std::string_view text, std::string_view unit) {
  double scale = 1;
  if (unit == "share" && text.ends_with('%')) {
    text.remove_suffix(1);
    scale = 100;
  } else if (!unit.empty() && text.ends_with(unit)) {
    text.remove_suffix(unit.size());
  }
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value / scale) : std::nullopt;
}

}  // namespace

Thresholds DefaultThresholds() {
  return kDefaults;
}

Result<void> SetThreshold(Thresholds& thresholds, std::string_view typed, std::string_view where) {
  const std::size_t equals = typed.find('=');
  const std::string_view name = typed.substr(0, equals);
  auto* const row = std::ranges::find(thresholds, name, &Threshold::name);
  if (row == thresholds.end()) {
    std::array<std::string_view, kThresholds> names;
    std::ranges::transform(thresholds, names.begin(), &Threshold::name);
    return WrongUsage({.where = std::string(where),
                       .found = "unknown threshold \"" + std::string(name) + "\"",
                       .expected = DidYouMean(name, names),
                       .hint = "docs/AUDIT.md lists them all"});
  }
  const std::optional<double> value = equals == std::string_view::npos
                                          ? std::nullopt
                                          : NumberOf(typed.substr(equals + 1), row->unit);
  if (!value || (row->unit == "share" && (*value < 0 || *value > 1))) {
    return WrongUsage({.where = std::string(where),
                       .found = "\"" + std::string(typed) + "\"",
                       .expected = row->unit == "share" ? "expected a share from 0 to 1, or percent"
                                                        : "expected a number",
                       .hint = "for example " + std::string(row->name) +
                               (row->unit == "share" ? "=0.1%" : "=15")});
  }
  row->value = *value;
  return {};
}

}  // namespace fourpiles
