#pragma once

// Arithmetic whose results must not depend on what the caller did to the processor: while one of
// these lives, float arithmetic rounds to nearest-even, keeps subnormals and traps nothing
// (ISO C FE_DFL_ENV); afterwards rounding mode, flush bits and exception flags are the caller's.
//
// A compiler may move arithmetic past the changes, but not the call of a function that it does not
// see into: make one, per array, not per value (some hundred cycles).

#include <cfenv>

namespace fourpiles {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&caller_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&caller_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t caller_ = {};
};

}  // namespace fourpiles
