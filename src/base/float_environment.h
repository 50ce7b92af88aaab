#pragma once

// Arithmetic whose results must not depend on what the caller did to the processor: while one of
// these lives, this thread's float arithmetic rounds to nearest-even, keeps subnormals and traps
// nothing; afterwards rounding mode, flush bits and exception flags are the caller's.
//
// A compiler may move arithmetic past the changes, but not the call of a function that it does not
// see into: make one, per array, not per value.

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fourpiles {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
#if defined(__x86_64__)
  // The register alone that governs vectors and scalars: std::fesetenv takes some hundred cycles.
  DefaultFloatEnvironment() : caller_(_mm_getcsr()) {
    _mm_setcsr(kDefault);
  }
  ~DefaultFloatEnvironment() {
    _mm_setcsr(caller_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80;  // after a reset: Intel SDM volume 1, 10.2.3
  unsigned caller_;
#else
  DefaultFloatEnvironment() {
    std::fegetenv(&caller_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() {
    std::fesetenv(&caller_);
  }

 private:
  std::fenv_t caller_ = {};
#endif
};

}  // namespace fourpiles
