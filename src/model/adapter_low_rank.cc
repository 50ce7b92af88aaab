// Two matrices of low rank beside a linear layer's weight W, which stays as it is: its output
// becomes W x + B A x. LoRA trains both. DoRA also sets each row of W + B A to a trained length.
// VeRA's matrices are random, frozen and the same for all layers; it trains a factor for each of
// the rank and for each output.

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "model/adapter_kinds.h"

namespace fourpiles {
namespace {

// peft has a DoRA of embeddings as well; it is not described here.
Result<void> RefuseEmbeddings(const std::vector<ChosenModule>& chosen, const Network& network,
                              const Adapter& adapter, std::string_view where) {
  for (const ChosenModule& choice : chosen) {
    if (choice.module.kind == ModuleKind::kEmbedding) {
      const Block& block = network.blocks[choice.block];
      return WrongUsage({.where = std::string(where),
                         .found = fmt::format("{} is an embedding",
                                              FullName(block, block.first, choice.module.name)),
                         .expected = fmt::format("expected linear layers, as {} has no place there",
                                                 RecordOf(adapter.kind).word),
                         .hint = "lora has one, or train a copy of it: modules=NAME"});
    }
  }
  return {};
}

// An embedding's A is looked up, row by row, instead of its weight (peft/tuners/lora/layer.py,
// Embedding).
std::vector<Parameter> LowRankParameters(const Module& module, const Adapter& adapter) {
  const bool embedding = module.kind == ModuleKind::kEmbedding;
  std::vector<Parameter> parameters = {
      AdapterParameter(adapter, module.name, embedding ? "lora_embedding_A" : "lora_A.weight",
                       {adapter.rank, module.size.in}),
      AdapterParameter(adapter, module.name, embedding ? "lora_embedding_B" : "lora_B.weight",
                       {module.size.out, adapter.rank})};
  if (adapter.kind == AdapterKind::kDora) {
    parameters.push_back(
        AdapterParameter(adapter, module.name, "lora_magnitude_vector", {module.size.out}));
  }
  return parameters;
}

}  // namespace

Result<void> AddLowRank(Network& network, const Adapter& adapter, std::string_view where) {
  TRY(const std::vector<ChosenModule> chosen, ChooseModules(network, adapter.targets, where));
  const bool decomposed = adapter.kind == AdapterKind::kDora;
  if (decomposed) {
    TRY_VOID(RefuseEmbeddings(chosen, network, adapter, where));
  }
  for (const ChosenModule& choice : chosen) {
    PutBeside(network.blocks[choice.block], choice.module,
              LowRankParameters(choice.module, adapter),
              decomposed ? AdapterForm::kDecomposed : AdapterForm::kLowRank, adapter);
  }
  return {};
}

// Each layer reads the first columns of A and the first rows of B, which are as long as the largest
// layer needs (peft/tuners/vera/model.py, _find_dim): buffers, in float32.
Result<void> AddVera(Network& network, const Adapter& adapter, std::string_view where) {
  TRY(const std::vector<ChosenModule> chosen, ChooseModules(network, adapter.targets, where));
  TRY_VOID(RefuseEmbeddings(chosen, network, adapter, where));
  LinearSize largest;
  for (const auto& [block, module] : chosen) {
    largest.in = std::max(largest.in, module.size.in);
    largest.out = std::max(largest.out, module.size.out);
    PutBeside(network.blocks[block], module,
              {AdapterParameter(adapter, module.name, "vera_lambda_d", {adapter.rank}),
               AdapterParameter(adapter, module.name, "vera_lambda_b", {module.size.out})},
              AdapterForm::kScaledRandom, adapter);
  }
  network.buffers.push_back({.name = "vera_A", .elements = adapter.rank * largest.in});
  network.buffers.push_back({.name = "vera_B", .elements = largest.out * adapter.rank});
  return {};
}

}  // namespace fourpiles
