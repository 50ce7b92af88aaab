#pragma once

// The kernels of PyTorch, as far as memory is concerned: what each allocates, what its node in the
// graph of gradients keeps, and what its backward kernel allocates.
//
// What is kept: tools/autograd/derivatives.yaml of PyTorch, the same for every operator since 1.13
// but where a switch of Framework says otherwise; measured to the byte in tests/truth. A kernel
// takes a tensor by value where the caller may give it up.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/operators.h"
#include "step/autograd.h"

namespace fourpiles {

// Which gradients are added by the kernels that make them to buffers that are there already.
enum class DirectGradients {
  kNone,
  kLinear,  // of the weights of linear layers
  kAll,
};

// Where frameworks and their versions differ.
struct Framework {
  // mean() keeps its input for the backward pass: PyTorch up to 2.1 (pytorch#109935).
  bool mean_keeps_input = false;
  // dropout() of the processor keeps its mask in the format of its input; CUDA's keeps one byte an
  // element (ATen/native/Dropout.cpp, native_dropout).
  bool dropout_keeps_float_mask = false;
  // Means and deviations of norms in 16-bit formats are kept in that format by the processor's
  // kernels, in float32 by CUDA's.
  bool norms_keep_input_format = false;
  // Autocast computes norms, softmax and losses in float32: CUDA's does, the processor's does not
  // (PyTorch documentation, torch.amp, autocast op reference).
  bool autocast_float32 = true;
  // Two gradients of one tensor are added up in the first (torch/csrc/autograd/input_buffer.cpp,
  // can_accumulate_inplace; not in 1.13, where a tied embedding was measured three times).
  bool sums_in_place = true;
  // cos and sin of rotary embeddings are cast wherever they are used, not once a pass.
  bool rotary_casts_per_use = false;
  // The causal mask is a buffer of the module, not made once a pass.
  bool masks_are_buffers = false;
  // Logits are copied to leave out the last token (transformers up to 4.44), not the labels padded.
  bool shift_copies_logits = false;
  // Bytes of the state of random numbers that a region which is run again keeps on the device.
  std::int64_t random_state_bytes = 0;
  DirectGradients direct_gradients = DirectGradients::kNone;
  // The results of elementwise kernels, casts and norms are not kept: the backward pass computes
  // them again from what they were made of. Masks of dropout are, from the seed.
  bool recomputes_elementwise = false;
  // How much llm.c computes again: 1 GELU, 2 layer norms as well (train_gpt2.cu, option -r).
  int recompute_level = 0;
  // Convolutions run on the processor, whose kernels reorder or unfold their tensors.
  bool on_processor = false;
  // A product with a coded weight keeps its input, which no gradient needs, and not as autograd
  // keeps tensors but in a field of its node: it is let go of with the graph, when the loss of the
  // next micro-batch takes the place of this one's (bitsandbytes 0.41, autograd/_functions.py,
  // MatMul4Bit: ctx.tensors).
  bool coded_product_keeps_input = false;
  // Codes become float16 numbers first, which are then cast (bitsandbytes 0.41, nn/modules.py,
  // Params4bit; Lightning Fabric, plugins/precision/bitsandbytes.py).
  bool codes_are_of_float16 = false;
  // Gradients are zeroed between steps, not let go of: zero_grad() up to PyTorch 1.13.
  bool zeroes_gradients = false;
  // What a stage of a pipeline has sent on is let go of, though its graph stands (Megatron-LM,
  // core/pipeline_parallel/schedules.py, deallocate_output_tensor).
  bool frees_sent_outputs = false;
  // Gradients of data-parallel ranks are sent from copies of them.
  bool copies_into_buckets = true;
  // Sharded parameters of a unit are one flat tensor, whose gradient is sent as it is (FSDP1:
  // torch/distributed/fsdp/_flat_param.py), else each for itself (FSDP2).
  bool flat_parameters = false;
  // Embedding and output layer are units of their own beside the layers; else they belong to the
  // whole, which is gathered first and let go of last.
  bool shards_root_apart = false;
  // The last layer's gathered parameters stay between forward and backward pass.
  bool keeps_last_layer = false;
  // The training loop holds the logits until those of the next micro-batch are there.
  bool loop_holds_logits = false;
};

// The number formats of one step.
struct Numbers {
  ElementType weights = kFloat32;
  ElementType compute = kFloat32;  // of matrix products
  bool autocast = false;           // weights and inputs are cast to it where they are used
};

// As it is, not what it is made of: what a kernel that is not elementwise reads in the backward
// pass stands in memory then anyway, so torch.compile keeps it
// (functorch/_functorch/partitioners.py, ban_recompute_materialized_backward).
inline Tensor Stored(Tensor x) {
  if (!x.is_gathered) {
    x.made_of = {};
  }
  return x;
}

class Kernels {
 public:
  Kernels(Memory& memory, Autograd& graph, const Framework& framework, const Numbers& numbers)
      : memory_(memory), graph_(graph), framework_(framework), numbers_(numbers) {}

