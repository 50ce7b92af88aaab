#include "report/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/budget_words.h"
#include "step/layer_table.h"
#include "step/lines.h"
#include "units/print.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLargest = 10;

std::vector<Line> LargestLines(const Budget& budget) {
  return LargestAt(budget.tape, Place::kDevice, budget.peak.moment, kLargest);
}

Table LineTable(std::string title, const std::vector<Line>& lines, const BudgetStyle& style) {
  Table table = {.title = std::move(title),
                 .rows = {{"pile", "what", "bytes", "format", "formula", "source"}},
                 .right = 2};
  for (const Line& line : lines) {
    table.rows.push_back({PileWords(line.pile), line.what, PrintBytes(line.bytes, style.unit),
                          line.format, line.formula, line.source});
  }
  return table;
}

std::string Grouped(Bytes bytes) {
  return PrintGrouped(bytes.value());
}

Table SavedTable(const LayerTable& layer) {
  Table table = {
      .title = fmt::format("Kept by {} for the backward pass, in bytes", layer.name),
      .rows = {{"operator", "what", "shape", "format", "bytes", "kernel", "kept by", "source"}},
      .right = 4};
  for (const SavedTensor& tensor : layer.saved) {
    table.rows.push_back({tensor.operator_name, tensor.what,
                          fmt::format("{}", fmt::join(tensor.shape, " × ")), tensor.format,
                          Grouped(tensor.bytes), tensor.kernel, tensor.kept_by, tensor.source});
  }
  table.rows.push_back({"sum", "", "", "", Grouped(layer.bytes), "", "", ""});
  return table;
}

Table ShareTable(const Tape& tape) {
  Table table = {.title = "Saved activations by operator, in bytes",
                 .rows = {{"operator", "bytes"}},
                 .right = 1};
  for (const OperatorShare& share : SavedByOperator(tape)) {
    table.rows.push_back({share.name, Grouped(share.bytes)});
  }
  table.rows.push_back({"sum", Grouped(SavedActivations(tape))});
  return table;
}

Json SavedJson(const SavedTensor& tensor) {
  return Json::Object{{"operator", tensor.operator_name},
                      {"what", tensor.what},
                      {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())},
                      {"format", tensor.format},
                      {"bytes", tensor.bytes.value()},
                      {"kernel", tensor.kernel},
                      {"kept_by", tensor.kept_by},
                      {"source", tensor.source}};
}

Json LayerJson(const Tape& tape) {
  const std::optional<LayerTable> layer = MiddleLayer(tape);
  if (!layer) {
    return {};
  }
  Json::Array saved;
  for (const SavedTensor& tensor : layer->saved) {
    saved.push_back(SavedJson(tensor));
  }
  return Json::Object{
      {"name", layer->name}, {"bytes", layer->bytes.value()}, {"saved", std::move(saved)}};
}

}  // namespace

std::vector<Table> ExplanationTables(const Budget& budget, const BudgetStyle& style) {
  std::vector<Table> tables = {
      LineTable("Alive at the peak", LinesAt(budget.tape, Place::kDevice, budget.peak.moment),
                style),
      LineTable("Largest at the peak", LargestLines(budget), style)};
  if (budget.job.kind != JobKind::kServe && budget.shapes_known) {
    if (const std::optional<LayerTable> layer = MiddleLayer(budget.tape)) {
      tables.push_back(SavedTable(*layer));
    }
    tables.push_back(ShareTable(budget.tape));
  }
  return tables;
}

void AddExplanation(const Budget& budget, Json::Object& json) {
  json.emplace_back("largest", LinesJson(LargestLines(budget)));
  if (budget.job.kind == JobKind::kServe || !budget.shapes_known) {
    return;
  }
  Json::Array shares;
  for (const OperatorShare& share : SavedByOperator(budget.tape)) {
    shares.emplace_back(Json::Object{{"operator", share.name}, {"bytes", share.bytes.value()}});
  }
  json.emplace_back("layer", LayerJson(budget.tape));
  json.emplace_back("by_operator", std::move(shares));
}

}  // namespace fourpiles
