#include "model/module_pattern.h"

#include <string_view>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(ModulePattern, StarsStandForAnyLettersAndQuestionMarksForOne) {
  EXPECT_TRUE(NamesModule("*_proj", "gate_proj"));
  EXPECT_TRUE(NamesModule("?_proj", "q_proj"));
  EXPECT_TRUE(NamesModule("*a*b*", "xaab"));
  EXPECT_FALSE(NamesModule("?_proj", "up_proj"));
  EXPECT_FALSE(NamesModule("*_proj", "proj"));
  EXPECT_FALSE(NamesModule("q_proj?", "q_proj"));
}

TEST(ModulePattern, NamesAModuleByItsLastParts) {
  constexpr std::string_view kModule = "transformer.h.11.mlp.c_proj";
  for (const char* const pattern :
       {"c_proj", "mlp.c_proj", "h.*.mlp.*", "h.11.*", "transformer.h.11.mlp.c_proj", "*"}) {
    EXPECT_TRUE(NamesModule(pattern, kModule)) << pattern;
  }
  for (const char* const pattern : {"proj", "mlp", "h.1.*", "attn.c_proj", ""}) {
    EXPECT_FALSE(NamesModule(pattern, kModule)) << pattern;
  }
}

TEST(ModulePattern, NamesAParameterByAModuleThatHoldsIt) {
  constexpr std::string_view kParameter = "model.layers.0.mlp.up_proj.weight";
  for (const char* const pattern : {"mlp", "up_proj", "weight", "layers.0", "model", "*.weight"}) {
    EXPECT_TRUE(NamesPart(pattern, kParameter)) << pattern;
  }
  for (const char* const pattern : {"attn", "layers.1", "up", "bias"}) {
    EXPECT_FALSE(NamesPart(pattern, kParameter)) << pattern;
  }
}

}  // namespace
}  // namespace fourpiles
