#include "step/optimizer_state.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/error_text.h"
#include "model/catalogue.h"
#include "step/state.h"

namespace fourpiles {
namespace {

// Small enough for sums by hand: an embedding of 128,000 elements and two layers with a matrix of
// 16,384, one of 4,489 that no blocks fill, three experts of 8,192 and a vector of 64.
Network Small() {
  Network network;
  network.blocks = {{.name = "embed", .parameters = {{.name = "weight", .shape = {2000, 64}}}},
                    {.name = "layers.{}",
                     .repeat = 2,
                     .parameters = {{.name = "up.weight", .shape = {256, 64}},
                                    {.name = "odd.weight", .shape = {67, 67}},
                                    {.name = "experts.{}.weight", .shape = {64, 128}, .copies = 3},
                                    {.name = "norm.weight", .shape = {64}}}}};
  return network;
}

std::int64_t StateBytes(const Network& network, const char* recipe, const char* optimizer,
                        Place place) {
  const Resident states =
      OptimizerStorages(network, FindRecipe(recipe).value(), FindOptimizer(optimizer).value())
          .value();
  std::int64_t bytes = 0;
  for (const Storage& storage : states.storages) {
    bytes += storage.place == place ? storage.bytes.expected.value() : 0;
  }
  return bytes;
}

struct Case {
  const char* optimizer;
  const char* recipe;
  std::int64_t device;
  std::int64_t host;
};

// By hand, from the papers and files that the records name. Layers' matrices have 2 × (16,384 +
// 4,489 + 3 × 8,192) = 90,898 elements, the embedding and the vectors 128,000 + 2 × 64 = 128,128,
// together 219,026 in 13 tensors.
constexpr Case kCases[] = {
    // Rows 2000 + 2 × (256 + 67 + 3 × 64) = 3030, columns 64 + 2 × (64 + 67 + 3 × 128) = 1094,
    // vectors 128: 4252 numbers.
    {"adafactor", "fp32", 4 * 4252, 0},
    {"adafactor", "bf16", 4 * 4252, 0},
    {"adafactor-momentum", "bf16", 4 * (219'026 + 4252), 0},
    {"adafactor-pytorch", "bf16", 2 * 4252, 4 * 13},
    {"lion", "fp32", 4 * 219'026, 0},
    {"lamb", "mixed-fp16", (4 + 8) * 219'026, 0},  // and the master copy
    {"muon", "fp32", 4 * (90'898 + 2 * 128'128), 0},
    // Codes of all but the vectors, 128,000 + 90,898; blocks 500 + 2 × (64 + 18 + 3 × 32) = 856.
    {"adamw-8bit-bnb", "bf16", 2 * (218'898 + 4 * 856 + 4 * 128), 0},
    {"paged-adamw", "bf16", 8 * 91'026, 8 * 128'000},
    {"paged-adamw-8bit", "bf16", 2 * (90'898 + 4 * 856 + 4 * 128), 2 * 128'000},
    // Not the tensors of 4,489: codes 209,920, blocks 820, nine maps; the rest 9,106 in bfloat16.
    {"adamw-8bit-torchao", "bf16", 2 * (209'920 + 4 * 820 + 9 * 1024 + 2 * 9106), 4 * 13},
    {"adamw-4bit-torchao", "bf16", 2 * (104'960 + 4 * 1640 + 9 * 64 + 2 * 9106), 4 * 13},
    {"adamw-fp8-torchao", "fp32", 2 * (209'920 + 4 * 820 + 4 * 9106), 4 * 13},
    // With rank 16: moments 2 × (256 + 67 + 3 × 128) × 16, projections 2 × (64 + 67 + 3 × 64) × 16.
    {"galore-adamw:rank=16", "fp32", 4 * (2 * 22'624 + 10'336 + 2 * 128'128), 0},
    // A rank is at most the shorter side, 64 or 67: of two square matrices the moments are whole.
    {"galore-adamw", "fp32",
     4 * (2 * 2 * (16'384 + 4489 + 24'576) + 2 * (4096 + 4489 + 3 * 4096) + 2 * 128'128), 0},
    {"apollo:rank=16", "fp32", 4 * (2 * 22'624 + 10'336 + 2 * 128'128), 0},
    {"apollo-mini", "fp32", 4 * (2 * 1414 + 646 + 2 * 128'128), 0},
};

TEST(OptimizerStates, AreThoseOfThePapersAndFrameworks) {
  for (const Case& c : kCases) {
    EXPECT_EQ(StateBytes(Small(), c.recipe, c.optimizer, Place::kDevice), c.device) << c.optimizer;
    EXPECT_EQ(StateBytes(Small(), c.recipe, c.optimizer, Place::kHost), c.host) << c.optimizer;
  }
}

// Those that keep the same of every element are compared with PyTorch in recipe_test.cc.
TEST(OptimizerStates, OfEveryOtherRecordAreInTheTable) {
  for (const Optimizer& optimizer : Optimizers()) {
    const bool odd = NeedsShapes(optimizer) ||
                     std::ranges::any_of(optimizer.states, [](const OptimizerState& state) {
                       return state.scales.block > 0 || state.paged_from > 0;
                     });
    const bool listed = std::ranges::any_of(kCases, [&](const Case& c) {
      return std::string_view(c.optimizer).starts_with(optimizer.names.id);
    });
    EXPECT_TRUE(listed || !odd) << optimizer.names.id;
  }
}

// Measured by torchao, torchao/optim/README.md, table 2: Llama-2-7B in bfloat16, allocated GiB with
// AdamW 51.6, bitsandbytes' 8-bit 39.3, torchao's 8-bit 39.1 and 4-bit 33.2.
TEST(OptimizerStates, SaveWhatTorchaoMeasured) {
  const Network llama = FindModel("llama-2-7b")->network;
  const std::int64_t full = StateBytes(llama, "bf16", "adamw", Place::kDevice);
  const auto saved = [&](const char* optimizer) {
    return static_cast<double>(full - StateBytes(llama, "bf16", optimizer, Place::kDevice)) /
           (1 << 30);
  };
  EXPECT_NEAR(saved("adamw-8bit-bnb"), 51.6 - 39.3, 0.2);
  EXPECT_NEAR(saved("adamw-8bit-torchao"), 51.6 - 39.1, 0.2);
  EXPECT_NEAR(saved("adamw-4bit-torchao"), 51.6 - 33.2, 0.2);
}

// One that has no kernels over all tensors makes its temporaries of one tensor at a time: Lion's
// two of the embedding, 2000 × 64. Adafactor's are float32 whatever the recipe.
TEST(OptimizerStates, TemporariesAreOfTheLargestTensorWithoutForeach) {
  const auto temporaries = [](const char* optimizer, StepKernels kernels) {
    return StepTemporaries(Small(), FindOptimizer(optimizer).value(), FindFormat("bf16").value(),
                           kernels)
        ->value();
  };
  EXPECT_EQ(temporaries("lion", StepKernels::kForeach), 2 * 2 * 128'000);
  EXPECT_EQ(temporaries("lion", StepKernels::kLoop), 2 * 2 * 128'000);
  EXPECT_EQ(temporaries("lion", StepKernels::kFused), 0);
  EXPECT_EQ(temporaries("adafactor", StepKernels::kLoop), 4 * 2 * 128'000);
  EXPECT_EQ(temporaries("adamw", StepKernels::kForeach), 2 * 219'026);
  EXPECT_EQ(temporaries("lion", StepKernels::kInBackward), 2 * 2 * 128'000);
}

// torchao/optim/adam.py, single_param_adam: weight and both moments are float32 numbers while a
// tensor steps. bitsandbytes decodes and codes within one kernel.
TEST(OptimizerStates, OfCodesAreFloat32WhileATensorSteps) {
  for (const NumberFormat& weights : {*FindFormat("bf16"), *FindFormat("fp32")}) {
    const auto temporaries = [&](const char* optimizer) {
      return StepTemporaries(Small(), FindOptimizer(optimizer).value(), weights, StepKernels::kLoop)
          ->value();
    };
    for (const char* name : {"adamw-8bit-torchao", "adamw-4bit-torchao", "adamw-fp8-torchao"}) {
      EXPECT_EQ(temporaries(name), 3 * 4 * 128'000) << name;
    }
    EXPECT_EQ(temporaries("adamw-8bit-bnb"), 0);
  }
}

std::string Refusal(const Result<Optimizer>& optimizer) {
  EXPECT_FALSE(optimizer);
  std::string text = optimizer ? "accepted\n" : ErrorMessage(optimizer.error());
  text.pop_back();
  return text;
}

TEST(FindOptimizer, TakesARankWhereGradientsAreProjected) {
  const Result<Optimizer> galore = FindOptimizer("galore:rank=1024");
  ASSERT_TRUE(galore);
  EXPECT_EQ(galore->names.id, "galore-adamw:rank=1024");
  EXPECT_EQ(galore->rank, 1024);
  EXPECT_EQ(Refusal(FindOptimizer("adamw:rank=8")),
            "error: --optimizer: adamw projects nothing and has no rank, expected adamw");
  EXPECT_EQ(Refusal(FindOptimizer("galore:rank=0")),
            "error: --optimizer: \"0\" is out of range, expected a whole number from 1 to 65536");
}

Result<Optimizer> Mine(const std::string& state) {
  const Result<Json> json =
      ReadJson(R"({"id": "mine", "summary": "mine", "states": [{"name": "m", )" + state +
                   R"(}], "source": "me", "checked": "2026-11-30"})",
               "mine.json");
  EXPECT_TRUE(json);
  return OptimizerFromJson(*json, "mine.json");
}

TEST(OptimizerFromJson, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(Mine(R"("of": "matrices", "shape": "rows")"));
  EXPECT_EQ(Refusal(Mine(R"("of": "matrix")")),
            "error: mine.json: states[0].of: \"matrix\", expected one of all, matrices, vectors, "
            "hidden, rest");
  EXPECT_EQ(Refusal(Mine(R"("shape": "row")")),
            "error: mine.json: states[0].shape: \"row\", expected one of full, rows, columns, "
            "projected, projection");
  EXPECT_EQ(Refusal(Mine(R"("block": 256)")),
            "error: mine.json: states[0].block: blocks of what the recipe has, expected \"codes\" "
            "or \"format\" beside it");
}

}  // namespace
}  // namespace fourpiles
