#include "report/lesson.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "report/columns.h"

namespace fourpiles {
namespace {

std::string FigureText(double value, const std::string& unit) {
  return fmt::format("{:.8g}{}{}", value, unit.empty() ? "" : " ", unit);
}

std::int64_t Agreeing(std::span<const LessonFigure> figures) {
  return std::ranges::count_if(figures, &LessonFigure::Agrees);
}

}  // namespace

std::string LessonText(std::span<const LessonFigure> figures) {
  std::vector<std::vector<std::string>> rows = {{"", "lesson", "computed", ""}};
  std::string topic;
  for (const LessonFigure& figure : figures) {
    if (figure.topic != topic) {
      topic = figure.topic;
      rows.push_back({topic});
    }
    rows.push_back({"  " + figure.what, FigureText(figure.taught, figure.unit),
                    FigureText(figure.computed, figure.unit),
                    figure.Agrees() ? "agrees" : "DISAGREES"});
  }
  return InColumns(rows, {.right = {1, 2}}) +
         fmt::format("{} of {} figures agree\n", Agreeing(figures), figures.size());
}

Json::Object LessonJson(std::span<const LessonFigure> figures) {
  Json::Array lines;
  for (const LessonFigure& figure : figures) {
    lines.emplace_back(Json::Object{{"topic", figure.topic},
                                    {"what", figure.what},
                                    {"lesson", figure.taught},
                                    {"computed", figure.computed},
                                    {"unit", figure.unit},
                                    {"agrees", figure.Agrees()}});
  }
  const std::int64_t agree = Agreeing(figures);
  return {{"lines", std::move(lines)},
          {"agree", agree},
          {"disagree", static_cast<std::int64_t>(figures.size()) - agree}};
}

}  // namespace fourpiles
