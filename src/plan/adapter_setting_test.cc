#include "plan/adapter_setting.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "plan/budget.h"

namespace fourpiles {
namespace {

Result<std::optional<Adapter>> Read(const std::string& spec) {
  const Settings settings = {{"adapter", {spec, "--adapter"}}};
  std::vector<Default> defaults;
  return ReadAdapter(SettingReader(settings, defaults));
}

TEST(AdapterSetting, IsReadAsItIsWritten) {
  for (const std::string spec :
       {"lora:rank=16,targets=all-linear,dropout=0.05", "lora:rank=8,targets=q_proj+v_proj",
        "lora:rank=64,targets=all-linear"}) {
    EXPECT_EQ(AdapterSpec(**Read(spec)), spec);
  }
}

// peft's LoraConfig has r = 8, lora_dropout = 0.
TEST(AdapterSetting, WhatIsLeftOutHasADefault) {
  EXPECT_EQ(AdapterSpec(**Read("lora")), "lora:rank=8,targets=all-linear");
  EXPECT_EQ(AdapterSpec(**Read("lora:alpha=32")), "lora:rank=8,targets=all-linear");
}

TEST(AdapterSetting, SaysWhatIsWrong) {
  constexpr const char* kCases[][2] = {
      {"dora:rank=8",
       "--adapter | unknown adapter \"dora\" | expected lora | as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
      {"",
       "--adapter | unknown adapter \"\" | expected lora | as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:rnk=8",
       "--adapter | unknown key \"rnk\" | did you mean \"rank\"? | known: rank, "
       "targets, dropout, alpha"},
      {"lora:", "--adapter | unknown key \"\" |  | known: rank, targets, dropout, alpha"},
      {"lora:rank",
       "--adapter | rank has no value | expected rank=VALUE | as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:rank=",
       "--adapter | rank has no value | expected rank=VALUE | as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:rank=0",
       "--adapter: rank | \"0\" is out of range | expected a whole number from 1 to "
       "1048576 | "},
      {"lora:rank=8,rank=8", "--adapter | rank stands twice | expected it once | leave one out"},
      {"lora:targets=q_proj++v_proj",
       "--adapter: targets | an empty name in \"q_proj++v_proj\" | expected all-linear or names "
       "joined by + | as in targets=q_proj+v_proj"},
      {"lora:dropout=1",
       "--adapter: dropout | \"1\" is out of range | expected a probability from 0 to below 1 | as "
       "in lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:dropout=nan",
       "--adapter: dropout | \"nan\" is out of range | expected a probability from 0 to below 1 | "
       "as in lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:alpha=much",
       "--adapter: alpha | \"much\" is no number | expected a number of at least 0 | as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
  };
  for (const auto& [spec, message] : kCases) {
    EXPECT_EQ(ErrorLine(Read(spec)), message);
  }
}

// Recipe bf16 keeps the 8,030,261,248 frozen weights in two bytes each; of the 41,943,040 that peft
// counts as trainable weight, gradient and both moments of Adam are in float32
// (autocast_adapter_dtype).
TEST(AdapterSetting, GradientsAndOptimizerStateAreThoseOfTheAdapter) {
  const Settings settings = {{"adapter", {"lora:rank=16", "--adapter"}},
                             {"recipe", {"bf16", "--recipe"}}};
  const Job job = MakeJob(JobKind::kFinetune, "llama-3.1-8b", settings).value();
  EXPECT_EQ(TrainableParameterCount(job.model.network), 41'943'040);
  const Budget budget = PlayedBudget(job).value();
  EXPECT_EQ(budget.state, Bytes(2 * 8'030'261'248 + 16 * std::int64_t{41'943'040}));
}

TEST(AdapterSetting, WithoutOneFineTuningTrainsAllParameters) {
  const Job job = MakeJob(JobKind::kFinetune, "gpt2", {}).value();
  EXPECT_EQ(TrainableParameterCount(job.model.network), ParameterCount(job.model.network));
}

TEST(AdapterSetting, NamesTheLinearLayersThereAre) {
  const Settings settings = {{"adapter", {"lora:targets=q_proj", "--adapter"}}};
  EXPECT_EQ(ErrorLine(MakeJob(JobKind::kTrain, "gpt2", settings)),
            "--adapter | no linear layer is called \"q_proj\" | did you mean \"c_proj\"? | linear "
            "layers: c_attn, c_proj, c_fc");
}

}  // namespace
}  // namespace fourpiles
