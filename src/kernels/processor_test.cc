#include <cstdint>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace fourpiles {
namespace {

// Of what kernels are compiled for, Highway's own library finds the same.
TEST(Processor, HasWhatHighwayFinds) {
  void* const library = dlopen("libhwy.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    GTEST_SKIP() << "libhwy is not installed";
  }
  const auto supported =
      reinterpret_cast<std::int64_t (*)()>(dlsym(library, "_ZN3hwy16SupportedTargetsEv"));
  ASSERT_NE(supported, nullptr);
  EXPECT_EQ(hwy::SupportedTargets() & HWY_TARGETS, supported() & HWY_TARGETS);
  dlclose(library);
}

// Zero ends the choice of a test.
TEST(Processor, HasForATestWhatItIsTold) {
  const std::int64_t found = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(HWY_SCALAR);
  EXPECT_EQ(hwy::SupportedTargets(), HWY_SCALAR);
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_EQ(hwy::SupportedTargets(), found);
}

}  // namespace
}  // namespace fourpiles
