#include "audit/training_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

using Shape = std::vector<std::int64_t>;

struct Named {
  std::string name;
  Shape shape = {4, 2};
};

// Tensors of float32 without bytes: only names and shapes matter.
Checkpoint Holding(std::string path, const std::vector<Named>& tensors) {
  Checkpoint checkpoint = {.path = std::move(path)};
  for (const auto& [name, shape] : tensors) {
    checkpoint.tensors.push_back({.name = name,
                                  .dtype = "F32",
                                  .type = FindStoredType("float32"),
                                  .shape = shape,
                                  .elements = ElementsOf(shape).value()});
  }
  return checkpoint;
}

Checkpoint Weights() {
  return Holding("w", {{"model.a.weight"}, {"model.a.bias", {4}}});
}

// "NAME: FIRST, SECOND" of every weight that has a state.
std::vector<std::string> JoinedNames(const Checkpoint& weights, const Checkpoint& state,
                                     const std::optional<MomentPatterns>& patterns = {}) {
  const auto found = FindTrainingState(weights, state, patterns);
  if (!found) {
    return {ErrorLine(found)};
  }
  const auto name = [](const Checkpoint& checkpoint, std::int32_t index) {
    return checkpoint.tensors[static_cast<std::size_t>(index)].name;
  };
  std::vector<std::string> names;
  names.reserve(found->weights.size());
  for (const WeightState& entry : found->weights) {
    names.push_back(fmt::format("{}: {}, {}", name(weights, entry.weight), name(state, entry.first),
                                name(state, entry.second)));
  }
  return names;
}

TEST(TrainingState, IsFoundByNames) {
  struct Case {
    std::string first;
    std::string second;
  };
  for (const auto& [first, second] : std::initializer_list<Case>{
           {"exp_avg.a.weight", "exp_avg_sq.a.weight"},
           {"a.weight.exp_avg", "a.weight.exp_avg_sq"},
           {"optimizer.state.exp_avg.model.a.weight", "optimizer.state.exp_avg_sq.model.a.weight"},
           {"optimizer.state.model.a.weight.exp_avg", "optimizer.state.model.a.weight.exp_avg_sq"},
           {"adam_m/a/weight", "adam_v/a/weight"},
           {"a/weight/Adam", "a/weight/Adam_1"},
           {"opt_state/0/mu/params/a/weight", "opt_state/0/nu/params/a/weight"},
           {"optimizer.m.a.weight", "optimizer.v.a.weight"},
       }) {
    const Checkpoint state = Holding("s", {{first}, {second}});
    EXPECT_EQ(JoinedNames(Weights(), state),
              std::vector<std::string>{fmt::format("model.a.weight: {}, {}", first, second)});
  }
}

TEST(TrainingState, IsFoundBesideTheWeightsByNumbers) {
  const Checkpoint checkpoint = Holding("c", {{"model.a.weight"},
                                              {"model.a.bias", {4}},
                                              {"optimizer.state.0.step", {}},
                                              {"optimizer.state.0.exp_avg"},
                                              {"optimizer.state.0.exp_avg_sq"},
                                              {"optimizer.state.1.step", {}},
                                              {"optimizer.state.1.exp_avg", {4}},
                                              {"optimizer.state.1.exp_avg_sq", {4}}});
  const auto found = FindTrainingState(checkpoint, checkpoint);
  ASSERT_TRUE(found.has_value()) << ErrorLine(found);
  ASSERT_EQ(found->weights.size(), 2U);
  EXPECT_EQ(found->weights[1].weight, 1);
  EXPECT_EQ(found->weights[1].step, 5);
  EXPECT_EQ(found->weights[1].first, 6);
  EXPECT_EQ(found->weights[1].second, 7);
  EXPECT_TRUE(found->without_state.empty());
}

TEST(TrainingState, OfAnotherFileByNumbers) {
  const Checkpoint state = Holding("s", {{"state.0.exp_avg"},
                                         {"state.0.exp_avg_sq"},
                                         {"state.1.exp_avg", {4}},
                                         {"state.1.exp_avg_sq", {4}},
                                         {"step", {}}});
  EXPECT_EQ(JoinedNames(Weights(), state),
            (std::vector<std::string>{"model.a.weight: state.0.exp_avg, state.0.exp_avg_sq",
                                      "model.a.bias: state.1.exp_avg, state.1.exp_avg_sq"}));
  EXPECT_EQ(FindTrainingState(Weights(), state)->step, 4);
}

