#include "step/recipe.h"

#include <algorithm>
#include <map>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "base/error_text.h"
#include "step/optimizer.h"

namespace fourpiles {
namespace {

std::string Message(const Error& error) {
  std::string text = ErrorMessage(error);
  text.pop_back();  // the end of the last line
  return text;
}

template <class T>
void ExpectSourcesAndUniqueNames(const std::vector<T>& records) {
  std::map<std::string, std::string> seen;
  for (const T& record : records) {
    EXPECT_GE(record.source.size(), 10u) << record.names.id;
    EXPECT_FALSE(record.summary.empty()) << record.names.id;
    EXPECT_TRUE(std::regex_match(record.checked, std::regex("20\\d\\d-[01]\\d-[0-3]\\d")))
        << record.names.id;
    EXPECT_TRUE(seen.emplace(record.names.id, record.names.id).second) << record.names.id;
    for (const std::string& alias : record.names.aliases) {
      EXPECT_TRUE(seen.emplace(alias, record.names.id).second)
          << alias << " means " << record.names.id << " and " << seen[alias];
    }
  }
}

TEST(RecipeCatalogue, HasSourcesAndNoNameTwice) {
  ExpectSourcesAndUniqueNames(Recipes());
}

TEST(OptimizerCatalogue, HasSourcesAndNoNameTwice) {
  ExpectSourcesAndUniqueNames(Optimizers());
}

// Bytes a parameter with two states, and how long gradients live: the ZeRO paper, section 3.1
// (2 + 2 + 12); Megatron-LM's table for its distributed optimizer (18); PyTorch, where gradients
// and states have the format of the weights (16 and 8); bitsandbytes, whose 32-bit states are
// float32 beside bfloat16 weights (12); FSDP, whose shards are float32 (16).
TEST(RecipeCatalogue, HasTheBytesAParameterOfItsSources) {
  struct Case {
    const char* id;
    int weights;
    int gradients;
    int optimizer;  // master copy and both states
    bool resident;
  };
  const Case cases[] = {
      {"fp32", 4, 4, 8, false},
      {"mixed-fp16", 2, 2, 12, true},
      {"mixed-bf16", 2, 2, 12, true},
      {"amp-fp16", 4, 4, 8, false},
      {"amp-bf16", 4, 4, 8, false},
      {"bf16", 2, 2, 4, false},
      {"fp16", 2, 2, 4, false},
      {"megatron-bf16", 2, 4, 12, true},
      {"bf16-fp32-states", 2, 2, 8, false},
      {"bf16-stochastic", 2, 2, 4, false},
      {"fsdp-mixed", 4, 4, 8, false},
      {"fp8-te", 2, 4, 12, true},
      {"torchao-float8", 4, 4, 8, false},
  };
  ASSERT_EQ(Recipes().size(), std::size(cases));
  for (const Case& c : cases) {
    const Result<Recipe> recipe = FindRecipe(c.id);
    ASSERT_TRUE(recipe) << Message(recipe.error());
    EXPECT_EQ(Bits(recipe->weights), 8 * c.weights) << c.id;
    EXPECT_EQ(Bits(recipe->gradients), 8 * c.gradients) << c.id;
    const int master = recipe->master ? Bits(*recipe->master) : 0;
    EXPECT_EQ(master + 2 * Bits(recipe->states), 8 * c.optimizer) << c.id;
    EXPECT_EQ(recipe->gradients_resident, c.resident) << c.id;
    const std::string words = std::to_string(c.weights + c.gradients + c.optimizer) +
                              " bytes a parameter with Adam (" + std::to_string(c.weights) + " + " +
                              std::to_string(c.gradients) + " + " + std::to_string(c.optimizer) +
                              ")";
    EXPECT_TRUE(recipe->summary.ends_with(words)) << recipe->summary;
  }
}

TEST(RecipeCatalogue, WarnsOfPureFloat16) {
  const Result<Recipe> recipe = FindRecipe("fp16");
  ASSERT_TRUE(recipe);
  EXPECT_NE(recipe->warning.find("neither loss scaling nor a float32 master copy"),
            std::string::npos);
}

// Measured: bytes of state over bytes of weights (PyTorch 1.13.1, tests/truth).
TEST(OptimizerCatalogue, HasTheStatesOfPyTorch) {
  const std::map<std::string, std::size_t> states = {{"sgd", 0},
                                                     {"sgd-momentum", 1},
                                                     {"sgd-nesterov", 1},
                                                     {"adam", 2},
                                                     {"adamw", 2},
                                                     {"adam-amsgrad", 3},
                                                     {"nadam", 2},
                                                     {"radam", 2},
                                                     {"adagrad", 1},
                                                     {"adadelta", 2},
                                                     {"adamax", 2},
                                                     {"rmsprop", 1},
                                                     {"rmsprop-momentum", 2},
                                                     {"rmsprop-centered", 3},
                                                     {"rprop", 2},
                                                     {"asgd", 1},
                                                     {"lbfgs", 2}};
  for (const auto& [id, tensors] : states) {
    const Result<Optimizer> optimizer = FindOptimizer(id);
    ASSERT_TRUE(optimizer) << id;
    EXPECT_EQ(optimizer->states.size(), tensors) << id;
    EXPECT_FALSE(NeedsShapes(*optimizer)) << id;
  }
}

// What a word assumes is one of its readings, and a word of several is no id of another recipe.
TEST(RecipeCatalogue, AmbiguousWordsMeanOneOfTheirReadings) {
  for (const Recipe& recipe : Recipes()) {
    for (const std::string& word : recipe.words) {
      const std::string assumed = FindRecipe(word).value().names.id;
      EXPECT_TRUE(std::ranges::any_of(ReadingsOf(word), [&](const Recipe& reading) {
        return reading.names.id == assumed;
      })) << word;
    }
  }
  EXPECT_EQ(ReadingsOf("BF16").size(), 7u);
  EXPECT_EQ(ReadingsOf("fp16").size(), 3u);
  EXPECT_TRUE(ReadingsOf("mixed-bf16").empty());
}

TEST(FindRecipe, SuggestsTheNearestName) {
  const Result<Recipe> recipe = FindRecipe("mixed-fp61");
  ASSERT_FALSE(recipe);
  EXPECT_EQ(recipe.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Message(recipe.error()),
            "error: --recipe: unknown recipe \"mixed-fp61\", did you mean \"mixed-fp16\"?\n"
            "hint: \"fourpiles recipes\" lists them all");
}

TEST(FindOptimizer, SuggestsTheNearestName) {
  const Result<Optimizer> optimizer = FindOptimizer("AdmaW");
  ASSERT_FALSE(optimizer);
  EXPECT_EQ(Message(optimizer.error()),
            "error: --optimizer: unknown optimizer \"AdmaW\", did you mean \"adamw\"?\n"
            "hint: \"fourpiles optimizers\" lists them all");
}

std::string RefusalOfRecipe(const std::string& gradients, const std::string& live) {
  const Result<Json> json = ReadJson(
      R"({"id": "mine", "summary": "mine", "weights": "bf16", "compute": "bf16", "gradients": )" +
          gradients + R"(, "states": "fp32", "gradients_live": )" + live +
          R"(, "source": "me", "checked": "2026-11-29"})",
      "mine.json");
  EXPECT_TRUE(json);
  const Result<Recipe> recipe = RecipeFromJson(*json, "mine.json");
  if (recipe) {
    return "accepted";
  }
  EXPECT_EQ(recipe.error().kind, ErrorKind::kInput);
  return Message(recipe.error());
}

TEST(RecipeFromJson, ReadsARecordOfTheUser) {
  EXPECT_EQ(RefusalOfRecipe("\"fp32\"", "\"resident\""), "accepted");
}

TEST(RecipeFromJson, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOfRecipe("32", "\"resident\""),
            "error: mine.json: gradients: 32, expected a string");
  EXPECT_EQ(RefusalOfRecipe("\"bfloat61\"", "\"resident\""),
            "error: mine.json: gradients: unknown number format \"bfloat61\", did you mean "
            "\"bfloat16\"?\nhint: \"fourpiles formats\" lists them all; eXmY is a free pair");
  EXPECT_EQ(
      RefusalOfRecipe("\"fp32\"", "\"for ever\""),
      "error: mine.json: gradients_live: \"for ever\", expected \"resident\" or \"backward\"");
}

}  // namespace
}  // namespace fourpiles
