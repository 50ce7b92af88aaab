#include "step/play.h"

#include <fmt/format.h>

#include "base/try.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

tl::unexpected<Error> TooLarge(const std::string& what) {
  return WrongUsage({.where = "budget",
                     .found = what + " passes 2^53 bytes",
                     .expected = "expected less",
                     .hint = "check the batch size, the sequence length and the parameter count"});
}

class Player {
 public:
  Player(const Part& part, const Profile& profile) : part_(part), profile_(profile) {}

  Result<Tape> Run() {
    tape_.storages = part_.resident;
    for (const Action& action : part_.schedule) {
      const auto moment = static_cast<Moment>(tape_.moments.size());
      tape_.moments.push_back(MomentName(action, part_.network));
      if (action.kind == ActionKind::kForward) {
        TRY_VOID(Forward(action, moment));
      } else if (action.kind == ActionKind::kBackward) {
        TRY_VOID(Backward(action, moment));
      }
    }
    TRY_VOID(CheckTape(tape_));
    return std::move(tape_);
  }

 private:
  // What the operators of the layer keep is born here.
  Result<void> Forward(const Action& action, Moment moment) {
    const Block& block = part_.network.blocks[static_cast<std::size_t>(action.block)];
    const std::string layer = LayerName(block, action.layer);
    for (const Operator& op : block.operators) {
      for (SavedTensor& saved : profile_.RuleOf(op.kind)(op, part_.shapes)) {
        const Checked bytes = StorageBytes(saved.elements, saved.format);
        if (!bytes.ok()) {
          return TooLarge(layer + " " + saved.what);
        }
        tape_.storages.push_back({.what = layer + " " + saved.what,
                                  .pile = Pile::kActivations,
                                  .format = std::string(saved.format.name),
                                  .elements = Elements(saved.elements.value()),
                                  .bytes = Exactly(Bytes(bytes.value())),
                                  .born = moment,
                                  .formula = std::move(saved.formula),
                                  .source = std::move(saved.source),
                                  .pattern = block.name + " " + saved.what});
        kept_[{action.block, action.layer}].push_back(tape_.storages.size() - 1);
      }
    }
    return {};
  }

  // What the layer kept is used for the last time; gradients without a buffer are born with the
  // first micro-batch and live to the end of the step.
  Result<void> Backward(const Action& action, Moment moment) {
    for (const std::size_t kept : kept_[{action.block, action.layer}]) {
      tape_.storages[kept].dies = moment + 1;
    }
    kept_.erase({action.block, action.layer});
    const Block& block = part_.network.blocks[static_cast<std::size_t>(action.block)];
    const std::int64_t elements = TrainableElementsOfLayer(block);
    if (!part_.born_gradients || action.micro_batch != 0 || elements == 0) {
      return {};
    }
    const Checked bytes = StorageBytes(elements, *part_.born_gradients);
    if (!bytes.ok()) {
      return TooLarge("gradients of " + LayerName(block, action.layer));
    }
    tape_.storages.push_back({.what = "gradients of " + LayerName(block, action.layer),
                              .pile = Pile::kGradients,
                              .format = std::string(part_.born_gradients->name),
                              .elements = Elements(elements),
                              .bytes = Exactly(Bytes(bytes.value())),
                              .born = moment,
                              .formula = "its trainable parameters",
                              .source = "torch.autograd: .grad is born in backward",
                              .pattern = "gradients of " + block.name});
    return {};
  }

  const Part& part_;
  const Profile& profile_;
  Tape tape_;
  // The storages that each layer keeps for its backward pass, by (block, layer).
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> kept_;
};

}  // namespace

Result<Tape> Play(const Part& part, const Profile& profile) {
  return Player(part, profile).Run();
}

}  // namespace fourpiles
