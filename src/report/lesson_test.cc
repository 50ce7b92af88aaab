#include "report/lesson.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(LessonReport, ShowsADisagreement) {
  const std::vector<LessonFigure> figures = {
      {.topic = "T", .what = "right", .taught = 2, .computed = 2},
      {.topic = "T", .what = "wrong", .taught = 2, .computed = 3, .unit = "GB"}};
  EXPECT_EQ(LessonText(figures),
            "         lesson  computed\n"
            "T\n"
            "  right       2         2  agrees\n"
            "  wrong    2 GB      3 GB  DISAGREES\n"
            "1 of 2 figures agree\n");
  EXPECT_EQ(*Json(LessonJson(figures)).Find("disagree")->AsInteger(), 1);
}

}  // namespace
}  // namespace fourpiles
