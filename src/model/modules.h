#pragma once

// The modules of a network that a person may name: linear layers, embeddings, the output layer.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"
#include "model/parts.h"

namespace fourpiles {

enum class ModuleKind { kLinear, kEmbedding, kOutput };

struct Module {
  std::string name = {};  // in its block: "self_attn.q_proj"; "": the block is the module
  ModuleKind kind = ModuleKind::kLinear;
  LinearSize size = {};      // of an embedding: out is its width, in its rows
  ParameterUse weight = {};  // of the output layer it may be the embedding's
};

// Routed experts and their router are not among them.
std::vector<Module> ModulesOf(const Network& network, const Block& block);
// Whether the operator runs the module.
bool Runs(const Operator& op, const Module& module);

// "model.layers.7.self_attn.q_proj", of the layer `number` of the network; `inner` may be empty.
std::string FullName(const Block& block, std::int64_t number, std::string_view inner);
// "q_proj" of "self_attn.q_proj".
std::string_view LastPart(std::string_view name);
// "mlp" of "mlp.weight", "" of "weight".
std::string_view OwnerOf(std::string_view parameter);

// Whether a module is called as embeddings are: "embed_tokens", "word_embeddings", "wte".
bool EmbedsByName(std::string_view module);

// An output layer that is tied to the embedding has no block of its own. Where a pattern names it,
// by the name that transformers has for it, "lm_head", it gets one, without parameters.
void GiveTiedOutputABlock(Network& network, std::span<const std::string> patterns);

// Parts runs of layers that stand as one block wherever `likeness` of two neighbours differs, so
// that one layer can be told from the next.
void PartLayers(
    Network& network,
    const std::function<std::string(const Block& block, std::int64_t number)>& likeness);

// A module that was chosen, in the block of this number.
struct ChosenModule {
  std::size_t block = 0;
  Module module = {};
};

// Of the patterns none, or kAllLinear: the linear layers of the numbered layers, never embeddings
// or the output layer (peft/tuners/tuners_utils.py, _maybe_include_all_linear_layers). The
// network's layers are parted and its output layer gets a block where the patterns ask for it.
//
// Errors, at `where`: no linear layers at all; a pattern that names none of these modules.
Result<std::vector<ChosenModule>> ChooseModules(Network& network,
                                                std::span<const std::string> patterns,
                                                std::string_view where);

// Freezes these parameters of the block and puts trained copies beside them, which its operators
// read from now on: under NAME, between the module's name and "weight".
void AddTrainedCopies(Block& block, std::span<const std::size_t> parameters, std::string_view name);

// Freezes the modules that the patterns name and puts trained copies in their places. A copy of the
// embedding is not what an output layer that is tied to it reads.
// Error, at `where`: a pattern that names no module with parameters.
Result<void> AddTrainedCopies(Network& network, std::span<const std::string> patterns,
                              std::string_view where);

}  // namespace fourpiles
