// Which instruction sets the processor has, as Highway asks where a kernel is first called
// (hwy/targets.h). Debian's libhwy answers that too, but measures a timer for 3 ms whenever a
// program that is linked with it starts; it is not linked. Of its headers no more is needed.

#include <atomic>
#include <cstdint>

#include <hwy/targets.h>

#include "base/check.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

// 0: what the processor has.
std::atomic<std::int64_t> for_test = 0;

#if HWY_ARCH_X86

// Conversions of float16, which not every compiler's __builtin_cpu_supports knows: leaf 1 of CPUID,
// bit 29 of ECX (Intel, Software Developer's Manual, volume 2, CPUID).
bool HasF16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
}

// What kernels are compiled for (hwy/ops/set_macros-inl.h, HWY_TARGET_STR): each holds those before
// it. That the system saves their registers is asked by the compiler's library.
std::int64_t Detect() {
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                    __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
                    __builtin_cpu_supports("aes");
  const bool avx2 = sse4 && HasF16c() && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("fma");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw");
  return (sse4 ? HWY_SSE4 : 0) | (avx2 ? HWY_AVX2 : 0) | (avx3 ? HWY_AVX3 : 0);
}

#else

// Elsewhere what the compiler was told of.
std::int64_t Detect() {
  return HWY_STATIC_TARGET;
}

#endif

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t detected = Detect() | HWY_SCALAR;
  const std::int64_t test = for_test.load();
  return test != 0 ? test : detected;
}

void SetSupportedTargetsForTest(std::int64_t targets) {
  for_test.store(targets);
}

// A check of Highway's own failed, which it has in builds with sanitizers.
void Abort(const char* file, int line, const char* format, ...) {
  fourpiles::FailCheck(file, line, format);
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
