#include "plan/accuracy.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

ValidatedRun Measured(double error) {
  return {.measured_by = "a/b",
          .metric = "allocated",
          .measures = "peak",
          .confidence = "high",
          .measured = 100,
          .predicted = 100 * (1 + error),
          .error = error,
          .judged = true};
}

TEST(Accuracy, StatisticsAreOfTheSizesOfErrors) {
  Validation validation;
  for (const double error : {0.01, -0.02, 0.03, -0.04, 0.05, -0.06, 0.07, -0.08, 0.09, -0.10}) {
    validation.rows.push_back(Measured(error));
  }
  validation.rows.push_back({.measured_by = "a/b",
                             .metric = "allocated",
                             .measures = "peak",
                             .confidence = "high"});  // not expressible
  const Accuracy accuracy = AccuracyOf(validation);
  ASSERT_EQ(accuracy.classes.size(), 1u);
  const ErrorStatistics& all = accuracy.classes[0].all;
  EXPECT_EQ(all.rows, 11);
  EXPECT_EQ(all.compared, 10);
  EXPECT_DOUBLE_EQ(all.median, 0.055);        // between the fifth and the sixth
  EXPECT_DOUBLE_EQ(all.percentile_90, 0.09);  // nine of ten are not larger
  EXPECT_DOUBLE_EQ(all.worst_under, -0.10);
  EXPECT_DOUBLE_EQ(all.share_within_5, 0.5);
  EXPECT_DOUBLE_EQ(all.share_within_10, 1);
  EXPECT_DOUBLE_EQ(all.share_under_by_8, 0.1);
  EXPECT_EQ(all.with_band, 0);
  EXPECT_EQ(accuracy.classes[0].rows.size(), 10u);
}

TEST(Accuracy, BandsCountByWhatLiesInside) {
  Validation validation;
  for (const bool inside : {true, true, false}) {
    ValidatedRun run = Measured(0);
    run.metric = "reserved";
    run.band = PrintedRange{100, inside ? 150.0 : 300.0};
    run.in_band = inside;
    validation.rows.push_back(run);
  }
  const ErrorStatistics all = AccuracyOf(validation).classes.at(0).all;
  EXPECT_EQ(all.with_band, 3);
  EXPECT_DOUBLE_EQ(all.share_inside, 2.0 / 3);
  EXPECT_DOUBLE_EQ(all.median_high_per_low, 1.5);
}

TEST(Accuracy, TheSurestRowsStandFirstAndThoseOfLowConfidenceApart) {
  Validation validation;
  const auto add = [&](std::string metric, std::string measures, std::string confidence) {
    ValidatedRun run = Measured(0);
    run.metric = std::move(metric);
    run.measures = std::move(measures);
    run.confidence = std::move(confidence);
    validation.rows.push_back(run);
  };
  add("allocated", "peak", "low");
  add("unknown", "peak", "high");
  add("smi", "peak", "medium");
  add("reserved", "peak", "high");
  add("allocated", "pile:weights", "high");
  add("allocated", "peak", "medium");
  add("allocated", "peak", "high");
  std::vector<std::size_t> order;
  for (const AccuracyClass& of : AccuracyOf(validation).classes) {
    ASSERT_EQ(of.rows.size(), 1u) << of.title;
    order.push_back(of.rows[0]);
  }
  EXPECT_EQ(order, (std::vector<std::size_t>{6, 5, 4, 3, 2, 1, 0}));
}

TEST(Accuracy, PlannersAreComparedOnTheRowsTheyExpress) {
  Validation validation;
  ValidatedRun both = Measured(0.01);
  both.published = {{"accelerate estimate-memory", 60}};
  ValidatedRun shown = both;  // not known well: it counts for nobody
  shown.confidence = "low";
  validation.rows = {both, Measured(0.2), shown};
  const Accuracy accuracy = AccuracyOf(validation);
  ASSERT_EQ(accuracy.planners.size(), 5u);
  EXPECT_EQ(accuracy.planners[0].name, "accelerate estimate-memory");
  EXPECT_EQ(accuracy.planners[0].its.compared, 1);
  EXPECT_DOUBLE_EQ(accuracy.planners[0].its.median, 0.4);
  EXPECT_DOUBLE_EQ(accuracy.planners[0].its.share_under_by_8, 1);
  EXPECT_DOUBLE_EQ(accuracy.planners[0].ours.median, 0.01);
  EXPECT_EQ(accuracy.planners[1].its.compared, 0);
  EXPECT_EQ(accuracy.peaks.compared, 2);
}

}  // namespace
}  // namespace fourpiles
