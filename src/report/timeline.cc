#include "report/timeline.h"

#include <iterator>

#include <fmt/format.h>

#include "step/timeline.h"

namespace fourpiles {
namespace {

// In quotes where it has to be (RFC 4180, section 2).
std::string Field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

// What no tensor holds has no moment.
bool IsShown(Pile pile) {
  return pile != Pile::kOverhead;
}

struct Row {
  std::size_t moment;
  std::string name;
  std::string_view kernel;
  TimelinePoint point;
};

std::vector<Row> RowsOf(const Tape& tape) {
  std::vector<Row> rows;
  const std::vector<TimelinePoint> points = TimelineOf(tape, Place::kDevice);
  rows.reserve(points.size());
  for (std::size_t moment = 0; moment < points.size(); ++moment) {
    rows.push_back({.moment = moment,
                    .name = MomentName(tape, static_cast<Moment>(moment)),
                    .kernel = tape.moments[moment].kind->name,
                    .point = points[moment]});
  }
  return rows;
}

}  // namespace

std::string TimelineCsv(const Tape& tape) {
  std::string csv = "moment,name,kernel,bytes";
  for (const Pile pile : kPiles) {
    csv += IsShown(pile) ? fmt::format(",{}", Name(pile)) : "";
  }
  csv += "\n";
  for (const Row& row : RowsOf(tape)) {
    fmt::format_to(std::back_inserter(csv), "{},{},{},{}", row.moment, Field(row.name),
                   Field(row.kernel), row.point.bytes.value());
    for (std::size_t pile = 0; pile < kPileCount; ++pile) {
      csv += IsShown(kPiles[pile]) ? fmt::format(",{}", row.point.piles[pile].value()) : "";
    }
    csv += "\n";
  }
  return csv;
}

Json::Object TimelineJson(const Tape& tape) {
  Json::Array moments;
  for (const Row& row : RowsOf(tape)) {
    Json::Object piles;
    for (std::size_t pile = 0; pile < kPileCount; ++pile) {
      if (IsShown(kPiles[pile])) {
        piles.emplace_back(Name(kPiles[pile]), row.point.piles[pile].value());
      }
    }
    moments.emplace_back(Json::Object{{"moment", static_cast<std::int64_t>(row.moment)},
                                      {"name", row.name},
                                      {"kernel", row.kernel},
                                      {"bytes", row.point.bytes.value()},
                                      {"piles", std::move(piles)}});
  }
  return {{"schema", "fourpiles/1"}, {"moments", std::move(moments)}};
}

}  // namespace fourpiles
