#include "report/lengths.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/columns.h"
#include "report/markdown.h"
#include "units/print.h"

namespace fourpiles {
namespace {

std::string Percent(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}

std::string VerdictOf(const LengthLimit& row) {
  std::string words = row.verdict ? std::string(Name(*row.verdict)) : "";
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string CutWords(const TrainingData& data, const LengthReport& report) {
  if (report.shares.samples_cut == 0) {
    return data.drops_longer ? "No sample is dropped." : "No sample is cut.";
  }
  const std::string samples = Percent(report.shares.samples_cut);
  const std::string tokens = Percent(report.shares.tokens_cut);
  const std::string limit = PrintGrouped(report.sequence_length);
  if (data.drops_longer) {
    return fmt::format("{} of them are longer than {} tokens and dropped, with {} of all tokens.",
                       samples, PrintGrouped(data.limit.value_or(report.sequence_length)), tokens);
  }
  return data.is_packed
             ? fmt::format(
                   "{} of them are longer than {} tokens, by {} of all tokens, and go on in "
                   "the next sequence.",
                   samples, limit, tokens)
             : fmt::format("They end at {} tokens: {} of them are cut, by {} of all tokens.", limit,
                           samples, tokens);
}

std::string PaddingWords(const TrainingJob& training, const LengthReport& report) {
  const TrainingData& data = *training.data;
  if (data.is_packed) {
    return fmt::format("Packed: every micro-batch is {} × {} tokens without padding.",
                       training.micro_batch_size, PrintGrouped(training.sequence_length));
  }
  if (data.padding == Padding::kNone) {
    return "Nothing is padded; the worst micro-batch has the longest samples alone.";
  }
  const bool is_max = data.padding == Padding::kMax;
  return fmt::format(
      "Padded to {}: {} of the tokens of a micro-batch of {} are padding in the mean; the memory "
      "is that of the worst.",
      is_max ? fmt::format("{} tokens", PrintGrouped(training.sequence_length))
             : fmt::format("the longest, {} tokens in the mean",
                           PrintGrouped(std::llround(report.mean_longest))),
      Percent(report.padding_share), training.micro_batch_size);
}

std::string LargestWords(const Job& job, const LengthReport& report) {
  if (!job.device) {
    return "";
  }
  if (!report.largest) {
    return "Not even one token a sample fits.\n";
  }
  return fmt::format(
      "The largest limit that fits is {} tokens: {} of the samples and {} of the "
      "tokens whole.\n",
      PrintGrouped(report.largest->limit), Percent(report.largest->shares.samples_whole),
      Percent(report.largest->shares.tokens_whole));
}

std::string Sentences(const Job& job, const LengthReport& report) {
  const TrainingData& data = *job.training.data;
  const SampleLengths& lengths = data.lengths;
  return fmt::format("{} sample{} of {} tokens in the mean, the longest {}. {}\n{}\n{}",
                     PrintGrouped(lengths.samples), lengths.samples == 1 ? "" : "s",
                     fmt::format("{:.2f}", report.mean), PrintGrouped(lengths.Longest()),
                     CutWords(data, report), PaddingWords(job.training, report),
                     LargestWords(job, report));
}

std::vector<std::vector<std::string>> TableOf(const LengthReport& report,
                                              const BudgetStyle& style) {
  std::vector<std::vector<std::string>> rows = {
      {"limit", "samples up to it", "whole samples", "whole tokens", "peak", ""}};
  for (const LengthLimit& row : report.limits) {
    rows.push_back(
        {PrintGrouped(row.limit),
         row.percentiles.empty() ? "" : fmt::format("{} %", fmt::join(row.percentiles, ", ")),
         Percent(row.shares.samples_whole), Percent(row.shares.tokens_whole),
         PrintBytes(row.peak, style.unit), VerdictOf(row)});
  }
  return rows;
}

Json LimitJson(const LengthLimit& row) {
  Json::Array percentiles;
  for (const std::string& percentile : row.percentiles) {
    percentiles.emplace_back(percentile);
  }
  return Json::Object{{"limit", row.limit},
                      {"percentiles", std::move(percentiles)},
                      {"samples_share", row.shares.samples_whole},
                      {"tokens_share", row.shares.tokens_whole},
                      {"peak_bytes", row.peak.value()},
                      {"verdict", row.verdict ? Json(Name(*row.verdict)) : Json()}};
}

}  // namespace

std::string LengthReportText(const Job& job, const LengthReport& report, const BudgetStyle& style) {
  return "\n" + Sentences(job, report) + "\n" +
         InColumns(TableOf(report, style), {.indent = "  ", .right = {0, 1, 2, 3, 4}});
}

std::string LengthReportMarkdown(const Job& job, const LengthReport& report,
                                 const BudgetStyle& style) {
  return "\n" + Sentences(job, report) + "\n" +
         MarkdownRows(TableOf(report, style), {0, 1, 2, 3, 4});
}

Json LengthReportJson(const Job& job, const LengthReport& report) {
  const TrainingData& data = *job.training.data;
  Json::Object percentiles;
  for (const LengthPercentile& percentile : report.percentiles) {
    percentiles.emplace_back(percentile.percent, percentile.length);
  }
  Json::Array limits;
  for (const LengthLimit& row : report.limits) {
    limits.emplace_back(LimitJson(row));
  }
  return Json::Object{{"samples", data.lengths.samples},
                      {"tokens", data.lengths.tokens},
                      {"mean_tokens", report.mean},
                      {"longest", data.lengths.Longest()},
                      {"percentiles", std::move(percentiles)},
                      {"sequence_length", report.sequence_length},
                      {"samples_cut_share", report.shares.samples_cut},
                      {"tokens_cut_share", report.shares.tokens_cut},
                      {"padding_share", report.padding_share},
                      {"mean_longest", report.mean_longest},
                      {"limits", std::move(limits)},
                      {"largest_that_fits", report.largest ? LimitJson(*report.largest) : Json()}};
}

}  // namespace fourpiles
