// fourpiles lesson

#include <algorithm>

#include "cli/commands.h"
#include "report/lesson.h"

namespace fourpiles::cli {
namespace {

Result<Answer> Run(const Arguments& /*arguments*/) {
  const std::vector<LessonFigure> figures = Lesson();
  Answer answer;
  answer.text = LessonText(figures);
  answer.json = LessonJson(figures);
  answer.exit_status = std::ranges::all_of(figures, &LessonFigure::Agrees) ? 0 : 1;
  return answer;
}

}  // namespace

constexpr Command kLessonCommand = {
    .name = "lesson",
    .summary = "the worked example, every figure computed and compared",
    .examples =
        "fourpiles lesson\n"
        "fourpiles lesson --json",
    .options = {},
    .run = Run,
};

}  // namespace fourpiles::cli
