#include <cstddef>

#include "report/audit.h"
#include "report/audit_words.h"
#include "report/step_audit.h"

namespace fourpiles {
namespace {

template <class Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json::Object ValuesJson(const ValueFacts& values) {
  return {{"values", values.count},
          {"nan", values.nan},
          {"infinite", values.infinite},
          {"zero", values.zero},
          {"smallest", values.smallest},
          {"largest", values.largest},
          {"binades", RangeInBinades(values)},
          {"mean", values.mean},
          {"deviation", values.deviation},
          {"kurtosis", OrNull(values.kurtosis)}};
}

Json ChannelsJson(const std::optional<ChannelFacts>& channels) {
  if (!channels) {
    return {};
  }
  return Json::Object{{"channels", channels->channels},
                      {"median", channels->median},
                      {"largest", channels->largest},
                      {"largest_channel", channels->largest_channel},
                      {"outliers", channels->outliers}};
}

Json ScalesJson(const std::optional<ScaleFacts>& scales) {
  if (!scales) {
    return {};
  }
  return Json::Object{{"scales", scales->scales},
                      {"zero", scales->zero},
                      {"lost_blocks", scales->lost_blocks},
                      {"smallest", scales->smallest},
                      {"largest", scales->largest}};
}

// Numbers of nothing are null.
Json ErrorsJson(const Losses& losses) {
  const bool some = losses.compared > 0;
  return Json::Object{{"mean", some ? Json(MeanRelativeError(losses)) : Json()},
                      {"p99", OrNull(losses.relative_error_p99)},
                      {"max", some ? Json(losses.largest_relative_error) : Json()},
                      {"index", losses.largest_at < 0 ? Json() : Json(losses.largest_at)}};
}

Json::Object LossesJson(const FormatLosses& in_format) {
  const Losses& losses = in_format.losses;
  const bool some = HasSignal(losses);
  return {{"overflow", losses.overflow},
          {"saturated", losses.saturated},
          {"underflow", losses.underflow},
          {"subnormal", losses.subnormal},
          {"changed", losses.changed},
          {"sqnr_db", some ? Json(SignalToNoise(losses)) : Json()},
          {"relative_error", ErrorsJson(losses)},
          {"cosine", some ? Json(Cosine(losses)) : Json()},
          {"fitting_scale", OrNull(in_format.fitting_scale)},
          {"scales", ScalesJson(in_format.scales)}};
}

Json::Array TensorsIn(const AuditReport& report, std::size_t format) {
  Json::Array tensors;
  for (const TensorAudit& tensor : report.audit.tensors) {
    const FormatLosses& in_format = tensor.formats[format];
    Json::Object json = {{"name", tensor.name}};
    if (in_format.not_possible.empty()) {
      Json::Object losses = LossesJson(in_format);
      std::move(losses.begin(), losses.end(), std::back_inserter(json));
    } else if (report.against.empty()) {
      json.emplace_back("not_possible", in_format.not_possible);
    } else {
      continue;  // it is stored in another format
    }
    tensors.emplace_back(std::move(json));
  }
  return tensors;
}

Json::Array FormatsJson(const AuditReport& report) {
  const Audit& audit = report.audit;
  Json::Array formats;
  for (std::size_t i = 0; i < audit.formats.size(); ++i) {
    Json::Object totals = {{"tensors", fourpiles::TensorsIn(audit, i)},
                           {"values", ValuesIn(audit, i).count}};
    Json::Object losses = LossesJson(audit.totals[i]);
    std::move(losses.begin(), losses.end(), std::back_inserter(totals));
    const TensorAudit* const worst = WorstTensor(audit, i);
    totals.emplace_back("worst_tensor", worst == nullptr ? Json() : Json(worst->name));
    formats.emplace_back(
        Json::Object{{"format", audit.formats[i].name},
                     {"verdict", VerdictWord(report, static_cast<std::int32_t>(i))},
                     {"totals", std::move(totals)},
                     {"tensors", TensorsIn(report, i)}});
  }
  return formats;
}

Json::Array FindingsJson(const AuditReport& report) {
  Json::Array findings;
  for (const AuditFinding& finding : report.findings) {
    const auto tensor = static_cast<std::size_t>(finding.tensor);
    const auto format = static_cast<std::size_t>(finding.format);
    findings.emplace_back(Json::Object{
        {"severity", Name(finding.severity)},
        {"tensor", finding.tensor < 0 ? Json() : Json(report.audit.tensors[tensor].name)},
        {"format", finding.format < 0 ? Json() : Json(report.audit.formats[format].name)},
        {"what", finding.what},
        {"remedy", finding.remedy},
        {"value", finding.value},
        {"threshold", finding.threshold.name},
        {"limit", finding.limit},
        {"source", finding.threshold.source},
    });
  }
  return findings;
}

Json::Array ThresholdsJson(const Thresholds& thresholds) {
  Json::Array rows;
  for (const Threshold& row : thresholds) {
    rows.emplace_back(Json::Object{{"name", row.name},
                                   {"value", row.value},
                                   {"unit", row.unit},
                                   {"meaning", row.meaning},
                                   {"source", row.source}});
  }
  return rows;
}

Json::Array SkippedJson(const Audit& audit) {
  Json::Array skipped;
  for (const SkippedTensor& tensor : audit.skipped) {
    skipped.emplace_back(Json::Object{{"name", tensor.name}, {"why", tensor.why}});
  }
  return skipped;
}

}  // namespace

Json::Object AuditJson(const AuditReport& report) {
  const Audit& audit = report.audit;
  Json::Array tensors;
  for (const TensorAudit& tensor : audit.tensors) {
    Json::Object json = {{"name", tensor.name}};
    Json::Object values = ValuesJson(tensor.values);
    std::move(values.begin(), values.end(), std::back_inserter(json));
    json.emplace_back("channels", ChannelsJson(tensor.channels));
    tensors.emplace_back(std::move(json));
  }
  const bool compares = !report.against.empty();
  const bool step_alone = !HasValues(report);
  return {{"path", report.path},
          {"against", compares ? Json(report.against) : Json()},
          {"overflow", compares || step_alone ? Json() : Json(Name(audit.overflow))},
          {"values", step_alone ? Json() : Json(ValuesJson(audit.values))},
          {"formats", FormatsJson(report)},
          {"tensors", std::move(tensors)},
          {"skipped", SkippedJson(audit)},
          {"optimizer_tensors", report.optimizer_tensors},
          {"only_first", TextsJson(report.only_first)},
          {"only_second", TextsJson(report.only_second)},
          {"step", report.step ? StepJson(*report.step) : Json()},
          {"findings", FindingsJson(report)},
          {"thresholds", ThresholdsJson(report.thresholds)}};
}

}  // namespace fourpiles
