#include "audit/step.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "audit/step_parts.h"
#include "base/json.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

std::string DataPath(std::string_view name) {
  return std::string(FOURPILES_TEST_DATA "/audit/") + std::string(name);
}

Json ReadTruth() {
  return *ReadJson(*ReadWholeFile(DataPath("step.json"), 1 << 20), "step.json");
}

double Number(const Json& object, std::string_view key) {
  const Json& number = *object.Find(key);
  return number.AsDouble() != nullptr ? *number.AsDouble()
                                      : static_cast<double>(*number.AsInteger());
}

Result<StepAudit> AuditOf(const Checkpoint& checkpoint, const StepOptions& options) {
  return AuditStep({.weights = &checkpoint}, options);
}

class Step : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    auto opened = OpenCheckpoint(DataPath("step.pt"));
    ASSERT_TRUE(opened.has_value()) << ErrorLine(opened);
    checkpoint_ = *std::move(opened);
  }
  Checkpoint checkpoint_ = {};
};

// step.json was counted by NumPy (tests/data/audit/make_step.py).
TEST_F(Step, UpdatesAreLostAsNumPyCounts) {
  const Json truth = ReadTruth();
  for (const Json& row : *truth.Find("rates")->AsArray()) {
    const auto audit = AuditOf(checkpoint_, {.learning_rate = Number(row, "rate")});
    ASSERT_TRUE(audit.has_value()) << ErrorLine(audit);
    ASSERT_EQ(audit->updates->tensors.size(), 4U);
    for (const TensorUpdates& tensor : audit->updates->tensors) {
      for (std::size_t i = 0; i < audit->formats.size(); ++i) {
        const Json& format = *row.Find("formats")->Find(audit->formats[i].name);
        const Json& expected = *format.Find(tensor.name.substr(6));  // without "model."
        const UpdateLosses& losses = tensor.formats[i];
        EXPECT_EQ(tensor.step, 3);
        EXPECT_EQ(losses.lost, *expected.Find("lost")->AsInteger()) << tensor.name;
        EXPECT_EQ(losses.nonzero, *expected.Find("nonzero")->AsInteger()) << tensor.name;
        EXPECT_EQ(losses.not_finite, *expected.Find("not_finite")->AsInteger()) << tensor.name;
        EXPECT_NEAR(losses.mass, Number(expected, "mass"), 1e-12);
        EXPECT_NEAR(losses.lost_mass, Number(expected, "lost_mass"), 1e-12);
      }
    }
  }
}

TEST_F(Step, GradientsAreLostAsNumPyCounts) {
  const Json truth = ReadTruth();
  const auto audit = AuditOf(checkpoint_, {});
  ASSERT_TRUE(audit.has_value()) << ErrorLine(audit);
  const auto& expected = *truth.Find("gradients")->AsArray();
  const std::vector<ScaleLosses>& scales = audit->gradients->totals[1].scales;
  ASSERT_EQ(scales.size(), expected.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    EXPECT_EQ(scales[i].vanished, *expected[i].Find("vanished")->AsInteger()) << i;
    EXPECT_EQ(scales[i].subnormal, *expected[i].Find("subnormal")->AsInteger()) << i;
    EXPECT_EQ(scales[i].overflow, *expected[i].Find("overflow")->AsInteger()) << i;
  }
  EXPECT_EQ(audit->gradients->facts.nan, 5);
}

TEST_F(Step, NumbersThatShapedItAreNamed) {
  const auto audit = AuditOf(checkpoint_, {.learning_rate = 1e-4, .beta1 = 0.8});
  const std::vector<std::pair<double, std::string_view>> expected = {
      {1e-4, "given"},          {0.8, "given"},        {0.95, "the checkpoint"},
      {1e-8, "the checkpoint"}, {0, "the checkpoint"}, {3, "the checkpoint"}};
  ASSERT_EQ(audit->settings.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(audit->settings[i].value, expected[i].first) << audit->settings[i].name;
    EXPECT_EQ(audit->settings[i].from, expected[i].second) << audit->settings[i].name;
  }
}

TEST_F(Step, DefaultsAreThoseOfPyTorch) {
  const auto trainer = OpenCheckpoint(FOURPILES_TEST_DATA "/cases/torch/trainer.pt");
  const auto audit = AuditOf(*trainer, {.learning_rate = 1e-4, .step = 2});
  ASSERT_TRUE(audit.has_value()) << ErrorLine(audit);
  EXPECT_EQ(audit->settings[2].name, "beta2");
  EXPECT_EQ(audit->settings[2].value, 0.999);
  EXPECT_EQ(audit->settings[2].from, "default of torch.optim.Adam");
}

