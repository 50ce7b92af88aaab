#pragma once

// The worked example of the subject, "will it fit?", as a list of figures: what is taught beside
// what this program computes. Nothing here is typed in as a result.

#include <string>
#include <vector>

namespace fourpiles {

// When a computed figure agrees with the taught one.
enum class Agreement {
  kExactly,
  kToDigits,  // when both are rounded to the digits that are taught
  kAtMost,    // the taught one is a bound
  kMoreThan,
};

struct LessonFigure {
  std::string topic = {};
  std::string what = {};
  double taught = 0;
  double computed = 0;
  Agreement agreement = Agreement::kExactly;
  int digits = 0;         // for kToDigits: significant ones
  std::string unit = {};  // "GB"; empty for a bare number

  bool Agrees() const;
};

// Range and rounding: the format table, overflow and underflow, loss scaling, the stalled update.
std::vector<LessonFigure> LessonNumbers();

// The piles of a model, and what fits a device.
std::vector<LessonFigure> LessonBudgets();

// Every figure of the lesson, in the order it is taught.
std::vector<LessonFigure> Lesson();

}  // namespace fourpiles