// What the ranks of ZeRO 3 have saved has no other weights.
TEST(TrainingState, OfMasterCopiesIsFound) {
  const Checkpoint checkpoint = Holding("c", {{"optimizer.state.a.exp_avg"},
                                              {"optimizer.state.a.exp_avg_sq"},
                                              {"optimizer.state.a.master"}});
  EXPECT_EQ(JoinedNames(checkpoint, checkpoint),
            std::vector<std::string>{"optimizer.state.a.master: optimizer.state.a.exp_avg, "
                                     "optimizer.state.a.exp_avg_sq"});
  const Checkpoint both = Holding("c", {{"optimizer.state.a.exp_avg"},
                                        {"optimizer.state.a.exp_avg_sq"},
                                        {"optimizer.state.a.master"},
                                        {"module.a"}});
  EXPECT_EQ(JoinedNames(both, both),
            std::vector<std::string>{
                "module.a: optimizer.state.a.exp_avg, optimizer.state.a.exp_avg_sq"});
}

TEST(TrainingState, IsFoundByPatterns) {
  const auto patterns = ParseMomentPatterns("opt.m.{name}.x,opt.v.{name}.x");
  const Checkpoint state = Holding("s", {{"opt.m.a.weight.x"}, {"opt.v.a.weight.x"}});
  EXPECT_EQ(JoinedNames(Weights(), state, *patterns),
            std::vector<std::string>{"model.a.weight: opt.m.a.weight.x, opt.v.a.weight.x"});
}

TEST(TrainingState, PatternsNeedAPlaceForTheName) {
  for (const char* text : {"", "a", "m.{name}", "m.{name},v", "{name},{name}.v",
                           "m.{name},m.{name}", "{name}{name}.m,v.{name}"}) {
    const auto patterns = ParseMomentPatterns(text);
    ASSERT_FALSE(patterns.has_value()) << text;
    EXPECT_EQ(patterns.error().kind, ErrorKind::kUsage);
  }
}

TEST(TrainingState, WeightsWithoutItAreListed) {
  const Checkpoint state = Holding("s", {{"exp_avg.a.bias", {4}}, {"exp_avg_sq.a.bias", {4}}});
  EXPECT_EQ(FindTrainingState(Weights(), state)->without_state, std::vector<std::int32_t>{0});
  const Checkpoint both = Holding("c", {{"w"}, {"u"}, {"adam_m/w"}, {"adam_v/w"}});
  EXPECT_EQ(FindTrainingState(both, both)->without_state, std::vector<std::int32_t>{1});
  const Checkpoint counted = Holding("c", {{"w"}, {"step", {}}, {"adam_m/w"}, {"adam_v/w"}});
  EXPECT_TRUE(FindTrainingState(counted, counted)->without_state.empty());
}

TEST(TrainingState, OfAnotherShapeNamesTheTensor) {
  const Checkpoint state = Holding("s", {{"exp_avg.a.weight", {4, 3}}, {"exp_avg_sq.a.weight"}});
  EXPECT_EQ(JoinedNames(Weights(), state),
            std::vector<std::string>{"s: tensor \"exp_avg.a.weight\" | a first moment of shape "
                                     "[4, 3] | the weight \"model.a.weight\" has [4, 2] | the "
                                     "state may be of another model"});
}

TEST(TrainingState, WithOneMomentAloneIsAnError) {
  const Checkpoint state = Holding("s", {{"exp_avg.a.weight"}});
  EXPECT_EQ(JoinedNames(Weights(), state),
            std::vector<std::string>{
                "s: tensor \"exp_avg.a.weight\" | the first moment of \"model.a.weight\" alone | "
                "expected the second one too | only optimizers of the Adam family are audited"});
}

TEST(TrainingState, OfAnotherModelIsAnError) {
  const Checkpoint state =
      Holding("s", {{"optimizer.state.0.exp_avg", {7}}, {"optimizer.state.0.exp_avg_sq", {7}}});
  EXPECT_EQ(JoinedNames(Weights(), state),
            std::vector<std::string>{
                "s | 2 moments that belong to no weight, the first \"optimizer.state.0.exp_avg\" "
                "of shape [7] | expected one of 2 weights of w | the state may be of another "
                "model"});
}

TEST(TrainingState, ThatIsNotThereSaysWhatWasLookedFor) {
  EXPECT_EQ(JoinedNames(Weights(), Weights()),
            std::vector<std::string>{
                "w | no optimizer state of the Adam family | looked for exp_avg and exp_avg_sq, "
                "adam_m and adam_v, mu and nu, Adam and Adam_1 before or behind the names of "
                "weights, or by PyTorch's numbers | --moments \"opt.m.{name},opt.v.{name}\" names "
                "other ones"});
  const Checkpoint momentum = Holding("s", {{"state.0.momentum_buffer"}});
  EXPECT_TRUE(JoinedNames(Weights(), momentum).front().starts_with("s | no optimizer state"));
}

}  // namespace
}  // namespace fourpiles
