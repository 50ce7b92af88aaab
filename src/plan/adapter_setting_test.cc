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
        "lora:rank=64,targets=all-linear", "lora:rank=8,targets=all-linear+lm_head",
        "rslora:rank=8,targets=layers.*.mlp.*", "dora:rank=16,targets=q_proj,modules=lm_head",
        "vera:rank=256,targets=all-linear", "ia3", "ia3:targets=k_proj+fc2,feedforward=fc2",
        "prompt:tokens=8", "prefix:tokens=30", "bitfit", "ln:modules=embed_tokens"}) {
    EXPECT_EQ(AdapterSpec(**Read(spec)), spec);
  }
}

// peft's LoraConfig has r = 8, lora_dropout = 0.
TEST(AdapterSetting, WhatIsLeftOutHasADefault) {
  EXPECT_EQ(AdapterSpec(**Read("lora")), "lora:rank=8,targets=all-linear");
  EXPECT_EQ(AdapterSpec(**Read("lora:alpha=32")), "lora:rank=8,targets=all-linear");
  EXPECT_EQ(AdapterSpec(**Read("vera")), "vera:rank=256,targets=all-linear");
  EXPECT_EQ(AdapterSpec(**Read("prompt")), "prompt:tokens=20");
  EXPECT_FALSE(*Read("none"));
}

