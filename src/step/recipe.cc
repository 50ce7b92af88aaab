#include "step/recipe.h"

#include <algorithm>

#include "model/record.h"
#include "model/record_files.h"

namespace fourpiles {

std::span<const DataFile> RecipeFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {
    "id",       "aliases",     "words",         "summary",      "weights",
    "compute",  "master",      "states",        "gradients",    "gradients_live",
    "gathered", "loss_scaler", "float8_copies", "amax_history", "warning",
    "source",   "checked"};
constexpr Range kFewCopies = {0, 2};
constexpr Range kHistory = {0, 1 << 16};

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
      .words = record.Texts("words"),
      .summary = record.Text("summary"),
      .weights = record.Format("weights"),
      .compute = record.Format("compute"),
      .gradients = record.Format("gradients"),
      .master = record.OptionalFormat("master"),
      .states = record.Format("states"),
      .gradients_resident = AreResident(record),
      .gathered = record.Flag("gathered", false),
      .loss_scaler = record.Flag("loss_scaler", false),
      .float8_copies = record.CountOr("float8_copies", 0, kFewCopies),
      .amax_history = record.CountOr("amax_history", 0, kHistory),
      .warning = record.TextOr("warning", ""),
      .source = record.Text("source"),
      .checked = record.Text("checked"),
  };
  TRY_VOID(record.Finish());
  return recipe;
}

const std::vector<Recipe>& Recipes() {
  static const std::vector<Recipe> all = CompiledRecords(RecipeFiles(), RecipeFromJson);
  return all;
}

std::vector<Recipe> ReadingsOf(std::string_view word) {
  std::vector<Recipe> readings = Recipes();
  std::erase_if(readings, [&](const Recipe& recipe) {
    return std::ranges::none_of(recipe.words,
                                [&](const std::string& meant) { return SameName(meant, word); });
  });
  return readings;
}

Result<Recipe> FindRecipe(std::string_view name, std::string_view where) {
  return FindRecord(
      name, Recipes(), RecipeFromJson,
      {.kind = "recipe", .where = where, .hint = "\"fourpiles recipes\" lists them all"});
}

}  // namespace fourpiles
