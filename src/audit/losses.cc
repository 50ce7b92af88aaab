#include "audit/losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fourpiles {

int RangeInBinades(const ValueFacts& facts) {
  return facts.smallest == 0 ? 0 : 1 + std::ilogb(facts.largest) - std::ilogb(facts.smallest);
}

double SignalToNoise(const Losses& losses) {
  if (losses.squared_errors > 0) {
    return 10 * std::log10(losses.squared_values / losses.squared_errors);
  }
  return losses.changed == 0 ? std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
}

double Cosine(const Losses& losses) {
  if (losses.squared_errors == 0) {
    return 1;
  }
  // With e = r − x: Σx·r = Σx² + Σx·e, Σr² = Σx² + 2 Σx·e + Σe².
  const double product = losses.squared_values + losses.error_products;
  const double rounded = losses.squared_values + 2 * losses.error_products + losses.squared_errors;
  const double norm = std::sqrt(losses.squared_values) * std::sqrt(std::max(rounded, 0.0));
  return norm == 0 ? 0 : std::clamp(product / norm, -1.0, 1.0);
}

double MeanRelativeError(const Losses& losses) {
  return losses.compared == 0 ? 0 : losses.relative_errors / static_cast<double>(losses.compared);
}

}  // namespace fourpiles
