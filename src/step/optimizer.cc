#include "step/optimizer.h"

#include "model/record.h"
#include "model/record_files.h"

namespace fourpiles {

std::span<const DataFile> OptimizerFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {
    "id",     "aliases", "summary", "states", "scalars", "loop_temporaries", "foreach_temporaries",
    "source", "checked"};
constexpr Range kFewTensors = {0, 16};
constexpr std::string_view kStateKeys[] = {"name", "format"};

Result<std::vector<OptimizerState>> StatesOf(const Fields& fields) {
  TRY(const std::vector<Fields> objects, fields.Objects("states"));
  std::vector<OptimizerState> states;
  for (const Fields& object : objects) {
    TRY_VOID(object.RefuseUnknown(kStateKeys));
    Record record(object);
    OptimizerState state = {.name = record.Text("name"), .format = record.OptionalFormat("format")};
    TRY_VOID(record.Finish());
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

Result<Optimizer> OptimizerFromJson(const Json& json, std::string_view where) {
  TRY(const Fields fields, Fields::Of(json, std::string(where)));
  TRY_VOID(fields.RefuseUnknown(kKeys));
  TRY(std::vector<OptimizerState> states, StatesOf(fields));
  Record record(fields);
  Optimizer optimizer = {
      .names = {.id = record.Text("id"), .aliases = record.Texts("aliases")},
      .summary = record.Text("summary"),
      .states = std::move(states),
      .scalars = record.CountOr("scalars", 0, kFewTensors),
      .loop_temporaries = record.CountOr("loop_temporaries", 0, kFewTensors),
      .foreach_temporaries = record.CountOr("foreach_temporaries", 0, kFewTensors),
      .source = record.Text("source"),
      .checked = record.Text("checked"),
  };
  TRY_VOID(record.Finish());
  return optimizer;
}

std::vector<Optimizer> Optimizers() {
  return CompiledRecords(OptimizerFiles(), OptimizerFromJson);
}

Result<Optimizer> FindOptimizer(std::string_view name, std::string_view where) {
  return FindRecord(
      name, Optimizers(), OptimizerFromJson,
      {.kind = "optimizer", .where = where, .hint = "\"fourpiles optimizers\" lists them all"});
}

}  // namespace fourpiles