TEST_F(Step, LearningRatesOfTheCheckpointAreTaken) {
  const auto audit = AuditOf(checkpoint_, {});
  ASSERT_TRUE(audit->updates.has_value());
  EXPECT_EQ(audit->settings.front().value, 1e-3);
}

TEST_F(Step, GroupsThatDifferLeaveDecayOut) {
  const auto groups = OpenCheckpoint(DataPath("groups.bin"));
  ASSERT_TRUE(groups.has_value());
  const auto chosen = ChooseSettings(*groups, {});
  ASSERT_TRUE(chosen.has_value()) << ErrorLine(chosen);
  EXPECT_EQ(chosen->adam->learning_rate, 2e-4);
  EXPECT_EQ(chosen->adam->decoupled_decay, 0);
  EXPECT_TRUE(chosen->used.back().from.starts_with("not taken"));
  EXPECT_EQ(ChooseSettings(*groups, {.weight_decay = 0.1})->adam->decoupled_decay, 0.1);
}

TEST_F(Step, VerdictsFollowTheThresholds) {
  const auto audit = AuditOf(checkpoint_, {.learning_rate = 1e-4});
  ASSERT_EQ(audit->verdicts.size(), 4U);
  for (const StepVerdict& verdict : audit->verdicts) {
    EXPECT_EQ(verdict.needed, verdict.value > verdict.threshold) << verdict.sentence;
    EXPECT_FALSE(verdict.source.empty());
  }
  EXPECT_TRUE(audit->verdicts[0].needed);
  EXPECT_TRUE(audit->verdicts[0].sentence.starts_with("Keep a float32 master copy"));
  EXPECT_EQ(audit->verdicts[1].question, StepQuestion::kLossScaling);
  EXPECT_FALSE(audit->verdicts[1].needed);  // bfloat16 has the range of float32

  Thresholds thresholds = DefaultThresholds();
  ASSERT_TRUE(SetThreshold(thresholds, "lost-updates=100%", "").has_value());
  const auto lenient = AuditOf(checkpoint_, {.learning_rate = 1e-4, .thresholds = thresholds});
  EXPECT_FALSE(lenient->verdicts[0].needed);
  EXPECT_EQ(lenient->verdicts[0].threshold, 1);
  EXPECT_EQ(lenient->verdicts[0].value, audit->verdicts[0].value);
}

// 65520 ÷ 60000 lies between 2^0 and 2^1.
TEST(StepVerdicts, DoNotAdviseAScaleThatTheLargestGradientHasNoRoomFor) {
  const std::vector<NumberFormat> formats = {*FindFormat("float16")};
  GradientCounts counts(formats);
  counts.Add(std::vector<double>{60000, 1e-9});
  const StepAudit audit = {
      .formats = formats,
      .gradients = GradientAudit{.facts = counts.Facts(), .totals = {counts.LossesIn(0)}}};
  const std::vector<StepVerdict> verdicts = VerdictsOf(audit, DefaultThresholds());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_TRUE(verdicts[0].needed);
  EXPECT_EQ(verdicts[0].sentence,
            "50 % of the gradients vanish in float16, and a loss scale helps little: the largest "
            "gradient, 6e+04, fits up to the scale 2^0. Clip it first, or use a format of more "
            "range.");
}

TEST_F(Step, FiltersChooseTensors) {
  const auto audit = AuditOf(checkpoint_, {.learning_rate = 1e-4, .filters = {"bias"}});
  ASSERT_EQ(audit->updates->tensors.size(), 1U);
  EXPECT_EQ(audit->updates->tensors.front().name, "model.a.bias");
  EXPECT_EQ(audit->gradients->tensors.size(), 1U);
}

TEST_F(Step, ProgressReachesTheEnd) {
  StepProgress last;
  const auto audit =
      AuditOf(checkpoint_,
              {.learning_rate = 1e-4, .progress = [&](const StepProgress& now) { last = now; }});
  EXPECT_GT(last.elements, 0);
  EXPECT_EQ(last.elements_done, last.elements);
}

TEST_F(Step, NumbersThatAreNoRatesAreWrong) {
  const auto error = [&](const StepOptions& options) {
    return ErrorLine(AuditStep({.weights = &checkpoint_}, options));
  };
  EXPECT_EQ(error({.learning_rate = -1}), "--learning-rate | -1 | expected a number from 0 on | ");
  EXPECT_EQ(error({.beta1 = 1}),
            "--beta1 | 1 | expected a number from 0 up to, but not including, 1 | ");
  EXPECT_EQ(error({.step = 0}), "--step | 0 | expected a number of steps from 1 on | ");
  EXPECT_EQ(
      AuditStep({.weights = &checkpoint_}, {.formats = {*FindFormat("float64")}}).error().kind,
      ErrorKind::kUsage);
}

