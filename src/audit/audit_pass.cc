#include "audit/audit_pass.h"

#include <algorithm>

#include "base/try.h"

namespace fourpiles {
namespace {

// Of at most 16 bits: there are few different values.
bool HasFewCodes(const TensorValues& values) {
  return values.Format().has_value() && values.CodeBytesOf(1) <= 2;
}

}  // namespace

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

bool NeedExtremes(const AuditedTensor& tensor, const AuditPlan& plan) {
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  for (const AuditFormat& format : plan.Formats()) {
    const auto* const block = std::get_if<BlockFormat>(&format.format);
    if (block != nullptr ? NeedsExtremes(*block, columns > kLongestRow)
                         : format.scaled && !HasFewCodes(tensor.values)) {
      return true;
    }
  }
  return false;
}

}  // namespace fourpiles