TEST(AdapterSetting, SaysWhatIsWrong) {
  constexpr const char* kCases[][2] = {
      {"lroa:rank=8",
       "--adapter | unknown adapter \"lroa\" | did you mean \"lora\"? | one of lora, rslora, dora, "
       "vera, ia3, prompt, prefix, bitfit, ln, none, as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
      {"",
       "--adapter | unknown adapter \"\" |  | one of lora, rslora, dora, vera, ia3, prompt, "
       "prefix, "
       "bitfit, ln, none, as in lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:rnk=8",
       "--adapter | unknown key \"rnk\" | did you mean \"rank\"? | known: rank, "
       "targets, modules, dropout, alpha, format"},
      {"lora:",
       "--adapter | unknown key \"\" |  | known: rank, targets, modules, dropout, alpha, format"},
      {"ia3:rank=8",
       "--adapter | ia3 has no rank | expected what it has | known: targets, feedforward, modules, "
       "format"},
      {"prompt:rank=8",
       "--adapter | prompt has no rank | expected what it has | known: tokens, format"},
      {"prompt:tokens=0",
       "--adapter: tokens | \"0\" is out of range | expected a whole number from 1 to 1048576 | "},
      {"lora:modules=",
       "--adapter | modules has no value | expected modules=VALUE | as in "
       "lora:rank=16,targets=all-linear,dropout=0.05"},
      {"lora:modules=a+",
       "--adapter: modules | an empty name in \"a+\" | expected names joined by + | as in "
       "modules=embed_tokens+lm_head"},
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

// peft's all-linear of rank 16 on GPT-2: 16 × (768 + 2304 + 768 + 768 + 768 + 3072 + 3072 + 768) of
// each of 12 layers.
TEST(AdapterSetting, WithoutOneFineTuningHasLoraOfRank16) {
  const Job job = MakeJob(JobKind::kFinetune, "gpt2", {}).value();
  EXPECT_EQ(TrainableParameterCount(job.model.network), 2'359'296);
  EXPECT_EQ(AdapterSpec(*job.training.adapter), "lora:rank=16,targets=all-linear");
  ASSERT_GE(job.defaults.size(), 2U);
  EXPECT_EQ(job.defaults[1].key, "adapter");
  EXPECT_EQ(job.defaults[1].value, "lora:rank=16,targets=all-linear");
}

TEST(AdapterSetting, NoneTrainsAllParameters) {
  const Settings none = TypedSettings({{"adapter", "none"}});
  const Settings of_llmc = TypedSettings({{"implementation", "llm.c"}});
  for (const Job& job : {MakeJob(JobKind::kFinetune, "gpt2", none).value(),
                         MakeJob(JobKind::kTrain, "gpt2", {}).value(),
                         MakeJob(JobKind::kFinetune, "1.5B", {}).value(),
                         MakeJob(JobKind::kFinetune, "gpt2", of_llmc).value()}) {
    EXPECT_EQ(TrainableParameterCount(job.model.network), ParameterCount(job.model.network));
    EXPECT_FALSE(job.training.adapter);
  }
}

// Two patterns part the layers where the one stops and the other begins; what they name is the
// same.
TEST(AdapterSetting, LayersThatArePartedCostWhatTheyCostTogether) {
  const auto budget = [](const std::string& targets) {
    const Settings settings =
        TypedSettings({{"adapter", "lora:targets=" + targets}, {"recipe", "fp32"}});
    return PlayedBudget(MakeJob(JobKind::kTrain, "gpt2", settings).value()).value();
  };
  const Budget together = budget("c_attn");
  const Budget parted = budget("h.?.attn.c_attn+h.1?.attn.c_attn");
  EXPECT_EQ(parted.job.model.network.blocks.size(), together.job.model.network.blocks.size() + 1);
  EXPECT_EQ(parted.state, together.state);
  EXPECT_EQ(parted.saved_activations, together.saved_activations);
  EXPECT_EQ(parted.peak.bytes, together.peak.bytes);
}

// What the recipe's format does to small updates says nothing of adapters in float32.
TEST(AdapterSetting, InFloat32HasNoWarningOfTheRecipe) {
  const auto warnings = [](const std::string& adapter) {
    const Settings settings = TypedSettings({{"adapter", adapter}, {"recipe", "bf16"}});
    return PlayedBudget(MakeJob(JobKind::kTrain, "gpt2", settings).value())->warnings.size();
  };
  EXPECT_EQ(warnings("lora"), 0U);
  EXPECT_EQ(warnings("lora:modules=lm_head"), 1U);
  EXPECT_EQ(warnings("none"), 1U);
}

// The last 2 of 12 layers of GPT-2, 7,087,872 parameters each, and the last norm, 2 × 768: weight,
// gradient and two moments in float32; of the frozen the weight alone.
TEST(AdapterSetting, FrozenPartsHaveNoGradientAndNoOptimizerState) {
  const std::pair<std::string, std::string> kCases[] = {
      {"train-only", "last:2+ln_f"}, {"freeze", "all-but-last:2"}, {"freeze", "wte+wpe+h.?"}};
  for (const auto& [key, parts] : kCases) {
    const Settings settings = TypedSettings({{key, parts}, {"recipe", "fp32"}});
    const Job job = MakeJob(JobKind::kFinetune, "gpt2", settings).value();
    constexpr std::int64_t kTrained = 2 * 7'087'872 + 2 * 768;
    EXPECT_EQ(TrainableParameterCount(job.model.network), kTrained) << parts;
    EXPECT_FALSE(job.training.adapter);
  }
}

TEST(AdapterSetting, StateOfFrozenPartsIsTheirWeights) {
  const Settings settings = TypedSettings({{"train-only", "last:2+ln_f"}, {"recipe", "fp32"}});
  const Job job = MakeJob(JobKind::kTrain, "gpt2", settings).value();
  constexpr std::int64_t kTrained = 2 * 7'087'872 + 2 * 768;
  EXPECT_EQ(PlayedBudget(job)->state, Bytes(4 * std::int64_t{124'439'808} + 12 * kTrained));
}

TEST(AdapterSetting, LayersBelowTheFirstTrainedKeepNothing) {
  const auto saved = [](const char* parts) {
    const Settings settings = TypedSettings({{"train-only", parts}, {"recipe", "fp32"}});
    const Job job = MakeJob(JobKind::kTrain, "gpt2", settings).value();
    return PlayedBudget(job)->saved_activations.value();
  };
  const std::int64_t of_layer = saved("last:3") - saved("last:2");
  EXPECT_GT(of_layer, 0);
  EXPECT_EQ(saved("last:10") - saved("last:9"), of_layer);
}

TEST(AdapterSetting, RefusesWhatContradictsItself) {
  struct Case {
    std::map<std::string, std::string> settings;
    const char* message;
  };
  const Case cases[] = {
      {{{"adapter", "lora"}, {"train-only", "head"}},
       "--train-only | --adapter says already what is trained | expected one of them | an adapter "
       "freezes the rest; to train modules beside it: lora:modules=lm_head"},
      {{{"freeze", "embeddings"}, {"train-only", "head"}},
       "--train-only | --freeze says already what is trained | expected one of them | leave one "
       "out"},
      {{{"freeze", "transformer"}},
       "--freeze | every parameter would be frozen | expected some that are trained | name fewer "
       "parts, or add an adapter: --adapter lora:rank=16"},
      {{{"freeze", "head+"}},
       "--freeze | an empty name in \"head+\" | expected parts joined by + | as in "
       "embeddings+layers.0.*"},
      {{{"adapter", "prefix"}, {"recompute", "full"}, {"sequence-length", "64"}},
       "--recompute | prefix tuning does not work with layers that run again | expected none | "
       "prompt tuning does: --adapter prompt:tokens=20"},
      {{{"adapter", "prompt"}, {"implementation", "litgpt"}},
       "--implementation | litgpt has no prompt tuning | expected another implementation | "
       "--implementation pytorch has it"},
      {{{"adapter", "prompt"}},
       "--adapter | 20 trained tokens and 1024 of a sample | expected at most 1024 in all, the "
       "positions that are learned | --sequence-length 1004 leaves room"},
      {{{"freeze", "head"}, {"implementation", "llm.c"}},
       "--freeze | llm.c has none | expected another implementation | --implementation pytorch has "
       "it"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorLine(MakeJob(JobKind::kTrain, "gpt2", TypedSettings(c.settings))), c.message);
  }
  EXPECT_EQ(ErrorLine(MakeJob(JobKind::kServe, "gpt2", TypedSettings({{"adapter", "dora"}}))),
            "--adapter | engines load no dora beside a model | expected lora or rslora | merge it "
            "into the weights: serving then needs no more than the model does");
  const Settings copy = TypedSettings({{"adapter", "lora:modules=lm_head"}});
  EXPECT_EQ(
      ErrorLine(MakeJob(JobKind::kServe, "gpt2", copy)),
      "--adapter | engines load no trained copies of modules | expected targets alone | leave "
      "modules out");
}

// 20 trained embeddings before 100 tokens and 40 before 80: the layers see 120 either way. The
// numbers of the trained tokens are kept, 8 bytes each.
TEST(AdapterSetting, PromptTokensLengthenTheSequenceOfEveryLayer) {
  const auto saved = [](const std::string& adapter, const std::string& tokens) {
    const Settings settings =
        TypedSettings({{"adapter", adapter}, {"sequence-length", tokens}, {"recipe", "fp32"}});
    const Job job = MakeJob(JobKind::kFinetune, "gpt2", settings).value();
    return PlayedBudget(job)->saved_activations.value();
  };
  EXPECT_EQ(saved("prompt:tokens=40", "80") - saved("prompt:tokens=20", "100"), 20 * 8);
}

TEST(AdapterSetting, NamesTheLinearLayersThereAre) {
  const Settings settings = {{"adapter", {"lora:targets=q_proj", "--adapter"}}};
  EXPECT_EQ(ErrorLine(MakeJob(JobKind::kTrain, "gpt2", settings)),
            "--adapter | no linear layer is called \"q_proj\" | did you mean \"c_proj\"? | linear "
            "layers: c_attn, c_proj, c_fc; beside them: wte, lm_head");
}

}  // namespace
}  // namespace fourpiles
