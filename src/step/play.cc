#include "step/play.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "step/player.h"

namespace fourpiles {
namespace {

constexpr KernelKind kSeed = {"loss", "torch.autograd.backward: the gradient of the loss is 1"};
constexpr KernelKind kStep = {"step", "temporaries of the optimizer"};
constexpr KernelKind kServe = {"serve", ""};

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

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
    memory_.SetCopies(action.layers * action.micro_batches);
    switch (action.kind) {
      case ActionKind::kForward:
        Forward(number);
        break;
      case ActionKind::kBackward:
        Backward(number);
        break;
      case ActionKind::kGather:
        Gather(number);
        break;
      case ActionKind::kPrefetch:
        if (!backward_) {
          came_in_.clear();
        }
        Prefetch(number);
        break;
      case ActionKind::kRelease:
        gathered_.erase({action.block, action.layer});
        break;
      case ActionKind::kReduce:
        Reduce(number);
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
  gathered_.clear();
  came_in_.clear();
  sent_ = {};
  gradients_.clear();
  TRY(Tape tape, Completed(std::move(tape_), memory_));
  if (part_.is_first_step) {
    MakeStatesInStep(tape);
  }
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

void Player::RunOperators(Stage& stage, const Block& block, Range ops, std::int32_t action) {
  for (std::size_t i = ops.first; i < ops.last; ++i) {
    const Operator& op = block.operators[i];
    stage.Advance(i);
    kernels_.SetPlace(action, static_cast<std::int32_t>(i));
    profile_.RuleOf(op.kind)(stage, op);
  }
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
  memory_.SetCopies((action.layers - 1) * action.micro_batches);
  Tensor between = graph_.New(hidden_.shape, hidden_.type, slot);
  memory_.SetCopies(action.layers * action.micro_batches);
  return between;
}

// An action that stands for several layers has a tensor that stands for all that they hand to one
// another; it lives until the first of them has run backward.
void Player::Forward(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  BeginForward(action);
  if (hidden_.type.bits == 0 && part_.received) {
    Receive(number);
  }
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
  memory_.SetCopies(hidden_.storage, action.micro_batches);
  if (graph_.Keeps(passed.first_node, input) || graph_.Keeps(passed.first_node, hidden_.storage)) {
    graph_.KeepAt(place, between.storage);
  }
  passed_.push_back(passed);
}

// --- Backward ---

// The forward pass has ended: what only it held is let go of, and the loss has the gradient 1.
void Player::BeginBackward(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const bool returns = action.micro_batch != micro_batch_;
  if (std::exchange(backward_, true) && !returns) {
    return;
  }
  if (returns) {
    Return();
  }
  // The last buffer of the pass goes with it (_fsdp_state.py, _post_forward).
  std::erase_if(came_in_, [&](const auto& buffer) { return gathered_.contains(buffer.first); });
  kernels_.ForgetCasts();
  LetGoOfSent();
  if (waiting_regions_ == 0) {
    pass_ = {.logits = pass_.logits, .logits_made = pass_.logits_made};
  }
  if (!returns) {
    held_inputs_ = kernels_.TakeHeldInputs();
    memory_.EndForward();
  }
  first_logits_made_ = first_logits_made_ < 0 ? pass_.logits_made : first_logits_made_;
  Begin(number, kSeed);
  memory_.SetCopies(action.micro_batches);
  if (hidden_.RequiresGradient()) {
    graph_.Accumulate(hidden_.edge, graph_.New(hidden_.shape, hidden_.type, "gradient"));
  }
  memory_.SetCopies(action.layers * action.micro_batches);
}

void Player::Backward(std::int32_t number) {
  BeginBackward(number);
  graph_.SetPasses(part_.schedule[Index(number)].micro_batches);
  const Passed passed = passed_.back();
  passed_.pop_back();
  graph_.Backward(passed.first_node, number, [this](std::int32_t region, Tensor gradient) {
    return Replay(region, std::move(gradient));
  });
  if (const std::int32_t gradient = graph_.GradientStorage(passed.entry_edge);
      gradient != kNothing) {
    memory_.SetCopies(gradient, part_.schedule[Index(number)].micro_batches);
  }
  if (passed.entry_edge != kNothing && passed.entry_edge == received_edge_) {
    graph_.TakeGradient(received_edge_);  // it goes to the stage before
  }
}

void Player::Step(std::int32_t number) {
  hidden_ = {};
  pass_ = HeldOver();
  sent_ = {};
  came_in_.clear();
  Begin(number, kStep);
  if (part_.step_temporaries != Bytes(0)) {
    const Tensor temporaries =
        graph_.New(ShapeOf({part_.step_temporaries.value()}), kByte, "temporaries");
  }
}

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
