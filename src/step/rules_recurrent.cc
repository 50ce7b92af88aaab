// The long short-term memory as PyTorch composes it on the processor (ATen/native/RNN.cpp); cuDNN's
// keeps one reserve buffer instead.

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kGates = {"gates", "derivatives.yaml: sigmoid_, tanh_ keep result"};
constexpr KernelKind kCell = {"cell", "derivatives.yaml: mul keeps self and other"};
constexpr KernelKind kTanh = {"tanh", "derivatives.yaml: tanh keeps result"};
constexpr KernelKind kStack = {"stack", "derivatives.yaml: stack keeps nothing"};

// One layer over all tokens; x and the result are (sequence, batch, width).
Tensor LstmLayer(Stage& stage, const Operator& op, std::size_t layer, Tensor x) {
  Kernels& kernels = stage.kernels;
  const std::int64_t tokens = x.shape.lengths[0];
  const std::int64_t width = op.widths.front();
  const Shape state = ShapeOf({x.shape.lengths[1], width});
  const ElementType type = x.type;
  const auto parameter = [&](std::size_t which) { return stage.Parameter(op, 4 * layer + which); };
  const Shape whole = ShapeOf({tokens, state.lengths[0], width});
  Tensor inputs = kernels.Linear(std::move(x), parameter(0), parameter(2), 4 * width);
  std::vector<Tensor> input = kernels.SplitRows(inputs, tokens * state.lengths[0], tokens);
  inputs = Tensor();
  Tensor hidden = kernels.Constant(state, type, "first hidden state");
  Tensor cell = kernels.Constant(state, type, "first cell state");
  std::vector<Tensor> outputs;
  for (Tensor& token : input) {
    Tensor gates = kernels.Linear(hidden, parameter(1), parameter(3), 4 * width);
    gates = kernels.AddInPlace(std::move(gates), std::exchange(token, {}));
    gates = kernels.KeepInPlace(kGates, std::move(gates));
    const ElementType& wider = cell.type.bits > gates.type.bits ? cell.type : gates.type;
    cell = kernels.Fused(kCell, state, wider, {{gates}, {cell}}, {&gates, &cell});
    const Tensor tanh = kernels.KeepOutput(kTanh, cell);
    hidden = kernels.Fused(kCell, state, wider, {{gates}, {tanh}}, {&gates, &tanh});
    outputs.push_back(hidden);
  }
  return kernels.Stack(kStack, outputs, whole);
}

}  // namespace

void LstmRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  const Shape shape = x.shape;
  x.shape = ShapeOf({shape.lengths[1], shape.lengths[0], shape.lengths[2]});
  for (std::size_t layer = 0; 4 * layer < op.parameters.size(); ++layer) {
    if (layer > 0 && op.dropout) {
      x = stage.kernels.Dropout(std::move(x));
    }
    x = LstmLayer(stage, op, layer, std::move(x));
  }
  x.shape = shape;
  stage.Put(op, std::move(x));
}

}  // namespace fourpiles
