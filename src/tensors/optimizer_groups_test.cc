#include "tensors/optimizer_groups.h"

#include <gtest/gtest.h>

#include "tensors/test_cases.h"

namespace fourpiles {
namespace {

std::vector<OptimizerGroup> GroupsOf(const std::string& path, std::string_view format) {
  const auto source = FileSource::Open(path);
  EXPECT_TRUE(source.has_value()) << path;
  return OptimizerGroupsOf(*source, format);
}

// torch.optim.Adam(…, lr=1e-3, betas=(0.9, 0.95), eps=1e-8) of make_step.py.
TEST(OptimizerGroups, AreThoseOfThePickle) {
  const auto groups = GroupsOf(FOURPILES_TEST_DATA "/audit/step.pt", "torch-zip");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].learning_rate, 1e-3);
  EXPECT_EQ(groups[0].beta1, 0.9);
  EXPECT_EQ(groups[0].beta2, 0.95);
  EXPECT_EQ(groups[0].epsilon, 1e-8);
  EXPECT_EQ(groups[0].weight_decay, 0);
  EXPECT_EQ(groups[0].decoupled, std::nullopt);
}

TEST(OptimizerGroups, OfTheStreamFormAreFound) {
  const auto groups = GroupsOf(FOURPILES_TEST_DATA "/audit/groups.bin", "torch-legacy");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].learning_rate, 2e-4);
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  EXPECT_EQ(groups[0].decoupled, true);
  EXPECT_EQ(groups[1].weight_decay, 0);
}

TEST(OptimizerGroups, OfOtherFilesAreNone) {
  EXPECT_TRUE(GroupsOf(CasePath("torch/ok.pt"), "torch-zip").empty());
  EXPECT_TRUE(GroupsOf(CasePath("torch/ok.pt"), "torch-legacy").empty());
  EXPECT_TRUE(GroupsOf(CasePath("torch/trainer.pt"), "torch-zip").empty());  // it has no betas
  EXPECT_TRUE(GroupsOf(CasePath("torch/bad_truncated.pt"), "torch-zip").empty());
  EXPECT_TRUE(GroupsOf(CasePath("npy/v1_f4.npy"), "npy").empty());
}

}  // namespace
}  // namespace fourpiles
