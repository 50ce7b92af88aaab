// What a rank sends and is given: parts of a sequence, shares of parameters and of their gradients.

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "step/player.h"

namespace fourpiles {
namespace {

constexpr KernelKind kReceive = {"receive", "of the stage before"};
constexpr KernelKind kGather = {"all-gather",
                                "Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054, section 7.2; "
                                "PyTorch, distributed/fsdp"};
constexpr KernelKind kCopyOut = {"copy-out",
                                 "PyTorch, distributed/fsdp/_fully_shard/_fsdp_collectives.py, "
                                 "foreach_all_gather_copy_out"};
constexpr KernelKind kReduce = {"reduce-scatter",
                                "PyTorch, distributed/fsdp/_fully_shard/_fsdp_collectives.py"};

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

// Passes that have not run backward wait.
void Player::BeginForward(const Action& action) {
  const bool ended = std::exchange(backward_, false);
  if (ended || action.micro_batch != micro_batch_) {
    if (!ended) {
      LetGoOfSent();
      waiting_.push_back({micro_batch_, std::move(pass_), waiting_regions_, std::move(hidden_),
                          kernels_.TakeHeldInputs(), received_edge_});
      graph_.SetWaiting(waiting_.size());
      kernels_.ForgetCasts();
      waiting_regions_ = 0;
    }
    hidden_ = {};
    pass_ = HeldOver();
    micro_batch_ = action.micro_batch;
    received_edge_ = kNothing;
  }
}

// The last of the passes that wait comes to run backward.
void Player::Return() {
  CHECK(!waiting_.empty());
  Waiting waiting = std::move(waiting_.back());
  waiting_.pop_back();
  micro_batch_ = waiting.micro_batch;
  pass_ = std::move(waiting.pass);
  waiting_regions_ = waiting.regions;
  hidden_ = std::move(waiting.hidden);
  held_inputs_ = std::move(waiting.held_inputs);
  received_edge_ = waiting.received_edge;
  graph_.SetWaiting(waiting_.size());
}

// The first block of a chunk that is given what the stage before put out. An embedding is not.
void Player::Receive(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const Block& block = BlockOf(action);
  const std::vector<Value> inputs = InputsOf(block, {0, block.operators.size()});
  if (std::ranges::find(inputs, 0) == inputs.end()) {
    return;
  }
  Begin(number, kReceive);
  memory_.SetCopies(action.micro_batches);
  hidden_ = kernels_.Constant(*part_.received, part_.numbers.compute, "received");
  memory_.SetCopies(action.layers * action.micro_batches);
  if (part_.records) {
    kernels_.RequireGradient(hidden_);
  }
  received_edge_ = hidden_.edge;
}

// What the stage behind was sent, where the framework does not keep it.
void Player::LetGoOfSent() {
  if (part_.received && profile_.framework.frees_sent_outputs) {
    Tensor sent;
    sent.shape = hidden_.shape;
    sent.type = hidden_.type;
    sent.edge = hidden_.edge;
    hidden_ = std::move(sent);
  }
}

// --- Sharded parameters ---

void Player::Gather(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const std::pair<std::int64_t, std::int64_t> layer = {action.block, action.layer};
  const Bytes bytes = part_.gathered.weights[Index(action.block)];
  if (bytes == Bytes(0) || gathered_.contains(layer)) {
    return;
  }
  if (part_.gathered.own_streams && !profile_.framework.flat_parameters) {
    Prefetch(number);
    CopyOut(number);
    return;
  }
  Begin(number, kGather);
  memory_.SetCopies(part_.gathers_stay ? action.layers : 1);
  const Tensor whole = graph_.New(ShapeOf({bytes.value()}), kByte, "gathered parameters");
  if (part_.gathered.own_streams) {  // FSDP1: _runtime_utils.py, _unshard, in its unshard stream
    memory_.At(whole.storage).stream = Stream::kGather;
  }
  gathered_[layer] = {whole};
}

// The shares of all ranks come into one buffer, this rank's as it was cast before
// (_fsdp_collectives.py, foreach_all_gather).
void Player::Prefetch(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const std::pair<std::int64_t, std::int64_t> layer = {action.block, action.layer};
  const Bytes bytes = part_.gathered.weights[Index(action.block)];
  if (bytes == Bytes(0) || came_in_.contains(layer) || gathered_.contains(layer)) {
    return;
  }
  Begin(number, kGather);
  memory_.SetCopies(1);
  const std::int64_t ranks = part_.gathered.ranks;
  const Tensor own = graph_.New(ShapeOf({(bytes.value() + ranks - 1) / ranks}), kByte, "own share");
  const Tensor whole = graph_.New(ShapeOf({bytes.value()}), kByte, "shares of all ranks");
  memory_.At(own.storage).stream = Stream::kGather;
  memory_.At(whole.storage).stream = Stream::kGather;
  came_in_[layer] = whole;
}

// Each parameter becomes a tensor of its own. In the backward pass the buffer goes at once, in the
// forward pass when the next one has come; what the whole has beside layers comes in one buffer, by
// actions that follow one another (_fsdp_param_group.py, wait_for_unshard).
void Player::CopyOut(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const std::pair<std::int64_t, std::int64_t> layer = {action.block, action.layer};
  const Block& block = BlockOf(action);
  Begin(number, kCopyOut);
  memory_.SetCopies(part_.gathers_stay ? action.layers : 1);
  const bool with_last =
      number > 0 && part_.schedule[Index(number) - 1].kind == ActionKind::kGather;
  if (backward_) {
    came_in_.erase(layer);
  } else if (!with_last) {
    std::erase_if(came_in_, [&](const auto& other) { return other.first != layer; });
  }
  std::int64_t elements = 0;
  for (const Parameter& parameter : block.parameters) {
    elements += ElementsOf(parameter);
  }
  const double bytes_per_element =
      static_cast<double>(part_.gathered.weights[Index(action.block)].value()) /
      static_cast<double>(std::max<std::int64_t>(1, elements));
  std::vector<Tensor>& whole = gathered_[layer];
  for (const Parameter& parameter : block.parameters) {
    const double bytes = bytes_per_element * static_cast<double>(ElementsOf(parameter));
    whole.push_back(graph_.New(ShapeOf({std::llround(bytes)}), kByte, "gathered parameters"));
  }
}

// Gradients of a layer go to the ranks that have its shares; those sent before have arrived.
void Player::Reduce(std::int32_t number) {
  const Action& action = part_.schedule[Index(number)];
  const Block& block = BlockOf(action);
  std::vector<Tensor> whole;
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    for (std::int64_t copy = 0; copy < block.parameters[i].copies; ++copy) {
      whole.push_back(graph_.TakeCollected(
          leaves_[Index(action.block)].Edge(action.layer, static_cast<std::int32_t>(i), copy)));
    }
  }
  const bool any = std::ranges::any_of(
      whole, [](const Tensor& gradient) { return gradient.storage != kNothing; });
  sent_ = {};
  if (!any) {
    return;
  }
  Begin(number, kReduce);
  if (const Bytes sent = part_.gathered.sent[Index(action.block)]; sent > Bytes(0)) {
    memory_.SetCopies(1);
    sent_ = graph_.New(ShapeOf({sent.value()}), kByte, "gradients sent");
    memory_.SetCopies(action.layers);
  }
  const Bytes share = part_.gathered.gradients[Index(action.block)];
  if (share > Bytes(0) && shared_.insert({action.block, action.layer}).second) {
    gradients_.push_back(graph_.New(ShapeOf({share.value()}), kByte, "share of gradients"));
    memory_.Assign(gradients_.back().storage, Pile::kGradients);
    if (part_.gathered.own_streams) {
      memory_.At(gradients_.back().storage).stream = Stream::kReduce;
    }
  }
}

}  // namespace fourpiles
