#pragma once

// A rule says what one operator does to memory, as kernels that run one after the other. A profile
// (profile.h) says which rule each kind of operator follows; a new kernel is a new rule, a new
// framework a new profile.

#include <functional>
#include <vector>

#include "model/network.h"
#include "step/kernels.h"

namespace fourpiles {

// The sizes that a step adds to those of the network.
struct Batch {
  std::int64_t micro_batch_size = 1;
  std::int64_t sequence_length = 1;  // tokens a sample
  std::int64_t loss_chunks = 1;      // of a chunked loss
  // Of these tokens the first so many are no tokens of the batch: trained embeddings.
  std::int64_t prompt_tokens = 0;
  double expert_imbalance = 1;  // how many times their even share the rank's experts get
  // How many tokens each expert of each layer gets, where that is known; else all get the same.
  std::vector<std::vector<std::int64_t>> expert_tokens = {};
  bool each_expert = false;  // is run for itself, though several are alike
};

// What all layers of one pass share; it is made where it is first needed.
struct PassTensors {
  Tensor cos = {};
  Tensor sin = {};
  Tensor mask = {};  // added to the scores of attention
  // Where they are returned beside the loss: to the end of the backward pass.
  std::vector<Tensor> logits = {};
  Moment logits_made = -1;  // those of the micro-batch before are let go of
  // Trained keys and values of the layers, which the cache holds until the forward pass ends.
  std::vector<Tensor> prefixes = {};
  // Buffers that all layers write to, where the framework has such (llm.c).
  Tensor activated = {};
  Tensor normed = {};
};

// One block while its forward pass runs: the values that its operators made, each held until its
// last use.
class Stage {
 public:
  using ParameterOf = std::function<Tensor(const ParameterUse& use, std::int64_t copy)>;

  Stage(Kernels& kernels_used, const Batch& batch_run, const Block& block, ParameterOf parameter);

  // An input of the operator. The stage lets go of it where this is its last use.
  Tensor Take(const Operator& op, std::size_t input = 0);
  void Put(const Operator& op, Tensor value, std::size_t output = 0);
  // A parameter of the operator; an empty tensor where it has no such. `copy`: of which expert.
  Tensor Parameter(const Operator& op, std::size_t parameter, std::int64_t copy = 0) const;

  Tensor Peek(Value value) const;
  Tensor TakeValue(Value value);
  void PutValue(Value value, Tensor tensor);
  // The number of the operator whose rule runs from now on.
  void Advance(std::size_t op) { at_ = op; }

  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes): what rules work with
  Kernels& kernels;
  const Batch& batch;
  std::int64_t layer = 0;  // the number of the layer in the network
  PassTensors* pass = nullptr;
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

 private:
  ParameterOf parameter_;
  std::size_t at_ = 0;
  std::vector<Tensor> values_ = {};
  std::vector<std::size_t> last_use_ = {};  // of each value: the number of an operator
};

using Rule = void (*)(Stage& stage, const Operator& op);

}  // namespace fourpiles
