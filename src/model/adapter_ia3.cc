// IA3: keys, values and what goes into the last layer of the feed-forward part are multiplied by a
// trained vector each.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "model/adapter_kinds.h"
#include "model/module_pattern.h"

namespace fourpiles {
namespace {

// What peft targets by the names of a family's modules (peft/utils/constants.py,
// TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING and ..._FEEDFORWARD_MODULES_MAPPING).
struct UsualTargets {
  std::string_view first = {};
  std::string_view second = {};  // may be empty
  std::string_view feedforward = {};
};
constexpr UsualTargets kUsual[] = {
    {"k_proj", "v_proj", "down_proj"},         // Llama and those after it
    {"k_proj", "v_proj", "fc2"},               // OPT, Phi
    {"q_proj", "v_proj", "fc_out"},            // GPT-J
    {"attn.c_attn", "", "mlp.c_proj"},         // GPT-2, GPTBigCode
    {"query_key_value", "", "dense_4h_to_h"},  // BLOOM, GPT-NeoX, Falcon
    {"qkv_proj", "", "down_proj"},             // Phi-3
    {"key", "value", "output.dense"},          // BERT, ViT
};

bool Has(const Network& network, std::string_view pattern) {
  return std::ranges::any_of(network.blocks, [&](const Block& block) {
    return std::ranges::any_of(ModulesOf(network, block), [&](const Module& module) {
      return NamesModule(pattern, FullName(block, block.first, module.name));
    });
  });
}

const UsualTargets* UsualOf(const Network& network) {
  const auto* const usual = std::ranges::find_if(kUsual, [&](const UsualTargets& candidate) {
    return Has(network, candidate.first) && Has(network, candidate.feedforward) &&
           (candidate.second.empty() || Has(network, candidate.second));
  });
  return usual == std::end(kUsual) ? nullptr : usual;
}

// The adapter with what it leaves to the model filled in.
Result<Adapter> Completed(const Network& network, Adapter adapter, std::string_view where) {
  const UsualTargets* usual = UsualOf(network);
  if (adapter.targets.empty()) {
    if (usual == nullptr) {
      return WrongUsage(
          {.where = std::string(where),
           .found = "the usual targets of ia3 are not known for this model",
           .expected = "expected targets, and which of them are of the feed-forward part",
           .hint = "as in ia3:targets=k_proj+v_proj+down_proj,feedforward=down_proj"});
    }
    for (const std::string_view target : {usual->first, usual->second, usual->feedforward}) {
      if (!target.empty()) {
        adapter.targets.emplace_back(target);
      }
    }
  }
  if (adapter.feedforward.empty() && usual != nullptr) {
    adapter.feedforward = {std::string(usual->feedforward)};
  }
  return adapter;
}

bool ScalesInput(const Adapter& adapter, std::string_view module) {
  return std::ranges::any_of(adapter.feedforward, [&](const std::string& pattern) {
    return NamesModule(pattern, module);
  });
}

}  // namespace

Result<void> AddIa3(Network& network, const Adapter& given, std::string_view where) {
  TRY(const Adapter adapter, Completed(network, given, where));
  for (const std::string& pattern : given.feedforward) {
    TRY(const std::vector<ChosenModule> named, ChooseModules(network, {&pattern, 1}, where));
  }
  TRY(const std::vector<ChosenModule> chosen, ChooseModules(network, adapter.targets, where));
  for (const auto& [number, module] : chosen) {
    Block& block = network.blocks[number];
    const std::string name = FullName(block, block.first, module.name);
    if (module.kind == ModuleKind::kEmbedding) {
      return WrongUsage({.where = std::string(where),
                         .found = fmt::format("{} is an embedding", name),
                         .expected = "expected linear layers, as ia3 has no place there",
                         .hint = "train a copy of it: modules=NAME"});
    }
    const bool input = ScalesInput(adapter, name);
    std::vector<std::int64_t> shape = {module.size.out, 1};
    if (input) {
      shape = {1, module.size.in};
    }
    PutBeside(block, module, {AdapterParameter(adapter, module.name, "ia3_l", std::move(shape))},
              input ? AdapterForm::kScaledInput : AdapterForm::kScaledOutput, adapter);
  }
  return {};
}

}  // namespace fourpiles
