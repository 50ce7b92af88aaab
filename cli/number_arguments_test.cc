#include "cli/number_arguments.h"

#include <gtest/gtest.h>

namespace fourpiles::cli {
namespace {

using Names = std::vector<std::string>;

TEST(FormatItemsOf, SplitsWhereAFormatBegins) {
  EXPECT_EQ(FormatItemsOf("fp16,bf16"), (Names{"fp16", "bf16"}));
  EXPECT_EQ(FormatItemsOf("int4:group=32,asymmetric,fp16"),
            (Names{"int4:group=32,asymmetric", "fp16"}));
  EXPECT_EQ(FormatItemsOf("e4m3:scaled,int8:tensor,int8:channel"),
            (Names{"e4m3:scaled", "int8:tensor", "int8:channel"}));
  // "double" is a choice of nf4, and elsewhere a name of float64.
  EXPECT_EQ(FormatItemsOf("nf4:block=64,double"), (Names{"nf4:block=64,double"}));
  EXPECT_EQ(FormatItemsOf("mxfp4:scale=ceil,double"), (Names{"mxfp4:scale=ceil", "double"}));
  // What is no format stays with the name before, whose error tells of it.
  EXPECT_EQ(FormatItemsOf("mxfp4:scale=ceil,nonsense"), (Names{"mxfp4:scale=ceil,nonsense"}));
}

}  // namespace
}  // namespace fourpiles::cli
