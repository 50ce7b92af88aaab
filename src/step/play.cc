#include "step/play.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "step/leaves.h"
#include "step/play_lower_bound.h"

namespace fourpiles {
namespace {

constexpr KernelKind kSeed = {"loss", "torch.autograd.backward: the gradient of the loss is 1"};
constexpr KernelKind kStep = {"step", "temporaries of the optimizer"};
constexpr KernelKind kServe = {"serve", ""};

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

// Operators of a block, by number: from the first until before the last.
struct Range {
  std::size_t first = 0;
  std::size_t last = 0;
};

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

// Operators of a layer that are run forward again.
struct Region {
  Action action = {};
  Range ops = {};
  std::vector<std::pair<Value, Tensor>> inputs = {};
};

class Player {
 public:
  Player(const Part& part, const Profile& profile)
      : part_(part),
        profile_(profile),
        network_(*part.network),
        tape_(NewTape(part)),
        memory_(tape_),
        graph_(memory_, profile.framework.sums_in_place),
        kernels_(memory_, graph_, profile.framework, part.numbers) {}

  Result<Tape> Run();

 private:
  Result<void> CheckOperators() const;
  void Forward(std::int32_t number);
  void Backward(std::int32_t number);
  void BeginBackward(std::int32_t number);
  void Step(std::int32_t number);
  void Begin(std::int32_t action, const KernelKind& kind);

  Tensor RunBlock(const Action& action, Tensor x);
  void RunOperators(Stage& stage, const Block& block, Range ops, std::int32_t action);
  void RunRegion(Stage& stage, const Action& action, Range ops);
  std::vector<Tensor> Replay(std::int32_t number, Tensor gradient);
  Stage NewStage(const Action& action);
  Tensor RandomState();
  Tensor ParameterTensor(const Action& action, const ParameterUse& use, std::int64_t copy);
  bool IsRecomputed(const Action& action) const;
  bool Trains(const Block& block, const Range& ops) const;
  Result<Tape> Finished();
  void BeginForward();
  Tensor HandedOver(std::int32_t number);
  PassTensors HeldOver();
  void AddHeldBefore(const Tensor& held, Moment end);
  void HoldOverTheStep();

  const Block& BlockOf(const Action& action) const { return network_.blocks[Index(action.block)]; }

