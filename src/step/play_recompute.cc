// Operators that run forward again in the backward pass, rather than keep what they made.

#include <algorithm>
#include <utility>

#include "step/player.h"

namespace fourpiles {
namespace {

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

// The values that come into these operators from before them.
std::vector<Value> InputsOf(const Block& block, const Range& ops) {
  std::vector<Value> inputs;
  std::vector<Value> made;
  for (std::size_t i = ops.first; i < ops.last; ++i) {
    for (const Value input : block.operators[i].inputs) {
      if (std::ranges::find(made, input) == made.end() &&
          std::ranges::find(inputs, input) == inputs.end()) {
        inputs.push_back(input);
      }
    }
    std::ranges::copy(block.operators[i].outputs, std::back_inserter(made));
  }
  return inputs;
}

// What dropout needs to drop the same elements again, where it stands on the device.
Tensor Player::RandomState() {
  const std::int64_t bytes = profile_.framework.random_state_bytes;
  return bytes == 0 ? Tensor()
                    : kernels_.Constant(ShapeOf({bytes}), kByte, "state of random numbers");
}

bool Player::IsRecomputed(const Action& action) const {
  const Block& block = BlockOf(action);
  const bool of_layers = part_.recompute.kind == RecomputeKind::kLayers ||
                         part_.recompute.kind == RecomputeKind::kOperators;
  return of_layers && IsNumbered(block) &&
         (block.first + action.layer) % part_.recompute.every == 0;
}

// Whether one of the operators has a parameter that is trained.
bool Player::Trains(const Block& block, const Range& ops) const {
  for (std::size_t i = ops.first; i < ops.last; ++i) {
    for (const ParameterUse& use : block.operators[i].parameters) {
      const Block& of = use.block < 0 ? block : network_.blocks[Index(use.block)];
      if (of.parameters[Index(use.parameter)].trainable) {
        return true;
      }
    }
  }
  return false;
}

// Runs the operators without keeping anything but what comes into them, to be run again.
void Player::RunRegion(Stage& stage, const Action& action, Range ops) {
  const Block& block = BlockOf(action);
  Region region = {.action = action, .ops = ops};
  std::vector<Tensor> inputs;
  for (const Value value : InputsOf(block, ops)) {
    inputs.push_back(stage.Peek(value));
    inputs.back().made_of = {};  // it is there as the region begins
    region.inputs.emplace_back(value, inputs.back());
  }
  const bool was_recording = graph_.IsRecording();
  graph_.SetRecording(false);
  if (part_.recompute.kind == RecomputeKind::kOperators) {
    kernels_.KeepOutputs();
  }
  RunOperators(stage, block, ops, running_);
  region.outputs = kernels_.TakeOutputs();
  graph_.SetRecording(was_recording);
  const Value output = block.operators[ops.last - 1].outputs.front();
  Tensor result = stage.TakeValue(output);
  const bool needed = std::ranges::any_of(inputs, &Tensor::RequiresGradient) ||
                      (!part_.recompute.reentrant && Trains(block, ops));
  if (needed && was_recording) {
    // What all layers share comes in as well.
    std::vector<Tensor> saved = inputs;
    saved.insert(saved.end(), {pass_.cos, pass_.sin, pass_.mask});
    saved.push_back(RandomState());
    graph_.RecordReplay(result, inputs, saved, static_cast<std::int32_t>(regions_.size()));
    regions_.push_back(std::move(region));
    ++waiting_regions_;
  }
  stage.PutValue(output, std::move(result));
}

// Runs a region forward again, keeping everything this time, and then backward.
std::vector<Tensor> Player::Replay(std::int32_t number, Tensor gradient) {
  Region region = std::exchange(regions_[Index(number)], {});
  const Block& block = BlockOf(region.action);
  const auto again = static_cast<std::int32_t>(tape_.actions.size());
  tape_.actions.push_back(region.action);
  tape_.actions.back().kind = ActionKind::kRecompute;
  const std::int32_t first_node = graph_.NodeCount();
  std::vector<std::int32_t> ends;
  std::vector<Tensor> held;  // by the function that runs the region, to its end
  {
    Stage stage = NewStage(region.action);
    for (const auto& [value, input] : region.inputs) {
      Tensor detached = input;
      detached.edge = input.RequiresGradient() ? graph_.NewEnd() : kNothing;
      ends.push_back(detached.edge);
      stage.PutValue(value, std::move(detached));
    }
    kernels_.SetPlace(again, kNothing);
    const Tensor random_state = RandomState();  // the present one, to be restored
    if (part_.recompute.kind == RecomputeKind::kOperators) {
      kernels_.ReadOutputs(std::move(region.outputs));
    }
    RunOperators(stage, block, region.ops, again);
    kernels_.TakeOutputs();
    const Tensor output = stage.TakeValue(block.operators[region.ops.last - 1].outputs.front());
    if (part_.recompute.reentrant) {
      held = {output, gradient};
    }
    graph_.Accumulate(output.edge, std::move(gradient));
  }
  kernels_.ForgetCasts();
  graph_.Backward(first_node, running_, [this](std::int32_t inner, Tensor inner_gradient) {
    return Replay(inner, std::move(inner_gradient));
  });
  if (--waiting_regions_ == 0) {  // the last to need what all layers share
    pass_ = {.logits = pass_.logits, .logits_made = pass_.logits_made};
  }
  kernels_.TakeHeldInputs();  // of a graph that is gone
  std::vector<Tensor> gradients;
  for (const std::int32_t end : ends) {
    if (end != kNothing) {
      gradients.push_back(graph_.TakeGradient(end));
    }
  }
  return gradients;
}

}  // namespace fourpiles
