#include "step/autograd.h"

#include <algorithm>
#include <utility>

#include "formats/storage.h"

namespace fourpiles {
namespace {

constexpr KernelKind kSum = {"gradient sum", "torch/csrc/autograd/input_buffer.cpp"};

}  // namespace

Autograd::Autograd(Memory& memory, bool sums_in_place)
    : memory_(memory), sums_in_place_(sums_in_place) {
  // As many as the play of a large language model needs.
  constexpr std::size_t kUsual = 512;
  edges_.reserve(4 * kUsual);  // which are there to the end
  nodes_.reserve(kUsual);
  inputs_.reserve(kUsual);
  saved_.reserve(kUsual);
}

Tensor Autograd::New(const Shape& shape, const ElementType& type, const char* slot) {
  return {&memory_, memory_.Allocate(shape, type, Pile::kWorkspace, slot), shape, type};
}

std::int32_t Autograd::NewEdge(std::int32_t leaf) {
  edges_.emplace_back().leaf = leaf;
  return static_cast<std::int32_t>(edges_.size() - 1);
}

std::int32_t Autograd::NewLeaf(GradientUse use) {
  leaves_.push_back({.use = use});
  return NewEdge(static_cast<std::int32_t>(leaves_.size() - 1));
}

std::int32_t Autograd::NewEnd() {
  return NewEdge();
}

std::size_t Autograd::Reserve() {
  NewNode(static_cast<std::int32_t>(edges_.size()), 0);
  saved_.push_back(kNothing);
  return saved_.size() - 1;
}

void Autograd::KeepAt(std::size_t place, std::int32_t storage) {
  memory_.Keep(storage);
  saved_[place] = storage;
}

bool Autograd::Keeps(std::int32_t first, std::int32_t storage) const {
  const std::size_t from = first < NodeCount() ? nodes_[Index(first)].first_saved : saved_.size();
  return std::find(saved_.begin() + static_cast<std::ptrdiff_t>(from), saved_.end(), storage) !=
         saved_.end();
}

namespace {

// There is a buffer already that the gradient goes into.
bool IsAddedTo(GradientUse use) {
  return use == GradientUse::kAdded || use == GradientUse::kDirect;
}

}  // namespace

Autograd::Node& Autograd::NewNode(std::int32_t first_output, std::int32_t outputs) {
  return nodes_.emplace_back(Node{.kernel = memory_.Now(),
                                  .first_output = first_output,
                                  .outputs = outputs,
                                  .first_input = inputs_.size(),
                                  .first_saved = saved_.size(),
                                  .alike = memory_.Alike()});
}

void Autograd::AddInput(const Tensor& tensor, Gradient gradient) {
  if (!tensor.RequiresGradient()) {
    return;
  }
  const std::int32_t leaf = edges_[Index(tensor.edge)].leaf;
  const bool resident = leaf != kNothing && IsAddedTo(leaves_[Index(leaf)].use);
  if (gradient == Gradient::kDirect && !resident) {
    gradient = Gradient::kNew;
  }
  if (leaf != kNothing) {
    ++UsesOf(leaves_[Index(leaf)]);
    // A parameter's gradient is no view of another's.
    gradient = gradient == Gradient::kSame ? Gradient::kNew : gradient;
  }
  inputs_.push_back(
      {.edge = tensor.edge, .gradient = gradient, .shape = tensor.shape, .type = tensor.type});
}

// What is computed again is not kept, but what it is made of.
void Autograd::Save(const Tensor& tensor) {
  if (tensor.made_of) {
    for (const Tensor& source : *tensor.made_of) {
      Save(source);
    }
    return;
  }
  // A parameter has its place here too: kept gradients are numbered by it.
  memory_.Keep(tensor.storage);
  saved_.push_back(tensor.storage);
}

void Autograd::Record(Tensor& output, std::initializer_list<Input> inputs,
                      std::initializer_list<const Tensor*> saved, Checked backward_bytes) {
  bool needed = false;
  for (const Input& input : inputs) {
    needed = needed || input.tensor.RequiresGradient();
  }
  if (!needed || !recording_) {
    output.edge = kNothing;
    return;
  }
  const std::int32_t edge = NewEdge();
  NewNode(edge, 1).backward_bytes = backward_bytes;
  for (const Input& input : inputs) {
    AddInput(input.tensor, input.gradient);
  }
  output.edge = edge;
  SaveAll(saved);
}

void Autograd::RecordStack(Tensor& output, std::span<const Tensor> inputs) {
  const bool needed = std::ranges::any_of(inputs, &Tensor::RequiresGradient);
  if (!needed || !recording_) {
    return;
  }
  output.edge = NewEdge();
  NewNode(output.edge, 1);
  for (const Tensor& input : inputs) {
    AddInput(input, Gradient::kSame);
  }
}

void Autograd::SaveAll(std::initializer_list<const Tensor*> saved) {
  for (const Tensor* tensor : saved) {
    if (tensor != nullptr) {
      Save(*tensor);
      if (tensor->made_of) {
        Checked& bytes = nodes_.back().backward_bytes;
        bytes = bytes + StorageBytes(tensor->shape.Elements(), tensor->type.bits);
      }
    }
  }
}

void Autograd::KeepOutput(const Tensor& output) {
  if (output.RequiresGradient()) {
    Save(output);
  }
}

void Autograd::RecordParts(const Tensor& whole, std::span<Tensor> parts) {
  if (!whole.RequiresGradient() || !recording_) {
    return;
  }
  const auto first = static_cast<std::int32_t>(edges_.size());
  for (Tensor& part : parts) {
    part.edge = NewEdge();
  }
  NewNode(first, static_cast<std::int32_t>(parts.size()));
  AddInput(whole, Gradient::kNew);
}

void Autograd::RecordReplay(Tensor& output, std::span<const Tensor> inputs,
                            std::span<const Tensor> saved, std::int32_t number) {
  const std::int32_t edge = NewEdge();
  NewNode(edge, 1).replay = number;
  for (const Tensor& input : inputs) {
    AddInput(input, Gradient::kNew);
  }
  output.edge = edge;
  for (const Tensor& tensor : saved) {
    Save(tensor);
  }
}

std::int32_t Autograd::GradientStorage(std::int32_t edge) const {
  return edge == kNothing ? kNothing : edges_[Index(edge)].gradient.storage;
}

std::int32_t& Autograd::UsesOf(Leaf& leaf) const {
  if (leaf.uses.size() <= pass_) {
    leaf.uses.resize(pass_ + 1);
  }
  return leaf.uses[pass_];
}

Tensor Autograd::TakeCollected(std::int32_t edge) {
  const std::int32_t leaf = edge == kNothing ? kNothing : edges_[Index(edge)].leaf;
  return leaf == kNothing ? Tensor() : std::move(leaves_[Index(leaf)].gradient);
}

Tensor Autograd::TakeGradient(std::int32_t edge) {
  edges_[Index(edge)].has_gradient = false;
  return std::move(edges_[Index(edge)].gradient);
}

void Autograd::Accumulate(std::int32_t edge, Tensor gradient) {
  Edge& into = edges_[Index(edge)];
  if (!into.has_gradient) {
    into.gradient = std::move(gradient);
    into.has_gradient = true;
    return;
  }
  if (sums_in_place_ && memory_.HasOneHolder(into.gradient.storage)) {
    return;
  }
  Kernel kernel = memory_.Now();
  kernel.kind = &kSum;
  memory_.Begin(kernel);
  into.gradient = New(gradient.shape, gradient.type, "gradient");
}

void Autograd::Finish(Leaf& leaf, Edge& edge) {
  if (!edge.has_gradient) {
    return;
  }
  edge.has_gradient = false;
  Tensor gradient = std::move(edge.gradient);
  memory_.At(gradient.storage).copies /= passes_;
  if (leaf.use == GradientUse::kBorn) {
    memory_.Assign(gradient.storage, Pile::kGradients);
    leaf.gradient = std::move(gradient);
    leaf.use = GradientUse::kAdded;
  } else if (leaf.use == GradientUse::kCollected) {
    leaf.gradient = std::move(gradient);
  }
}

Tensor Autograd::NewGradient(const Node& node, std::size_t number) {
  const NodeInput& input = inputs_[number];
  if (input.gradient == Gradient::kKept) {
    const std::int32_t kept = saved_[node.first_saved + (number - node.first_input)];
    memory_.Hold(kept);
    return {&memory_, kept, input.shape, input.type};
  }
  if (input.gradient != Gradient::kNew) {
    Tensor same = edges_[Index(node.first_output)].gradient;
    same.shape = input.shape;
    return same;
  }
  return New(input.shape, input.type, "gradient");
}

void Autograd::Run(const Node& node) {
  const std::size_t last_input = inputs_.size();
  {
    Tensor work;
    if (node.backward_bytes.ok() && node.backward_bytes.value() > 0) {
      work = New(ShapeOf({node.backward_bytes.value()}), kByte, "temporaries");
    }
    for (std::size_t i = node.first_input; i < last_input; ++i) {
      const std::int32_t leaf = edges_[Index(inputs_[i].edge)].leaf;
      const bool direct = inputs_[i].gradient == Gradient::kDirect ||
                          (leaf != kNothing && leaves_[Index(leaf)].use == GradientUse::kDirect);
      gradients_.push_back(direct ? Tensor() : NewGradient(node, i));
    }
  }
  for (std::int32_t i = 0; i < node.outputs; ++i) {
    TakeGradient(node.first_output + i);
  }
  Forget(node);
  for (std::size_t i = node.first_input; i < last_input; ++i) {
    Tensor& gradient = gradients_[i - node.first_input];
    if (gradient.storage != kNothing) {
      Accumulate(inputs_[i].edge, std::move(gradient));
    }
  }
  gradients_.clear();
}

// What it kept is let go of.
void Autograd::Forget(const Node& node) {
  for (std::size_t i = node.first_saved; i < saved_.size(); ++i) {
    memory_.LetGo(saved_[i]);
  }
  saved_.resize(node.first_saved);
}

void Autograd::RunAgain(const Node& node, const Replay& replay) {
  std::vector<Tensor> gradients = replay(node.replay, TakeGradient(node.first_output));
  Forget(node);
  std::size_t input = node.first_input;
  for (Tensor& gradient : gradients) {
    if (gradient.storage != kNothing) {
      Accumulate(inputs_[input].edge, std::move(gradient));
    }
    ++input;
  }
}

void Autograd::Backward(std::int32_t first, const std::int32_t& action, const Replay& replay) {
  while (NodeCount() > first) {
    Node node = nodes_.back();
    bool reached = false;
    for (std::int32_t i = 0; i < node.outputs; ++i) {
      reached = reached || edges_[Index(node.first_output + i)].has_gradient;
    }
    node.kernel.action = action;
    memory_.SetAlike(node.alike);
    if (reached && node.replay != kNothing) {
      RunAgain(node, replay);
    } else if (reached) {
      memory_.Begin(node.kernel);
      Run(node);
    } else {
      Forget(node);
    }
    for (std::size_t i = node.first_input; i < inputs_.size(); ++i) {
      Edge& edge = edges_[Index(inputs_[i].edge)];
      if (edge.leaf != kNothing && --UsesOf(leaves_[Index(edge.leaf)]) == 0) {
        Finish(leaves_[Index(edge.leaf)], edge);
      }
    }
    inputs_.resize(node.first_input);
    nodes_.pop_back();
    memory_.SetAlike(1);
  }
}

}  // namespace fourpiles
