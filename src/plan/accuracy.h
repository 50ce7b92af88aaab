#pragma once

// How near the predictions of a file of runs come: by what was measured and who measured it, and
// beside what other planners would answer for the same rows.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/validate.h"

namespace fourpiles {

// Errors are predicted ÷ measured − 1; shares are of the compared rows.
struct ErrorStatistics {
  std::int64_t rows = 0;
  std::int64_t compared = 0;
  double median = 0;               // of the sizes of the errors
  double percentile_90 = 0;        // nine of ten are not larger
  double worst_under = 0;          // the most negative error; 0: nothing came out too small
  double share_within_5 = 0;       // percent
  double share_within_10 = 0;      // percent
  double share_under_by_8 = 0;     // too small by more than 8 percent
  std::int64_t with_band = 0;      // rows whose prediction is a band
  double share_inside = 0;         // of those
  double median_high_per_low = 0;  // of those: how wide the bands are
};

struct SourceAccuracy {
  std::string source = {};  // "Lightning-AI/litgpt"
  ErrorStatistics statistics = {};
};

// Rows that mean the same thing: the allocated peaks of high confidence, the reserved ones …
struct AccuracyClass {
  std::string title = {};
  std::vector<SourceAccuracy> sources = {};  // in the order they come first
  ErrorStatistics all = {};
  std::vector<std::size_t> rows = {};  // the compared ones, as they stand in the validation
};

// Over the rows that the planner can express; the classes that are only shown are left out.
struct PlannerAccuracy {
  std::string name = {};
  ErrorStatistics its = {};
  ErrorStatistics ours = {};  // on the same rows
};

struct Accuracy {
  std::vector<AccuracyClass> classes = {};  // those with rows, the surest first
  // Every planner of published_formulas.h, whether or not it can express a row.
  std::vector<PlannerAccuracy> planners = {};
  ErrorStatistics peaks = {};  // ours, on all judged peaks
};

Accuracy AccuracyOf(const Validation& validation);

}  // namespace fourpiles
