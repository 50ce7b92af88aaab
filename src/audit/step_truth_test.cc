// Runs over checkpoints of a real training run, where the variable FOURPILES_CHECKPOINTS names
// their folder: NAME.pt with NAME.pt.json, made by PyTorch.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "audit/step.h"
#include "base/json.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

class StepTruth : public ::testing::Test {
 protected:
  void SetUp() override {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
    const char* folder = std::getenv("FOURPILES_CHECKPOINTS");
    if (folder == nullptr) {
      GTEST_SKIP() << "FOURPILES_CHECKPOINTS is not set";
    }
    folder_ = folder;
  }
  std::string PathTo(const std::string& name) const { return folder_ + "/" + name; }
  Json ReadDocument(const std::string& name) const {
    std::ifstream file(PathTo(name));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    auto document = ReadJson(text, name, {.bytes = std::int64_t{64} << 20, .non_finite = true});
    EXPECT_TRUE(document.has_value()) << ErrorLine(document);
    return document ? *document : Json();
  }

 private:
  std::string folder_ = {};
};

double Number(const Json& object, std::string_view key) {
  const Json& number = *object.Find(key);
  return number.AsDouble() != nullptr ? *number.AsDouble()
                                      : static_cast<double>(*number.AsInteger());
}

std::int64_t At(const Json& array, std::size_t index) {
  return *(*array.AsArray())[index].AsInteger();
}

// The formats as the documents call them, in the order of the audit.
constexpr std::string_view kFormats[] = {"bf16", "fp16"};

StepOptions OptionsFor(double learning_rate) {
  return {.learning_rate = learning_rate, .threads = 2};  // the betas are the checkpoint's
}

// Of the tensors: lost elements and nonzero ones, which the document counted in float32.
void ExpectTensors(const UpdateAudit& updates, std::size_t format, const Json& tensors) {
  EXPECT_EQ(updates.tensors.size(), tensors.AsObject()->size());
  for (const TensorUpdates& tensor : updates.tensors) {
    const std::string name = tensor.name.substr(std::string_view("model.").size());
    const Json* expected = tensors.Find(name);
    ASSERT_NE(expected, nullptr) << name;
    const UpdateLosses& losses = tensor.formats[format];
    EXPECT_NEAR(static_cast<double>(losses.lost), static_cast<double>(At(*expected, 0)), 3) << name;
    EXPECT_EQ(losses.nonzero, At(*expected, 1)) << name;
  }
}

TEST_F(StepTruth, LostUpdatesAreThoseOfTheRun) {
  const auto checkpoint = OpenCheckpoint(PathTo("dyn_fp32_step800.pt"));
  ASSERT_TRUE(checkpoint.has_value()) << ErrorLine(checkpoint);
  const Json document = ReadDocument("dyn_fp32_step800.pt.json");
  for (const auto& [rate, expected] : *document.Find("lr")->AsObject()) {
    const auto audit = AuditStep({.weights = &*checkpoint}, OptionsFor(std::stod(rate)));
    ASSERT_TRUE(audit.has_value()) << ErrorLine(audit);
    EXPECT_TRUE(audit->updates->without_state.empty());
    for (std::size_t i = 0; i < 2; ++i) {
      const Json& truth = *expected.Find(kFormats[i]);
      const UpdateLosses& total = audit->updates->totals[i];
      EXPECT_NEAR(static_cast<double>(total.lost), Number(truth, "lost_f64"), 3) << rate;
      EXPECT_NEAR(LostMassShare(total), Number(truth, "abs_mass_fraction"), 1e-4) << rate;
      ExpectTensors(*audit->updates, i, *truth.Find("per_tensor_lost_nonzero"));
    }
  }
}

double Correlation(const std::vector<std::pair<double, double>>& points) {
  const auto count = static_cast<double>(points.size());
  double x = 0;
  double y = 0;
  for (const auto& [a, b] : points) {
    x += a / count;
    y += b / count;
  }
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (const auto& [a, b] : points) {
    xx += (a - x) * (a - x);
    yy += (b - y) * (b - y);
    xy += (a - x) * (b - y);
  }
  return xy / std::sqrt(xx * yy);
}

// Predicted from the checkpoint against what the next 200 steps were seen to lose on average.
TEST_F(StepTruth, SharesFollowTheRunsThatFollowed) {
  const auto checkpoint = OpenCheckpoint(PathTo("dyn_fp32_step800.pt"));
  const Json document = ReadDocument("dynamics.json");
  std::vector<std::pair<double, double>> points;
  for (const Json& row :
       *document.Find("summary")->Find("checkpoint_prediction_next_200_steps")->AsArray()) {
    const auto audit = AuditStep({.weights = &*checkpoint}, OptionsFor(Number(row, "lr")));
    const std::size_t format = *row.Find("fmt")->AsString() == kFormats[0] ? 0 : 1;
    const double share = LostShare(audit->updates->totals[format]);
    EXPECT_NEAR(share, Number(row, "predicted"), 5e-5);
    points.emplace_back(share, Number(row, "observed_mean"));
  }
  RecordProperty("correlation", std::to_string(Correlation(points)));
  EXPECT_GE(Correlation(points), 0.999) << points.size();
}

TEST_F(StepTruth, StateOfAnotherFileIsJoined) {
  const auto weights = OpenCheckpoint(PathTo("char_gpt_fp32.pt"));
  const auto state = OpenCheckpoint(PathTo("adamw_state.pt"));
  StepOptions options = OptionsFor(1e-3);
  options.weight_decay = 0.1;
  const auto audit = AuditStep({.weights = &*weights, .state = &*state}, options);
  ASSERT_TRUE(audit.has_value()) << ErrorLine(audit);
  EXPECT_EQ(audit->updates->tensors.size(), 28U);
  EXPECT_EQ(audit->updates->tensors.front().step, 400);
  EXPECT_TRUE(audit->updates->without_state.empty());
}

TEST_F(StepTruth, GradientsAreCountedAsPyTorchCounts) {
  const auto gradients = OpenCheckpoint(PathTo("grads_fp32.pt"));
  const auto audit = AuditStep({.weights = &*gradients, .gradients = &*gradients}, {.threads = 2});
  ASSERT_TRUE(audit.has_value()) << ErrorLine(audit);
  const Json document = ReadDocument("grads_fp32.pt.json");
  std::map<std::string, const Json*> truth;
  for (const Json& row : *document.Find("tensors")->AsArray()) {
    truth[*row.Find("name")->AsString()] = row.Find("stats");
  }
  EXPECT_EQ(audit->gradients->tensors.size(), truth.size());
  for (const TensorGradients& tensor : audit->gradients->tensors) {
    const Json& stats = *truth.at(tensor.name);
    EXPECT_EQ(tensor.facts.zero, *stats.Find("zeros")->AsInteger());
    EXPECT_EQ(tensor.facts.largest, Number(stats, "amax"));
    const ScaleLosses& plain = tensor.formats[1].scales.front();
    const Json& half = *stats.Find("fp16");
    EXPECT_EQ(plain.vanished, *half.Find("underflow_to_zero_count")->AsInteger());
    EXPECT_EQ(plain.subnormal, *half.Find("subnormal_result_count")->AsInteger());
    EXPECT_EQ(plain.overflow, *half.Find("overflow_count")->AsInteger());
  }
}

}  // namespace
}  // namespace fourpiles
