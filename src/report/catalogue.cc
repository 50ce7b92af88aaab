#include "report/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/columns.h"

namespace fourpiles {
namespace {

std::string AliasText(const Names& names) {
  return fmt::format("{}", fmt::join(names.aliases, ", "));
}

template <class T>
Json OptionalJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string ModelType(const ModelRecord& record) {
  const Json* type = record.config.Find("model_type");
  const std::string* text = type == nullptr ? nullptr : type->AsString();
  return text == nullptr ? "" : *text;
}

// Whether a public file has the total that the shapes give.
std::string TotalFrom(const ListedModel& model) {
  if (!model.record.parameters) {
    return "none published";
  }
  return model.record.parameters_verified ? "verified" : "one source";
}

// The format of its numbers, or of its codes; none: as the recipe has it.
std::string FormatOfState(const OptimizerState& state) {
  if (state.code_bits > 0) {
    return fmt::format("{}-bit codes", state.code_bits);
  }
  return state.format ? std::string(state.format->name) : "";
}

// "exp_avg_sq_row (rows of matrices, float32)".
std::string StateText(const OptimizerState& state) {
  std::vector<std::string> words;
  const bool full = state.shape == StateShape::kFull;
  if (!full || state.of != ParameterSet::kAll) {
    words.push_back(full ? "of " + std::string(Name(state.of))
                         : fmt::format("{} of {}", Name(state.shape), Name(state.of)));
  }
  if (const std::string format = FormatOfState(state); !format.empty()) {
    words.push_back(format);
  }
  if (state.scales.block > 0) {
    words.push_back(fmt::format("blocks of {}", state.scales.block));
  }
  if (state.paged_from > 0) {
    words.emplace_back("paged");
  }
  return words.empty() ? state.name : fmt::format("{} ({})", state.name, fmt::join(words, ", "));
}

Json OrNull(std::int64_t count) {
  return count > 0 ? Json(count) : Json();
}

Json StateJson(const OptimizerState& state) {
  return Json::Object{{"name", state.name},
                      {"format", state.format ? Json(state.format->name) : Json()},
                      {"of", Name(state.of)},
                      {"shape", Name(state.shape)},
                      {"code_bits", OrNull(state.code_bits)},
                      {"block", OrNull(state.scales.block)},
                      {"least_elements", OrNull(state.scales.least)},
                      {"paged_from_elements", OrNull(state.paged_from)}};
}

}  // namespace

std::string ModelsText(std::span<const ListedModel> models) {
  std::vector<std::vector<std::string>> rows = {
      {"model", "parameters", "total", "architecture", "also called"}};
  for (const ListedModel& model : models) {
    rows.push_back({model.record.names.id,
                    model.parameters ? PrintGrouped(*model.parameters) : "not known",
                    TotalFrom(model), ModelType(model.record), AliasText(model.record.names)});
  }
  return InColumns(rows, {.right = {1}});
}

Json::Object ModelsJson(std::span<const ListedModel> models) {
  Json::Array array;
  for (const ListedModel& model : models) {
    array.emplace_back(Json::Object{{"id", model.record.names.id},
                                    {"aliases", TextsJson(model.record.names.aliases)},
                                    {"model_type", ModelType(model.record)},
                                    {"parameters", OptionalJson(model.parameters)},
                                    {"total", TotalFrom(model)},
                                    {"source", model.record.source},
                                    {"checked", model.record.checked}});
  }
  return {{"models", std::move(array)}};
}

std::string DevicesText(std::span<const Device> devices, ByteUnit unit) {
  std::vector<std::vector<std::string>> rows = {{"device", "memory", "from", "also called"}};
  for (const Device& device : devices) {
    rows.push_back({device.names.id, PrintBytes(device.memory, unit),
                    device.memory_from_driver ? "the driver" : "its name",
                    AliasText(device.names)});
  }
  return InColumns(rows, {.right = {1}});
}

Json::Object DevicesJson(std::span<const Device> devices) {
  Json::Array array;
  for (const Device& device : devices) {
    array.emplace_back(Json::Object{
        {"id", device.names.id},
        {"aliases", TextsJson(device.names.aliases)},
        {"name", device.name},
        {"memory_bytes", device.memory.value()},
        {"memory_from", device.memory_from_driver ? "driver" : "marketing"},
        {"bandwidth_bytes_per_second", OptionalJson(device.bandwidth_bytes_per_second)},
        {"source", device.source},
        {"checked", device.checked}});
  }
  return {{"devices", std::move(array)}};
}

std::string RecipesText(std::span<const Recipe> recipes) {
  std::vector<std::vector<std::string>> rows = {
      {"recipe", "weights", "compute", "gradients", "master copy", "states", ""}};
  for (const Recipe& recipe : recipes) {
    rows.push_back({recipe.names.id, std::string(recipe.weights.name),
                    std::string(recipe.compute.name), std::string(recipe.gradients.name),
                    recipe.master ? std::string(recipe.master->name) : "-",
                    std::string(recipe.states.name), recipe.summary});
  }
  return InColumns(rows, {});
}

Json::Object RecipesJson(std::span<const Recipe> recipes) {
  Json::Array array;
  for (const Recipe& recipe : recipes) {
    array.emplace_back(
        Json::Object{{"id", recipe.names.id},
                     {"aliases", TextsJson(recipe.names.aliases)},
                     {"summary", recipe.summary},
                     {"weights", recipe.weights.name},
                     {"compute", recipe.compute.name},
                     {"gradients", recipe.gradients.name},
                     {"master", recipe.master ? Json(recipe.master->name) : Json()},
                     {"states", recipe.states.name},
                     {"gradients_live", recipe.gradients_resident ? "resident" : "backward"},
                     {"gathered", recipe.gathered},
                     {"loss_scaler", recipe.loss_scaler},
                     {"float8_copies", recipe.float8_copies},
                     {"amax_history", OrNull(recipe.amax_history)},
                     {"warning", recipe.warning.empty() ? Json() : Json(recipe.warning)},
                     {"source", recipe.source},
                     {"checked", recipe.checked}});
  }
  return {{"recipes", std::move(array)}};
}

std::string OptimizersText(std::span<const Optimizer> optimizers) {
  std::vector<std::vector<std::string>> rows = {{"optimizer", "", "keeps for every parameter"}};
  for (const Optimizer& optimizer : optimizers) {
    std::vector<std::string> states;
    for (const OptimizerState& state : optimizer.states) {
      states.push_back(StateText(state));
    }
    rows.push_back({optimizer.names.id, optimizer.summary,
                    states.empty() ? "nothing" : fmt::format("{}", fmt::join(states, ", "))});
  }
  return InColumns(rows, {});
}

Json::Object OptimizersJson(std::span<const Optimizer> optimizers) {
  Json::Array array;
  for (const Optimizer& optimizer : optimizers) {
    Json::Array states;
    for (const OptimizerState& state : optimizer.states) {
      states.push_back(StateJson(state));
    }
    array.emplace_back(Json::Object{{"id", optimizer.names.id},
                                    {"aliases", TextsJson(optimizer.names.aliases)},
                                    {"summary", optimizer.summary},
                                    {"states", std::move(states)},
                                    {"rank", OrNull(optimizer.rank)},
                                    {"source", optimizer.source},
                                    {"checked", optimizer.checked}});
  }
  return {{"optimizers", std::move(array)}};
}

}  // namespace fourpiles
