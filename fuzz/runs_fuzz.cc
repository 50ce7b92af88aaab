// Validate: whatever the bytes, a line is a fault with its number, a row with a reason, or a row
// with a finite prediction; nothing crashes, and nothing takes long.

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "plan/accuracy.h"
#include "plan/validate.h"

namespace fourpiles {
namespace {

std::vector<RunKind> Kinds() {
  std::vector<RunKind> kinds;
  for (const auto& list : {TrainingRunKinds(), LlamacppRunKinds(), PoolRunKinds()}) {
    kinds.insert(kinds.end(), list.begin(), list.end());
  }
  return kinds;
}

void CheckRow(const ValidatedRun& run) {
  CHECK(run.predicted.has_value() == run.reason.empty());
  CHECK(!run.predicted || std::isfinite(*run.predicted));
  CHECK(!run.band || run.band->low <= run.band->high);
}

void Read(std::string_view text) {
  static const std::vector<RunKind> kinds = Kinds();
  const Validation validation = Validate(text, "x", kinds, {});
  for (const ErrorText& fault : validation.faults) {
    CHECK(fault.where.starts_with("x: line ") && !fault.found.empty());
  }
  for (const ValidatedRun& run : validation.rows) {
    CheckRow(run);
  }
  const ValidationSummary& all = validation.all;
  CHECK(all.compared <= all.rows && all.off <= all.judged && all.judged <= all.rows);
  std::int64_t rows = 0;
  for (const AccuracyClass& of : AccuracyOf(validation).classes) {
    rows += of.all.rows;
  }
  CHECK(rows == all.rows);
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
