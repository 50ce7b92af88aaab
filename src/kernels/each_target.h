#pragma once

// For tests: the same work on every instruction set that the processor has.

#include <hwy/targets.h>

namespace fourpiles {

// Calls test(name) once for each, and once more with none of them: the scalar way.
template <class Test>
void ForEachTarget(const Test& test) {
  const auto use = [](std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  };
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    use(target);
    test(hwy::TargetName(target));
  }
  use(0);
}

}  // namespace fourpiles
