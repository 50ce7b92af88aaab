#include "tensors/checkpoint.h"

#include <algorithm>

namespace fourpiles {

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccept:
      return "accept";
    case Verdict::kAcceptWithWarning:
      return "accept-with-warning";
    case Verdict::kReport:
      return "report";
    case Verdict::kRefuse:
      break;
  }
  return "refuse";
}

Verdict WorstOf(const std::vector<Finding>& findings) {
  Verdict worst = Verdict::kAccept;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.verdict);
  }
  return worst;
}

Checked ElementsOf(const std::vector<std::int64_t>& shape) {
  Checked elements = 1;
  for (const std::int64_t dimension : shape) {
    elements = elements * dimension;
  }
  return elements;
}

}  // namespace fourpiles
