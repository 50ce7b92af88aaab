#include "plan/lesson.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace fourpiles {

bool LessonFigure::Agrees() const {
  switch (agreement) {
    case Agreement::kExactly:
      return computed == taught;
    case Agreement::kToDigits:
      return fmt::format("{:.{}e}", computed, digits - 1) ==
             fmt::format("{:.{}e}", taught, digits - 1);
    case Agreement::kAtMost:
      return computed <= taught;
    case Agreement::kMoreThan:
      break;
  }
  return computed > taught;
}

std::vector<LessonFigure> Lesson() {
  std::vector<LessonFigure> figures = LessonBudgets();
  std::ranges::copy(LessonNumbers(), std::back_inserter(figures));
  return figures;
}

}  // namespace fourpiles
