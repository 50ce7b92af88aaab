#pragma once

// A recipe says in which number format each part of a training step is kept.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/formats.h"
#include "model/names.h"

namespace fourpiles {

struct Recipe {
  Names names = {};
  std::vector<std::string> words = {};  // that people type and may mean it by: "bf16"
  std::string summary = {};
  NumberFormat weights = {};
  NumberFormat compute = {};                // of the forward and backward pass
  NumberFormat gradients = {};              // of parameters
  std::optional<NumberFormat> master = {};  // a second copy of the weights that the optimizer steps
  NumberFormat states = {};                 // of the optimizer's moments
  // One gradient buffer that is always there; else gradients are born in backward and freed after
  // the step.
  bool gradients_resident = false;
  // Weights that are wider than what is computed in are gathered in the format of the computation,
  // as FSDP does; else each product casts its own (autocast).
  bool gathered = false;
  bool loss_scaler = false;        // torch.amp.GradScaler
  std::int64_t float8_copies = 0;  // of every matrix of the layers: itself, and transposed
  std::int64_t amax_history = 0;   // largest values kept of every float8 tensor; 0: no scales
  std::string warning = {};        // printed with every budget; may be empty
  std::string source = {};
  std::string checked = {};  // the day, as 2026-11-29
};

// The record of one recipe; `where` names it in errors.
Result<Recipe> RecipeFromJson(const Json& json, std::string_view where);

// The catalogue, in the order of data/recipes.json.
const std::vector<Recipe>& Recipes();

// The recipes that people may mean by the word, in the order of the catalogue; fewer than two where
// it is plain.
std::vector<Recipe> ReadingsOf(std::string_view word);

// The catalogue's recipe of that id or alias, or the one in a file that ends in ".json".
Result<Recipe> FindRecipe(std::string_view name, std::string_view where = "--recipe");

}  // namespace fourpiles