  // NOLINTNEXTLINE(readability-identifier-naming): an accessor
  const Framework& framework() const { return framework_; }
  Moment Now() const;
  const Numbers& numbers() const { return numbers_; }  // NOLINT(readability-identifier-naming)

  // The action and the operator of its block that kernels run for from now on.
  void SetPlace(std::int32_t action, std::int32_t op);

  // --- Copies and views ---
  // x itself where it has the type already.
  Tensor Cast(Tensor x, const ElementType& type);
  Tensor Copy(Tensor x);
  // A copy that repeats x up to the shape: expand() and reshape().
  Tensor Repeat(Tensor x, const Shape& shape);
  Tensor View(Tensor x, const Shape& shape) const;
  // Parts of the last dimension; views of x.
  std::vector<Tensor> Split(const Tensor& x, const std::vector<std::int64_t>& widths);
  // Parts of the first dimensions, taken as rows of the last.
  std::vector<Tensor> SplitRows(const Tensor& x, std::int64_t rows, std::int64_t parts);
  // A view of some rows of x; the gradient of x is as large as x.
  Tensor Slice(const Tensor& x, const Shape& shape);
  // `first`: how the gradient of `a` comes out of that of the whole.
  Tensor Concat(const Tensor& a, const Tensor& b, const Shape& shape,
                Gradient first = Gradient::kSame);

  // --- Elementwise ---
  Tensor Scale(const Tensor& x);  // times a number
  Tensor Add(const Tensor& a, const Tensor& b);
  Tensor AddInPlace(Tensor a, const Tensor& b);
  Tensor Multiply(const Tensor& a, const Tensor& b);
  Tensor Square(const Tensor& x);
  Tensor Sum(const Tensor& x, const Shape& shape);
  Tensor Mean(const Tensor& x, const Shape& shape);
  Tensor KeepInput(const KernelKind& kind, const Tensor& x);   // GELU, SiLU
  Tensor KeepOutput(const KernelKind& kind, const Tensor& x);  // tanh, ReLU, 1/√x
  Tensor Dropout(Tensor x);
  Tensor Masked(const Tensor& x, Mask kind, const Tensor& mask);

  // --- Matrix products ---
  Tensor Linear(Tensor x, const Tensor& weight, const Tensor& bias, std::int64_t out);
  Tensor MatMul(Tensor a, Tensor b, const Shape& shape);
  Tensor Softmax(Tensor x);
  // A loss that keeps x, and whose backward kernel makes two tensors like it beside the gradient.
  Tensor LossWithTwoTemporaries(const KernelKind& kind, const Tensor& x);
  Tensor Convolution(Tensor x, const Tensor& weight, const Tensor& bias, const Shape& shape);

  // --- Norms ---
  Tensor LayerNorm(Tensor x, const Tensor& weight, const Tensor& bias);

  // --- Lookups ---
  Tensor Embedding(const Tensor& weight, const Tensor& indices, const Shape& shape);

