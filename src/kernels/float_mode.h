#pragma once

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fourpiles {

// While one lives, this thread rounds to nearest-even and keeps subnormals, as the kernels expect,
// whatever the caller has set; then all is as it was.
class DefaultFloatMode {
 public:
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;
#if defined(__x86_64__)
  DefaultFloatMode() : saved_(_mm_getcsr()) {
    _mm_setcsr(kDefault);
  }
  ~DefaultFloatMode() {
    _mm_setcsr(saved_);
  }

 private:
  // All exceptions masked, nearest-even, neither flush-to-zero nor denormals-are-zero: the state
  // after a reset (Intel SDM volume 1, 10.2.3).
  static constexpr unsigned kDefault = 0x1f80;
  unsigned saved_;
#else
  DefaultFloatMode() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatMode() {
    std::fesetenv(&saved_);
  }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace fourpiles
