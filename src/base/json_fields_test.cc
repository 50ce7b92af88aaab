#include "base/json_fields.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

// A config of each kind of value; hidden_size and the like as Llama-3.1-8B has them.
const Json& Config() {
  static const Json config(Json::Object{
      {"model_type", "llama"},
      {"hidden_size", 4096},
      {"rope_theta", 500000.0},
      {"tie_word_embeddings", false},
      {"head_dim", nullptr},
      {"eos_token_id", Json::Array{128001, 128008}},
      {"architectures", Json::Array{"LlamaForCausalLM"}},
      {"rope_scaling", Json::Object{{"factor", 8.0}, {"rope_type", 3}}},
      {"layers", Json::Array{Json::Object{{"width", 7}}, Json::Object{{"width", "7"}}}},
      {"mixed", Json::Array{1, "two"}},
      {"quoted", "4096"},
      {"worded", "many"},
      {"negative", -3},
      {"fraction", 1.5},
      {"whole", 4096.0},
      {"huge", std::int64_t{9007199254740993}},
      {"beyond", 1e30},
      {"yes", true}});
  return config;
}

Fields ConfigFields() {
  return *Fields::Of(Config(), "config.json");
}

constexpr Range kSizes = {1, 1048576};

TEST(Fields, ReadsEachKind) {
  const Fields config = ConfigFields();
  EXPECT_EQ(config.Integer("hidden_size", kSizes), 4096);
  EXPECT_EQ(config.Number("rope_theta"), 500000.0);
  EXPECT_EQ(config.Number("hidden_size"), 4096.0) << "an integer is a number too";
  EXPECT_EQ(config.Bool("tie_word_embeddings"), false);
  EXPECT_EQ(config.Text("model_type"), "llama");
  EXPECT_EQ(config.Integers("eos_token_id", {}), (std::vector<std::int64_t>{128001, 128008}));
  EXPECT_EQ(config.Texts("architectures"), (std::vector<std::string_view>{"LlamaForCausalLM"}));
  EXPECT_EQ(config.Object("rope_scaling")->Number("factor"), 8.0);
  EXPECT_EQ(config.Objects("layers")->front().Integer("width", {}), 7);
}

TEST(Fields, OptionalReadsTheSame) {
  const Fields config = ConfigFields();
  EXPECT_EQ(**config.OptionalInteger("hidden_size", kSizes), 4096);
  EXPECT_EQ(**config.OptionalNumber("rope_theta"), 500000.0);
  EXPECT_EQ(**config.OptionalBool("tie_word_embeddings"), false);
  EXPECT_EQ(**config.OptionalText("model_type"), "llama");
  EXPECT_EQ((*config.OptionalIntegers("eos_token_id", {}))->size(), 2U);
  EXPECT_EQ((*config.OptionalTexts("architectures"))->size(), 1U);
  EXPECT_EQ((*config.OptionalObject("rope_scaling"))->Number("factor"), 8.0);
}

template <class T>
bool IsNothing(const Result<std::optional<T>>& result) {
  return result && !*result;
}

TEST(Fields, AbsentAndNullAreNothingWhereOptional) {
  const Fields config = ConfigFields();
  for (const std::string_view key : {"absent", "head_dim"}) {
    EXPECT_TRUE(!config.Has(key) && IsNothing(config.OptionalInteger(key, kSizes)) &&
                IsNothing(config.OptionalNumber(key)) && IsNothing(config.OptionalBool(key)) &&
                IsNothing(config.OptionalText(key)) &&
                IsNothing(config.OptionalIntegers(key, {})) &&
                IsNothing(config.OptionalTexts(key)) && IsNothing(config.OptionalObject(key)))
        << key;
  }
}

