#include "model/frozen.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "model/catalogue.h"

namespace fourpiles {
namespace {

using Parts = std::vector<std::string>;

std::int64_t TrainedOnly(std::string_view model, const Parts& parts) {
  return TrainableParameterCount(
      WithTrainedOnly(FindModel(model)->network, parts, "--train-only").value());
}

std::int64_t Frozen(std::string_view model, const Parts& parts) {
  return TrainableParameterCount(WithFrozen(FindModel(model)->network, parts, "--freeze").value());
}

// Llama-2-7B: 32 layers of 4 × 4096² + 3 × 4096 × 11,008 + 2 × 4096 = 202,383,360; embedding and
// output layer 32,000 × 4096 = 131,072,000 each; the last norm 4096.
constexpr std::int64_t kLayer = 202'383'360;
constexpr std::int64_t kVocabulary = 131'072'000;
constexpr std::int64_t kAll = 32 * kLayer + 2 * kVocabulary + 4096;

TEST(Frozen, PartsAreNamedByWordsOrPatterns) {
  struct Case {
    Parts parts;
    std::int64_t elements;
  };
  const Case cases[] = {
      {{"embeddings"}, kVocabulary},
      {{"head"}, kVocabulary},
      {{"norms"}, 65 * 4096},
      {{"last:2"}, 2 * kLayer},
      {{"last:32"}, 32 * kLayer},
      {{"all-but-last:2"}, 30 * kLayer + kVocabulary},
      {{"last:1", "head"}, kLayer + kVocabulary},
      {{"layers.0"}, kLayer},
      {{"layers.?"}, 10 * kLayer},
      {{"layers.3.*"}, kLayer},
      {{"mlp"}, std::int64_t{32} * 3 * 4096 * 11'008},
      {{"up_proj.weight"}, std::int64_t{32} * 4096 * 11'008},
      {{"model.norm"}, 4096},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(TrainedOnly("llama-2-7b", c.parts), c.elements) << c.parts.front();
    EXPECT_EQ(Frozen("llama-2-7b", c.parts), kAll - c.elements) << c.parts.front();
  }
}

// The biases of BERT-base: 4 × 768 + 3072 + 768 of the linear layers and 2 × 768 of the norms of
// each of 12 layers, 768 of the embedding's norm, and of its output layers. Ben Zaken et al. 2022,
// section 4: 0.1M, 0.09 % of BERT-base.
TEST(Frozen, BiasesOfBertAreATenthOfAMillion) {
  const Network network =
      WithTrainedOnly(FindModel("bert-base-uncased")->network, Parts{"biases"}, "").value();
  std::int64_t of_layers = 0;
  for (const Block& block : network.blocks) {
    of_layers += IsNumbered(block) ? block.repeat * TrainableElementsOfLayer(block) : 0;
  }
  EXPECT_EQ(of_layers, 12 * 8448);
}

// A tied output layer is the embedding: freezing either freezes it.
TEST(Frozen, ATiedHeadIsTheEmbedding) {
  EXPECT_EQ(TrainedOnly("gpt2", {"head"}), 50'257 * 768);
  EXPECT_EQ(TrainedOnly("gpt2", {"embeddings"}), (50'257 + 1024) * 768);
}

// Where operators are not described, by what modules are called: lm_head is 128,256 × 4096.
TEST(Frozen, PartsOfModelsWithoutOperatorsAreNamedByTheirModules) {
  EXPECT_FALSE(OperatorsAreKnown(FindModel("llama-3.2-11b-vision")->network));
  EXPECT_EQ(TrainedOnly("llama-3.2-11b-vision", {"head"}), 128'256 * 4096);
  EXPECT_GE(TrainedOnly("llama-3.2-11b-vision", {"embeddings"}), 128'264 * 4096);
}

TEST(Frozen, SaysWhatIsWrong) {
  const Network llama = FindModel("llama-2-7b")->network;
  constexpr const char* kHint =
      " | embeddings, head, vision, norms, biases, last:K, all-but-last:K, or a pattern of names: "
      "embed_tokens, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, "
      "input_layernorm, post_attention_layernorm, norm, lm_head";
  EXPECT_EQ(ErrorLine(WithFrozen(llama, Parts{"embedings"}, "--freeze")),
            std::string("--freeze | no part of the model is called \"embedings\" | did you mean "
                        "\"embeddings\"?") +
                kHint);
  EXPECT_EQ(ErrorLine(WithFrozen(llama, Parts{"layers.32.*"}, "--freeze")),
            std::string("--freeze | no part of the model is called \"layers.32.*\" | ") + kHint);
  EXPECT_EQ(ErrorLine(WithTrainedOnly(llama, Parts{"vision"}, "--train-only")),
            std::string("--train-only | the model has no vision | expected a part "
                        "that it has") +
                kHint);
  const Network count = NetworkFromCount({.parameters = 1000, .num_hidden_layers = 4}).value();
  EXPECT_EQ(ErrorLine(WithFrozen(count, Parts{"last:2"}, "--freeze")),
            "--freeze | a bare parameter count has no parts | expected a model whose parts have "
            "names | give a model of the catalogue, or its folder");
  EXPECT_EQ(ErrorLine(WithFrozen(llama, Parts{"last:33"}, "--freeze")),
            "--freeze | \"33\" is out of range | expected a whole number from 1 to 32 | ");
  EXPECT_EQ(ErrorLine(WithFrozen(llama, Parts{"model", "lm_head"}, "--freeze")),
            "--freeze | every parameter would be frozen | expected some that are trained | name "
            "fewer parts, or add an adapter: --adapter lora:rank=16");
}

}  // namespace
}  // namespace fourpiles
