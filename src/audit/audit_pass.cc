#include "audit/audit_pass.h"

#include <algorithm>

#include "base/try.h"

namespace fourpiles {
std::size_t SampledOf(std::int64_t elements) {
  constexpr std::size_t kSampled = std::size_t{1} << 18;
  constexpr std::size_t kStep = 256;
  const std::size_t blocks = static_cast<std::size_t>(elements) / kLossBlock + 1;
  return std::min(kLossBlock, (kSampled / blocks + kStep - 1) / kStep * kStep);
}

std::vector<std::unique_ptr<AuditPass>> PassesOf(const AuditedTensor& tensor, AuditPlan& plan) {
  std::vector<std::unique_ptr<AuditPass>> passes;
  passes.reserve(plan.Formats().size() + 1);
  passes.push_back(HasFewCodes(tensor.values) ? MakeCodePass(tensor, plan)
                                              : MakeValuePass(tensor, plan));
  for (std::size_t i = 0; i < plan.Formats().size(); ++i) {
    if (std::holds_alternative<BlockFormat>(plan.Formats()[i].format)) {
      passes.push_back(MakeBlockPass(tensor, plan, i));
    }
  }
  return passes;
}

}  // namespace fourpiles
