#pragma once

// Adapters: a few trained parameters beside a network that stays as it is, so that gradients and
// optimizer state shrink to theirs. Each kind is a record with its source; what it adds to the
// network stands in one file, what its layers keep for the backward pass in step/rules_adapter.cc.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"

namespace fourpiles {

enum class AdapterKind {
  kLora,
  kRsLora,
  kDora,
  kVera,
  kIa3,
  kPrompt,
  kPrefix,
  kBitFit,
  kNorms,
};

struct Adapter {
  AdapterKind kind = AdapterKind::kLora;
  // Kept in float32 whatever the recipe's format, as peft does (get_peft_model,
  // autocast_adapter_dtype).
  bool float32 = true;
  bool format_is_chosen = false;  // else it is the implementation's
  std::int64_t rank = 8;          // of the kinds with matrices of low rank
  // Patterns of names (module_pattern.h) of the modules that get one; empty: the kind's own choice,
  // for kinds of low rank every linear layer but the output layer, as peft's "all-linear" has it.
  // kAllLinear stands for these beside others.
  std::vector<std::string> targets = {};
  // IA3: of the targets, those whose inputs are scaled, not their outputs.
  std::vector<std::string> feedforward = {};
  // Patterns of modules that are trained whole, as a copy beside the frozen original: peft's
  // modules_to_save (peft/utils/other.py, ModulesToSaveWrapper keeps both; the copy has the format
  // of the original, as autocast_adapter_dtype casts the layers of tuners alone).
  std::vector<std::string> modules = {};
  std::int64_t tokens = 20;  // of kPrompt and kPrefix
  double dropout = 0;  // the probability; the input of the matrices has dropout where it is not 0
};

inline constexpr std::string_view kAllLinear = "all-linear";

// One kind: the word that names it, the keys that it takes, and who says so.
struct AdapterRecord {
  AdapterKind kind = AdapterKind::kLora;
  std::string_view word = {};                   // "lora"
  std::span<const std::string_view> keys = {};  // "rank", "targets", …
  std::string_view source = {};
};
std::span<const AdapterRecord> AdapterRecords();
const AdapterRecord& RecordOf(AdapterKind kind);

// Freezes every parameter, puts those of the adapter beside them, under the names that peft gives
// them, and tells the operators. A LoRA of rank 8 on a layer of 768 to 2304 has A (8 × 768) and B
// (2304 × 8): 24,576 parameters.
//
// Routed experts, which are run by a kernel of their own, and their router are left alone. Where
// the operators are not described a linear layer is a matrix that is no norm.
//
// Errors, at `where`: a pattern that names no module, a module that has no place for the kind.
Result<Network> WithAdapter(Network network, const Adapter& adapter, std::string_view where);

// Virtual tokens that stand before those of every sample; 0 without.
std::int64_t PromptTokens(const Adapter& adapter);

}  // namespace fourpiles
