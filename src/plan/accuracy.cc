#include "plan/accuracy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "plan/published_formulas.h"

namespace fourpiles {
namespace {

constexpr double kNear = 0.05;
constexpr double kLessNear = 0.10;
constexpr double kTooSmall = 0.08;

// Which class a row belongs to.
struct ClassRule {
  std::string_view title;
  bool (*holds)(const ValidatedRun& run);
};

bool IsShown(const ValidatedRun& run) {
  return run.confidence == "low" || run.metric == "unknown";
}

bool IsPeak(const ValidatedRun& run) {
  return run.measures.empty() || run.measures == "peak";
}

bool IsSure(const ValidatedRun& run, std::string_view metric) {
  return run.metric == metric && !IsShown(run);
}

// The first that holds, in the order of the report: the surest stand first.
constexpr ClassRule kClasses[] = {
    {"Allocated, peak of a step, high confidence",
     [](const ValidatedRun& run) {
       return IsSure(run, "allocated") && IsPeak(run) && run.confidence == "high";
     }},
    {"Allocated, peak of a step, medium confidence",
     [](const ValidatedRun& run) { return IsSure(run, "allocated") && IsPeak(run); }},
    {"Allocated: one pile, one kernel, between steps",
     [](const ValidatedRun& run) { return IsSure(run, "allocated"); }},
    {"Reserved by the allocator", [](const ValidatedRun& run) { return IsSure(run, "reserved"); }},
    {"Whole device, as nvidia-smi prints it",
     [](const ValidatedRun& run) { return IsSure(run, "smi"); }},
    {"Figures of engines", [](const ValidatedRun& run) { return run.metric.empty(); }},
    {"Other metrics", [](const ValidatedRun& run) { return !IsShown(run); }},
    {"Metric not known: shown, not judged",
     [](const ValidatedRun& run) { return run.confidence != "low"; }},
    {"Low confidence: shown, not judged", [](const ValidatedRun&) { return true; }}};

std::size_t ClassOf(const ValidatedRun& run) {
  const auto rule = std::ranges::find_if(
      kClasses, [&](const ClassRule& candidate) { return candidate.holds(run); });
  return static_cast<std::size_t>(rule - std::begin(kClasses));
}

// Collects errors; Done() turns them into the statistics.
class Errors {
 public:
  void AddRow() { ++statistics_.rows; }

  void Add(double error) {
    sizes_.push_back(std::abs(error));
    statistics_.worst_under = std::min(statistics_.worst_under, error);
    within_5_ += std::abs(error) <= kNear ? 1 : 0;
    within_10_ += std::abs(error) <= kLessNear ? 1 : 0;
    under_ += error < -kTooSmall ? 1 : 0;
  }

  void AddBand(const PrintedRange& band, bool inside) {
    ++statistics_.with_band;
    inside_ += inside ? 1 : 0;
    if (band.low > 0) {
      ratios_.push_back(band.high / band.low);
    }
  }

  ErrorStatistics Done() {
    statistics_.compared = std::ssize(sizes_);
    if (!sizes_.empty()) {
      const auto count = static_cast<double>(sizes_.size());
      std::ranges::sort(sizes_);
      constexpr std::size_t kTenths = 9;
      statistics_.median = MedianOf(sizes_);
      // The smallest size that so many are not above: rank ⌈0.9 n⌉.
      statistics_.percentile_90 = sizes_[(kTenths * sizes_.size() + 9) / 10 - 1];
      statistics_.share_within_5 = within_5_ / count;
      statistics_.share_within_10 = within_10_ / count;
      statistics_.share_under_by_8 = under_ / count;
    }
    if (statistics_.with_band > 0) {
      statistics_.share_inside = inside_ / static_cast<double>(statistics_.with_band);
    }
    if (!ratios_.empty()) {
      statistics_.median_high_per_low = MedianOf(ratios_);
    }
    return statistics_;
  }

 private:
  ErrorStatistics statistics_ = {};
  std::vector<double> sizes_ = {};
  std::vector<double> ratios_ = {};
  double within_5_ = 0;
  double within_10_ = 0;
  double under_ = 0;
  double inside_ = 0;
};

template <class Belongs>
ErrorStatistics StatisticsOf(std::span<const ValidatedRun> runs, Belongs belongs) {
  Errors errors;
  for (const ValidatedRun& run : runs) {
    if (!belongs(run)) {
      continue;
    }
    errors.AddRow();
    if (run.predicted) {
      errors.Add(run.error);
      if (run.band) {
        errors.AddBand(*run.band, run.in_band);
      }
    }
  }
  return errors.Done();
}

AccuracyClass ClassAccuracy(const Validation& validation, std::size_t number) {
  AccuracyClass result = {.title = std::string(kClasses[number].title)};
  const auto belongs = [&](const ValidatedRun& run) { return ClassOf(run) == number; };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < validation.rows.size(); ++i) {
    const ValidatedRun& run = validation.rows[i];
    if (!belongs(run)) {
      continue;
    }
    if (run.predicted) {
      result.rows.push_back(i);
    }
    if (std::ranges::find(names, run.measured_by) == names.end()) {
      names.push_back(run.measured_by);
      result.sources.push_back(
          {run.measured_by, StatisticsOf(validation.rows, [&](const ValidatedRun& other) {
             return belongs(other) && other.measured_by == run.measured_by;
           })});
    }
  }
  result.all = StatisticsOf(validation.rows, belongs);
  return result;
}

bool IsJudgedPeak(const ValidatedRun& run) {
  return run.predicted && !run.metric.empty() && IsPeak(run) && !IsShown(run);
}

const NamedFigure* FigureOf(const ValidatedRun& run, std::string_view planner) {
  const auto figure = std::ranges::find(run.published, planner, &NamedFigure::name);
  return figure == run.published.end() ? nullptr : &*figure;
}

PlannerAccuracy PlannerOf(const Validation& validation, std::string_view name) {
  Errors its;
  for (const ValidatedRun& run : validation.rows) {
    if (const NamedFigure* figure = FigureOf(run, name); figure != nullptr && IsJudgedPeak(run)) {
      its.AddRow();
      its.Add(RelativeError(figure->value, run.measured));
    }
  }
  return {.name = std::string(name),
          .its = its.Done(),
          .ours = StatisticsOf(validation.rows, [&](const ValidatedRun& run) {
            return IsJudgedPeak(run) && FigureOf(run, name) != nullptr;
          })};
}

}  // namespace

Accuracy AccuracyOf(const Validation& validation) {
  Accuracy accuracy;
  for (std::size_t number = 0; number < std::size(kClasses); ++number) {
    AccuracyClass result = ClassAccuracy(validation, number);
    if (result.all.rows > 0) {
      accuracy.classes.push_back(std::move(result));
    }
  }
  constexpr TrainingDescription kAny = {.parameters = 1,
                                        .trainable_parameters = 1,
                                        .layers = 1,
                                        .hidden_size = 1,
                                        .heads = 1,
                                        .key_value_heads = 1,
                                        .ffn_size = 1,
                                        .vocabulary = 1};
  for (const PublishedEstimate& planner : PublishedEstimates(kAny)) {
    accuracy.planners.push_back(PlannerOf(validation, planner.name));
  }
  accuracy.peaks = StatisticsOf(validation.rows, IsJudgedPeak);
  return accuracy;
}

}  // namespace fourpiles
