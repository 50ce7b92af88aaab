#include "plan/lesson.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(Lesson, EveryFigureAgrees) {
  for (const LessonFigure& figure : Lesson()) {
    EXPECT_TRUE(figure.Agrees()) << figure.what << ": " << figure.computed;
  }
  EXPECT_EQ(Lesson().size(), 50U);  // 20 of budgets, 30 of numbers: none may vanish
}

TEST(Lesson, AgreementIsToTheDigitsTaught) {
  LessonFigure figure{
      .taught = 1.2e-7, .computed = 1.19e-7, .agreement = Agreement::kToDigits, .digits = 2};
  EXPECT_TRUE(figure.Agrees());
  figure.computed = 1.26e-7;
  EXPECT_FALSE(figure.Agrees());
  figure = {.taught = 5, .computed = 5.0001};
  EXPECT_FALSE(figure.Agrees());
  figure = {.taught = 0.2, .computed = 0.21, .agreement = Agreement::kAtMost};
  EXPECT_FALSE(figure.Agrees());
  figure = {.taught = 1, .computed = 1, .agreement = Agreement::kMoreThan};
  EXPECT_FALSE(figure.Agrees());
}

}  // namespace
}  // namespace fourpiles