  const Part& part_;
  const Profile& profile_;
  const Network& network_;
  Tape tape_;
  Memory memory_;
  Autograd graph_;
  Kernels kernels_;
  std::vector<Leaves> leaves_ = {};
  PassTensors pass_ = {};
  std::vector<Region> regions_ = {};
  std::int64_t waiting_regions_ = 0;  // that have not run again yet
  Tensor hidden_ = {};                // what the last block put out
  std::vector<Tensor> held_inputs_ = {};
  Moment first_logits_made_ = -1;
  // Of every forward action that has not run backward, in order.
  struct Passed {
    std::int32_t first_node = 0;
    std::int32_t entry_edge = kNothing;  // of what came in
  };
  std::vector<Passed> passed_ = {};
  bool backward_ = false;
  std::int32_t running_ = 0;  // the action that runs
};

void Player::Begin(std::int32_t action, const KernelKind& kind) {
  memory_.Begin({.action = action, .kind = &kind});
}

Result<void> Player::CheckOperators() const {
  if (profile_.allocates_once && part_.recompute.kind != RecomputeKind::kNone) {
    return WrongUsage({.where = "--recompute",
                       .found = fmt::format("{} does not run layers again", profile_.name),
                       .expected = "expected none",
                       .hint = "--implementation llm.c-r2 computes GELU and layer norms again"});
  }
  for (const Block& block : network_.blocks) {
    for (const Operator& op : block.operators) {
      if (profile_.RuleOf(op.kind) == nullptr) {
        return WrongUsage(
            {.where = "--implementation",
             .found = fmt::format("{} has no rule for {} of {}", profile_.name,
                                  op.name.empty() ? "an operator" : op.name, LayerName(block, 0)),
             .expected = "expected an implementation that runs this network",
             .hint = "--implementation pytorch has rules for all"});
      }
    }
  }
  return {};
}

Result<Tape> Player::Run() {
  TRY_VOID(CheckOperators());
  graph_.SetRecording(part_.records);
  leaves_.reserve(network_.blocks.size());
  for (const Block& block : network_.blocks) {
    leaves_.emplace_back(block);
  }
  for (std::int32_t number = 0; number < std::ssize(part_.schedule); ++number) {
    running_ = number;
    const Action& action = part_.schedule[Index(number)];
    memory_.SetCopies(action.layers);
    switch (action.kind) {
      case ActionKind::kForward:
        Forward(number);
        break;
      case ActionKind::kBackward:
        Backward(number);
        break;
      case ActionKind::kStep:
        Step(number);
        break;
      case ActionKind::kServe:
      case ActionKind::kRecompute:
        Begin(number, kServe);
        break;
    }
    memory_.SetCopies(1);
  }
  return Finished();
}

// What the training loop holds from one micro-batch to the next.
PassTensors Player::HeldOver() {
  return profile_.framework.loop_holds_logits
             ? PassTensors{.logits = pass_.logits, .logits_made = pass_.logits_made}
             : PassTensors();
}

// A step begins as the one before it ended: what was held then is there until the first
// micro-batch of this one has its own.
void Player::AddHeldBefore(const Tensor& held, Moment end) {
  Storage before = memory_.At(held.storage);
  before.born = 0;
  before.dies = end;
  before.kept = -1;
  tape_.storages.push_back(before);
}

void Player::HoldOverTheStep() {
  if (tape_.forward_ends.empty() || !part_.holds_over_steps) {
    return;
  }
  const Moment end = tape_.forward_ends.front();
  for (const Tensor& logits : HeldOver().logits) {
    AddHeldBefore(logits, std::min(first_logits_made_ + 1, end));
  }
  // Products that read one tensor hold one storage.
  std::vector<std::int32_t> held;
  for (const Tensor& input : held_inputs_) {
    if (input.storage != kNothing && std::ranges::find(held, input.storage) == held.end()) {
      held.push_back(input.storage);
      AddHeldBefore(input, end);
    }
  }
}

// What still waits is let go of.
Result<Tape> Player::Finished() {
  HoldOverTheStep();
  hidden_ = {};
  pass_ = {};
  held_inputs_ = {};
  kernels_.ForgetCasts();
  TRY(Tape tape, Completed(std::move(tape_), memory_));
  if (profile_.allocates_once) {
    AllocateOnce(tape);
  }
  if (part_.offloads_activations) {
    OffloadActivations(tape);
  }
  return tape;
}

// --- Forward ---

Tensor Player::ParameterTensor(const Action& action, const ParameterUse& use, std::int64_t copy) {
  const bool own = use.block < 0;
  const std::int64_t number = own ? action.block : use.block;
  const Block& block = network_.blocks[Index(number)];
  const Parameter& parameter = block.parameters[Index(use.parameter)];
  Tensor tensor;
  const bool coded = !part_.coded.empty() && part_.coded[Index(number)][Index(use.parameter)];
  const ElementType plain = coded ? kCodes : part_.numbers.weights;
  tensor.type = parameter.float32 ? kFloat32 : plain;
  CHECK(parameter.shape.size() <= tensor.shape.lengths.size());
  tensor.shape.rank = static_cast<int>(parameter.shape.size());
  std::ranges::copy(parameter.shape, tensor.shape.lengths.begin());
  if (parameter.trainable) {
    std::int32_t& edge = leaves_[Index(number)].Edge(own ? action.layer : 0, use.parameter, copy);
    if (edge == kNothing) {
      const bool direct = part_.gradients == GradientUse::kAdded &&
                          profile_.framework.direct_gradients == DirectGradients::kAll;
      edge = graph_.NewLeaf(direct ? GradientUse::kDirect : part_.gradients);
    }
    tensor.edge = edge;
  }
  return tensor;
}

Stage Player::NewStage(const Action& action) {
  const Block& block = BlockOf(action);
  Stage stage(kernels_, part_.batch, block,
              [this, action](const ParameterUse& use, std::int64_t copy) {
                return ParameterTensor(action, use, copy);
              });
  stage.layer = block.first + action.layer;
  stage.pass = &pass_;
  return stage;
}

// What dropout needs to drop the same elements again, where it stands on the device.
Tensor Player::RandomState() {
  const std::int64_t bytes = profile_.framework.random_state_bytes;
  return bytes == 0 ? Tensor()
                    : kernels_.Constant(ShapeOf({bytes}), kByte, "state of random numbers");
}

bool Player::IsRecomputed(const Action& action) const {
  const Block& block = BlockOf(action);
  return part_.recompute.kind == RecomputeKind::kLayers && IsNumbered(block) &&
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

void Player::RunOperators(Stage& stage, const Block& block, Range ops, std::int32_t action) {
  for (std::size_t i = ops.first; i < ops.last; ++i) {
    const Operator& op = block.operators[i];
    stage.Advance(i);
    kernels_.SetPlace(action, static_cast<std::int32_t>(i));
    profile_.RuleOf(op.kind)(stage, op);
  }
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
  RunOperators(stage, block, ops, running_);
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

Tensor Player::RunBlock(const Action& action, Tensor x) {
  const Block& block = BlockOf(action);
  Stage stage = NewStage(action);
  stage.PutValue(0, std::move(x));
  const Range all = {0, block.operators.size()};
  if (IsRecomputed(action)) {
    RunRegion(stage, action, all);
  } else if (part_.recompute.kind == RecomputeKind::kAttention && IsNumbered(block)) {
    for (std::size_t i = 0; i < all.last; ++i) {
      const bool attention = block.operators[i].kind == OperatorKind::kAttention;
      attention ? RunRegion(stage, action, {i, i + 1})
                : RunOperators(stage, block, {i, i + 1}, running_);
    }
  } else {
    RunOperators(stage, block, all, running_);
  }
  Tensor output = stage.TakeValue(block.operators.back().outputs.front());
  output.made_of = {};  // a block is compiled for itself
  return output;
}

// What the layers of the action hand to one another, made as what came in was made.
Tensor Player::HandedOver(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const Storage& first = memory_.At(hidden_.storage);
  Kernel kernel = tape_.moments[Index(first.born)];
  kernel.action = number;
  const char* const slot = first.slot;
  memory_.Begin(kernel);
  memory_.SetCopies(action.layers - 1);
  Tensor between = graph_.New(hidden_.shape, hidden_.type, slot);
  memory_.SetCopies(action.layers);
  return between;
}

// An action that stands for several layers has a tensor that stands for all that they hand to one
// another; it lives until the first of them has run backward.
void Player::Forward(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  BeginForward();
  Passed passed = {.first_node = graph_.NodeCount(), .entry_edge = hidden_.edge};
  if (BlockOf(action).operators.empty()) {
    passed_.push_back(passed);
    return;
  }
  if (action.layers == 1) {
    hidden_ = RunBlock(action, std::move(hidden_));
    passed_.push_back(passed);
    return;
  }
  const std::size_t place = graph_.Reserve();
  const Tensor between = HandedOver(number);
  const std::int32_t input = hidden_.storage;
  hidden_ = RunBlock(action, std::move(hidden_));
  memory_.SetCopies(hidden_.storage, 1);
  if (graph_.Keeps(passed.first_node, input) || graph_.Keeps(passed.first_node, hidden_.storage)) {
    graph_.KeepAt(place, between.storage);
  }
  passed_.push_back(passed);
}

void Player::BeginForward() {
  if (std::exchange(backward_, false)) {
    hidden_ = {};
    pass_ = HeldOver();
  }
}

// --- Backward ---

// The forward pass has ended: what only it held is let go of, and the loss has the gradient 1.
void Player::BeginBackward(std::int32_t number) {
  if (std::exchange(backward_, true)) {
    return;
  }
  kernels_.ForgetCasts();
  if (waiting_regions_ == 0) {
    pass_ = {.logits = pass_.logits, .logits_made = pass_.logits_made};
  }
  held_inputs_ = kernels_.TakeHeldInputs();
  memory_.EndForward();
  first_logits_made_ = first_logits_made_ < 0 ? pass_.logits_made : first_logits_made_;
  Begin(number, kSeed);
  if (hidden_.RequiresGradient()) {
    graph_.Accumulate(hidden_.edge, graph_.New(hidden_.shape, hidden_.type, "gradient"));
  }
}

void Player::Backward(std::int32_t number) {
  BeginBackward(number);
  const Passed passed = passed_.back();
  passed_.pop_back();
  graph_.Backward(passed.first_node, number, [this](std::int32_t region, Tensor gradient) {
    return Replay(region, std::move(gradient));
  });
  if (const std::int32_t gradient = graph_.GradientStorage(passed.entry_edge);
      gradient != kNothing) {
    memory_.SetCopies(gradient, 1);
  }
}

// Runs a region forward again, keeping everything this time, and then backward.
std::vector<Tensor> Player::Replay(std::int32_t number, Tensor gradient) {
  const Region region = std::exchange(regions_[Index(number)], {});
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
    RunOperators(stage, block, region.ops, again);
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

void Player::Step(std::int32_t number) {
  hidden_ = {};
  pass_ = HeldOver();
  Begin(number, kStep);
  if (part_.step_temporaries != Bytes(0)) {
    const Tensor temporaries =
        graph_.New(ShapeOf({part_.step_temporaries.value()}), kByte, "temporaries");
  }
}

}  // namespace

void Resident::Add(Storage storage, StorageText text) {
  storage.text = static_cast<std::int32_t>(texts.size());
  storages.push_back(storage);
  texts.push_back(std::move(text));
}

void Resident::Append(Resident other) {
  for (std::size_t i = 0; i < other.storages.size(); ++i) {
    Add(other.storages[i], std::move(other.texts[i]));
  }
}

Result<Tape> Play(const Part& part, const Profile& profile) {
  return profile.lower_bound ? PlayLowerBound(part) : Player(part, profile).Run();
}

}  // namespace fourpiles
