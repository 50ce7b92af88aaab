#include "model/catalogue.h"

#include <cctype>
#include <map>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "base/error_text.h"
#include "model/data_file.h"
#include "model/from_config.h"

namespace fourpiles {
namespace {

std::string LowerCase(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

std::string Message(const Error& error) {
  std::string text = ErrorMessage(error);
  text.pop_back();  // the end of the last line
  return text;
}

TEST(ModelCatalogue, HasTheIdOfEachRecordAsTheNameOfItsFile) {
  const std::vector<ModelRecord> records = ModelRecords();
  ASSERT_EQ(records.size(), ModelFiles().size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].names.id, ModelFiles()[i].name);
    EXPECT_TRUE(std::regex_match(records[i].names.id, std::regex("[a-z0-9]+([.-][a-z0-9]+)*")))
        << records[i].names.id;
  }
}

TEST(ModelCatalogue, GivesASourceAndADayForEachRecord) {
  for (const ModelRecord& record : ModelRecords()) {
    EXPECT_GE(record.source.size(), 10u) << record.names.id;
    EXPECT_TRUE(std::regex_match(record.checked, std::regex("20\\d\\d-[01]\\d-[0-3]\\d")))
        << record.names.id;
  }
}

TEST(ModelCatalogue, HasNoNameTwice) {
  std::map<std::string, std::string> seen;
  for (const ModelRecord& record : ModelRecords()) {
    std::set<std::string> own = {LowerCase(record.names.id)};
    for (const std::string& alias : record.names.aliases) {
      own.insert(LowerCase(alias));
      own.insert(LowerCase(alias.substr(alias.rfind('/') + 1)));
    }
    for (const std::string& name : own) {
      EXPECT_TRUE(seen.emplace(name, record.names.id).second)
          << name << " means " << record.names.id << " and " << seen[name];
    }
  }
}

// The totals of data/models come from public files; the shapes have to give the same number.
TEST(ModelCatalogue, HasTheRecordedTotalOfEveryModelFromItsShapes) {
  for (const ModelRecord& record : ModelRecords()) {
    if (record.parameters) {
      const Result<Network> network = NetworkFromConfig(record.config, record.names.id);
      ASSERT_TRUE(network) << Message(network.error());
      EXPECT_EQ(ParameterCount(*network), *record.parameters) << record.names.id;
    }
  }
}

TEST(ModelCatalogue, ListsTheModelsWithoutATotalAsSuch) {
  std::set<std::string> without;
  for (const ModelRecord& record : ModelRecords()) {
    if (!record.parameters) {
      without.insert(record.names.id);
      EXPECT_FALSE(record.parameters_verified);
    }
  }
  EXPECT_EQ(without, (std::set<std::string>{"deepseek-v4-flash", "gemma-4-26b-a4b", "kimi-k3",
                                            "llama-3.1-nemotron-ultra-253b", "mimo-v2-flash",
                                            "nemotron-3-nano-30b-a3b", "nemotron-h-56b"}));
}

// Totals that two public files state (Hugging Face model pages and framework logs).
TEST(ModelCatalogue, HasTheVerifiedTotals) {
  const std::map<std::string, std::int64_t> totals = {
      {"llama-3.1-8b", 8'030'261'248},      {"mistral-7b-v0.1", 7'241'732'096},
      {"gemma-2-2b", 2'614'341'888},        {"gemma-2-9b", 9'241'705'984},
      {"gemma-2-27b", 27'227'128'320},      {"phi-4-mini", 3'836'021'760},
      {"qwen3-8b", 8'190'735'360},          {"mixtral-8x7b", 46'702'792'704},
      {"qwen3-235b-a22b", 235'093'634'560}, {"gpt-oss-120b", 116'829'156'672},
      {"deepseek-v3", 671'026'419'200},     {"kimi-k2", 1'026'408'232'448},
      {"minimax-m2.5", 228'689'764'864},    {"qwen3.5-27b", 26'895'998'464},
      {"qwen3.5-35b-a3b", 34'660'610'688},
  };
  std::size_t verified = 0;
  for (const ModelRecord& record : ModelRecords()) {
    if (record.parameters_verified) {
      ++verified;
      ASSERT_TRUE(totals.contains(record.names.id)) << record.names.id;
      EXPECT_EQ(record.parameters, totals.at(record.names.id));
    }
  }
  EXPECT_EQ(verified, totals.size());
}

// Elements of keys and values a token, all layers: from the caches that llama.cpp, vLLM and SGLang
// logged, divided by tokens and bytes.
TEST(ModelCatalogue, HasTheCacheThatEnginesLogged) {
  struct Case {
    std::string id;
    std::int64_t growing;   // of layers that keep the whole context
    std::int64_t windowed;  // of layers that keep a window
  };
  const Case cases[] = {
      {"llama-3.1-8b", 65'536, 0},
      {"llama-2-7b", 262'144, 0},
      {"qwen3-235b-a22b", 96'256, 0},
      {"gemma-2-2b", 26'624, 26'624},
      {"gemma-3-27b", 40'960, 212'992},
      {"gpt-oss-20b", 12'288, 12'288},
      {"deepseek-v3", 35'136, 0},
      {"kimi-k2", 35'136, 0},
      {"qwen3.5-27b", 32'768, 0},
      {"llama-4-scout", 24'576, 73'728},
      {"gemma-4-26b-a4b", 10'240, 102'400},
      {"nemotron-h-56b", 20'480, 0},
      {"bert-base-uncased", 0, 0},
      {"falcon-h1-1.5b", 12'288, 0},
      {"mamba-1.4b", 0, 0},
      {"llama-3.1-nemotron-ultra-253b", 131'072, 0},
  };
  for (const Case& c : cases) {
    const Result<Model> model = FindModel(c.id);
    ASSERT_TRUE(model) << Message(model.error());
    std::int64_t growing = 0;
    std::int64_t windowed = 0;
    for (const Cache& cache : model->network.caches) {
      (cache.window ? windowed : growing) +=
          cache.key_elements_per_token + cache.value_elements_per_token;
    }
    EXPECT_EQ(growing, c.growing) << c.id;
    EXPECT_EQ(windowed, c.windowed) << c.id;
  }
}

// Where no exact total is published, the rounded one of the model's card.
TEST(ModelCatalogue, ComesCloseToTheRoundedTotals) {
  const std::map<std::string, double> billions = {
      {"gemma-4-26b-a4b", 25.2}, {"llama-3.1-nemotron-ultra-253b", 253.401},
      {"mimo-v2-flash", 309},    {"nemotron-3-nano-30b-a3b", 31.6},
      {"nemotron-h-56b", 56},
  };
  for (const auto& [id, rounded] : billions) {
    const Result<Model> model = FindModel(id);
    ASSERT_TRUE(model) << Message(model.error());
    EXPECT_NEAR(static_cast<double>(ParameterCount(model->network)) / 1e9, rounded,
                rounded >= 50 ? 0.5 : 0.05)
        << id;
  }
}

// A log of a model of these sizes, three sequences in float32: R 16.88 MiB, S 432.00 MiB
// (ggml-org/llama.cpp issue 23792).
TEST(ModelCatalogue, HasTheRecurrentStateOfLinearAttention) {
  const Result<Model> model = FindModel("qwen3.5-27b");
  ASSERT_TRUE(model);
  std::int64_t convolution = 0;
  std::int64_t recurrent = 0;
  for (const Cache& cache : model->network.caches) {
    convolution += cache.convolution_elements_per_request;
    recurrent += cache.recurrent_elements_per_request;
  }
  constexpr std::int64_t kBytes = 3 * 4;
  EXPECT_EQ(convolution * kBytes, (std::int64_t{16} << 20) + (std::int64_t{7} << 17));  // 16.875
  EXPECT_EQ(recurrent * kBytes, std::int64_t{432} << 20);
}

TEST(ModelCatalogue, FindsAModelByIdAliasAndLastPartWhateverTheCase) {
  for (const char* name : {"llama-3.1-8b", "LLAMA-3.1-8B", "meta-llama/Llama-3.1-8B",
                           "Meta-Llama-3.1-8B", "llama-3.1-8b-instruct"}) {
    const Result<Model> model = FindModel(name);
    ASSERT_TRUE(model) << Message(model.error());
    EXPECT_EQ(model->name, "llama-3.1-8b");
    EXPECT_EQ(model->network.model_type, "llama");
  }
}

TEST(ModelCatalogue, SuggestsTheNearestName) {
  const Result<Model> model = FindModel("lama-3.1-8b");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Message(model.error()),
            "error: MODEL: unknown model \"lama-3.1-8b\", did you mean \"llama-3.1-8b\"?\n"
            "hint: \"fourpiles models\" lists them all");
}

TEST(ModelCatalogue, RefusesByNameAnArchitectureThatItCannotBuild) {
  const Result<Model> model = FindModel("deepseek-v4-flash");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::kInput);
  EXPECT_EQ(model.error().text.where, "deepseek-v4-flash: model_type");
  EXPECT_EQ(model.error().text.found, "unknown architecture \"deepseek_v4\"");
}

}  // namespace
}  // namespace fourpiles
