#pragma once

// What one layer keeps for the backward pass, tensor by tensor, so that it can be checked by hand;
// and how much each operator keeps in all layers.
//
// A tensor belongs to the operator whose kernel makes it, also where another one keeps it, so each
// is counted once.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "step/tape.h"

namespace fourpiles {

struct SavedTensor {
  std::string operator_name = {};  // "self_attn.q_proj"; of one without a name its kernel: "add"
  std::string what = {};           // "output", "logsumexp"
  std::vector<std::int64_t> shape = {};
  std::string format = {};
  Bytes bytes = Bytes(0);
  std::string kernel = {};   // that makes it: "linear"
  std::string kept_by = {};  // the kernel that keeps it first: "multiply"
  std::string source = {};   // of what that kernel keeps
};

struct LayerTable {
  std::string name = {};  // "model.layers.16"
  Bytes bytes = Bytes(0);
  std::vector<SavedTensor> saved = {};  // in the order of their making
};

// Of the numbered layer nearest the middle that was played for itself; none without layers.
std::optional<LayerTable> MiddleLayer(const Tape& tape);

// What the tensors of one operator come to in all layers alike.
struct OperatorShare {
  std::string name = {};  // "model.layers.{}.mlp.gate_proj"
  Bytes bytes = Bytes(0);
};
// The largest first; their sum is SavedActivations.
std::vector<OperatorShare> SavedByOperator(const Tape& tape);

}  // namespace fourpiles
