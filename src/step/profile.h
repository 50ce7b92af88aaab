#pragma once

// A profile says which rule each kind of operator follows: what a framework, its version and the
// kernels chosen do to memory.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"
#include "step/rule.h"

namespace fourpiles {

enum class AttentionKind { kEager, kSdpa, kFlash };
enum class LossKind { kPlain, kFused, kChunked };

std::string_view Name(AttentionKind kind);  // "sdpa"
std::string_view Name(LossKind kind);       // "chunked"

inline constexpr std::size_t kAttentionKinds = 3;
inline constexpr std::size_t kLossKinds = 3;

struct Profile {
  std::string_view name = {};
  std::string_view summary = {};
  std::string_view source = {};
  Framework framework = {};
  // Of each kind of operator; null where the framework has no such kernel.
  std::array<Rule, kOperatorKinds> rules = {};
  // Of each kind that may be chosen; null where the implementation lacks it.
  std::array<Rule, kAttentionKinds> attention = {};
  std::array<Rule, kLossKinds> loss = {};
  // The rows of the vocabulary's weights are padded to a multiple of this (PadVocabulary).
  std::int64_t vocabulary_multiple = 1;
  bool allocates_once = false;  // all its memory, before the first step
  // Frozen weights that are kept as codes: the output layer's too.
  bool codes_output_layer = false;
  // Queries, keys and values of a layer come from one linear layer, whatever the checkpoint has.
  bool fuses_queries_keys_values = false;
  // Of every numbered layer its output is kept, and nothing else is counted: the least that any
  // implementation keeps. Rules are not used.
  bool lower_bound = false;

  Rule RuleOf(OperatorKind kind) const { return rules[static_cast<std::size_t>(kind)]; }
};

// What is chosen besides the implementation.
struct ProfileChoices {
  std::optional<AttentionKind> attention = {};  // else the implementation's own
  std::optional<LossKind> loss = {};
  std::string_view attention_where = "--attention";
  std::string_view loss_where = "--loss";
};

// Every implementation by name, "pytorch" first.
std::vector<std::string_view> ImplementationNames();

// Errors, at `where`: an unknown name, with the nearest known one; a kind of attention or loss that
// the implementation lacks.
Result<Profile> FindProfile(std::string_view name, const ProfileChoices& choices = {},
                            std::string_view where = "--implementation");

// RMS norms in one kernel that keeps its input and 1/rms.
void UseFusedNorms(Profile& profile);

// A loss over logits in the format they have.
void UseUncastLoss(Profile& profile);

// Of each layer its output.
Profile LowerBound();

}  // namespace fourpiles
