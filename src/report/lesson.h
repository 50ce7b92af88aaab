#pragma once

// The lesson beside our figures, a line each, and how many agree.

#include <span>
#include <string>

#include "base/json.h"
#include "plan/lesson.h"

namespace fourpiles {

std::string LessonText(std::span<const LessonFigure> figures);
Json::Object LessonJson(std::span<const LessonFigure> figures);

}  // namespace fourpiles