  // A node of one new output: fused kernels are made of this.
  Tensor Fused(const KernelKind& kind, const Shape& shape, const ElementType& type,
               std::initializer_list<Input> inputs, std::initializer_list<const Tensor*> saved);
  // The same that keeps its output as well.
  Tensor FusedKeepingOutput(const KernelKind& kind, const Shape& shape, const ElementType& type,
                            std::initializer_list<Input> inputs,
                            std::initializer_list<const Tensor*> saved);
  // The same, of a kernel that is dear: where a region keeps such outputs, running it again reads
  // them.
  Tensor Dear(const KernelKind& kind, const Shape& shape, const ElementType& type,
              std::initializer_list<Input> inputs, std::initializer_list<const Tensor*> saved);
  Tensor DearKeepingOutput(const KernelKind& kind, const Shape& shape, const ElementType& type,
                           std::initializer_list<Input> inputs,
                           std::initializer_list<const Tensor*> saved);
  Tensor DearConstant(const Shape& shape, const ElementType& type, const char* slot);
  // Parts of other ranks beside x; the backward pass gathers them again rather than keep them.
  Tensor GatheredAgain(const KernelKind& kind, const Tensor& x, const Shape& shape);
  // A node whose output takes the place of its input and is kept.
  Tensor KeepInPlace(const KernelKind& kind, Tensor x);
  // All of them in one new tensor; their gradients are views of its.
  Tensor Stack(const KernelKind& kind, std::span<const Tensor> parts, const Shape& shape);
  // A node whose output takes the place of x; `gradient`: how that of x comes out of its own.
  Tensor InPlace(const KernelKind& kind, Tensor x, const Tensor& other,
                 std::initializer_list<const Tensor*> saved, Gradient gradient = Gradient::kSame);
  // A node whose output stands in a buffer that others use too.
  Tensor Into(const KernelKind& kind, const Tensor& buffer, std::initializer_list<Input> inputs,
              std::initializer_list<const Tensor*> saved);
  // The output of an elementwise kernel that was made of these.
  Tensor Elementwise(Tensor output, std::initializer_list<const Tensor*> sources) const;
  // A tensor that needs no gradient: indices, masks, tables, statistics.
  Tensor Constant(const Shape& shape, const ElementType& type, const char* slot);

  // What runs from now on stands for so many alike, one after the other.
  void StandFor(std::int64_t alike) { memory_.SetAlike(static_cast<std::int32_t>(alike)); }

  void RequireGradient(Tensor& x) { x.edge = graph_.NewEnd(); }

  // Outputs of dear kernels, and of every second matrix product, are kept from now on.
  void KeepOutputs();
  // Those that were, in their order; no more are.
  std::vector<Tensor> TakeOutputs();
  // Kernels that made them before take them from here, until TakeOutputs().
  void ReadOutputs(std::vector<Tensor> outputs);

  // The inputs that nodes hold in fields of their own, since this was last asked.
  std::vector<Tensor> TakeHeldInputs() { return std::exchange(held_inputs_, {}); }

  // Casts of weights live until the forward pass ends.
  void ForgetCasts() { casts_.clear(); }

 private:
  void Begin(const KernelKind& kind);
  Tensor CastWeight(const Tensor& weight);
  Tensor CodedLinear(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t out);
  bool IsDearProduct(const Tensor& bias);
  Tensor NextOutput(const Shape& shape);
  void KeepForRegion(const Tensor& output);

  Memory& memory_;
  Autograd& graph_;
  const Framework& framework_;
  const Numbers& numbers_;
  Kernel place_ = {};
  std::map<std::int32_t, Tensor> casts_ = {};  // of weights, by their edge
  std::vector<Tensor> held_inputs_ = {};
  enum class Outputs { kMade, kKept, kRead };
  Outputs outputs_use_ = Outputs::kMade;
  std::vector<Tensor> outputs_ = {};  // of dear kernels
  std::size_t next_output_ = 0;
  std::int64_t products_ = 0;  // matrix products of the region so far
};

}  // namespace fourpiles
