#include "report/timeline.h"

#include <gtest/gtest.h>

#include "step/play.h"

namespace fourpiles {
namespace {

Tape TwoMoments() {
  static constexpr KernelKind kKernel = {"matmul, \"fused\"", ""};
  Tape tape;
  tape.network = std::make_shared<const Network>(
      Network{.blocks = {{.name = "layers.{}", .parameters = {{.name = "w", .shape = {5}}}}}});
  tape.actions = {{.kind = ActionKind::kForward}, {.kind = ActionKind::kStep}};
  tape.moments = {{.action = 0, .kind = &kKernel}, {.action = 1, .kind = &kKernel}};
  tape.storages = {{.pile = Pile::kWeights, .bytes = Exactly(Bytes(10))},
                   {.pile = Pile::kActivations, .bytes = Exactly(Bytes(7)), .dies = 1}};
  return tape;
}

TEST(Timeline, CsvHasARowForEveryMoment) {
  EXPECT_EQ(TimelineCsv(TwoMoments()),
            "moment,name,kernel,bytes,weights,gradients,optimizer_state,activations,kv_cache,"
            "workspace\n"
            "0,forward of layers.0,\"matmul, \"\"fused\"\"\",17,10,0,0,7,0,0\n"
            "1,optimizer step,\"matmul, \"\"fused\"\"\",10,10,0,0,0,0,0\n");
}

TEST(Timeline, JsonHasTheSameNumbers) {
  const Json json = TimelineJson(TwoMoments());
  const Json::Array& moments = *json.Find("moments")->AsArray();
  ASSERT_EQ(moments.size(), 2U);
  EXPECT_EQ(*moments[0].Find("name")->AsString(), "forward of layers.0");
  EXPECT_EQ(*moments[0].Find("bytes")->AsInteger(), 17);
  EXPECT_EQ(*moments[0].Find("piles")->Find("activations")->AsInteger(), 7);
  EXPECT_EQ(*moments[1].Find("piles")->Find("activations")->AsInteger(), 0);
  EXPECT_EQ(moments[1].Find("piles")->Find("overhead"), nullptr);
}

}  // namespace
}  // namespace fourpiles
