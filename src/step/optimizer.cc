#include "step/optimizer.h"

#include <algorithm>

#include "base/try.h"
#include "model/record.h"
#include "model/record_files.h"
#include "units/parse.h"

namespace fourpiles {

std::span<const DataFile> OptimizerFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {
    "id",     "aliases", "summary", "states", "scalars", "loop_temporaries", "foreach_temporaries",
    "source", "checked", "rank"};
constexpr Range kFewTensors = {0, 16};
constexpr Range kRanks = {1, 1 << 16};
constexpr Range kElements = {0, 1 << 30};
constexpr std::string_view kStateKeys[] = {"name",  "format",    "of",        "shape",
                                           "codes", "block",     "least",     "whole_blocks",
                                           "table", "otherwise", "paged_from"};
constexpr std::string_view kRankWord = ":rank=";

constexpr ParameterSet kSets[] = {ParameterSet::kAll, ParameterSet::kMatrices,
                                  ParameterSet::kVectors, ParameterSet::kHidden,
                                  ParameterSet::kRest};
constexpr StateShape kShapes[] = {StateShape::kFull, StateShape::kRows, StateShape::kColumns,
                                  StateShape::kProjected, StateShape::kProjection};

// The value whose name the member is; the first of them when it is absent.
template <class T, std::size_t kSize>
T Word(Record& record, std::string_view key, const T (&values)[kSize]) {
  const std::string word = record.TextOr(key, Name(values[0]));
  std::string names;
  for (const T value : values) {
    if (word == Name(value)) {
      return value;
    }
    names += (names.empty() ? "" : ", ") + std::string(Name(value));
  }
  record.Refuse(key, {.found = "\"" + word + "\"", .expected = "expected one of " + names});
  return values[0];
}

OptimizerState StateOf(Record& record) {
  OptimizerState state = {.name = record.Text("name"),
                          .format = record.OptionalFormat("format"),
                          .of = Word(record, "of", kSets),
                          .shape = Word(record, "shape", kShapes),
                          .scales = {.block = record.CountOr("block", 0, kElements),
                                     .least = record.CountOr("least", 0, kElements),
                                     .whole_blocks = record.Flag("whole_blocks", false),
                                     .table = record.CountOr("table", 0, kElements)},
                          .code_bits = static_cast<int>(record.CountOr("codes", 0, {0, 8})),
                          .otherwise = record.OptionalFormat("otherwise"),
                          .paged_from = record.CountOr("paged_from", 0, kElements)};
  if (state.scales.block > 0 && !state.format && state.code_bits == 0) {
    record.Refuse("block", {.found = "blocks of what the recipe has",
                            .expected = "expected \"codes\" or \"format\" beside it"});
  }
  return state;
}

Result<std::vector<OptimizerState>> StatesOf(const Fields& fields) {
  TRY(const std::vector<Fields> objects, fields.Objects("states"));
  std::vector<OptimizerState> states;
  for (const Fields& object : objects) {
    TRY_VOID(object.RefuseUnknown(kStateKeys));
    Record record(object);
    OptimizerState state = StateOf(record);
    TRY_VOID(record.Finish());
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

std::string_view Name(ParameterSet set) {
  switch (set) {
    case ParameterSet::kAll:
      return "all";
    case ParameterSet::kMatrices:
      return "matrices";
    case ParameterSet::kVectors:
      return "vectors";
    case ParameterSet::kHidden:
      return "hidden";
    case ParameterSet::kRest:
      break;
  }
  return "rest";
}

std::string_view Name(StateShape shape) {
  switch (shape) {
    case StateShape::kFull:
      return "full";
    case StateShape::kRows:
      return "rows";
    case StateShape::kColumns:
      return "columns";
    case StateShape::kProjected:
      return "projected";
    case StateShape::kProjection:
      break;
  }
  return "projection";
}

bool NeedsShapes(const Optimizer& optimizer) {
  return std::ranges::any_of(optimizer.states, [](const OptimizerState& state) {
    return state.of != ParameterSet::kAll || state.shape != StateShape::kFull;
  });
}

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
      .foreach_temporaries = record.OptionalCount("foreach_temporaries", kFewTensors),
      .rank = record.CountOr("rank", 0, kRanks),
      .source = record.Text("source"),
      .checked = record.Text("checked"),
  };
  TRY_VOID(record.Finish());
  return optimizer;
}

const std::vector<Optimizer>& Optimizers() {
  static const std::vector<Optimizer> all = CompiledRecords(OptimizerFiles(), OptimizerFromJson);
  return all;
}

Result<Optimizer> FindOptimizer(std::string_view name, std::string_view where) {
  const std::size_t colon = name.find(kRankWord);
  TRY(Optimizer optimizer, FindRecord(name.substr(0, colon), Optimizers(), OptimizerFromJson,
                                      {.kind = "optimizer",
                                       .where = where,
                                       .hint = "\"fourpiles optimizers\" lists them all"}));
  if (colon == std::string_view::npos) {
    return optimizer;
  }
  const std::string_view rank = name.substr(colon);
  if (optimizer.rank == 0) {
    return WrongUsage({.where = std::string(where),
                       .found = optimizer.names.id + " projects nothing and has no rank",
                       .expected = "expected " + optimizer.names.id});
  }
  TRY(optimizer.rank, ParseCount(rank.substr(kRankWord.size()), where, kRanks));
  optimizer.names.id += rank;
  return optimizer;
}

}  // namespace fourpiles