TEST(Fields, RefusesWhatIsNoCount) {
  const Fields config = ConfigFields();
  const std::string expected = " | expected a whole number from 1 to 1048576 | ";
  const struct {
    std::string_view key;
    std::string_view found;
    std::string_view hint;
  } cases[] = {
      {"absent", "nothing", ""},
      {"head_dim", "null", ""},
      {"quoted", "the string \"4096\"", "write the number without quotes"},
      {"worded", "the string \"many\"", ""},
      {"negative", "-3", ""},
      {"fraction", "1.5", ""},
      {"whole", "4096.0", "write 4096, without decimal point and exponent"},
      {"huge", "9007199254740993", ""},
      {"beyond", "1e+30", ""},
      {"yes", "true", ""},
      {"tie_word_embeddings", "false", ""},
      {"architectures", "an array", ""},
      {"rope_scaling", "an object", ""},
  };
  for (const auto& [key, found, hint] : cases) {
    const std::string line =
        "config.json: " + std::string(key) + " | " + std::string(found) + expected;
    EXPECT_EQ(ErrorLine(config.Integer(key, kSizes)), line + std::string(hint));
  }
  EXPECT_EQ(config.OptionalInteger("negative", kSizes).error().text.found, "-3");
  EXPECT_EQ(config.Integer("negative", kSizes).error().kind, ErrorKind::kInput);
}

TEST(Fields, RefusesMoreThan2To53) {
  EXPECT_EQ(ErrorLine(ConfigFields().Integer("huge", {})),
            "config.json: huge | 9007199254740993 | expected a whole number from 0 to 2^53 | ");
}

TEST(Fields, RefusesOtherMisfits) {
  const Fields config = ConfigFields();
  EXPECT_EQ(ErrorLine(config.Number("quoted")),
            "config.json: quoted | the string \"4096\" | expected a number | ");
  EXPECT_EQ(ErrorLine(config.Number("fraction", {0, 1})),
            "config.json: fraction | 1.5 | expected a number from 0 to 1 | ");
  EXPECT_EQ(ErrorLine(config.Number("negative", {0.5, 1})),
            "config.json: negative | -3 | expected a number from 0.5 to 1 | ");
  EXPECT_EQ(ErrorLine(config.Bool("quoted")),
            "config.json: quoted | the string \"4096\" | expected true or false | ");
  EXPECT_EQ(ErrorLine(config.Text("hidden_size")),
            "config.json: hidden_size | 4096 | expected a string | ");
  EXPECT_EQ(ErrorLine(config.Integers("hidden_size", {})),
            "config.json: hidden_size | 4096 | expected an array of whole numbers | ");
  EXPECT_EQ(ErrorLine(config.Texts("absent")),
            "config.json: absent | nothing | expected an array of strings | ");
  EXPECT_EQ(ErrorLine(config.Object("mixed")),
            "config.json: mixed | an array | expected an object | ");
  EXPECT_EQ(ErrorLine(config.Objects("yes")),
            "config.json: yes | true | expected an array of objects | ");
}

TEST(Fields, NamesThePlaceInsideArraysAndObjects) {
  const Fields config = ConfigFields();
  EXPECT_EQ(ErrorLine(config.Integers("mixed", {0, 9})),
            "config.json: mixed[1] | the string \"two\" | expected a whole number from 0 to 9 | ");
  EXPECT_EQ(ErrorLine(config.Texts("mixed")), "config.json: mixed[0] | 1 | expected a string | ");
  EXPECT_EQ(ErrorLine(config.Object("rope_scaling")->Text("rope_type")),
            "config.json: rope_scaling.rope_type | 3 | expected a string | ");
  EXPECT_EQ(ErrorLine(config.Objects("layers")->at(1).Bool("width")),
            "config.json: layers[1].width | the string \"7\" | expected true or false | ");
}

TEST(Fields, RefusesADocumentThatIsNoObject) {
  const Json array(Json::Array{});
  EXPECT_EQ(ErrorLine(Fields::Of(array, "config.json")),
            "config.json | an array | expected an object | ");
}

TEST(Fields, AdvisesOnUnknownKeys) {
  const Json record(Json::Object{{"name", "x"}, {"scource", "y"}});
  constexpr std::array<std::string_view, 3> kKnown = {"name", "aliases", "source"};
  EXPECT_EQ(ErrorLine(Fields::Of(record, "devices.json")->RefuseUnknown(kKnown)),
            "devices.json: scource | an unknown key | did you mean \"source\"? | "
            "the keys known here: name, aliases, source");
  EXPECT_EQ(
      ErrorLine(Fields::Of(record, "devices.json")->RefuseUnknown(std::span(kKnown).first(2))),
      "devices.json: scource | an unknown key |  | the keys known here: name, aliases");
  constexpr std::array<std::string_view, 2> kAll = {"scource", "name"};
  EXPECT_TRUE(Fields::Of(record, "devices.json")->RefuseUnknown(kAll));
}

}  // namespace
}  // namespace fourpiles
