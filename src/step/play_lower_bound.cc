#include "step/play_lower_bound.h"

#include <utility>

#include "base/try.h"

namespace fourpiles {
namespace {

constexpr KernelKind kLayerOutput = {"layer",
                                     "the least that any implementation keeps: of each layer its "
                                     "output"};
constexpr KernelKind kOther = {"step", ""};

class LowerBoundPlayer {
 public:
  explicit LowerBoundPlayer(const Part& part)
      : part_(part), network_(*part.network), tape_(NewTape(part)), memory_(tape_) {}

  Result<Tape> Run() {
    for (std::int32_t number = 0; number < std::ssize(part_.schedule); ++number) {
      const Action& action = part_.schedule[static_cast<std::size_t>(number)];
      memory_.SetCopies(action.layers);
      if (action.kind == ActionKind::kForward) {
        memory_.Begin({.action = number, .kind = &kLayerOutput});
        Forward(action);
      } else if (action.kind == ActionKind::kBackward) {
        if (!std::exchange(backward_, true)) {
          memory_.EndForward();
        }
        memory_.Begin({.action = number, .kind = &kLayerOutput});
        Backward(action);
      } else {
        memory_.Begin({.action = number, .kind = &kOther});
      }
    }
    outputs_.clear();
    return Completed(std::move(tape_), memory_);
  }

 private:
  const Block& BlockOf(const Action& action) const {
    return network_.blocks[static_cast<std::size_t>(action.block)];
  }

  Tensor New(const Shape& shape, const ElementType& type, Pile pile, const char* slot) {
    return {&memory_, memory_.Allocate(shape, type, pile, slot), shape, type};
  }

  // Without a backward pass a layer's output lives until the next one is there.
  void Forward(const Action& action) {
    backward_ = false;
    Tensor output;
    if (IsNumbered(BlockOf(action)) && network_.hidden_size) {
      const Shape shape = ShapeOf(
          {part_.batch.micro_batch_size, part_.batch.sequence_length, *network_.hidden_size});
      const Pile pile = part_.records ? Pile::kActivations : Pile::kWorkspace;
      output = New(shape, part_.activation_format, pile, "output");
    }
    if (!part_.records && output.storage != kNothing) {
      memory_.SetCopies(output.storage, 1);
      outputs_.clear();
    }
    outputs_.push_back(std::move(output));
  }

  // Gradients that have no buffer of their own are born with the first micro-batch.
  void Backward(const Action& action) {
    const std::int64_t elements = TrainableElementsOfLayer(BlockOf(action));
    if (part_.gradients == GradientUse::kBorn && elements > 0 && action.micro_batch == 0) {
      const Tensor gradients =
          New(ShapeOf({elements}), part_.numbers.weights, Pile::kGradients, "gradients");
      memory_.Hold(gradients.storage);  // until the end of the step
    }
    outputs_.pop_back();
  }

  const Part& part_;
  const Network& network_;
  Tape tape_;
  Memory memory_;
  std::vector<Tensor> outputs_ = {};  // of the layers that have not run backward
  bool backward_ = false;
};

tl::unexpected<Error> TooLarge(const std::string& what) {
  return WrongUsage({.where = "budget",
                     .found = "the memory of " + what + " passes 2^53 bytes",
                     .expected = "expected less",
                     .hint = "check the batch size, the sequence length and the model"});
}

}  // namespace

Tape NewTape(const Part& part) {
  Tape tape = {.actions = part.schedule, .network = part.network};
  if (part.resident) {
    tape.storages = part.resident->storages;
    tape.texts = {part.resident, &part.resident->texts};
  }
  return tape;
}

Result<Tape> Completed(Tape tape, Memory& memory) {
  memory.Close();
  if (const std::optional<Kernel>& kernel = memory.Overflow()) {
    tape.moments.push_back(*kernel);
    return TooLarge(MomentName(tape, std::ssize(tape.moments) - 1));
  }
  TRY_VOID(CheckTape(tape));
  return tape;
}

Result<Tape> PlayLowerBound(const Part& part) {
  return LowerBoundPlayer(part).Run();
}

}  // namespace fourpiles
