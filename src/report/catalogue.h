#pragma once

// The catalogues as tables and as JSON.

#include <span>
#include <string>

#include "base/json.h"
#include "model/catalogue.h"
#include "plan/device.h"
#include "step/optimizer.h"
#include "step/recipe.h"
#include "units/print.h"

namespace fourpiles {

// A model of the catalogue, and what its shapes come to; not known where this version does not know
// the architecture.
struct ListedModel {
  ModelRecord record = {};
  std::optional<std::int64_t> parameters = {};
};
std::string ModelsText(std::span<const ListedModel> models);
Json::Object ModelsJson(std::span<const ListedModel> models);

std::string DevicesText(std::span<const Device> devices, ByteUnit unit);
Json::Object DevicesJson(std::span<const Device> devices);

std::string RecipesText(std::span<const Recipe> recipes);
Json::Object RecipesJson(std::span<const Recipe> recipes);

std::string OptimizersText(std::span<const Optimizer> optimizers);
Json::Object OptimizersJson(std::span<const Optimizer> optimizers);

}  // namespace fourpiles
