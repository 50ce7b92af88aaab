// fourpiles models, devices, recipes, optimizers

#include "cli/command_line.h"
#include "cli/commands.h"
#include "model/from_config.h"
#include "report/catalogue.h"

namespace fourpiles::cli {
namespace {

Result<Answer> RunModels(const Arguments& /*arguments*/) {
  std::vector<ListedModel> models;
  for (ModelRecord& record : ModelRecords()) {
    const Result<Network> network = NetworkFromConfig(record.config, record.names.id);
    models.push_back(
        {std::move(record), network ? std::optional(ParameterCount(*network)) : std::nullopt});
  }
  return Answer{.text = ModelsText(models), .json = ModelsJson(models)};
}

Result<Answer> RunDevices(const Arguments& arguments) {
  const ByteUnit unit = UnitOf(arguments);
  return Answer{.text = DevicesText(Devices(), unit), .json = DevicesJson(Devices())};
}

Result<Answer> RunRecipes(const Arguments& /*arguments*/) {
  return Answer{.text = RecipesText(Recipes()), .json = RecipesJson(Recipes())};
}

Result<Answer> RunOptimizers(const Arguments& /*arguments*/) {
  return Answer{.text = OptimizersText(Optimizers()), .json = OptimizersJson(Optimizers())};
}

}  // namespace

constexpr Command kModelsCommand = {.name = "models",
                                    .summary = "the catalogue of models",
                                    .examples = "fourpiles models",
                                    .run = RunModels};
constexpr Command kDevicesCommand = {.name = "devices",
                                     .summary = "the catalogue of devices",
                                     .examples = "fourpiles devices",
                                     .run = RunDevices};
constexpr Command kRecipesCommand = {.name = "recipes",
                                     .summary = "the number formats of training, by name",
                                     .examples = "fourpiles recipes",
                                     .run = RunRecipes};
constexpr Command kOptimizersCommand = {.name = "optimizers",
                                        .summary = "optimizers, and what each keeps",
                                        .examples = "fourpiles optimizers",
                                        .run = RunOptimizers};

}  // namespace fourpiles::cli
