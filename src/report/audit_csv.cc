#include <fmt/format.h>

#include "report/audit.h"
#include "report/file_text.h"

namespace fourpiles {
namespace {

constexpr std::string_view kHead =
    "tensor,format,values,nan,infinite,zero,smallest,largest,binades,mean,deviation,kurtosis,"
    "overflow,saturated,underflow,subnormal,changed,sqnr_db,cosine,relative_error_mean,"
    "relative_error_p99,relative_error_max,relative_error_index,fitting_scale,not_possible\n";

// Empty where there is none.
template <class Value>
std::string OrEmpty(const std::optional<Value>& value) {
  if (!value) {
    return "";
  }
  const bool is_number = *value == *value;
  return is_number ? fmt::format("{}", *value) : "nan";  // without a sign
}

template <class Value>
std::string CellIf(bool is_known, Value value) {
  return OrEmpty(is_known ? std::optional(value) : std::nullopt);
}

std::string ValueCells(const ValueFacts& values) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{}", values.count, values.nan, values.infinite,
                     values.zero, values.smallest, values.largest, RangeInBinades(values),
                     values.mean, values.deviation, OrEmpty(values.kurtosis));
}

std::string LossCells(const FormatLosses& in_format) {
  const Losses& losses = in_format.losses;
  if (!in_format.not_possible.empty()) {
    return ",,,,,,,,,,,," + CsvCell(in_format.not_possible);
  }
  const bool some = losses.compared > 0;
  const bool signal = HasSignal(losses);
  return fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},", losses.overflow, losses.saturated, losses.underflow,
      losses.subnormal, losses.changed, CellIf(signal, SignalToNoise(losses)),
      CellIf(signal, Cosine(losses)), CellIf(some, MeanRelativeError(losses)),
      OrEmpty(losses.relative_error_p99), CellIf(some, losses.largest_relative_error),
      CellIf(losses.largest_at >= 0, losses.largest_at), OrEmpty(in_format.fitting_scale));
}

}  // namespace

std::string AuditCsv(const AuditReport& report) {
  const Audit& audit = report.audit;
  std::string text(kHead);
  for (const TensorAudit& tensor : audit.tensors) {
    const std::string values = ValueCells(tensor.values);
    for (std::size_t i = 0; i < audit.formats.size(); ++i) {
      if (!report.against.empty() && !tensor.formats[i].not_possible.empty()) {
        continue;  // it is stored in another format
      }
      text += fmt::format("{},{},{},{}\n", CsvCell(tensor.name), CsvCell(audit.formats[i].name),
                          values, LossCells(tensor.formats[i]));
    }
  }
  return text;
}

}  // namespace fourpiles
