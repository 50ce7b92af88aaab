#pragma once

// What PyTorch's autograd remembers of a forward pass, and the order in which the backward pass
// lets go of it (torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.cpp).
//
// A node is one kernel that something upstream needs a gradient of. It holds the storages that its
// backward kernel reads; they are let go of when that has run. Nodes run in the reverse order of
// their making, which is the order of the engine's queue. Two gradients of one tensor are added up
// in the first, where nothing else holds it, or in a new one.

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "step/memory.h"

namespace fourpiles {

// How the gradient of an input comes out of that of the output.
enum class Gradient {
  kNew,     // a new tensor like the input
  kSame,    // the gradient of the output itself, or a view of it
  kPart,    // a view of it that a parameter takes over as its own
  kKept,    // a tensor that the forward pass made already: the kept one of the same number
  kDirect,  // where the parameter's buffer is there already, its kernel adds to it: no tensor
};

struct Input {
  const Tensor& tensor;
  Gradient gradient = Gradient::kNew;
};

// What becomes of a parameter's gradient once it is complete.
enum class GradientUse {
  kBorn,       // it becomes the parameter's gradient and stays
  kAdded,      // it is added to a buffer that is there, or stepped with at once, and let go of
  kDirect,     // the kernel adds to that buffer itself: there is no gradient of its own
  kCollected,  // it waits until those of its unit are sent to the ranks that have their shares
};

class Autograd {
 public:
  Autograd(Memory& memory, bool sums_in_place);

  // --- The forward pass, for the kernels of kernels.h ---

  // A new tensor of the kernel that runs; it needs no gradient yet.
  Tensor New(const Shape& shape, const ElementType& type, const char* slot = "output");

  // Makes `output` the output of a node over these inputs that keeps `saved` (nullptr: not this
  // one). Does nothing where no input needs a gradient or nothing is recorded. `backward_bytes`
  // live while its gradients are computed.
  void Record(Tensor& output, std::initializer_list<Input> inputs,
              std::initializer_list<const Tensor*> saved, Checked backward_bytes = 0);

  // Makes `output` the output of a node over all of these; their gradients are views of its.
  void RecordStack(Tensor& output, std::span<const Tensor> inputs);

  // The last node, if it is that of `output`, keeps it.
  void KeepOutput(const Tensor& output);

  // Makes the parts, which are views of `whole`, outputs of one node: the gradient of the whole is
  // put together from theirs.
  void RecordParts(const Tensor& whole, std::span<Tensor> parts);

  // False: nothing is kept, as where a forward pass will be run again.
  void SetRecording(bool recording) { recording_ = recording; }
  bool IsRecording() const { return recording_; }

  // A node that may be given a storage to keep until all later nodes have run; returns its place.
  std::size_t Reserve();
  void KeepAt(std::size_t place, std::int32_t storage);
  // Whether a node from `first` on keeps the storage.
  bool Keeps(std::int32_t first, std::int32_t storage) const;

  // --- Parameters ---

  // The edge of a parameter that is trained.
  std::int32_t NewLeaf(GradientUse use);
  // So many passes wait while one runs: the gradients of each are complete for themselves.
  void SetWaiting(std::size_t passes) { pass_ = passes; }
  // What runs backward stands for so many passes, one after the other, whose gradients of
  // parameters add up to one.
  void SetPasses(std::int64_t passes) { passes_ = passes; }
  // The gradient that a parameter collected, if there is one; it has none from now on.
  Tensor TakeCollected(std::int32_t edge);

  // --- The backward pass ---

  // An edge that ends here: its gradient waits to be taken.
  std::int32_t NewEnd();
  Tensor TakeGradient(std::int32_t edge);
  // The storage of the gradient that waits at the edge, or none.
  std::int32_t GradientStorage(std::int32_t edge) const;
  void Accumulate(std::int32_t edge, Tensor gradient);

  // Makes `output` the output of a region that will be run again. Its node keeps `saved`; in the
  // backward pass it calls `replay` with this number and the gradient of its output, for those of
  // its inputs that need one, in their order.
  void RecordReplay(Tensor& output, std::span<const Tensor> inputs, std::span<const Tensor> saved,
                    std::int32_t number);
  using Replay = std::function<std::vector<Tensor>(std::int32_t number, Tensor gradient)>;

  std::int32_t NodeCount() const { return static_cast<std::int32_t>(nodes_.size()); }
  // Runs the nodes from the last down to `first`, at moments of this action, and forgets them.
  void Backward(std::int32_t first, const std::int32_t& action, const Replay& replay);

 private:
  struct Edge {
    std::int32_t leaf = kNothing;
    Tensor gradient = {};
    bool has_gradient = false;
  };
  struct Leaf {
    GradientUse use = GradientUse::kBorn;
    // By nodes of each pass that have not run: those that wait are others'.
    std::vector<std::int32_t> uses = {};
    Tensor gradient = {};  // born
  };
  struct NodeInput {
    std::int32_t edge = kNothing;
    Gradient gradient = Gradient::kNew;
    Shape shape = {};
    ElementType type = {};
  };
  struct Node {
    Kernel kernel = {};
    std::int32_t first_output = 0;
    std::int32_t outputs = 1;
    std::size_t first_input = 0;
    std::size_t first_saved = 0;
    Checked backward_bytes = 0;
    std::int32_t replay = kNothing;
    std::int32_t alike = 1;
  };

  std::int32_t NewEdge(std::int32_t leaf = kNothing);
  Node& NewNode(std::int32_t first_output, std::int32_t outputs);
  void AddInput(const Tensor& tensor, Gradient gradient);
  void Save(const Tensor& tensor);
  void SaveAll(std::initializer_list<const Tensor*> saved);
  Tensor NewGradient(const Node& node, std::size_t number);
  void Run(const Node& node);
  void RunAgain(const Node& node, const Replay& replay);
  std::int32_t& UsesOf(Leaf& leaf) const;  // by the pass that runs
  void Finish(Leaf& leaf, Edge& edge);
  void Forget(const Node& node);
  static std::size_t Index(std::int32_t number) { return static_cast<std::size_t>(number); }

  Memory& memory_;
  bool sums_in_place_;
  bool recording_ = true;
  std::size_t pass_ = 0;
  std::int64_t passes_ = 1;
  std::vector<Edge> edges_ = {};
  std::vector<Leaf> leaves_ = {};
  std::vector<Node> nodes_ = {};
  std::vector<NodeInput> inputs_ = {};    // of all nodes, in their order
  std::vector<std::int32_t> saved_ = {};  // storages
  std::vector<Tensor> gradients_ = {};    // of the node that runs, for each of its inputs
};

}  // namespace fourpiles
