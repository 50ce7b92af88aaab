#include "model/adapter.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "model/adapter_kinds.h"
#include "model/module_pattern.h"

namespace fourpiles {
namespace {

constexpr std::array<std::string_view, 6> kLoraKeys = {"rank",    "targets", "modules",
                                                       "dropout", "alpha",   "format"};
constexpr std::array<std::string_view, 5> kVeraKeys = {"rank", "targets", "modules", "dropout",
                                                       "format"};
constexpr std::array<std::string_view, 4> kIa3Keys = {"targets", "feedforward", "modules",
                                                      "format"};
constexpr std::array<std::string_view, 2> kTokenKeys = {"tokens", "format"};
constexpr std::array<std::string_view, 1> kModuleKeys = {"modules"};

struct Kind {
  AdapterRecord record = {};
  AddAdapter add = nullptr;
  bool of_network = false;  // what is trained stands in the network already
};

constexpr Kind kKinds[] = {
    {{AdapterKind::kLora, "lora", kLoraKeys,
      "Hu et al. 2021, LoRA, arXiv 2106.09685, section 4.1; peft/tuners/lora/layer.py"},
     AddLowRank},
    // Only the scale of the product differs, which takes no memory: alpha / √rank.
    {{AdapterKind::kRsLora, "rslora", kLoraKeys,
      "Kalajdzievski 2023, rsLoRA, arXiv 2312.03732; peft/tuners/lora/layer.py, use_rslora"},
     AddLowRank},
    {{AdapterKind::kDora, "dora", kLoraKeys,
      "Liu et al. 2024, DoRA, arXiv 2402.09353, section 4; peft/tuners/lora/dora.py"},
     AddLowRank},
    {{AdapterKind::kVera, "vera", kVeraKeys,
      "Kopiczko et al. 2023, VeRA, arXiv 2310.11454, section 3; peft/tuners/vera/layer.py"},
     AddVera},
    {{AdapterKind::kIa3, "ia3", kIa3Keys,
      "Liu et al. 2022, T-Few, arXiv 2205.05638, section 3.3; peft/tuners/ia3/layer.py"},
     AddIa3},
    {{AdapterKind::kPrompt, "prompt", kTokenKeys,
      "Lester et al. 2021, arXiv 2104.08691, section 2; peft/tuners/prompt_tuning/model.py"},
     AddPrompt},
    {{AdapterKind::kPrefix, "prefix", kTokenKeys,
      "Li and Liang 2021, arXiv 2101.00190, section 4; peft/tuners/prefix_tuning/model.py"},
     AddPrefix},
    {{AdapterKind::kBitFit, "bitfit", kModuleKeys,
      "Ben Zaken et al. 2022, BitFit, arXiv 2106.10199, section 3"},
     TrainBiases,
     true},
    {{AdapterKind::kNorms, "ln", kModuleKeys,
      "Zhao et al. 2023, arXiv 2312.11420, section 2; peft/tuners/ln_tuning/layer.py"},
     TrainNorms,
     true},
};

constexpr std::array<AdapterRecord, std::size(kKinds)> RecordsOfKinds() {
  std::array<AdapterRecord, std::size(kKinds)> records = {};
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i] = kKinds[i].record;
  }
  return records;
}
constexpr auto kRecords = RecordsOfKinds();

void FreezeAll(Network& network) {
  for (Block& block : network.blocks) {
    for (Parameter& parameter : block.parameters) {
      parameter.trainable = false;
    }
  }
}

// A module has an adapter beside it or is trained whole.
Result<void> RefuseTargets(const Network& network, std::span<const std::string> modules,
                           std::string_view where) {
  for (const Block& block : network.blocks) {
    for (const Module& module : ModulesOf(network, block)) {
      const std::string name = FullName(block, block.first, module.name);
      const bool is_whole = std::ranges::any_of(
          modules, [&](const std::string& pattern) { return NamesPart(pattern, name); });
      const bool has_adapter = std::ranges::any_of(block.operators, [&](const Operator& op) {
        return op.adapter != AdapterForm::kNone && Runs(op, module);
      });
      if (is_whole && has_adapter) {
        return WrongUsage({.where = std::string(where),
                           .found = fmt::format("{} is both a target and a module", name),
                           .expected = "expected one of them",
                           .hint = "a module is trained whole, as a copy"});
      }
    }
  }
  return {};
}

}  // namespace

std::span<const AdapterRecord> AdapterRecords() {
  return kRecords;
}

const AdapterRecord& RecordOf(AdapterKind kind) {
  return *std::ranges::find(kRecords, kind, &AdapterRecord::kind);
}

std::int64_t PromptTokens(const Adapter& adapter) {
  return adapter.kind == AdapterKind::kPrompt ? adapter.tokens : 0;
}

Parameter AdapterParameter(const Adapter& adapter, std::string_view module, std::string_view name,
                           std::vector<std::int64_t> shape) {
  Parameter parameter = {.name = std::string(module), .shape = std::move(shape)};
  parameter.name += (module.empty() ? "" : ".") + std::string(name);
  parameter.float32 = adapter.float32;
  return parameter;
}

void PutBeside(Block& block, const Module& module, std::vector<Parameter> parameters,
               AdapterForm form, const Adapter& adapter) {
  for (Parameter& parameter : parameters) {
    const ParameterUse use = {.parameter = static_cast<std::int32_t>(block.parameters.size())};
    block.parameters.push_back(std::move(parameter));
    for (Operator& op : block.operators) {
      if (Runs(op, module)) {
        op.adapter = form;
        op.adapter_rank = adapter.rank;
        op.adapter_dropout = adapter.dropout > 0;
        op.parameters.push_back(use);
      }
    }
  }
}

Result<Network> WithAdapter(Network network, const Adapter& adapter, std::string_view where) {
  const auto* const kind = std::ranges::find(
      kKinds, adapter.kind, [](const Kind& candidate) { return candidate.record.kind; });
  CHECK(kind != std::end(kKinds));
  if (!kind->of_network) {
    FreezeAll(network);
  }
  TRY_VOID(kind->add(network, adapter, where));
  if (!adapter.modules.empty()) {
    TRY_VOID(RefuseTargets(network, adapter.modules, where));
    TRY_VOID(AddTrainedCopies(network, adapter.modules, where));
  }
  TRY_VOID(CheckNetwork(network, where));
  return network;
}

}  // namespace fourpiles
