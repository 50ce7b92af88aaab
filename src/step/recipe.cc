#include "step/recipe.h"

#include "model/record.h"
#include "model/record_files.h"

namespace fourpiles {

std::span<const DataFile> RecipeFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {"id",     "aliases", "summary",   "weights",        "compute",
                                      "master", "states",  "gradients", "gradients_live", "warning",
                                      "source", "checked"};

// "resident" or "backward".
bool AreResident(Record& record) {
  const std::string live = record.Text("gradients_live");
  if (live != "resident" && live != "backward") {
    record.Refuse("gradients_live", {.found = "\"" + live + "\"",
                                     .expected = "expected \"resident\" or \"backward\""});
  }
  return live == "resident";
}

}  // namespace

Result<Recipe> RecipeFromJson(const Json& json, std::string_view where) {
  TRY(const Fields fields, Fields::Of(json, std::string(where)));
  TRY_VOID(fields.RefuseUnknown(kKeys));
  Record record(fields);
  Recipe recipe = {
      .names = {.id = record.Text("id"), .aliases = record.Texts("aliases")},
      .summary = record.Text("summary"),
      .weights = record.Format("weights"),
      .compute = record.Format("compute"),
      .gradients = record.Format("gradients"),
      .master = record.OptionalFormat("master"),
      .states = record.Format("states"),
      .gradients_resident = AreResident(record),
      .warning = record.TextOr("warning", ""),
      .source = record.Text("source"),
      .checked = record.Text("checked"),
  };
  TRY_VOID(record.Finish());
  return recipe;
}

std::vector<Recipe> Recipes() {
  return CompiledRecords(RecipeFiles(), RecipeFromJson);
}

Result<Recipe> FindRecipe(std::string_view name, std::string_view where) {
  return FindRecord(
      name, Recipes(), RecipeFromJson,
      {.kind = "recipe", .where = where, .hint = "\"fourpiles recipes\" lists them all"});
}

}  // namespace fourpiles
