#include "model/adapter.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "model/catalogue.h"
#include "model/flow.h"
#include "model/parts.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

Network Adapted(std::string_view model, const Adapter& adapter) {
  return WithAdapter(FindModel(model)->network, adapter, "--adapter").value();
}

// What print_trainable_parameters of peft prints for these: all-linear of rank 16 on Llama-3.1-8B
// (41,943,040 of 8,072,204,288), q_proj and v_proj of rank 8 on Llama-2-7B (4,194,304 of
// 6,742,609,920), c_attn of rank 8 on GPT-2 (294,912 of 124,734,720).
TEST(Adapter, HasAsManyParametersAsPeftCounts) {
  struct Case {
    const char* model;
    Adapter adapter;
    std::int64_t trained;
    std::int64_t all;
  };
  const Case cases[] = {
      {"llama-3.1-8b", {.rank = 16}, 41'943'040, 8'072'204'288},
      {"llama-2-7b", {.rank = 8, .targets = {"q_proj", "v_proj"}}, 4'194'304, 6'742'609'920},
      {"gpt2", {.rank = 8, .targets = {"c_attn"}}, 294'912, 124'734'720},
  };
  for (const Case& c : cases) {
    const Network network = Adapted(c.model, c.adapter);
    EXPECT_EQ(TrainableParameterCount(network), c.trained) << c.model;
    EXPECT_EQ(ParameterCount(network), c.all) << c.model;
  }
}

TEST(Adapter, IsNamedAsPeftNamesIt) {
  const Network network = Adapted("llama-3.1-8b", {.rank = 16, .targets = {"k_proj"}});
  std::vector<std::string> trained;
  ForEachTensor(network, [&](const NamedTensor& tensor) {
    if (tensor.parameter->trainable) {
      trained.push_back(tensor.name);
    }
  });
  ASSERT_EQ(trained.size(), 64U);
  EXPECT_EQ(trained[0], "model.layers.0.self_attn.k_proj.lora_A.weight");
  EXPECT_EQ(trained[1], "model.layers.0.self_attn.k_proj.lora_B.weight");
}

Network TwoLinears() {
  Parameters parameters;
  Append(parameters, "c_fc", Tensor("weight", {4, 12}));  // (in, out)
  Append(parameters, "c_fc", Tensor("bias", {12}));
  Append(parameters, "out", Linear({.out = 4, .in = 12}, Divide::kInputs));
  Network network;
  AddLayers(network, "layers.{}", 3, [&](std::int64_t) {
    Flow flow(parameters);
    flow.Linear("out", flow.TransposedLinear("c_fc", Flow::Input()));
    return Layer{.parameters = parameters, .operators = flow.Take()};
  });
  Parameters head;
  Append(head, "head", Linear({.out = 100, .in = 4}, Divide::kOutputs));
  AddBlock(network, "", head);
  Flow flow(network.blocks.back().parameters);
  flow.Linear("head", Flow::Input());
  network.blocks.back().operators = flow.Take();
  return network;
}

TEST(Adapter, StandsBesideEveryLinearLayerButTheOutputLayer) {
  const Network network = WithAdapter(TwoLinears(), {.rank = 2, .dropout = 0.05}, "").value();
  const Block& layer = network.blocks.front();
  ASSERT_EQ(layer.parameters.size(), 7U);
  EXPECT_EQ(layer.parameters[3].name, "c_fc.lora_A.weight");
  EXPECT_EQ(layer.parameters[3].shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(layer.parameters[4].shape, (std::vector<std::int64_t>{12, 2}));
  EXPECT_EQ(layer.parameters[5].name, "out.lora_A.weight");
  EXPECT_EQ(network.blocks.back().parameters.size(), 1U);
  EXPECT_FALSE(network.blocks.back().parameters.front().trainable);
  EXPECT_EQ(TrainableParameterCount(network), 3 * 2 * (4 + 12 + 12 + 4));
}

TEST(Adapter, IsKnownToTheOperatorsOfItsLayer) {
  const Network network =
      WithAdapter(TwoLinears(), {.rank = 2, .targets = {"c_fc"}, .dropout = 0.05}, "").value();
  const std::vector<Operator>& operators = network.blocks.front().operators;
  EXPECT_EQ(operators[0].adapter_rank, 2);
  EXPECT_TRUE(operators[0].adapter_dropout);
  ASSERT_EQ(operators[0].parameters.size(), 4U);  // weight, bias, A, B
  EXPECT_EQ(operators[0].parameters[2].parameter, 3);
  EXPECT_EQ(operators[0].parameters[3].parameter, 4);
  EXPECT_EQ(operators[1].adapter_rank, 0);
  EXPECT_EQ(operators[1].parameters.size(), 1U);
}

// The output layer of Llama-2-7B is 4096 to 32,000: A (16 × 4096) and B (32,000 × 16) are 577,536
// parameters beside the 39,976,960 of the other linear layers (16 × (4 × 8192 + 3 × 15,104) × 32).
TEST(Adapter, StandsBesideTheOutputLayerWhereItIsNamed) {
  const Network network = Adapted("llama-2-7b", {.rank = 16, .targets = {"all-linear", "lm_head"}});
  EXPECT_EQ(TrainableParameterCount(network), 39'976'960 + 577'536);
  const Block& head = network.blocks.back();
  EXPECT_EQ(head.parameters[1].name, "lora_A.weight");
  EXPECT_EQ(head.operators.back().adapter, AdapterForm::kLowRank);
  EXPECT_EQ(head.operators.back().parameters.size(), 3U);
}

// GPT-2's output layer is its embedding; peft wraps the module all the same, under its own name:
// 8 × (768 + 50,257) parameters.
TEST(Adapter, GivesAnOutputLayerThatIsTiedABlockOfItsOwn) {
  const Network network = Adapted("gpt2", {.rank = 8, .targets = {"lm_head"}});
  EXPECT_EQ(TrainableParameterCount(network), 8 * (768 + 50'257));
  const Block& head = network.blocks.back();
  EXPECT_EQ(head.name, "lm_head");
  ASSERT_EQ(head.operators.size(), 1U);
  EXPECT_EQ(head.operators.front().parameters.front().block, 0);
  EXPECT_EQ(network.blocks[network.blocks.size() - 2].operators.back().kind,
            OperatorKind::kLayerNorm);
}

// peft's Embedding has A (rank × vocabulary) and B (width × rank).
TEST(Adapter, StandsBesideAnEmbeddingWhereItIsNamed) {
  const Network network = Adapted("llama-2-7b", {.rank = 4, .targets = {"embed_tokens"}});
  EXPECT_EQ(TrainableParameterCount(network), 4 * (32'000 + 4096));
  EXPECT_EQ(network.blocks.front().parameters[1].name, "lora_embedding_A");
  EXPECT_EQ(network.blocks.front().parameters[1].shape, (std::vector<std::int64_t>{4, 32'000}));
}

// Of one layer of Llama-2-7B q_proj has 8 × 8192 parameters, the feed-forward part 8 × 3 × 15,104.
TEST(Adapter, TakesPatternsOfNames) {
  struct Case {
    std::vector<std::string> targets;
    std::int64_t trained;
    std::size_t blocks;  // layers that are not alike stand apart
  };
  const Case cases[] = {
      {{"layers.*.mlp.*"}, std::int64_t{32} * 8 * 3 * 15'104, 4},
      {{"*_proj"}, 19'988'480, 4},
      {{"layers.0.self_attn.q_proj"}, 8 * 8192, 5},
      {{"layers.1?.self_attn.q_proj"}, std::int64_t{10} * 8 * 8192, 6},
      {{"model.layers.31.mlp.up_proj", "q_proj"}, 8 * 15'104 + std::int64_t{32} * 8 * 8192, 5},
  };
  for (const Case& c : cases) {
    const Network network = Adapted("llama-2-7b", {.rank = 8, .targets = c.targets});
    EXPECT_EQ(TrainableParameterCount(network), c.trained) << c.targets.front();
    EXPECT_EQ(network.blocks.size(), c.blocks) << c.targets.front();
    EXPECT_EQ(ParameterCount(network), 6'738'415'616 + c.trained);
  }
}

// peft's ModulesToSaveWrapper keeps the original and a trained copy: 32,000 × 4096 each.
TEST(Adapter, TrainsACopyOfAModuleBesideTheOriginal) {
  const Network network =
      Adapted("llama-2-7b",
              {.rank = 8, .targets = {"q_proj", "v_proj"}, .modules = {"embed_tokens", "lm_head"}});
  constexpr std::int64_t kCopies = std::int64_t{2} * 32'000 * 4096;
  EXPECT_EQ(TrainableParameterCount(network), 4'194'304 + kCopies);
  EXPECT_EQ(ParameterCount(network), 6'742'609'920 + kCopies);
  const Block& embedding = network.blocks.front();
  EXPECT_EQ(embedding.parameters[1].name, "modules_to_save.weight");
  EXPECT_FALSE(embedding.parameters[1].float32);
  EXPECT_EQ(embedding.operators.front().parameters.front().parameter, 1);
}

// The output layer of GPT-2 goes on reading the embedding's original, and the other way round.
TEST(Adapter, ACopyOfATiedEmbeddingIsTiedToNothing) {
  const Network embedding = Adapted("gpt2", {.rank = 8, .targets = {"c_attn"}, .modules = {"wte"}});
  EXPECT_EQ(TrainableParameterCount(embedding), 294'912 + 50'257 * 768);
  EXPECT_EQ(embedding.blocks.back().operators.back().parameters.front(),
            (ParameterUse{.block = 0, .parameter = 0}));
  const Network head = Adapted("gpt2", {.rank = 8, .targets = {"c_attn"}, .modules = {"lm_head"}});
  EXPECT_EQ(TrainableParameterCount(head), 294'912 + 50'257 * 768);
  EXPECT_EQ(head.blocks.back().parameters.front().name, "modules_to_save.weight");
  EXPECT_EQ(head.blocks.front().operators.front().parameters.front().parameter, 0);
}

TEST(Adapter, RefusesAModuleThatThereIsNot) {
  EXPECT_EQ(ErrorLine(WithAdapter(FindModel("gpt2")->network, {.modules = {"embed_tokens"}},
                                  "--adapter")),
            "--adapter | no module is called \"embed_tokens\" |  | linear layers: c_attn, c_proj, "
            "c_fc; beside them: wte, lm_head");
}

// What the papers and peft print of the other kinds.
TEST(Adapter, OfEachKindHasAsManyParametersAsItsPaperSays) {
  const std::vector<std::string> five = {"q_proj", "k_proj", "v_proj", "up_proj", "down_proj"};
  struct Case {
    const char* model;
    Adapter adapter;
    std::int64_t trained;
  };
  const Case cases[] = {
      // Liu et al. 2024, table 1, LLaMA3-8B of rank 32: LoRA 0.70 %, DoRA 0.71 %. DoRA adds a row
      // length for each output: 32 × (4096 + 2 × 1024 + 14,336 + 4096).
      {"llama-3.1-8b", {.rank = 32, .targets = five}, 56'623'104},
      {"llama-3.1-8b", {.kind = AdapterKind::kRsLora, .rank = 32, .targets = five}, 56'623'104},
      {"llama-3.1-8b", {.kind = AdapterKind::kDora, .rank = 32, .targets = five}, 57'409'536},
      // Kopiczko et al. 2023, table 4, LLaMA-7B: LoRA of rank 64 159.9M, VeRA of rank 1024 1.6M:
      // 32 × (4 × 4096 + 2 × 11,008 + 4096 + 7 × 1024).
      {"llama-2-7b", {.rank = 64}, 159'907'840},
      {"llama-2-7b", {.kind = AdapterKind::kVera, .rank = 1024}, 1'589'248},
      // 32 × (4096 + 4096 + 11,008): keys, values and what goes into the last linear layer.
      {"llama-2-7b", {.kind = AdapterKind::kIa3}, 614'400},
      // 12 × (2304 + 3072): c_attn and the input of mlp.c_proj.
      {"gpt2", {.kind = AdapterKind::kIa3}, 64'512},
      // Tokens × width; tokens × layers × keys and values.
      {"gpt2", {.kind = AdapterKind::kPrompt, .tokens = 8}, 8 * 768},
      {"gpt2-xl", {.kind = AdapterKind::kPrefix, .tokens = 20}, 20 * 48 * 2 * 1600},
      {"llama-3.1-8b", {.kind = AdapterKind::kPrefix, .tokens = 30}, 30 * 32 * 2 * 1024},
      // 65 norms of 4096.
      {"llama-2-7b", {.kind = AdapterKind::kNorms}, 266'240},
      // 12 × (2304 + 768 + 3072 + 768 + 2 × 768) + 768.
      {"gpt2", {.kind = AdapterKind::kBitFit}, 102'144},
  };
  for (const Case& c : cases) {
    const Network network = Adapted(c.model, c.adapter);
    EXPECT_EQ(TrainableParameterCount(network), c.trained)
        << c.model << " " << RecordOf(c.adapter.kind).word;
  }
}

// peft's guide to soft prompts prints, of bloomz-560m with 8 virtual tokens: trainable params:
// 8,192, all params: 559,222,784.
TEST(Adapter, OfPromptTuningHasAsManyParametersAsPeftCounts) {
  const Network bloom = FromText(R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24,
      "num_attention_heads": 16, "vocab_size": 250880})")
                            .value();
  const Network network =
      WithAdapter(bloom, {.kind = AdapterKind::kPrompt, .tokens = 8}, "").value();
  EXPECT_EQ(TrainableParameterCount(network), 8192);
  EXPECT_EQ(ParameterCount(network), 559'222'784);
}

// The shares that the DoRA paper prints are of the parameters of base and adapter.
TEST(Adapter, OfDoraIsTheShareThatThePaperPrints) {
  const Network network =
      Adapted("llama-3.1-8b", {.kind = AdapterKind::kDora,
                               .rank = 32,
                               .targets = {"q_proj", "k_proj", "v_proj", "up_proj", "down_proj"}});
  EXPECT_NEAR(100.0 * static_cast<double>(TrainableParameterCount(network)) /
                  static_cast<double>(ParameterCount(network)),
              0.71, 0.005);
}

// A (256 × 11,008) and B (11,008 × 256) are there once for all layers, in float32.
TEST(Adapter, OfVeraHasItsMatricesOnce) {
  const Network plain = FindModel("llama-2-7b")->network;
  const Network network = Adapted("llama-2-7b", {.kind = AdapterKind::kVera, .rank = 256});
  ASSERT_EQ(network.buffers.size(), plain.buffers.size() + 2);
  EXPECT_EQ(network.buffers.back().elements, 11'008 * 256);
  EXPECT_EQ(network.buffers.back().bits, 32);
}

// peft keeps the norms and trains copies.
TEST(Adapter, OfNormsAreCopies) {
  const Network network = Adapted("llama-2-7b", {.kind = AdapterKind::kNorms});
  EXPECT_EQ(ParameterCount(network), 6'738'415'616 + 266'240);
}

TEST(Adapter, OfEmbeddingsIsLowRankOrACopy) {
  EXPECT_EQ(ErrorLine(WithAdapter(FindModel("gpt2")->network,
                                  {.kind = AdapterKind::kDora, .targets = {"wte"}}, "--adapter")),
            "--adapter | transformer.wte is an embedding | expected linear layers, as dora has no "
            "place there | lora has one, or train a copy of it: modules=NAME");
  EXPECT_EQ(ErrorLine(WithAdapter(FindModel("gpt2")->network,
                                  {.kind = AdapterKind::kIa3, .targets = {"wte"}}, "--adapter")),
            "--adapter | transformer.wte is an embedding | expected linear layers, as ia3 has no "
            "place there | train a copy of it: modules=NAME");
}

TEST(Adapter, OfIa3HasTheTargetsOfPeft) {
  // Qwen2.5-0.5B: 24 layers, q_proj 896, v_proj 128, down_proj from 4864.
  EXPECT_EQ(TrainableParameterCount(Adapted("qwen2.5-0.5b", {.kind = AdapterKind::kIa3})),
            24 * (896 + 128 + 4864));
}

TEST(Adapter, ATargetIsNoModuleThatIsTrainedWhole) {
  EXPECT_EQ(
      ErrorLine(WithAdapter(FindModel("gpt2")->network,
                            {.targets = {"all-linear", "lm_head"}, .modules = {"lm_head"}},
                            "--adapter")),
      "--adapter | lm_head is both a target and a module | expected one of them | a module is "
      "trained whole, as a copy");
}

TEST(Adapter, OfEveryKindHasASource) {
  for (const AdapterRecord& record : AdapterRecords()) {
    EXPECT_FALSE(record.source.empty()) << record.word;
    EXPECT_EQ(RecordOf(record.kind).word, record.word);
  }
}

TEST(Adapter, ThatNeedsAPlaceTheModelLacksSaysSo) {
  const Network count = NetworkFromCount({.parameters = 1000}).value();
  EXPECT_EQ(ErrorLine(WithAdapter(count, {.kind = AdapterKind::kPrompt}, "--adapter")),
            "--adapter | the model has no embedding of tokens that is known | expected a model of "
            "tokens | a model with a config.json of a described architecture");
  EXPECT_EQ(
      ErrorLine(WithAdapter(count, {.kind = AdapterKind::kPrefix}, "--adapter")),
      "--adapter | the model has no attention that is known | expected a model with attention "
      "| a model with a config.json of a described architecture");
  EXPECT_EQ(ErrorLine(WithAdapter(count, {.kind = AdapterKind::kIa3}, "--adapter")),
            "--adapter | the usual targets of ia3 are not known for this model | expected targets, "
            "and which of them are of the feed-forward part | as in "
            "ia3:targets=k_proj+v_proj+down_proj,feedforward=down_proj");
  EXPECT_EQ(
      ErrorLine(WithAdapter(FindModel("llama-2-7b")->network,
                            {.kind = AdapterKind::kIa3, .feedforward = {"fc2"}}, "--adapter")),
      "--adapter | no linear layer is called \"fc2\" |  | linear layers: q_proj, k_proj, "
      "v_proj, o_proj, gate_proj, up_proj, down_proj; beside them: embed_tokens, lm_head");
}

TEST(Adapter, LeavesRoutedExpertsAndNormsAlone) {
  Parameters parameters;
  Append(parameters, "q_norm", Tensor("weight", {8, 4}));
  Append(parameters, "experts", Experts(GatedMlp(4, 16), 8));
  Append(parameters, "o_proj", Linear({.out = 4, .in = 4}, Divide::kInputs));
  Network network;
  AddLayers(network, "layers.{}", 2, [&](std::int64_t) { return Layer{.parameters = parameters}; });
  EXPECT_EQ(TrainableParameterCount(WithAdapter(network, {.rank = 1}, "").value()), 2 * (4 + 4));
}

TEST(Adapter, RefusesATargetThatNoLinearLayerIsCalled) {
  EXPECT_EQ(ErrorLine(WithAdapter(FindModel("llama-3.1-8b")->network,
                                  {.targets = {"q_proj", "v_porj"}}, "--adapter")),
            "--adapter | no linear layer is called \"v_porj\" | did you mean \"v_proj\"? | linear "
            "layers: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj; beside them: "
            "embed_tokens, lm_head");
  EXPECT_EQ(ErrorLine(WithAdapter(TwoLinears(), {.targets = {"layers.3.*"}}, "--adapter")),
            "--adapter | no linear layer matches \"layers.3.*\" |  | linear layers: c_fc, out; "
            "beside them: head");
}

TEST(Adapter, RefusesAModelWithoutLinearLayers) {
  EXPECT_EQ(ErrorLine(WithAdapter(NetworkFromCount({.parameters = 1000}).value(), {}, "--adapter")),
            "--adapter | the model has no linear layers that are known | expected a model with "
            "layers | a bare parameter count has none; give a model");
}

}  // namespace
}  // namespace fourpiles