TEST_F(Step, WithoutAnythingToAuditIsWrong) {
  const auto plain = OpenCheckpoint(FOURPILES_TEST_DATA "/cases/torch/ok.pt");
  EXPECT_EQ(ErrorLine(AuditStep({.weights = &*plain}, {})),
            "--learning-rate | none | expected one for the updates, or gradients | give a learning "
            "rate, such as --learning-rate 3e-4");
  const auto unlike = AuditStep({.weights = &*plain, .state = &checkpoint_}, {});
  EXPECT_EQ(unlike.error().kind, ErrorKind::kInput);
  EXPECT_TRUE(unlike.error().text.found.starts_with("8 moments that belong to no weight"));
  const auto gradients = AuditStep({.weights = &*plain, .gradients = &checkpoint_}, {});
  EXPECT_FALSE(gradients->updates.has_value());
  EXPECT_EQ(gradients->gradients->tensors.size(), 4U);
}

TEST_F(Step, ZeroIsNoStep) {
  const auto trainer = OpenCheckpoint(FOURPILES_TEST_DATA "/cases/torch/trainer.pt");
  const auto audit = AuditStep({.weights = &*trainer}, {.learning_rate = 1e-3});
  ASSERT_FALSE(audit.has_value());
  EXPECT_EQ(audit.error().kind, ErrorKind::kInput);
  EXPECT_EQ(audit.error().text.found, "the step 0");
  EXPECT_TRUE(AuditStep({.weights = &*trainer}, {.learning_rate = 1e-3, .step = 5}).has_value());
}

TEST_F(Step, AFileThatShrinksIsAnError) {
  std::filesystem::copy_file(DataPath("step.pt"), PathTo("step.pt"));
  const auto checkpoint = OpenCheckpoint(PathTo("step.pt"));
  std::filesystem::resize_file(PathTo("step.pt"), 2000);
  const auto audit = AuditOf(*checkpoint, {.learning_rate = 1e-3});
  ASSERT_FALSE(audit.has_value());
  EXPECT_EQ(audit.error().kind, ErrorKind::kInput);
}

// Blocks of more than one thread, of a tensor of more than one block.
TEST_F(Step, ThreadsChangeNothing) {
  constexpr std::int64_t kElements = kBlocksAhead * kStepBlock + 17;
  std::string data;
  for (std::int64_t i = 0; i < 4 * kElements; ++i) {
    const float value = 1e-3F * static_cast<float>(i * 7919 % 10'007 + 1);
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::string path = MakeFile("big", data);
  Checkpoint checkpoint = {
      .path = path,
      .files = {{.name = "big",
                 .bytes = std::ssize(data),
                 .source = std::make_shared<FileSource>(*FileSource::Open(path))}}};
  std::int64_t offset = 0;
  for (const char* name : {"w", "w.exp_avg", "w.exp_avg_sq", "w.grad"}) {
    checkpoint.tensors.push_back({.name = name,
                                  .type = FindStoredType("float32"),
                                  .shape = {kElements},
                                  .elements = kElements,
                                  .bytes = 4 * kElements,
                                  .offset = offset});
    offset += 4 * kElements;
  }
  StepProgress last;
  const StepOptions one = {
      .learning_rate = 1e-3, .step = 10, .progress = [&](const StepProgress& now) { last = now; }};
  const auto expected = AuditStep({.weights = &checkpoint}, one);
  ASSERT_TRUE(expected.has_value()) << ErrorLine(expected);
  EXPECT_EQ(expected->updates->totals[0].elements, kElements);
  EXPECT_EQ(expected->gradients->facts.count, kElements);
  EXPECT_EQ(last.elements_done, 2 * kElements);
  for (const int threads : {2, 3, 8}) {
    StepOptions options = one;
    options.threads = threads;
    const auto audit = AuditStep({.weights = &checkpoint}, options);
    for (std::size_t i = 0; i < 2; ++i) {
      const UpdateLosses& a = expected->updates->totals[i];
      const UpdateLosses& b = audit->updates->totals[i];
      EXPECT_EQ(a.lost, b.lost);
      EXPECT_EQ(a.mass, b.mass);
      EXPECT_EQ(a.lost_mass, b.lost_mass);
      EXPECT_EQ(a.stochastic_unmoved, b.stochastic_unmoved);
      EXPECT_EQ(a.median_steps, b.median_steps);
      EXPECT_EQ(expected->gradients->totals[i].scales.back().overflow,
                audit->gradients->totals[i].scales.back().overflow);
    }
    EXPECT_EQ(last.elements_done, 2 * kElements);
    EXPECT_EQ(audit->gradients->facts.count, kElements);
    EXPECT_EQ(audit->gradients->facts.binades, expected->gradients->facts.binades);
  }
}

}  // namespace
}  // namespace fourpiles
