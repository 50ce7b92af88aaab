// IA3: keys, values and what goes into the last layer of the feed-forward part are multiplied by a
// trained vector each.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "model/adapter_kinds.h"
#include "model/module_pattern.h"

namespace fourpiles {
namespace {

// What peft targets in models of a family, by their model_type (peft/utils/constants.py,
// TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING and ..._FEEDFORWARD_MODULES_MAPPING).
struct UsualTargets {
  std::string_view model_types = {};  // between spaces
  std::array<std::string_view, 2> attention = {};
  std::string_view feedforward = {};
};
constexpr UsualTargets kUsual[] = {
    {" llama mistral ", {"k_proj", "v_proj"}, "down_proj"},
    {" llama4 gemma gemma2 gemma3_text qwen2 qwen3 ", {"q_proj", "v_proj"}, "down_proj"},
    {" phi bart ", {"q_proj", "v_proj"}, "fc2"},
    {" opt ", {"q_proj", "k_proj"}, "fc2"},
    {" gptj ", {"q_proj", "v_proj"}, "fc_out"},
    {" gpt2 gpt_bigcode ", {"c_attn"}, "mlp.c_proj"},
    {" bloom ", {"query_key_value"}, "mlp.dense_4h_to_h"},
    {" gpt_neox falcon ", {"query_key_value"}, "dense_4h_to_h"},
    {" bert roberta ", {"key", "value"}, "output.dense"},
};
// Of others where they have layers of these names: keys, values and the feed-forward part, as the
// paper has it.
constexpr UsualTargets kOthers = {"", {"k_proj", "v_proj"}, "down_proj"};

bool Has(const Network& network, std::string_view pattern) {
  return std::ranges::any_of(network.blocks, [&](const Block& block) {
    return std::ranges::any_of(ModulesOf(network, block), [&](const Module& module) {
      return NamesModule(pattern, FullName(block, block.first, module.name));
    });
  });
}

const UsualTargets* UsualOf(const Network& network) {
  const std::string type = fmt::format(" {} ", network.model_type);
  const auto* const usual = std::ranges::find_if(kUsual, [&](const UsualTargets& candidate) {
    return candidate.model_types.find(type) != std::string_view::npos;
  });
  if (usual != std::end(kUsual)) {
    return usual;
  }
  const bool fits = Has(network, kOthers.attention[0]) && Has(network, kOthers.attention[1]) &&
                    Has(network, kOthers.feedforward);
  return fits ? &kOthers : nullptr;
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
    for (const std::string_view target : usual->attention) {
      if (!target.empty()) {
        adapter.targets.emplace_back(target);
      }
    }
    adapter.targets.emplace_back(usual->feedforward);
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

Result<void> AddIa3(Network& network, const Adapter& adapter, std::string_view where) {
  TRY(const Adapter complete, Completed(network, adapter, where));
  for (const std::string& pattern : adapter.feedforward) {
    TRY(const std::vector<ChosenModule> named, ChooseModules(network, {&pattern, 1}, where));
  }
  TRY(const std::vector<ChosenModule> chosen, ChooseModules(network, complete.targets, where));
  for (const auto& [number, module] : chosen) {
    Block& block = network.blocks[number];
    const std::string name = FullName(block, block.first, module.name);
    if (module.kind == ModuleKind::kEmbedding) {
      return WrongUsage({.where = std::string(where),
                         .found = fmt::format("{} is an embedding", name),
                         .expected = "expected linear layers, as ia3 has no place there",
                         .hint = "train a copy of it: modules=NAME"});
    }
    const bool input = ScalesInput(complete, name);
    std::vector<std::int64_t> shape = {module.size.out, 1};
    if (input) {
      shape = {1, module.size.in};
    }
    PutBeside(block, module, {AdapterParameter(complete, module.name, "ia3_l", std::move(shape))},
              input ? AdapterForm::kScaledInput : AdapterForm::kScaledOutput, complete);
  }
  return {};
}

}  // namespace fourpiles
